"""transport/framing.py: what a collector is given, and when it works."""

import asyncio
from io import BytesIO

import pytest

from etcd_aio.transport.framing import Deframer, frame_message
from etcd_aio.transport.native.calls import IncrementalSink
from tests.support.collectors import Worked

pytestmark = pytest.mark.anyio


def joined(size: int) -> BytesIO:
    del size
    return BytesIO()


@pytest.mark.parametrize("pieces", [1, 2])
def test_a_message_may_be_as_large_as_the_limit_and_no_larger(pieces: int) -> None:
    for size, is_accepted in ((4, True), (5, False)):
        data = frame_message(bytes(size))
        cut = len(data) // pieces
        deframer, messages = Deframer(4, joined), list[bytes]()
        failure = deframer.feed(data[:cut], messages)
        if failure is None:
            failure = deframer.feed(data[cut:], messages)
        assert messages == [bytes(size)] * is_accepted
        assert (failure is None) is is_accepted


def given(*pieces: bytes) -> tuple[IncrementalSink, Worked, "asyncio.Future[bytes]"]:
    kept, future = Worked(), asyncio.get_running_loop().create_future()
    collected = IncrementalSink(kept, lambda _: not future.done(), sum(map(len, pieces)))
    for piece in pieces:
        collected.write(piece)
    return collected, kept, future


async def test_it_passes_on_all_pieces() -> None:
    collected, kept, _ = given(b"one", b"two")
    assert kept.pieces == [b"one", b"two"]
    assert (collected.getvalue(), collected.size) == (collected, 6)


async def test_one_that_had_to_wait_works_once_it_is_scheduled() -> None:
    kept = Worked()
    allowed: list[IncrementalSink] = []
    collected = IncrementalSink(kept, allowed.__contains__, 1)
    collected.write(b"x")
    for _ in range(3):
        await asyncio.sleep(0)
    assert kept.steps == 0
    allowed.append(collected)
    collected.schedule()
    await asyncio.sleep(0)
    assert kept.steps == 1


async def test_a_collector_works_once_a_turn_for_as_long_as_it_has_something_to_do() -> None:
    collected, kept, _ = given(*[b"x"] * 5)
    assert kept.steps == 0, "`write` does not wait for the work"
    for turn in range(1, 6):
        await asyncio.sleep(0)
        assert kept.steps == turn
    await asyncio.sleep(0)
    assert kept.steps == 5
    collected.write(b"x")
    await asyncio.sleep(0)
    assert kept.steps == 6


@pytest.mark.parametrize("end", ["result", "failure", "cancellation"])
async def test_it_works_no_more_once_the_call_is_over(end: str) -> None:
    collected, kept, future = given(*[b"x"] * 5)
    await asyncio.sleep(0)
    if end == "result":
        future.set_result(b"")
    elif end == "failure":
        future.set_exception(ConnectionResetError())
        future.exception()
    else:
        future.cancel()
    for _ in range(3):
        await asyncio.sleep(0)
    assert kept.steps == 1
    collected.write(b"x")
    await asyncio.sleep(0)
    assert kept.steps == 1
