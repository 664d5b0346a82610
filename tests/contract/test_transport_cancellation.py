"""What an engine leaves behind when its caller goes away: nothing; and in the caller's own task: nothing either."""

import asyncio
import gc
import itertools
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import anyio
import pytest
from h2.settings import SettingCodes

from etcd_aio.base.aio import start_task
from etcd_aio.errors import AttemptFailure, Delivery, LocalReason, StatusCode
from etcd_aio.transport import Connection, EngineName
from etcd_aio.transport.gateway.connection import GatewayConnection
from tests.support.scripted import GRPC, Wire, scripted
from tests.support.transport import (
    CLOSE_SECONDS,
    FAKE,
    Owner,
    connected,
    engine,
    example_server,
    failure_of,
    leftovers,
    settle,
    soon,
    target,
    tls_contexts,
)
from tests.support.until import PATIENCE, until

pytestmark = pytest.mark.anyio

SECONDS = 0.02  # after which a call is ended

Call: TypeAlias = Callable[[], Awaitable[bytes]]
Way: TypeAlias = Callable[[Call, float], Awaitable[None]]


async def sleeping() -> bytes:
    await asyncio.sleep(60)
    return b""


async def trace_of(way: Way, call: Call, seconds: float = SECONDS) -> int:
    """What ending `call` in this way leaves in the task that did it; before 3.13 a TaskGroup alone leaves some."""

    async def run() -> int:
        await way(call, seconds)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    return await asyncio.create_task(run())


def is_untouched() -> bool:
    """Whether the current task has no cancellation left over."""
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling() == 0


async def hanging(connection: Connection) -> bytes:
    return await connection.unary("/x/Slow", b"60", (), soon(60))


async def check_usable(connection: Connection) -> None:
    await settle()
    async with asyncio.timeout(PATIENCE):  # a pool finishes the dial that a cancelled call had begun
        while isinstance(connection, GatewayConnection) and leftovers():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    assert leftovers() == [], "no task is left"
    assert await connection.unary("/x/Echo", b"next", (), soon()) == b"next"


# --- the ways to end a call from outside ---


async def by_task_cancel(call: Call, seconds: float) -> None:
    async def run() -> bytes:
        return await call()

    task = asyncio.create_task(run())
    await asyncio.sleep(seconds)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def by_timeout(call: Call, seconds: float) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(seconds):
            await call()


async def by_wait_for(call: Call, seconds: float) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(call(), seconds)


async def by_fail_after(call: Call, seconds: float) -> None:
    with pytest.raises(TimeoutError):
        with anyio.fail_after(seconds):
            await call()


async def by_move_on_after(call: Call, seconds: float) -> None:
    with anyio.move_on_after(seconds) as scope:
        await call()
    assert scope.cancelled_caught


async def by_sibling_failure(call: Call, seconds: float) -> None:
    async def run() -> bytes:
        return await call()

    async def fail() -> None:
        await asyncio.sleep(seconds)
        raise LookupError("sibling")

    async def together() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(run())
            group.create_task(fail())

    with pytest.raises(ExceptionGroup) as caught:
        await together()
    assert [type(one) for one in caught.value.exceptions] == [LookupError]


async def by_anyio_sibling_failure(call: Call, seconds: float) -> None:
    async def fail() -> None:
        await anyio.sleep(seconds)
        raise LookupError("sibling")

    async def run() -> None:
        await call()

    async def together() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            group.start_soon(fail)

    with pytest.raises(ExceptionGroup) as caught:
        await together()
    assert [type(one) for one in caught.value.exceptions] == [LookupError]


WAYS = [
    by_task_cancel,
    by_timeout,
    by_wait_for,
    by_fail_after,
    by_move_on_after,
    by_sibling_failure,
    by_anyio_sibling_failure,
]


@pytest.mark.parametrize("way", WAYS)
async def test_a_call_ends_as_a_sleep_would(name: EngineName, way: Way) -> None:
    async with example_server() as (port, examples), connected(name, port) as (connection, _):
        for seconds in (SECONDS, 10 * SECONDS, 100 * SECONDS):  # a busy machine needs longer to come to the server
            assert await trace_of(way, lambda: hanging(connection), seconds) == await trace_of(way, sleeping)
            await check_usable(connection)
            await examples.until_running(0)
            if examples.cancelled:  # the server was told
                break
        assert examples.cancelled == 1


