"""Fixtures of the examinations: every engine, on every event loop."""

import pytest

from etcd_aio.transport import ENGINES, EngineName
from tests.support import loops


@pytest.fixture(params=loops.BOTH)
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return request.param


@pytest.fixture(params=ENGINES)
def name(request: pytest.FixtureRequest) -> EngineName:
    """The engine under examination."""
    engine_name: EngineName = request.param
    return engine_name
