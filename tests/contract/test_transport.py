"""What every engine does with a well-behaved server: grpclib's own, and a scripted one where its limits are small."""

import asyncio
import ssl
from pathlib import Path

import pytest
import trustme
from h2.settings import SettingCodes

from etcd_aio.errors import AttemptFailure, Delivery, LocalReason, StatusCode
from etcd_aio.transport import EngineName, TransportOptions, create_engine, with_headers
from tests.support.collectors import Kept, Parted
from tests.support.scripted import GRPC, OK, Wire, scripted
from tests.support.transport import CLOSE_SECONDS, FAKE, Owner, connected, example_server, failure_of, soon, target
from tests.support.until import PATIENCE

pytestmark = pytest.mark.anyio


@pytest.mark.fake_too
@pytest.mark.parametrize("size", [0, 1, 5, 16_379, 16_384, 65_531, 271_828])
async def test_a_message_of_any_size_goes_there_and_comes_back(name: EngineName, size: int) -> None:
    async with example_server() as (port, _), connected(name, port) as (connection, _):
        payload = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
        assert await connection.unary("/x/Echo", payload, (), soon()) == payload


@pytest.mark.fake_too
@pytest.mark.parametrize("size", [0, 314_159, 9_000_000])
async def test_a_reply_may_be_larger_than_any_window(name: EngineName, size: int) -> None:
    async with example_server() as (port, _), connected(name, port) as (connection, _):
        assert await connection.unary("/x/Sized", str(size).encode(), (), soon(20)) == b"x" * size


@pytest.mark.fake_too
async def test_a_reply_is_returned_or_collected_but_never_both(name: EngineName) -> None:
    async with example_server() as (port, _), connected(name, port) as (connection, _):
        for size in (0, 100, 314_159, 9_000_000):
            made: list[Kept] = []

            def collect(made: list[Kept] = made) -> Kept:
                made.append(Kept())
                return made[-1]

            rest = await connection.unary("/x/Sized", str(size).encode(), (), soon(20), collect)
            pieces = [piece for one in made for piece in one.pieces]
            assert rest + b"".join(pieces) == b"x" * size
            assert not (rest and pieces)
            assert len(made) <= (size > 100)