@pytest.mark.parametrize("way", WAYS)
async def test_a_failed_call_leaves_no_trace_in_the_callers_task(name: EngineName, way: Way) -> None:
    """The RPC dies, is repeated, and hangs, all in one task: a bound around it raises its own exception."""

    async def script(wire: Wire) -> None:
        wire.reset(await wire.request(), 8)
        await wire.request()
        wire.cut()

    async def is_hanging_when_it_ends(seconds: float) -> bool:
        async with (
            scripted(script) as dying,
            example_server() as (port, _),
            connected(name, dying) as (first, _),
            connected(name, port) as (second, _),
        ):
            is_hanging = False

            async def die_then_hang() -> bytes:
                nonlocal is_hanging
                for _ in range(2):
                    assert isinstance(await failure_of(first.unary("/x/Echo", b"", (), soon())), AttemptFailure)
                    assert is_untouched()
                assert (await failure_of(first.unary("/x/Echo", b"", (), soon(0.0)))).delivery is Delivery.UNSENT
                assert is_untouched()
                is_hanging = True
                return await hanging(second)

            assert await trace_of(way, die_then_hang, seconds) == await trace_of(way, sleeping)
            await asyncio.sleep(0)
            await check_usable(second)
            return is_hanging

    for seconds in (SECONDS, 10 * SECONDS, 100 * SECONDS):  # a busy machine needs longer to come to the hanging call
        if await is_hanging_when_it_ends(seconds):
            return
    pytest.fail("it did not come to the hanging call")


async def test_an_expired_call_leaves_no_trace_in_the_callers_task(name: EngineName) -> None:
    # The server pays no attention to the deadline that it is sent, or its own answer could come first.
    async def script(wire: Wire) -> None:
        # On a busy machine the first call may have expired before a byte of it was written.
        while wire.requests[stream_id := await wire.opened()].headers[":path"] != "/x/Echo":
            pass
        await wire.until(lambda: wire.requests[stream_id].is_ended)
        wire.answer(stream_id, b"next")

    async with scripted(script) as port, connected(name, port) as (connection, _):
        assert (await failure_of(connection.unary("/x/Slow", b"60", (), soon(0.01)))).reason is LocalReason.DEADLINE
        assert is_untouched()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.sleep(60)
        await check_usable(connection)


# --- at every turn of the loop ---


async def cancelled_after(turns: int, call: Callable[[], Awaitable[Any]]) -> bool:
    """Cancel `call` after so many turns of the loop; whether it was still running."""

    async def run() -> None:
        await call()

    task = asyncio.create_task(run())
    for _ in range(turns):
        await asyncio.sleep(0)
    was_running = task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        assert was_running
        return True
    return False


@pytest.mark.fake_too
@pytest.mark.parametrize("size", [0, 400_000])
async def test_a_unary_call_may_be_cancelled_at_any_turn(name: EngineName, size: int) -> None:
    async with example_server() as (port, examples), connected(name, port) as (connection, owner):
        payload = b"x" * size
        cancelled = 0
        for turns in [*range(60), *range(60, 400, 17)]:
            cancelled += await cancelled_after(turns, lambda: connection.unary("/x/Echo", payload, (), soon()))
            await check_usable(connection)
        # A fast engine has few stages: to be written, and to be answered.
        assert cancelled >= 2, "it was cancelled at several stages"
        assert owner.lost == []
        assert examples.running == 0


async def test_a_message_whose_sending_was_cancelled_ends_its_stream(name: EngineName) -> None:
    """Half of it is sent and cannot be taken back; what came after it would be read as its rest."""

    async def script(wire: Wire) -> None:
        stream_id = await wire.opened()
        await wire.until(lambda: len(wire.requests[stream_id].body) == 65_535)
        half_sent.set()
        await wire.until(lambda: wire.requests[stream_id].reset is not None)
        was_reset.set()

    half_sent, was_reset = asyncio.Event(), asyncio.Event()
    async with scripted(script, acknowledges=False) as port, connected(name, port) as (connection, owner):
        stream = await connection.open_stream("/x/Chat", (), soon())
        sending = asyncio.create_task(stream.send(b"x" * 100_000))
        await half_sent.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        async with asyncio.timeout(PATIENCE):
            await was_reset.wait()
        assert (await failure_of(stream.send(b"more"))).code is StatusCode.CANCELLED
        assert owner.lost == []


