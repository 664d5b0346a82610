"""Fixtures of the examinations: every engine, on every event loop."""

import pytest

from tests.support import loops
from tests.support.transport import FAKE, HTTP2_ENGINES

# What is examined of every engine, and HTTP/1 cannot say: a WebSocket is never closed on one side, so a dialogue does
# not end well because its client has ended it. `test_gateway.py` has the rest of what these examine.
NOT_OVER_HTTP1 = frozenset(
    {
        "test_a_bidirectional_stream_echoes_and_ends_with_ok",
        "test_twenty_streams_beside_calls",
        "test_a_draining_connection_finishes_its_work_and_closes_itself",
        "test_a_cancelled_receive_loses_no_message",
    }
)


@pytest.fixture(params=loops.BOTH)
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return request.param


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave grpclib and the gateway on uvloop to `--nightly`: `native` is examined on both loops by default."""
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            chosen = item.callspec.params
            is_gateway = item.path.name == "test_gateway.py"
            is_slower = is_gateway or chosen.get("name") in ("grpclib", "gateway")
            if is_slower and chosen.get("anyio_backend") == loops.UVLOOP:
                item.add_marker(pytest.mark.nightly)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The engines under examination, by `name`; also the gateway and the fake, for what does not depend on HTTP/2."""
    if "name" in metafunc.fixturenames:
        engines: list[object] = [*HTTP2_ENGINES]
        if metafunc.definition.get_closest_marker("fake_too") is not None:
            engines += [FAKE]
            if metafunc.function.__name__ not in NOT_OVER_HTTP1:
                engines += ["gateway"]
        metafunc.parametrize("name", engines)
