"""observing/group.py: each end of a call, with observers that raise: told once, with the same result."""

import asyncio
from collections.abc import Callable

import pytest

from etcd_aio.errors import EtcdError
from etcd_aio.observing import AttemptEnded, CallObserver, CallOutcome, CallStarted, Observer
from tests.support.calls import Calls, no_leader, unknown
from tests.support.fake_engine import Hang
from tests.support.observer import Remembers
from tests.support.virtual_time import turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


METHODS = ("call_started", "metadata", "attempt_started", "attempt_ended", "ended")


class Broken(Observer):
    """Raises from one method."""

    def __init__(self, method: str) -> None:
        self._method = method

    def call_started(self, call: CallStarted) -> CallObserver:
        self.meet("call_started")
        return BrokenCall(self)

    def meet(self, method: str) -> None:
        """Raise if this is the method."""
        if method == self._method:
            raise ValueError("a bug in the observer")


class BrokenCall(CallObserver):
    def __init__(self, broken: Broken) -> None:
        self._broken = broken

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:  # type: ignore[override]
        self._broken.meet("metadata")
        return ()

    def attempt_started(self, endpoint: str) -> None:
        self._broken.meet("attempt_started")

    def attempt_ended(self, attempt: AttemptEnded) -> None:
        self._broken.meet("attempt_ended")

    def ended(self, outcome: CallOutcome) -> None:
        self._broken.meet("ended")


def answers(calls: Calls) -> None:
    """Every member answers."""


def moves(calls: Calls) -> None:
    """A member has no leader, so the call moves."""
    calls["m1"].answers.append(no_leader())


def loses(calls: Calls) -> None:
    """The connection is lost before the answer."""
    calls["m1"].answers.append(unknown())


def hangs(calls: Calls) -> None:
    """No member answers."""
    for name in ("m1", "m2", "m3"):
        calls[name].otherwise = Hang()


WAYS = (answers, moves, loses, hangs)


async def result_of(calls: Calls, way: Callable[[Calls], None]) -> tuple[str, str]:
    """How a put ends: the type and the text of its result or error."""
    way(calls)
    try:
        result: object = await calls.put(timeout=3.0)
    except EtcdError as error:
        result = error
    await calls.aclose()
    return type(result).__name__, str(result)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", WAYS)
async def test_the_result_is_that_without_observers_and_the_others_are_told_once(
    way: Callable[[Calls], None], method: str
) -> None:
    seen = Remembers()
    expected = await result_of(await Calls().ready(), way)
    assert await result_of(await Calls(observers=[Broken(method), seen]).ready(), way) == expected
    assert len(seen.calls) == len(seen.call.outcomes) == 1
    assert len(seen.call.begun) == len(seen.call.attempts)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", WAYS)
async def test_a_cancellation_at_any_turn_stays_one_and_is_told_once(way: Callable[[Calls], None], method: str) -> None:
    ends = set()
    for number in range(8):
        seen = Remembers()
        calls = await Calls(observers=[Broken(method), seen]).ready()
        way(calls)
        task = asyncio.create_task(calls.put(timeout=3.0))
        await turns(number)
        task.cancel()
        await asyncio.wait([task])
        assert all(len(call.outcomes) == 1 for call in seen.calls)
        assert all(call.outcomes[0].is_cancelled == task.cancelled() for call in seen.calls)
        ends.add(task.cancelled())
        await calls.aclose()
    assert True in ends
