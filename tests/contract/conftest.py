"""Fixtures of the examinations: every engine, on every event loop."""

import pytest

from etcd_aio.transport import ENGINES, EngineName


@pytest.fixture(
    params=[
        pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio"),
        pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop"),
    ]
)
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return request.param


@pytest.fixture(params=ENGINES)
def name(request: pytest.FixtureRequest) -> EngineName:
    """The engine under examination."""
    engine_name: EngineName = request.param
    return engine_name
