"""Tests in virtual time: the loop of those marked `virtual_time`, and what they ask of it."""

import asyncio
from typing import Final

from etcd_aio.fake.time import VirtualTimeLoop as VirtualTimeLoop
from tests.support.loops import Backend, with_tasks

BACKEND: Final[Backend] = ("asyncio", {"loop_factory": lambda: with_tasks(VirtualTimeLoop())})


async def turns(number: int = 3) -> None:
    """Let everything run that is ready, without letting time pass."""
    for _ in range(number):
        await asyncio.sleep(0)


def timers() -> int:
    """How many timers are still to come, but for those of new connections, whose health service is not used yet."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    scheduled: list[asyncio.TimerHandle] = loop._scheduled  # type: ignore[attr-defined]
    return sum(not handle.cancelled() and "ServingMonitor" not in repr(handle) for handle in scheduled)


def tasks() -> set["asyncio.Task[object]"]:
    """Every task but the one that asks and those of the test runner."""
    current = asyncio.current_task()
    return {
        task
        for task in asyncio.all_tasks()
        if task is not current and not getattr(task.get_coro(), "__qualname__", "").startswith("TestRunner.")
    }
