"""Virtual time for tests that use `etcd_clock`: what anyio and pytest-asyncio need to make such a loop.

This module is registered as a plugin with the first such test. Since pytest-asyncio then asks for the loop of every
test, it answers for the others too, unless another plugin does.
"""

import asyncio
from collections.abc import Callable, Generator, Mapping
from typing import Final, TypeAlias

import pytest

from etcd_aio.fake.time import VirtualTimeLoop
from pytest_etcd_aio.wanted import unusable

_Factories: TypeAlias = Mapping[str, Callable[[], asyncio.AbstractEventLoop]]

BACKEND: Final = ("asyncio", {"loop_factory": VirtualTimeLoop})


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_asyncio_loop_factories(item: pytest.Item) -> Generator[None, _Factories | None, _Factories]:
    """Choose the loop of a test."""
    others = yield
    if "etcd_clock" in getattr(item, "fixturenames", ()):
        return {"virtual_time": VirtualTimeLoop}
    return others or {"asyncio": asyncio.new_event_loop}


def virtual_loop(loop: asyncio.AbstractEventLoop) -> VirtualTimeLoop:
    """The loop of a test that asks for virtual time. The test fails if it has another."""
    if not isinstance(loop, VirtualTimeLoop):
        unusable("etcd_clock needs anyio, or pytest-asyncio 1.4 or newer")
    return loop