@pytest.mark.fake_too
async def test_a_stream_may_be_cancelled_at_any_turn(name: EngineName) -> None:
    async with example_server() as (port, _), connected(name, port) as (connection, owner):

        async def talk() -> None:
            stream = await connection.open_stream("/x/Chat", (), soon())
            try:
                await stream.send(b"x" * 100_000)
                await stream.receive()
                await stream.half_close()
                await stream.receive()
            finally:
                stream.cancel()

        cancelled = 0
        for turns in range(80):
            cancelled += await cancelled_after(turns, talk)
            await check_usable(connection)
        assert cancelled > (2 if name == FAKE else 5), "a fake has fewer turns"
        assert owner.lost == []


async def test_a_stream_whose_opening_was_cancelled_does_not_keep_a_draining_connection(name: EngineName) -> None:
    limit = {SettingCodes.MAX_CONCURRENT_STREAMS: 1}
    async with scripted(Wire.forever, settings=limit) as port, connected(name, port) as (connection, owner):
        stream = await connection.open_stream("/x/Chat", (), soon())
        assert await cancelled_after(5, lambda: connection.open_stream("/x/Chat", (), soon()))
        connection.drain()
        assert owner.lost == []
        stream.cancel()
        await until(lambda: bool(owner.lost))


async def test_every_cancelled_call_is_reset_on_the_wire(name: EngineName) -> None:
    seen: dict[int, int | None] = {}

    async def script(wire: Wire) -> None:
        try:
            await wire.forever()
        finally:
            seen.update({number: request.reset for number, request in wire.requests.items()})
            is_over.set()

    is_over = asyncio.Event()
    async with scripted(script) as port:
        async with connected(name, port) as (connection, _):
            for turns in range(40):
                await cancelled_after(turns, lambda: connection.unary("/x/Echo", b"x" * 1000, (), soon()))
            await settle()
        async with asyncio.timeout(PATIENCE):
            await is_over.wait()
    assert len(seen) > 20
    assert set(seen.values()) == {8}, "CANCEL, and none forgotten"


@pytest.mark.fake_too
async def test_a_call_beside_open_streams_only_does_not_wait_for_others(name: EngineName) -> None:
    """It is written in the turn in which it is made, as on an idle connection. Streams may be open for hours."""
    if name != "native":
        pytest.skip("grpclib writes at once")
    async with example_server() as (port, _), connected(name, port) as (connection, _):
        stream = await connection.open_stream("/x/Chat", (), soon())
        await stream.send(b"seen")
        assert await stream.receive() == b"seen"
        native: Any = connection
        call = asyncio.ensure_future(connection.unary("/x/Echo", b"", (), soon()))
        await asyncio.sleep(0)
        assert not native._unflushed
        await call
        stream.cancel()


