"""observing/group.py: without an observer no code runs, nothing is made, and nothing else is sent."""

import asyncio
import sys
import tracemalloc
from pathlib import Path
from types import FrameType

import pytest

import etcd_aio.observing
from etcd_aio.observing import CallObserver, CallStarted, Observer
from tests.support.calls import Calls

OBSERVING = str(Path(etcd_aio.observing.__file__).parent)

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


class Follows(Observer):
    """Follows each call and does nothing."""

    def call_started(self, call: CallStarted) -> CallObserver:
        return CallObserver()


async def functions_of(calls: Calls) -> list[str]:
    """The functions of observers that a put calls."""
    called: list[str] = []

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OBSERVING):
            called.append(frame.f_code.co_name)

    await calls.put()
    sys.setprofile(profile)
    try:
        await calls.put()
    finally:
        sys.setprofile(None)
    return called


async def allocated_by(calls: Calls) -> int:
    """Bytes that code of observers allocates for a put."""
    await calls.put()
    tracemalloc.start()
    try:
        before = tracemalloc.take_snapshot()
        await calls.put()
        after = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    only = (tracemalloc.Filter(True, f"{OBSERVING}/*"),)
    return sum(one.size_diff for one in after.filter_traces(only).compare_to(before.filter_traces(only), "filename"))


@pytest.mark.parametrize(
    ("observers", "is_off"), [((), True), ((Observer(),), True), ((Follows(),), False)], ids=["none", "idle", "follows"]
)
async def test_a_put_runs_no_code_of_observers(observers: tuple[Observer, ...], is_off: bool) -> None:
    calls = await Calls(observers=observers).ready()
    assert (await functions_of(calls) == []) == is_off
    assert not is_off or await allocated_by(calls) == 0
    await calls.aclose()


async def test_what_is_sent_is_the_same_object_for_each_call() -> None:
    def sent(calls: Calls) -> list[object]:
        return [attempt.metadata for attempt in calls.engine.attempts]

    plain, followed = await Calls().ready(), await Calls(observers=[Follows()]).ready()
    for calls in (plain, followed):
        await calls.put()
        await calls.put()
    first, second = sent(plain)
    assert first is second
    assert sent(plain) == sent(followed), "an observer without metadata adds none"
    await asyncio.gather(plain.aclose(), followed.aclose())
