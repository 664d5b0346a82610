"""Fixtures of the examinations: every engine, on every event loop."""

import pytest

from etcd_aio.transport import ENGINES
from tests.support import loops
from tests.support.transport import FAKE


@pytest.fixture(params=loops.BOTH)
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return request.param


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave grpclib on uvloop to `--nightly`: each of the two is examined with another partner by default."""
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            chosen = item.callspec.params
            if chosen.get("name") == "grpclib" and chosen.get("anyio_backend") == loops.UVLOOP:
                item.add_marker(pytest.mark.nightly)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The engines under examination, by `name`; the fake's too, for what does not depend on HTTP/2."""
    if "name" in metafunc.fixturenames:
        is_for_fake = metafunc.definition.get_closest_marker("fake_too") is not None
        metafunc.parametrize("name", [*ENGINES, FAKE] if is_for_fake else ENGINES)