async def test_what_is_given_up_before_it_left_is_never_heard_of(
    name: EngineName, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name != "native":
        pytest.skip("grpclib writes at once")
    monkeypatch.setattr("etcd_aio.transport.native.connection._FLUSH_AT", 1000)
    seen: list[str] = []

    async def script(wire: Wire) -> None:
        held = await wire.request()
        while seen[-1:] != ["next"]:
            stream_id = await wire.request()
            seen.append(wire.requests[stream_id].body[5:].decode())
            wire.answer(stream_id)
        wire.answer(held)

    async def echo(payload: bytes) -> bytes:
        return await connection.unary("/x/Echo", payload, (), soon())

    async with scripted(script) as port, connected(name, port) as (connection, owner):
        # On an idle connection the first one would leave at once.
        held = asyncio.ensure_future(connection.unary("/x/Echo", b"held", (), soon()))
        await asyncio.sleep(0.01)
        # All are made in the next turn of the loop, and cancelled within it.
        opening = [start_task(connection.open_stream("/x/Chat", (), soon()), name="stream") for _ in range(10)]
        calls = [start_task(echo(b"no"), name="call") for _ in range(200)]
        kept = start_task(echo(b"yes"), name="kept")
        await asyncio.sleep(0)
        for task in (*opening, *calls):
            assert task.cancel()
        assert await kept == b"ok"
        assert [str(one) for one in await asyncio.gather(*opening, *calls, return_exceptions=True)] == [""] * 210
        assert await connection.unary("/x/Echo", b"next", (), soon()) == b"ok"
        assert await held == b"ok"
        assert seen == ["yes", "next"]
        assert owner.lost == []


@pytest.mark.fake_too
async def test_a_dial_may_be_cancelled_at_any_turn(name: EngineName) -> None:
    async with example_server() as (port, _):
        for turns in range(25):
            owner = Owner()
            connections: list[Connection] = []

            async def dial(owner: Owner = owner, connections: list[Connection] = connections) -> None:
                connections.append(await engine(name).connect(target(port), owner))

            was_cancelled = await cancelled_after(turns, dial)
            assert was_cancelled != bool(connections)
            for connection in connections:
                await connection.aclose()
            await settle()
            assert leftovers() == []
            assert len(owner.lost) == len(connections)
        gc.collect()  # a forgotten socket would warn here, and warnings are errors


# --- streams ---


@pytest.mark.fake_too
async def test_a_cancelled_receive_loses_no_message(name: EngineName) -> None:
    async with example_server() as (port, _), connected(name, port) as (connection, _):
        stream = await connection.open_stream("/x/Chat", (), soon())
        got: list[object] = []

        async def receive() -> None:
            got.append(await stream.receive())

        for number in range(100):
            await stream.send(str(number).encode())
            await cancelled_after(number % 12, receive)
            assert is_untouched()
        while len(got) < 100:
            await asyncio.wait_for(receive(), PATIENCE)
        assert got == [str(number).encode() for number in range(100)]
        await stream.half_close()
        assert await stream.receive() is None


async def test_a_stream_whose_receive_was_cancelled_can_be_left_alone_when_the_connection_ends(
    name: EngineName,
) -> None:
    async def script(wire: Wire) -> None:
        wire.headers(await wire.opened(), GRPC)

    async with scripted(script) as port, connected(name, port) as (connection, owner):
        stream = await connection.open_stream("/x/Watch", (), soon())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(stream.receive(), 0.01)
        async with asyncio.timeout(CLOSE_SECONDS):
            await connection.aclose()
        assert leftovers() == []
        assert owner.lost == [None]
        del stream
        gc.collect()  # an exception that was not retrieved would be logged here


# --- many calls, and the end ---


@pytest.mark.parametrize("how", ["closed", "by the peer", "with calls", "after a breach", "drained"])
@pytest.mark.parametrize("is_tls", [False, True], ids=["plaintext", "tls"])
async def test_an_ended_connection_does_not_wait_for_the_collector(name: EngineName, how: str, is_tls: bool) -> None:
    """With TLS that would be a quarter of a megabyte for each, whenever an endpoint flaps."""
    if name != "native":
        pytest.skip("h2 and grpclib are circles of their own")

    async def script(wire: Wire) -> None:
        wire.answer(await wire.request())
        if how == "after a breach":
            wire.raw_frame(5, bytes(4))
        elif how == "by the peer":
            wire.cut()

    server, client = tls_contexts() if is_tls else (None, None)
    async with scripted(script, tls=server) as port:
        where = target(port, tls=client, server_name="127.0.0.1" if is_tls else "")
        owner = Owner()
        connection = await engine(name).connect(where, owner)
        await connection.unary("/x/Echo", b"", (), soon())
        if how == "drained":
            connection.drain()
        if how in {"by the peer", "after a breach", "drained"}:
            await owner.is_lost.wait()
        else:
            calls = (
                [asyncio.create_task(failure_of(hanging(connection))) for _ in range(3)] if how == "with calls" else []
            )
            await asyncio.sleep(0.01)
            await connection.aclose()
            for call in calls:
                assert (await call).delivery is Delivery.UNKNOWN
                del call
            del calls
        trace = weakref.ref(connection)
        gc.collect()
        gc.disable()
        try:
            del connection
            async with asyncio.timeout(PATIENCE):
                while trace() is not None:  # noqa: ASYNC110 - nothing signals it; with TLS the peer has to answer first
                    await asyncio.sleep(0.01)
        finally:
            gc.enable()


@pytest.mark.fake_too
@pytest.mark.parametrize("calls", [500, pytest.param(10_000, marks=pytest.mark.nightly)])
async def test_thousands_of_calls_leave_nothing_behind(name: EngineName, calls: int) -> None:
    async with example_server() as (port, examples), connected(name, port) as (connection, owner):

        async def abandon_a_stream() -> None:
            stream = await connection.open_stream("/x/Chat", (), soon())
            # grpclib's server keeps what is left of a stream that is opened and reset in one read.
            await stream.send(b"seen")
            assert await stream.receive() == b"seen"
            stream.cancel()

        async def objects_after(calls: int) -> int:
            for number in range(calls):
                if number % 10 == 0:
                    await abandon_a_stream()
                await connection.unary("/x/Echo", b"", (), soon())
            await settle()
            gc.collect()
            return len(gc.get_objects())

        # A leak grows in every round, by several objects for each call or stream. Caches of the test runner do not, nor
        # asyncio's cancelled timers, which stay until they are due, in its debug mode with their tracebacks.
        counts = [await objects_after(300)] + [await objects_after(calls) for _ in range(2)]
        assert leftovers() == []
        assert examples.running == 0
        assert min(after - before for before, after in itertools.pairwise(counts)) < calls / 2, counts
        assert owner.lost == []


@pytest.mark.parametrize(
    "stage", ["idle", "call", "big call", "stream", "waiting", "draining", "lost", "frozen", "stuffed"]
)
async def test_closing_is_quick_in_any_state(name: EngineName, stage: str) -> None:
    async def script(wire: Wire) -> None:
        if stage == "lost":
            await wire.opened()
            wire.cut()
        if stage == "stuffed":  # all that the sockets hold is full, and more waits to be written
            wire.http2.increment_flow_control_window(2**30)
            wire.flush()
        if stage in {"frozen", "stuffed"}:
            await wire.opened()
            await asyncio.sleep(3600)

    settings = {
        "waiting": {SettingCodes.MAX_CONCURRENT_STREAMS: 1},
        "stuffed": {SettingCodes.INITIAL_WINDOW_SIZE: 2**30},
    }.get(stage)
    async with (
        scripted(script, settings=settings, acknowledges=False) as port,
        connected(name, port) as (connection, _),
    ):
        calls = []
        if stage in {"call", "waiting", "draining", "lost", "frozen"}:
            calls += [asyncio.create_task(failure_of(hanging(connection))) for _ in range(3)]
        if stage in {"big call", "frozen", "stuffed"}:
            big = connection.unary("/x/Echo", b"x" * 30_000_000, (), soon(60))
            calls.append(asyncio.create_task(failure_of(big)))
        if stage in {"stream", "draining"}:
            stream = await connection.open_stream("/x/Chat", (), soon())
            calls.append(asyncio.create_task(failure_of(stream.receive())))
        await asyncio.sleep(0.4 if stage == "stuffed" else 0.02)
        if stage == "draining":
            connection.drain()
        async with asyncio.timeout(CLOSE_SECONDS):
            await connection.aclose()
        assert leftovers() == []
        for call in calls:
            assert (await call).delivery in {Delivery.UNSENT, Delivery.UNKNOWN}


@pytest.mark.fake_too
async def test_a_close_without_an_await_leaves_nothing_either(name: EngineName) -> None:
    async with example_server() as (port, examples), connected(name, port) as (connection, owner):
        calls = [asyncio.ensure_future(failure_of(hanging(connection))) for _ in range(3)]
        stream = await connection.open_stream("/x/Chat", (), soon())
        calls.append(asyncio.ensure_future(failure_of(stream.receive())))
        await examples.until_running(3)
        unwinding = connection.close()
        assert owner.lost == [None]
        for call in calls:
            assert (await call).delivery is Delivery.UNKNOWN
        await settle()
        assert all(one.done() for one in unwinding)
        assert leftovers() == []
        assert all(one.done() for one in connection.close())


async def test_stream_numbers_run_out_only_once_in_a_lifetime(name: EngineName) -> None:
    if name != "grpclib":
        pytest.skip("looks inside the grpclib engine")
    async with example_server() as (port, _), connected(name, port) as (connection, owner):
        connection.protocol.connection._connection.highest_outbound_stream_id = 2**31 - 1  # type: ignore[attr-defined]
        assert (await failure_of(connection.unary("/x/Echo", b"", (), soon()))).delivery is Delivery.UNSENT
        assert len(owner.draining) == 1
        assert owner.is_lost.is_set()