async def test_a_cancelled_call_collects_nothing_more(name: EngineName) -> None:
    made: list[Kept] = []

    def collect() -> Kept:
        made.append(Kept())
        return made[-1]

    async def script(wire: Wire) -> None:
        stream_id = await wire.request()
        wire.headers(stream_id, GRPC)
        wire.data(stream_id, b"\0\0\0\1\0" + bytes(100))
        wire.answer(await wire.request(), b"next")

    async with scripted(script) as port, connected(name, port) as (connection, _):
        call = asyncio.ensure_future(connection.unary("/x/Echo", b"", (), soon(), collect))
        await asyncio.sleep(0.1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        before = [len(one.pieces) for one in made]
        assert await connection.unary("/x/Echo", b"", (), soon()) == b"next"
        assert [len(one.pieces) for one in made] == before


@pytest.mark.fake_too
@pytest.mark.parametrize(
    ("number", "text"),
    [(n, "etcdserver: something") for n in range(1, 17)] + [(5, "größer: 100 % ☃"), (8, "")],
)
async def test_a_status_arrives_with_its_text(name: EngineName, number: int, text: str) -> None:
    async with example_server() as (port, _), connected(name, port) as (connection, _):
        failure = await failure_of(connection.unary("/x/Fail", f"{number} {text}".encode(), (), soon()))
        assert (failure.code, failure.message, failure.delivery) == (number, text, Delivery.ANSWERED)
        assert failure.reason is None
        assert await connection.unary("/x/Echo", b"next", (), soon()) == b"next"


@pytest.mark.fake_too
async def test_an_unknown_method_is_answered_as_unimplemented(name: EngineName) -> None:
    async with example_server() as (port, _), connected(name, port) as (connection, _):
        failure = await failure_of(connection.unary("/x/Nothing", b"", (), soon()))
        assert (failure.code, failure.delivery) == (StatusCode.UNIMPLEMENTED, Delivery.ANSWERED)


async def test_the_server_sees_metadata_user_agent_and_the_time_left(name: EngineName) -> None:
    async with example_server() as (port, _), connected(name, port, user_agent="me/1") as (connection, _):
        metadata = (("token", "t.1"), ("hasleader", "true"))
        seen = await connection.unary("/x/Metadata", b"", metadata, soon(7.5))
        assert b"('hasleader', 'true'), ('token', 't.1')" in seen
        assert b"me/1" in seen
        assert 6.5 < float(seen.split()[-1]) <= 7.6, "rounded up to what is worth saying"
        seen = await connection.unary("/x/Metadata", b"", (), float("inf"))
        assert seen.endswith(b"none"), "a call without a deadline has none on the server either"


async def test_a_call_ends_by_its_deadline_and_the_server_is_told(name: EngineName) -> None:
    # The server pays no attention to the deadline that it is sent, or its own answer could come first.
    async def script(wire: Wire) -> None:
        stream_id = await wire.request()
        await wire.until(lambda: wire.requests[stream_id].reset is not None)
        wire.answer(await wire.request(), b"next")

    async with scripted(script) as port, connected(name, port) as (connection, _):
        began = asyncio.get_running_loop().time()
        failure = await failure_of(connection.unary("/x/Slow", b"", (), soon(0.1)))
        assert asyncio.get_running_loop().time() - began > 0.09
        assert (failure.code, failure.delivery) == (StatusCode.DEADLINE_EXCEEDED, Delivery.UNKNOWN)
        assert failure.reason is LocalReason.DEADLINE
        assert await connection.unary("/x/Echo", b"", (), soon()) == b"next"


async def test_a_deadline_that_has_passed_sends_nothing(name: EngineName) -> None:
    requests = 0

    async def script(wire: Wire) -> None:
        nonlocal requests
        stream_id = await wire.request()
        requests = len(wire.requests)
        wire.answer(stream_id)

    async with scripted(script) as port, connected(name, port) as (connection, _):
        for deadline in (soon(-1.0), 0.0):
            failure = await failure_of(connection.unary("/x/Echo", b"", (), deadline))
            assert (failure.code, failure.delivery) == (StatusCode.DEADLINE_EXCEEDED, Delivery.UNSENT)
            assert failure.reason is LocalReason.DEADLINE
        failure = await failure_of(connection.open_stream("/x/Chat", (), 0.0))
        assert failure.delivery is Delivery.UNSENT
        assert await connection.unary("/x/Echo", b"", (), soon()) == b"ok"
        assert requests == 1


@pytest.mark.fake_too
async def test_a_slow_answer_is_waited_for(name: EngineName) -> None:
    async with (
        example_server() as (port, _),
        connected(name, port, silence_time=0.05, silence_timeout=0.1) as (connection, owner),
    ):
        assert await connection.unary("/x/Slow", b"0.4", (), soon()) == b"at last"
        assert owner.lost == []


@pytest.mark.fake_too
async def test_two_hundred_calls_at_once_each_get_their_own_answer(name: EngineName) -> None:
    async with example_server() as (port, _), connected(name, port) as (connection, _):
        payloads = [str(number).encode() * 50 for number in range(200)]
        replies = await asyncio.gather(*(connection.unary("/x/Echo", one, (), soon(20)) for one in payloads))
        assert replies == payloads


# --- streams ---


@pytest.mark.fake_too
async def test_a_server_stream_yields_its_messages_then_none_for_ever(name: EngineName) -> None:
    async with example_server() as (port, _), connected(name, port) as (connection, _):
        stream = await connection.open_stream("/x/Count", (), soon())
        await stream.send(b"300")
        await stream.half_close()
        got = [await stream.receive() for _ in range(300)]
        assert got == [str(number).encode() for number in range(300)]
        assert await stream.receive() is None
        assert await stream.receive() is None


@pytest.mark.fake_too
async def test_a_bidirectional_stream_echoes_and_ends_with_ok(name: EngineName) -> None:
    async with example_server() as (port, _), connected(name, port) as (connection, _):
        stream = await connection.open_stream("/x/Chat", (), soon())
        for payload in (b"", b"a", b"b" * 271_828):
            await stream.send(payload)
            assert await stream.receive() == payload
        await stream.half_close()
        assert await stream.receive() is None


@pytest.mark.fake_too
async def test_a_stream_that_the_server_ends_says_its_status_after_its_messages(name: EngineName) -> None:
    async with example_server() as (port, _), connected(name, port) as (connection, _):
        stream = await connection.open_stream("/x/Chat", (), soon())
        await stream.send(b"1")
        await stream.send(b"fail")
        assert [await stream.receive(), await stream.receive()] == [b"1", b"fail"]
        for _ in range(2):
            failure = await failure_of(stream.receive())
            assert (failure.code, failure.message) == (StatusCode.ABORTED, "as asked")
            assert failure.delivery is Delivery.ANSWERED
        assert (await failure_of(stream.send(b"more"))).code is StatusCode.ABORTED


@pytest.mark.fake_too
async def test_sending_to_an_ended_stream_fails_but_its_messages_and_status_can_still_be_read(name: EngineName) -> None:
    async with example_server() as (port, _), connected(name, port) as (connection, _):
        stream = await connection.open_stream("/x/Chat", (), soon())
        await stream.send(b"fail")
        failure = None
        async with asyncio.timeout(PATIENCE):
            while failure is None:
                try:
                    await stream.send(b"more")
                except AttemptFailure as error:
                    failure = error
        assert (failure.code, failure.delivery) == (StatusCode.ABORTED, Delivery.ANSWERED)
        assert await stream.receive() == b"fail"
        assert (await failure_of(stream.receive())).code is StatusCode.ABORTED


async def test_a_cancelled_stream_is_reset_and_takes_nothing_more(name: EngineName) -> None:
    resets: list[int | None] = []

    async def script(wire: Wire) -> None:
        stream_id = await wire.opened()
        wire.headers(stream_id, GRPC)
        await wire.until(lambda: wire.requests[stream_id].reset is not None)
        resets.append(wire.requests[stream_id].reset)
        wire.answer(await wire.request())

    async with scripted(script) as port, connected(name, port) as (connection, _):
        stream = await connection.open_stream("/x/Chat", (), soon())
        stream.cancel()
        stream.cancel()
        assert (await failure_of(stream.receive())).code is StatusCode.CANCELLED
        assert (await failure_of(stream.send(b""))).code is StatusCode.CANCELLED
        assert await connection.unary("/x/Echo", b"", (), soon()) == b"ok"
        assert resets == [8], "CANCEL"


@pytest.mark.fake_too
async def test_an_unread_stream_does_not_hold_up_the_calls_beside_it(name: EngineName) -> None:
    async with example_server() as (port, _), connected(name, port) as (connection, _):
        streams = [await connection.open_stream("/x/Flood", (), soon()) for _ in range(3)]
        for stream in streams:
            await stream.send(b"")
            await stream.half_close()
        for _ in range(20):
            assert await connection.unary("/x/Sized", b"100000", (), soon()) == b"x" * 100_000
        for stream in streams:
            assert await stream.receive() == b"x" * 2**16
            stream.cancel()
        assert await connection.unary("/x/Echo", b"next", (), soon()) == b"next"


@pytest.mark.fake_too
async def test_messages_of_a_stream_may_be_larger_than_any_window(name: EngineName) -> None:
    size = 6 * 2**20
    async with example_server() as (port, _), connected(name, port) as (connection, _):
        stream = await connection.open_stream("/x/Chat", (), soon(30))
        for letter in (b"a", b"b", b"c"):
            await stream.send(letter * size)
            assert await stream.receive() == letter * size
        stream.cancel()


@pytest.mark.fake_too
async def test_each_message_of_a_stream_is_returned_or_collected_in_its_place(name: EngineName) -> None:
    sizes = (0, 100, 314_159, 0, 6 * 2**20, 16_384, 100_000, 1)
    async with example_server() as (port, _), connected(name, port) as (connection, _):
        made: list[Kept] = []

        def collect() -> Kept:
            made.append(Kept())
            return made[-1]

        stream = await connection.open_stream("/x/Chat", (), soon(30), collect)
        collected = 0
        for number, size in enumerate(sizes):
            await stream.send(b"%d" % number * size)
            received = await stream.receive()
            if isinstance(received, Kept):
                assert received is made[collected], "the collectors come in the order of the messages"
                assert received.has_ended, "else its owner takes it for a part"
                collected += 1
                received = b"".join(received.pieces)
            assert received == b"%d" % number * size
        stream.cancel()
        assert collected == len(made) <= sum(size > 16_384 for size in sizes)
        assert collected or name != "native"


async def test_a_cancelled_receive_loses_no_message_that_is_collected(name: EngineName) -> None:
    async with example_server() as (port, _), connected(name, port) as (connection, _):
        stream = await connection.open_stream("/x/Chat", (), soon(30), Kept)
        await stream.send(b"x" * 300_000)
        turns = 0
        receiving = asyncio.ensure_future(stream.receive())
        while not receiving.done():
            turns += 1
            for _ in range(turns):
                await asyncio.sleep(0)
            if turns < 30:
                receiving.cancel()
            await asyncio.wait([receiving])
            if receiving.cancelled():
                receiving = asyncio.ensure_future(stream.receive())
        received = receiving.result()
        assert (b"".join(received.pieces) if isinstance(received, Kept) else received) == b"x" * 300_000
        stream.cancel()


@pytest.mark.fake_too
async def test_a_collector_that_has_parts_is_returned_for_each_and_for_its_end(name: EngineName) -> None:
    made: list[Parted] = []

    def collect() -> Parted:
        made.append(Parted(100_000))
        return made[-1]

    async with example_server() as (port, _), connected(name, port) as (connection, _):
        stream = await connection.open_stream("/x/Chat", (), soon(30), collect)
        await stream.send(b"x" * 1_000_000)
        await stream.send(b"last")
        received, parts = await stream.receive(), 0
        while isinstance(received, Parted) and not received.has_ended:
            assert received.has_part
            received.take()
            parts += 1
            received = await stream.receive()
        assert (b"".join(received.pieces) if isinstance(received, Parted) else received) == b"x" * 1_000_000
        assert parts > 4 or name != FAKE, "the native engine has parts only while the message arrives"
        assert made or name in ("grpclib", "gateway"), "these receive every message whole"
        assert await stream.receive() == b"last"
        stream.cancel()


@pytest.mark.fake_too
async def test_twenty_streams_beside_calls(name: EngineName) -> None:
    async with example_server() as (port, _), connected(name, port) as (connection, _):

        async def talk(number: int) -> None:
            stream = await connection.open_stream("/x/Chat", (), soon())
            for turn in range(10):
                payload = f"{number}.{turn}".encode()
                await stream.send(payload)
                assert await stream.receive() == payload
                assert await connection.unary("/x/Echo", payload, (), soon()) == payload
            await stream.half_close()
            assert await stream.receive() is None

        await asyncio.gather(*(talk(number) for number in range(20)))


# --- the peer's limits ---


async def test_the_peers_limit_of_streams_is_waited_for_in_turn(name: EngineName) -> None:
    most = 0
    order: list[bytes] = []

    async def script(wire: Wire) -> None:
        nonlocal most
        open_now: list[int] = []
        while len(order) < 12:
            await wire.until(lambda: any(r.is_ended and i not in open_now for i, r in wire.requests.items()))
            most = max(most, len(wire.requests) - len(order))
            stream_id = next(i for i, r in wire.requests.items() if r.is_ended and i not in open_now)
            open_now.append(stream_id)
            order.append(wire.requests[stream_id].body[5:])
            wire.answer(stream_id, wire.requests[stream_id].body[5:])
            await asyncio.sleep(0)

    limit = {SettingCodes.MAX_CONCURRENT_STREAMS: 2}
    async with scripted(script, settings=limit) as port, connected(name, port) as (connection, _):
        payloads = [str(number).encode() for number in range(12)]
        replies = await asyncio.gather(*(connection.unary("/x/Echo", one, (), soon()) for one in payloads))
        assert replies == payloads
        assert most <= 2
        assert order == payloads, "first come, first served"


@pytest.mark.parametrize("most", [9, 10])
async def test_a_quiet_stream_is_opened_only_where_there_are_enough_others(name: EngineName, most: int) -> None:
    limit = {SettingCodes.MAX_CONCURRENT_STREAMS: most}
    async with scripted(Wire.forever, settings=limit) as port, connected(name, port) as (connection, _):
        opening = connection.open_stream("/x/Watch", (), soon(), is_quiet=True)
        if most == 10:
            await opening
        else:
            assert (await failure_of(opening)).code is StatusCode.RESOURCE_EXHAUSTED


async def test_a_raised_limit_lets_waiting_calls_go(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        first = await wire.request()
        wire.limit_streams(10)
        second = await wire.request()  # while the first is still unanswered
        wire.answer(second, b"second")
        wire.answer(first, b"first")

    limit = {SettingCodes.MAX_CONCURRENT_STREAMS: 1}
    async with scripted(script, settings=limit) as port, connected(name, port) as (connection, _):
        calls = [connection.unary("/x/Echo", b"", (), soon(3)) for _ in range(2)]
        assert await asyncio.gather(*calls) == [b"first", b"second"]


async def test_a_call_that_waits_for_a_free_stream_in_vain_is_unsent(name: EngineName) -> None:
    limit = {SettingCodes.MAX_CONCURRENT_STREAMS: 1}
    async with scripted(Wire.forever, settings=limit) as port, connected(name, port) as (connection, _):
        stream = await connection.open_stream("/x/Chat", (), soon())
        failure = await failure_of(connection.unary("/x/Echo", b"", (), soon(0.05)))
        assert (failure.code, failure.delivery) == (StatusCode.DEADLINE_EXCEEDED, Delivery.UNSENT)
        failure = await failure_of(connection.open_stream("/x/Chat", (), soon(0.05)))
        assert (failure.code, failure.delivery) == (StatusCode.DEADLINE_EXCEEDED, Delivery.UNSENT)
        stream.cancel()
        await connection.open_stream("/x/Chat", (), soon())


async def test_messages_in_fragments_of_every_kind_are_put_together(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        stream_id = await wire.request()
        wire.headers(stream_id, GRPC)
        for byte in b"\0\0\0\0\5hello":
            wire.data(stream_id, bytes([byte]))
            wire.data(stream_id, b"")  # legal, and means nothing
        wire.headers(stream_id, OK, end=True)
        wire.answer(await wire.request(), b"next")

    async with scripted(script) as port, connected(name, port) as (connection, _):
        assert await connection.unary("/x/Echo", b"", (), soon()) == b"hello"
        assert await connection.unary("/x/Echo", b"", (), soon()) == b"next"


# --- the end ---


@pytest.mark.fake_too
async def test_a_closed_connection_takes_nothing_more(name: EngineName) -> None:
    async with example_server() as (port, _), connected(name, port) as (connection, owner):
        await connection.aclose()
        assert owner.lost == [None]
        assert (await failure_of(connection.unary("/x/Echo", b"", (), soon()))).delivery is Delivery.UNSENT
        assert (await failure_of(connection.open_stream("/x/Chat", (), soon()))).delivery is Delivery.UNSENT
        connection.drain()
        await connection.aclose()


@pytest.mark.fake_too
async def test_closing_ends_what_is_under_way(name: EngineName) -> None:
    async with example_server() as (port, examples), connected(name, port) as (connection, _):
        call = asyncio.ensure_future(connection.unary("/x/Slow", b"5", (), soon()))
        stream = await connection.open_stream("/x/Chat", (), soon())
        receiving = asyncio.ensure_future(stream.receive())
        await examples.until_running(1)
        await connection.aclose()
        for one in (call, receiving):
            failure = await failure_of(one)
            assert (failure.code, failure.delivery) == (StatusCode.UNAVAILABLE, Delivery.UNKNOWN)


@pytest.mark.fake_too
async def test_a_draining_connection_finishes_its_work_and_closes_itself(name: EngineName) -> None:
    async with example_server() as (port, _), connected(name, port) as (connection, owner):
        stream = await connection.open_stream("/x/Chat", (), soon())
        call = asyncio.ensure_future(connection.unary("/x/Slow", b"0.05", (), soon()))
        await stream.send(b"a")
        assert await stream.receive() == b"a"
        connection.drain()
        assert (await failure_of(connection.unary("/x/Echo", b"", (), soon()))).delivery is Delivery.UNSENT
        assert await call == b"at last"
        await stream.send(b"b")
        assert await stream.receive() == b"b"
        assert owner.lost == []
        await stream.half_close()
        assert await stream.receive() is None
        await asyncio.wait_for(owner.is_lost.wait(), PATIENCE)
        assert owner.lost == [None]


@pytest.mark.fake_too
async def test_an_idle_draining_connection_is_closed_at_once(name: EngineName) -> None:
    async with example_server() as (port, _), connected(name, port) as (connection, owner):
        connection.drain()
        assert owner.lost == [None]


# --- other ways there ---


async def test_over_tls_and_over_a_unix_socket(name: EngineName, tmp_path: Path) -> None:
    authority = trustme.CA()
    server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("member.test").configure_cert(server_tls)
    server_tls.set_alpn_protocols(["h2"])
    client_tls = ssl.create_default_context()
    authority.configure_trust(client_tls)
    client_tls.set_alpn_protocols(["h2"])
    path = str(tmp_path / "s")
    engine = create_engine(name, TransportOptions())
    async with example_server(tls=server_tls) as (port, _), example_server(path) as (_, _):
        for to in (
            target(port, tls=client_tls, server_name="member.test"),
            target(0, host="", path=path, authority="localhost"),
        ):
            connection = await engine.connect(to, Owner())
            payload = b"x" * 300_000
            assert await connection.unary("/x/Echo", payload, (), soon()) == payload
            async with asyncio.timeout(CLOSE_SECONDS):
                await connection.aclose()  # a TLS peer is not waited for, which would take 30 s


async def test_a_token_is_kept_out_of_every_table_of_header_compression(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        while True:
            stream_id = await wire.opened()
            request = wire.requests[stream_id]
            assert request.headers["token"].endswith("c4n4ry")
            assert "token" in request.never_indexed
            wire.answer(stream_id)

    async with scripted(script) as port, connected(name, port) as (connection, _):
        for number in (1, 1, 2):
            metadata = (("client-api-version", "3.7"), ("token", f"{number}-c4n4ry"))
            await connection.unary("/x/Echo", b"hello", metadata, soon())
            stream = await connection.open_stream("/x/Chat", metadata, soon())
            stream.cancel()


async def test_headers_of_one_call_are_kept_out_of_every_table_of_header_compression(name: EngineName) -> None:
    seen: list[str] = []

    async def script(wire: Wire) -> None:
        while True:
            stream_id = await wire.opened()
            request = wire.requests[stream_id]
            seen.append(request.headers["traceparent"])
            assert request.headers["hasleader"] == "true"
            assert "traceparent" in request.never_indexed
            wire.answer(stream_id)

    async with scripted(script) as port, connected(name, port) as (connection, _):
        for number in range(3):
            metadata = with_headers((("hasleader", "true"),), (("traceparent", f"00-{number}"),))
            await connection.unary("/x/Echo", b"hello", metadata, soon())
    assert seen == ["00-0", "00-1", "00-2"]
