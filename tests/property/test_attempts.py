"""Attempts: whatever becomes of them, a mutation runs at most once, and no doubt is lost or invented."""

import asyncio
from collections import deque
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.base.call_options import RetryMode
from etcd_aio.errors import AttemptFailure, Delivery, EtcdError, LocalReason, StatusCode
from tests.support.calls import Calls, answered, leader_changed, learner, no_leader, reply, unknown, unprocessed, unsent
from tests.support.fake_engine import FakeAttempt
from tests.support.virtual_time import VirtualTimeLoop, tasks, turns

Outcome = Callable[[FakeAttempt], bytes]


def fails(failure: AttemptFailure) -> Outcome:
    def answer(attempt: FakeAttempt) -> bytes:
        raise failure

    return answer


def lost(attempt: FakeAttempt) -> bytes:
    attempt.member.connection.lose(ConnectionResetError())
    return b""


def goes_away(attempt: FakeAttempt) -> bytes:
    attempt.member.connection.go_away()
    raise unprocessed()


# outcome: (what happens, whether the request may have been applied)
OUTCOMES: dict[str, tuple[Outcome, bool]] = {
    "ok": (reply(), True),
    "unsent": (fails(unsent()), False),
    "unprocessed": (fails(unprocessed()), False),
    "goes away": (goes_away, False),
    "no answer": (fails(unknown()), True),
    "lost": (lost, True),
    "deadline": (
        fails(AttemptFailure(StatusCode.DEADLINE_EXCEEDED, "late", Delivery.UNKNOWN, reason=LocalReason.DEADLINE)),
        True,
    ),
    "too large a reply": (fails(unknown(StatusCode.RESOURCE_EXHAUSTED, reason=LocalReason.REPLY_TOO_LARGE)), True),
    "nonsense": (lambda attempt: b"\xff\xff", True),
    "another cluster": (reply(0xBAD), True),
    "no leader": (fails(no_leader()), False),
    "learner": (fails(learner()), False),
    "too many requests": (fails(answered(StatusCode.RESOURCE_EXHAUSTED, "etcdserver: too many requests")), False),
    "bad token": (fails(answered(StatusCode.UNAUTHENTICATED, "etcdserver: invalid auth token")), False),
    "no space": (fails(answered(StatusCode.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded")), True),
    "no lease": (fails(answered(StatusCode.NOT_FOUND, "etcdserver: requested lease not found")), False),
    "leader changed": (fails(leader_changed()), True),
    "forbidden": (fails(leader_changed(pushback=-1.0)), True),
    "timed out": (fails(answered(StatusCode.UNAVAILABLE, "etcdserver: request timed out")), True),
    "cancelled": (fails(answered(StatusCode.CANCELLED, "context canceled")), True),
    "what": (fails(answered(StatusCode.UNKNOWN, "what is this")), True),
}
SEQUENCES = st.lists(st.sampled_from(sorted(OUTCOMES)), max_size=8)
TIMEOUT = 5.0


async def story(
    sequence: list[str], *, is_read: bool, retry: RetryMode, members: int
) -> tuple[list[str], EtcdError | None]:
    """Make one call; return what became of its attempts, in order, and its error."""
    calls = Calls(members)
    script, happened = deque(sequence), list[str]()

    def answer(attempt: FakeAttempt) -> bytes:
        if attempt.path.endswith("Status"):
            return reply()(attempt)
        outcome = script.popleft() if script else "ok"
        happened.append(outcome)
        return OUTCOMES[outcome][0](attempt)

    await calls.read()  # learns the cluster
    for member in calls.engine.members.values():
        member.otherwise = answer
    started = calls.loop.time()
    error = None
    try:
        await (calls.read(retry=retry, timeout=TIMEOUT) if is_read else calls.put(retry=retry, timeout=TIMEOUT))
    except EtcdError as caught:
        error = caught
    assert calls.loop.time() - started <= TIMEOUT + 1e-6
    await turns()
    assert calls.in_flight() == 0
    await calls.aclose()
    assert not tasks()
    return happened, error


def tell(sequence: list[str], *, is_read: bool, retry: RetryMode, members: int) -> tuple[list[str], EtcdError | None]:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(story(sequence, is_read=is_read, retry=retry, members=members))


def may_have_run(happened: list[str]) -> bool:
    return any(OUTCOMES[outcome][1] for outcome in happened)


@given(SEQUENCES, st.integers(1, 4))
def test_a_mutation_is_never_sent_again_after_it_may_have_run(sequence: list[str], members: int) -> None:
    happened, error = tell(sequence, is_read=False, retry="safe", members=members)
    assert not may_have_run(happened[:-1])
    if error is None:
        assert happened[-1] == "ok"
    else:
        assert error.maybe_applied == may_have_run(happened)
        assert len(error.attempts) == len(happened)


@given(SEQUENCES, st.integers(1, 4))
def test_a_mutation_that_may_run_twice_keeps_every_doubt(sequence: list[str], members: int) -> None:
    happened, error = tell(sequence, is_read=False, retry="always", members=members)
    if error is not None:
        assert error.maybe_applied == may_have_run(happened)
        assert len(error.attempts) == len(happened)


@given(SEQUENCES, st.integers(1, 4), st.booleans())
def test_one_attempt_is_one_attempt(sequence: list[str], members: int, is_read: bool) -> None:
    happened, error = tell(sequence, is_read=is_read, retry="never", members=members)
    assert len(happened) == 1
    assert (error is None) == (happened == ["ok"])


@given(SEQUENCES, st.integers(1, 4))
def test_a_read_is_never_in_doubt(sequence: list[str], members: int) -> None:
    happened, error = tell(sequence, is_read=True, retry="safe", members=members)
    assert (error is None) == (happened[-1:] == ["ok"])
    if error is not None:
        assert not error.maybe_applied
