"""Decoding in steps, with an exception at any instant: the message ends with an error, never short, and never spins."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio import codec, pb
from etcd_aio.codec.decoder import STEP
from etcd_aio.codec.watch_replies import WatchReplyDecoder
from etcd_aio.errors import MalformedReplyError
from etcd_aio.types import RangeResult, TxnResult, WatchReply
from tests.support.codec_backends import codec_backend as codec_backend
from tests.support.tiers import nightly_examples

pytestmark = pytest.mark.usefixtures("codec_backend")

HEADER: Final = pb.ResponseHeader(cluster_id=1, member_id=2, revision=7, raft_term=3)
KVS: Final = [pb.KeyValue(key=b"%04d" % number, value=bytes(STEP // 20), mod_revision=number) for number in range(60)]
RANGE: Final = pb.RangeResponse(header=HEADER, kvs=KVS, count=len(KVS))
MESSAGES: Final[dict[str, tuple[type[Any], bytes]]] = {
    "range": (RangeResult, codec.encode(RANGE)),
    "txn": (
        TxnResult,
        codec.encode(pb.TxnResponse(header=HEADER, responses=[pb.ResponseOp(response_range=RANGE)] * 2)),
    ),
    "watch": (
        WatchReply,
        codec.encode(pb.WatchResponse(header=HEADER, watch_id=7, events=[pb.Event(kv=kv) for kv in KVS])),
    ),
}
MOST_STEPS: Final = 10_000


class Interrupt(BaseException):
    """As a KeyboardInterrupt, which would end the tests."""


EXCEPTIONS: Final = (MemoryError, RuntimeError, SystemError, KeyError, RecursionError, Interrupt)
UNGUARDED: Final = {"work", "has_part", "_has_work", "_break"}  # these change nothing, or have all done


def decoder_of(kind: str) -> codec.IncrementalDecoder[Any]:
    if kind == "watch":
        return WatchReplyDecoder(lambda watch_id: False, lambda watch_id: False)
    return codec.IncrementalDecoder(MESSAGES[kind][0])


class Injector:
    """Raises an exception in one of the lines that the codec runs in the blocks of `active`.

    Args:
        at: the number of the line, from 1; 0 raises nothing.
        make: makes the exception.

    Attributes:
        lines: how many lines were run.
    """

    def __init__(self, at: int, make: Callable[[], BaseException]) -> None:
        self._at = at
        self._make = make
        self._outside: object = None  # the exception that is handled around the block
        self.lines = 0

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        del argument
        file = frame.f_code.co_filename
        if "/codec/" not in file and not file.startswith("<etcd_aio"):
            return None
        # Raised in an `except` block, it would leave CPython 3.11 with that exception as the current one for ever.
        if event == "line" and frame.f_code.co_name not in UNGUARDED and sys.exc_info() == self._outside:
            self.lines += 1
            if self.lines == self._at:
                raise self._make()
        return self._trace

    @contextmanager
    def active(self) -> Iterator[None]:
        before = sys.gettrace()
        self._outside = sys.exc_info()
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(before)


class Run:
    """One decoding of a message, as an engine and the owner of the call do it together.

    Args:
        kind: of the message.
        pieces: of its bytes.
        active: a context in which steps are done and parts taken.

    Attributes:
        told: the exceptions that were not kept: a step lets an `Interrupt` through, and nothing else.
        parts: what was taken of the message before its end.
        is_discarded: whether its owner got the exception, and is done with it.
    """

    def __init__(
        self, kind: str, pieces: list[bytes], active: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        self.decoder = decoder_of(kind)
        self._active = active
        self._pieces = pieces
        self.told: list[BaseException] = []
        self.parts: list[Any] = []
        self.is_discarded = False

    def outcome(self) -> Any:
        """The message, or its error."""
        try:
            return self.go()
        except (*EXCEPTIONS, MalformedReplyError) as error:
            return error

    def go(self) -> Any:
        """The message. Raises its error."""
        decoder = self.decoder
        for piece in self._pieces:
            decoder.feed(piece)
            self.work()
            if decoder.has_part:
                self.is_discarded = True  # by its owner, if taking a part raises
                with self._active():
                    self.parts.append(decoder.take_part())
                self.is_discarded = False
        decoder.end()
        self.work()
        assert not decoder.work()
        return decoder.finish()

    def work(self) -> None:
        """Do all steps that can be done now."""
        for _ in range(MOST_STEPS):
            if self.decoder.has_part:
                return
            try:
                with self._active():
                    goes_on = self.decoder.work()
                if not goes_on:
                    return
            except Interrupt as interrupt:
                self.told.append(interrupt)
        raise AssertionError("it goes on for ever")


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def check(run: Run, kind: str, outcome: Any, *, is_hit: bool) -> None:
    """What must hold of every run, whatever was raised in it."""
    if isinstance(outcome, BaseException):
        assert is_hit, "an error without a cause"
        if run.is_discarded:
            return
        assert not run.decoder._pieces
        run.decoder.feed(b"more")
        run.decoder.end()
        run.work()
        assert not run.decoder.has_part
        assert not run.decoder._pieces, "nothing is kept for a message that cannot be read any more"
        with pytest.raises(type(outcome)):
            run.decoder.finish()
        return
    whole = codec.decode(MESSAGES[kind][0], MESSAGES[kind][1])
    if kind == "watch":
        assert tuple(event for part in (*run.parts, outcome) for event in part.events) == whole.events
    else:
        assert outcome == whole


SIZES = st.sampled_from([1 << 14, 1 << 16, 100_003, 1 << 20, 1 << 24])


@pytest.mark.parametrize("kind", MESSAGES)
@given(st.floats(0, 1), SIZES, st.sampled_from(EXCEPTIONS))
@nightly_examples(500, default=40)
def test_an_exception_in_any_line_ends_the_message(
    kind: str, share: float, size: int, exception: type[BaseException]
) -> None:
    pieces = cut(MESSAGES[kind][1], size)
    Run(kind, pieces).go()  # its functions are compiled
    counting = Injector(0, exception)
    Run(kind, pieces, counting.active).go()
    at = 1 + round(share * (counting.lines - 1))
    injector = Injector(at, exception)
    run = Run(kind, pieces, injector.active)
    check(run, kind, run.outcome(), is_hit=injector.lines >= at)
    assert len(run.told) <= 1
    assert all(isinstance(told, Interrupt) for told in run.told)


@pytest.mark.parametrize("kind", MESSAGES)
@given(st.integers(0, 400), st.integers(0, 80), SIZES)
@nightly_examples(500, default=60)
def test_an_allocation_that_fails_ends_the_message(kind: str, at: int, step: int, size: int) -> None:
    allocations: Any = pytest.importorskip("_testcapi")
    run = Run(kind, cut(MESSAGES[kind][1], size))
    steps = 0
    work = run.decoder._work
    failed = False

    def fails() -> None:
        nonlocal steps, failed
        steps += 1
        if steps - 1 != step:
            work()
            return
        allocations.set_nomemory(at, at + 1)
        try:
            work()
        except (MemoryError, SystemError):  # which CPython 3.11 raises if it has no memory for a frame
            failed = True
            raise
        finally:
            allocations.remove_mem_hooks()

    type_of_run = type(run.decoder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type_of_run, "_work", lambda self: fails())
        outcome = run.outcome()
    check(run, kind, outcome, is_hit=failed)


def test_a_watch_that_drops_its_events_gets_over_it() -> None:
    """The beginning of the message is kept apart, so the message is read again without its events."""
    pieces = cut(MESSAGES["watch"][1], 1 << 16)
    dropping = set[int]()
    decoder = WatchReplyDecoder(dropping.__contains__, lambda watch_id: False)
    decoder.feed(pieces[0])
    with Injector(3, MemoryError).active():
        assert not decoder.work()
    dropping.add(7)
    for piece in pieces[1:]:
        decoder.feed(piece)
        decoder.work()
    assert decoder.finish().events == ()


def test_the_exception_keeps_nothing_of_the_message() -> None:
    decoder = decoder_of("range")
    decoder.feed(MESSAGES["range"][1])
    decoder.work()
    with Injector(60, MemoryError).active():
        decoder.work()
    decoder.end()
    with pytest.raises(MemoryError) as caught:
        decoder.finish()
    traceback = caught.value.__traceback__
    names = []
    while traceback is not None:
        frame = traceback.tb_frame
        if "/codec/" in frame.f_code.co_filename or frame.f_code.co_filename.startswith("<"):
            names.append(frame.f_code.co_name)
            assert not any(isinstance(value, bytes | list) for value in frame.f_locals.values())
        traceback = traceback.tb_next
    assert len(names) > 1, "where it was raised is told"
