"""Fixtures of the examinations: every engine, on every event loop."""

import pytest

from etcd_aio.transport import ENGINES
from tests.support import loops
from tests.support.transport import FAKE


@pytest.fixture(params=loops.BOTH)
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return request.param


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The engines under examination, by `name`; the fake's too, for what does not depend on HTTP/2."""
    if "name" in metafunc.fixturenames:
        is_for_fake = metafunc.definition.get_closest_marker("fake_too") is not None
        metafunc.parametrize("name", [*ENGINES, FAKE] if is_for_fake else ENGINES)
