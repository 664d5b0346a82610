"""transport/native/calls.py: every cut of a body, and every end of a response, as the parser feeds them."""

import asyncio
import gc
import tracemalloc
from collections.abc import Iterator
from io import BytesIO
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.errors import AttemptFailure, Delivery, StatusCode
from etcd_aio.http2 import HeaderBlock, RequestHeaders
from etcd_aio.transport.framing import PREFIX, Deframer
from etcd_aio.transport.interface import Collect, Collector
from etcd_aio.transport.native.calls import StreamCall, UnaryCall, failure_in
from tests.support.collectors import Kept, Worked

LIMIT = 2**26

HEAD = ((":status", "200"), ("content-type", "application/grpc"))
TAIL = (("grpc-status", "0"),)


def framed(payload: bytes, compressed: int = 0) -> bytes:
    return PREFIX.pack(compressed, len(payload)) + payload


class Given:
    """What a stream gave back to its peer."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, call: StreamCall, size: int) -> None:
        self.sizes.append(size)


def unary(limit: int = LIMIT, *, head: bool = True) -> UnaryCall:
    call = UnaryCall(RequestHeaders(()), None, asyncio.get_running_loop().create_future(), 1.0, limit)
    if head:
        call.on_headers(HeaderBlock(HEAD), ended=False)
    return call


def stream(limit: int = LIMIT, collect: Collect | None = None) -> tuple[StreamCall, Given]:
    given_back = Given()
    call = StreamCall(RequestHeaders(()), limit, given_back, collect)
    call.on_headers(HeaderBlock(HEAD), ended=False)
    return call, given_back


def failure_of(call: UnaryCall) -> AttemptFailure:
    failure = call.future.exception()
    assert isinstance(failure, AttemptFailure)
    return failure


@pytest.mark.anyio
async def test_a_call_is_given_up_once_nobody_waits_or_it_failed() -> None:
    late = AttemptFailure(StatusCode.DEADLINE_EXCEEDED, "late", Delivery.UNSENT)
    cancelled, failed, wanted = unary(head=False), unary(head=False), unary(head=False)
    cancelled.future.cancel()
    failed.fail(late)
    assert [call.is_given_up() for call in (cancelled, failed, wanted)] == [True, True, False]
    assert failed.future.exception() is late

    opened, (broken, _) = stream()[0], stream()
    assert not opened.is_given_up()
    waiting = asyncio.create_task(opened.wait_until_opened())
    await asyncio.sleep(0)
    assert not opened.is_given_up()
    waiting.cancel()
    assert opened.is_given_up(), "before the task itself learns of it"
    await asyncio.gather(waiting, return_exceptions=True)
    broken.fail(late)
    assert broken.is_given_up()


def drain(call: StreamCall) -> list[bytes | Collector]:
    taken: list[bytes | Collector] = []
    while (message := call.take()) is not None:
        taken.append(message)
    return taken


# Deframer.


def joined(size: int) -> BytesIO:
    del size
    return BytesIO()


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(1, 50), max_size=40))
def test_messages_come_out_whole_however_the_body_is_cut(payloads: list[bytes], cuts: list[int]) -> None:
    body = b"".join(map(framed, payloads))
    deframer = Deframer(LIMIT, joined)
    messages: list[bytes] = []
    fed = 0
    for cut in [*cuts, len(body) + 1]:
        piece = body[:cut]
        body = body[cut:]
        fed += len(piece)
        if piece:
            assert deframer.feed(piece, messages) is None
        assert deframer.partial_size == fed - sum(len(message) + 5 for message in messages)
    assert messages == payloads
    assert deframer.partial_size == 0


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (framed(b"x", compressed=1), StatusCode.INTERNAL),
        (PREFIX.pack(0, 101), StatusCode.RESOURCE_EXHAUSTED),
        (framed(b"fine") + PREFIX.pack(0, 2**32 - 1), StatusCode.RESOURCE_EXHAUSTED),
    ],
)
def test_what_is_not_taken_is_refused_by_its_prefix(data: bytes, code: StatusCode) -> None:
    messages: list[bytes] = []
    failure = Deframer(100, joined).feed(data, messages)
    assert failure is not None
    assert failure.code is code
    assert messages == ([b"fine"] if data.startswith(framed(b"fine")) else [])


def test_a_message_of_many_pieces_is_never_held_twice() -> None:
    size = 32 * 2**20
    piece = b"x" * 16_384
    deframer = Deframer(LIMIT, joined)
    messages: list[bytes] = []
    deframer.feed(PREFIX.pack(0, size), messages)
    tracemalloc.start()
    try:
        for _ in range(size // len(piece)):
            deframer.feed(piece, messages)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [len(message) for message in messages] == [size]
    assert peak < 1.5 * size


# Header blocks.


def test_what_was_concluded_from_a_block_counts_for_its_own_role_only() -> None:
    head = HeaderBlock(HEAD)
    assert failure_in(head, is_first=True, ended=False) is None
    assert head.accepted_as is not None
    assert failure_in(head, is_first=True, ended=False) is None
    assert failure_in(head, is_first=False, ended=True) is not None, "good headers are no good trailers"
    assert failure_in(head, is_first=True, ended=True) is not None, "nor a good response"
    bare = HeaderBlock((*TAIL, ("content-type", "text/html")))
    assert failure_in(bare, is_first=False, ended=True) is None
    assert failure_in(bare, is_first=True, ended=True) is not None, "good trailers are no good response"


# UnaryCall.


@pytest.mark.anyio
@pytest.mark.parametrize("step", [1, 2, 4, 5, 6, 7, 100])
async def test_a_reply_in_any_pieces(step: int) -> None:
    call = unary()
    body = framed(b"reply")
    for start in range(0, len(body), step):
        call.on_data(body[start : start + step])
    call.on_headers(HeaderBlock(TAIL), ended=True)
    assert call.future.result() == b"reply"


@pytest.mark.anyio
@pytest.mark.parametrize("step", [1, 6, 100])
async def test_a_reply_may_be_as_large_as_the_limit_and_no_larger(step: int) -> None:
    for payload in (b"four", b"fives"):
        call, body = unary(4), framed(payload)
        for start in range(0, len(body), step):
            call.on_data(body[start : start + step])
        call.on_headers(HeaderBlock(TAIL), ended=True)
        if len(payload) == 4:
            assert call.future.result() == payload
        else:
            assert failure_of(call).code is StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.anyio
async def test_the_empty_reply() -> None:
    call = unary()
    call.on_data(framed(b""))
    call.on_headers(HeaderBlock(TAIL), ended=True)
    assert call.future.result() == b""


@pytest.mark.anyio
@pytest.mark.parametrize("pieces", [[framed(b"a"), framed(b"b")], [framed(b"a") + framed(b"b")], [framed(b"a"), b"\0"]])
async def test_a_second_reply_fails_the_call(pieces: list[bytes]) -> None:
    call = unary()
    for piece in pieces:
        call.on_data(piece)
    assert "twice" in failure_of(call).message
    call.on_headers(HeaderBlock(TAIL), ended=True)  # too late to make it good


@pytest.mark.anyio
async def test_a_reply_without_headers_fails() -> None:
    call = unary(head=False)
    call.on_data(framed(b"reply"))
    assert "before response headers" in failure_of(call).message


@pytest.mark.anyio
async def test_success_without_a_message_is_none() -> None:
    call = unary(head=False)
    call.on_headers(HeaderBlock(TAIL), ended=True)
    assert "without a message" in failure_of(call).message


@pytest.mark.anyio
@pytest.mark.parametrize("body", [framed(b"reply")[:-1], b"\0\0", b""])
async def test_a_reply_cut_short_fails_however_it_ends(body: bytes) -> None:
    for ends_with_trailers in (True, False):
        call = unary()
        if body:
            call.on_data(body)
        if ends_with_trailers:
            call.on_headers(HeaderBlock(TAIL), ended=True)
        else:
            call.on_ended()
        assert failure_of(call).delivery is Delivery.UNKNOWN


@pytest.mark.anyio
async def test_a_body_without_an_end_is_not_kept() -> None:
    call = unary()
    call.on_data(framed(b"x" * 10)[:8])
    tracemalloc.start()
    try:
        for _ in range(1000):
            call.on_data(b"\0" * 16_384)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert failure_of(call).code is StatusCode.INTERNAL
    assert held < 200_000


def collected(limit: int = LIMIT) -> tuple[UnaryCall, list[Kept]]:
    made: list[Kept] = []

    def collect() -> Kept:
        made.append(Kept())
        return made[-1]

    call = UnaryCall(RequestHeaders(()), None, asyncio.get_running_loop().create_future(), 1.0, limit, collect)
    call.on_headers(HeaderBlock(HEAD), ended=False)
    return call, made


@pytest.mark.anyio
@pytest.mark.parametrize("step", [1, 4, 5, 6, 100, 1004])
async def test_a_reply_in_pieces_goes_to_a_collector(step: int) -> None:
    call, made = collected()
    payload = bytes(range(250)) * 4
    body = framed(payload)
    for start in range(0, len(body), step):
        call.on_data(body[start : start + step])
    call.on_headers(HeaderBlock(TAIL), ended=True)
    assert call.future.result() == b"", "the collector has it"
    assert [b"".join(one.pieces) for one in made] == [payload]


@pytest.mark.anyio
@pytest.mark.parametrize("payload", [b"", b"reply"])
async def test_a_reply_in_one_piece_is_not_collected(payload: bytes) -> None:
    call, made = collected()
    call.on_data(framed(payload))
    call.on_headers(HeaderBlock(TAIL), ended=True)
    assert call.future.result() == payload
    assert made == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("pieces", "code"),
    [
        ([framed(b"one")[:6], framed(b"one")[6:], framed(b"two")], StatusCode.INTERNAL),
        ([framed(b"one")[:6], framed(b"one")[6:] + framed(b"two")[:6]], StatusCode.INTERNAL),
        ([framed(b"one", compressed=1)[:6]], StatusCode.INTERNAL),
        ([framed(b"x" * 100)[:6]], StatusCode.RESOURCE_EXHAUSTED),
        ([framed(b"one")[:6]], StatusCode.INTERNAL),
    ],
    ids=["twice", "one and a half", "compressed", "too large", "cut short"],
)
async def test_what_a_collector_got_does_not_hide_what_is_wrong(pieces: list[bytes], code: StatusCode) -> None:
    call, _ = collected(limit=50)
    for piece in pieces:
        call.on_data(piece)
    call.on_headers(HeaderBlock(TAIL), ended=True)
    assert failure_of(call).code is code


@pytest.mark.anyio
async def test_the_first_end_counts() -> None:
    call = unary()
    call.on_reset(7, by_peer=True)
    call.on_unprocessed("too late")
    assert failure_of(call).delivery is Delivery.UNPROCESSED
    assert "REFUSED" in failure_of(call).message


# StreamCall.


def test_a_message_returns_its_bytes_when_it_is_taken() -> None:
    call, given_back = stream()
    call.on_data(framed(b"one") + framed(b"three") + b"\0")
    assert given_back.sizes == [], "unread, so the peer must wait"
    assert drain(call) == [b"one", b"three"]
    assert given_back.sizes == [8, 10]


def test_a_message_larger_than_any_window_returns_its_bytes_while_it_comes() -> None:
    call, given_back = stream()
    size = 20 * 2**20
    call.on_data(PREFIX.pack(0, size))
    outstanding = highest = PREFIX.size
    for _ in range(size // 2**14):
        call.on_data(b"x" * 2**14)
        outstanding += 2**14
        highest = max(highest, outstanding - sum(given_back.sizes))
    assert highest < 2 * 2**20, "else a peer with a window of 4 MiB would wait for ever"
    assert drain(call) == [b"x" * size]
    assert sum(given_back.sizes) == size + PREFIX.size, "all of it, and none of it twice"


def test_a_large_message_behind_unread_ones_waits() -> None:
    call, given_back = stream()
    call.on_data(framed(b"unread") + framed(b"unread too") + PREFIX.pack(0, 2**23))
    for _ in range(200):
        call.on_data(b"x" * 2**14)
    assert given_back.sizes == [], "a reader that is away must not make this side buffer without a bound"
    assert call.take() == b"unread"
    assert given_back.sizes == [11]
    assert call.take() == b"unread too"
    assert sum(given_back.sizes) == 11 + 15 + 5 + 200 * 2**14


def test_what_came_before_the_end_can_be_taken_after_it() -> None:
    call, _ = stream()
    call.on_data(framed(b"last"))
    call.on_reset(8, by_peer=True)
    assert call.take() == b"last"
    with pytest.raises(AttemptFailure, match="CANCEL"):
        call.check()


@pytest.mark.parametrize("body", [b"\0", framed(b"xx")[:-1]])
def test_a_stream_that_ends_inside_a_message_did_not_end_well(body: bytes) -> None:
    call, _ = stream()
    call.on_data(body)
    call.on_headers(HeaderBlock(TAIL), ended=True)
    with pytest.raises(AttemptFailure, match="cut"):
        call.check()


@pytest.mark.anyio
async def test_a_failure_wakes_both_who_read_and_who_write() -> None:
    call, _ = stream()
    call.unsent = b"blocked"
    waiting = [asyncio.ensure_future(call.wait_for_more()), asyncio.ensure_future(call.wait_until_sent())]
    await asyncio.sleep(0)
    call.on_reset(8, by_peer=True)
    async with asyncio.timeout(15):
        await asyncio.gather(*waiting)


# StreamCall with a collector.

LARGE = 20_000  # bytes of a message that never comes in one frame


def collecting() -> tuple[StreamCall, Given, list[Worked]]:
    made: list[Worked] = []

    def collect() -> Worked:
        made.append(Worked())
        return made[-1]

    return *stream(collect=collect), made


def feed(call: StreamCall, body: bytes, step: int = 1000) -> None:
    for start in range(0, len(body), step):
        call.on_data(body[start : start + step])


@pytest.mark.anyio
@pytest.mark.parametrize("step", [1, 4, 5, 6, 100, 16_384])
async def test_large_messages_of_a_stream_go_to_a_collector_each_and_keep_their_place(step: int) -> None:
    call, given_back, made = collecting()
    first, second = bytes(range(200)) * 100, b"2" * LARGE
    feed(call, framed(b"small") + framed(first) + framed(b"") + framed(second) + framed(b"last"), step)
    assert drain(call) == [b"small", made[0], b"", made[1], b"last"]
    assert [b"".join(one.pieces) for one in made] == [first, second]
    assert sum(given_back.sizes) == 5 + 5 + len(first) + 5 + 5 + len(second) + 5 + 4 + 5


@pytest.mark.anyio
async def test_a_small_message_is_not_collected_though_it_comes_in_pieces() -> None:
    call, _, made = collecting()
    feed(call, framed(b"x" * 16_384))
    assert drain(call) == [b"x" * 16_384]
    assert made == []


@pytest.mark.anyio
async def test_a_large_message_of_a_stream_is_worked_on_while_it_comes() -> None:
    call, _, made = collecting()
    call.on_data(PREFIX.pack(0, LARGE))
    for count in range(1, LARGE // 1000):
        call.on_data(bytes(1000))
        await asyncio.sleep(0)
        assert made[0].steps == count
    assert call.take() is None


@pytest.mark.anyio
@pytest.mark.parametrize("end", ["taken", "cancelled", "lost"])
async def test_a_message_that_its_owner_has_or_does_not_want_is_not_worked_on(end: str) -> None:
    call, _, made = collecting()
    body = framed(bytes(LARGE))
    feed(call, body if end == "taken" else body[:-1])
    if end == "taken":
        assert call.take() is made[0]
    elif end == "cancelled":
        call.fail(AttemptFailure(StatusCode.CANCELLED, "cancelled", Delivery.UNKNOWN))
    else:
        call.on_reset(8, by_peer=True)
    for _ in range(5):
        await asyncio.sleep(0)
    assert made[0].steps == 0


@pytest.mark.anyio
async def test_a_stream_that_fails_keeps_nothing_of_what_was_arriving() -> None:
    call, _, made = collecting()
    feed(call, framed(b"whole" * 4000) + framed(bytes(LARGE))[:-1])
    call.on_reset(8, by_peer=True)
    assert call.take() is made[0], "what came before the end can be taken after it"
    kept = ref(made.pop())
    await asyncio.sleep(0)
    assert kept() is None


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.anyio
@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("end", ["cancelled", "lost", "ended"])
@pytest.mark.usefixtures("no_collection")
async def test_a_stream_that_is_dropped_leaves_nothing_to_the_garbage_collector(end: str, is_whole: bool) -> None:
    call, _, made = collecting()
    body = framed(bytes(LARGE))
    feed(call, body if is_whole else body[:-1])
    if end == "lost":
        call.on_reset(8, by_peer=True)
    elif end == "ended":
        call.on_headers(HeaderBlock(TAIL), ended=True)
    call.fail(AttemptFailure(StatusCode.CANCELLED, "cancelled", Delivery.UNKNOWN))  # as every owner does at the end
    kept = ref(made.pop()), ref(call)
    await asyncio.sleep(0)
    del call
    assert [one() for one in kept] == [None, None]


@pytest.mark.anyio
@pytest.mark.usefixtures("no_collection")
async def test_a_call_that_is_dropped_leaves_nothing_to_the_garbage_collector() -> None:
    call, made = collected()
    call.on_data(framed(b"reply")[:-1])
    kept = ref(made.pop()), ref(call.future)
    call.future.cancel()
    await asyncio.sleep(0)
    del call
    assert [one() for one in kept] == [None, None]


@pytest.mark.anyio
async def test_a_whole_message_is_not_worked_on_once_its_stream_is_cancelled() -> None:
    call, _, made = collecting()
    feed(call, framed(bytes(LARGE)))
    call.on_headers(HeaderBlock(TAIL), ended=True)
    call.fail(AttemptFailure(StatusCode.CANCELLED, "cancelled", Delivery.UNKNOWN))
    for _ in range(5):
        await asyncio.sleep(0)
    assert made[0].steps == 0
    assert call.take() is made[0]


@pytest.mark.anyio
async def test_of_many_large_messages_that_wait_one_is_worked_on_in_each_turn() -> None:
    """A window holds hundreds of messages that are just large: a step of each would block the loop."""
    call, _, made = collecting()
    feed(call, framed(bytes(LARGE)) * 5 + framed(bytes(LARGE))[:-1])
    for turn in range(1, 10):
        await asyncio.sleep(0)
        assert [one.steps for one in made] == [turn, 0, 0, 0, 0, 0]
    assert call.take() is made[0]
    for turn in range(1, 10):
        await asyncio.sleep(0)
        assert [one.steps for one in made] == [9, turn, 0, 0, 0, 0]
    assert drain(call) == made[1:5]
    await asyncio.sleep(0)
    assert [one.steps for one in made] == [9, 9, 0, 0, 0, 1], "the last is worked on while it arrives"


@pytest.mark.anyio
async def test_a_part_wakes_the_owner_who_gets_the_collector_until_all_is_here() -> None:
    call, given_back, made = collecting()
    body = framed(bytes(LARGE))
    feed(call, body[:-1])
    assert call.take() is None
    waiting = asyncio.create_task(call.wait_for_more())
    await asyncio.sleep(0)
    made[0].has_part = True
    await asyncio.wait([waiting], timeout=10)
    assert waiting.done()
    feed(call, body[-1:])
    for _ in range(2):
        assert call.take() is made[0], "it is not removed"
    assert not made[0].has_ended
    assert given_back.sizes == []
    made[0].has_part = False
    assert call.take() is None, "there may be another part"
    await asyncio.wait_for(call.wait_for_more(), 10)
    assert call.take() is made[0]
    assert made[0].has_ended
    assert call.take() is None
    assert sum(given_back.sizes) == LARGE + 5


@pytest.mark.anyio
async def test_a_message_that_was_divided_is_divided_to_its_end_though_it_is_complete() -> None:
    call, _, made = collecting()
    body = framed(bytes(LARGE))
    feed(call, body[:-1])
    made[0].has_part = True
    await asyncio.sleep(0)
    feed(call, body[-1:])
    for _ in range(3):
        assert call.take() is made[0]
        made[0].has_part = False  # the owner took it, and asks for more
        assert call.take() is None
        waiting = asyncio.create_task(call.wait_for_more())
        await asyncio.sleep(0)
        made[0].has_part = True
        await asyncio.wait_for(waiting, 10)
        assert not made[0].has_ended


@pytest.mark.anyio
async def test_the_end_of_a_stream_does_not_wait_for_more_parts() -> None:
    call, _, made = collecting()
    feed(call, framed(bytes(LARGE)))
    made[0].has_part = True
    await asyncio.sleep(0)
    made[0].has_part = False
    assert call.take() is None
    call.complete()
    assert call.take() is made[0]
    assert call.check()


@pytest.mark.anyio
async def test_a_collector_rests_while_it_has_a_part() -> None:
    call, _, made = collecting()
    feed(call, framed(bytes(LARGE))[:-1])
    await asyncio.sleep(0)
    assert made[0].steps == 1
    made[0].has_part = True
    for _ in range(5):
        await asyncio.sleep(0)
    assert made[0].steps == 1
    assert call.take() is made[0]
    made[0].has_part = False  # the owner took it, and asks for more
    assert call.take() is None
    for _ in range(5):
        await asyncio.sleep(0)
    assert made[0].steps > 3


@pytest.mark.anyio
async def test_a_part_does_not_overtake_the_messages_before_it() -> None:
    call, _, made = collecting()
    feed(call, framed(b"first") + framed(bytes(LARGE)) + framed(b"small") + framed(bytes(LARGE))[:-1])
    for one in made:
        one.has_part = True
    assert call.take() == b"first"
    assert call.take() is made[0]
    made[0].has_part = False
    assert call.take() is made[0]
    assert call.take() == b"small"
    assert call.take() is made[1]
    assert not made[1].has_ended


@pytest.mark.anyio
async def test_a_stream_that_fails_has_no_part_of_what_was_arriving() -> None:
    call, _, made = collecting()
    feed(call, framed(bytes(LARGE))[:-1])
    made[0].has_part = True
    call.on_reset(8, by_peer=True)
    assert call.take() is None
