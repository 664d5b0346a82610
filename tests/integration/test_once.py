"""Exactly-once writes on real servers: whatever is cut, killed, frozen, cancelled or deleted, nothing happens twice."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import Any, TypeAlias, TypeVar

import pytest

from etcd_aio import (
    Client,
    InvalidRequestError,
    Key,
    KeyValue,
    Operation,
    OutcomeUnknownError,
    PutResult,
    TxnResult,
    op,
)
from etcd_aio.errors import (
    ClientUsageError,
    ConnectionLostError,
    EtcdTimeoutError,
    LeaseNotFoundError,
    NoSpaceError,
    PermissionDeniedError,
    ResultLostError,
    TooManyOpsError,
)
from etcd_aio.once import DEFAULT_PREFIX, ExactlyOnce, Outcome
from etcd_aio.testing import EtcdCluster, EtcdServer, FaultProxy
from tests.faults.increments import increments
from tests.support.auth import QUICK_LOGINS, WEB, enable_auth
from tests.support.backends import ClientWithADetour
from tests.support.full_store import skip_if_full_store_keeps_all
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.usefixtures("each_store")]


R = TypeVar("R")
Send: TypeAlias = Callable[[], Awaitable[Any]]
Hook: TypeAlias = Callable[[Operation[Any], Send], Awaitable[Any]]


class Hooked(ClientWithADetour):
    """A client with a function around each of its operations."""

    hook: Hook | None = None

    async def detour(self, operation: Any, **options: Any) -> Any:
        if self.hook is None:
            return await self.send(operation, **options)
        return await self.hook(operation, lambda: self.send(operation, **options))


def lost() -> ConnectionLostError:
    error = ConnectionLostError("the answer is lost, in this test")
    error.maybe_applied = True
    return error


def lose_answers(of: int, then: Callable[[], Awaitable[object]] | None = None) -> Hook:
    """Lose the answers to the first writes through a slot, and do something else before that is known."""
    left = of

    async def hook(operation: Operation[Any], send: Send) -> Any:
        nonlocal left
        result = await send()
        if left and is_write(operation):
            left -= 1
            if then is not None:
                await then()
            raise lost()
        return result

    return hook


def is_write(operation: Operation[Any]) -> bool:
    """Whether it is a write through a slot: neither the creation of a slot nor its settling."""
    then = list(operation.then) if isinstance(operation, op.TxnOp) else []
    return len(then) > 1 or any(isinstance(part, op.TxnOp) for part in then)


@pytest.fixture
async def own_server() -> AsyncIterator[EtcdServer]:
    """A member of this test's own."""
    async with EtcdServer() as server:
        yield server


@pytest.fixture
async def hooked(shared_server: EtcdServer) -> AsyncIterator[Hooked]:
    async with Hooked(shared_server.endpoint) as client:
        yield client


async def settled(once: ExactlyOnce) -> None:
    """Wait until no outcome is open."""
    async with asyncio.timeout(PATIENCE):
        while once.statistics().unsettled:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.005)


async def version(client: Client, key: str) -> int:
    kv = await client.get(key)
    return 0 if kv is None else kv.version


def own_tasks() -> set[str]:
    return {name for task in asyncio.all_tasks() if "once" in (name := task.get_name())}


# Without faults.


async def test_results_are_those_of_the_client(client: Client, prefix: str) -> None:
    async with client.exactly_once(prefix=f"{prefix}once/") as once, client.lease(60) as lease:
        first = await once.put(f"{prefix}a", "1", lease=lease)
        kv = KeyValue(f"{prefix}a".encode(), b"1", first.revision, first.revision, 1, lease.id)
        assert await client.get(f"{prefix}a") == kv
        assert (first.is_replayed, first.prev_kv, first.header.member_id != 0) == (False, None, True)
        second = await once.put(f"{prefix}a", "2", prev_kv=True)
        assert second.prev_kv == kv
        get, delete = op.get(f"{prefix}a"), op.delete(f"{prefix}a", prev_kv=True)
        won = await once.txn().when(Key(f"{prefix}a").value == "2").then(get, delete).otherwise(get).commit()
        assert (won.succeeded, won.is_replayed, len(won.responses)) == (True, False, 2)
        assert won[get] == won[delete].prev_kvs[0]
        failed = await once.txn().when(Key(f"{prefix}a").exists).then(delete).otherwise(get).commit()
        assert (failed.succeeded, failed.responses, failed[get]) == (False, (None,), None)
        bare = await once.txn().then(op.put(f"{prefix}b", "1"), get).commit()
        assert (bare.succeeded, len(bare.responses), bare[get]) == (True, 2, None)
        none = await once.txn().when(Key(f"{prefix}none").exists).then(op.put(f"{prefix}c", "1")).commit()
        assert (none.succeeded, none.responses) == (False, ())
        gone = await once.delete(prefix=f"{prefix}b", prev_kv=True)
        assert (gone.deleted, gone.prev_kvs[0].value, gone.is_replayed) == (1, b"1", False)
        before = (await client.range(all_keys=True, count_only=True)).revision
        read = await once.txn().when(Key(f"{prefix}a").missing).then(get).commit()
        assert read.revision == before, "what only reads is sent as it is"
        statistics = once.statistics()
        assert (statistics.slots, statistics.in_use, statistics.replays) == (1, 0, 0)


async def test_one_slot_serves_all_in_the_order_of_the_calls(client: Client, prefix: str) -> None:
    async with client.exactly_once(slots=1, prefix=f"{prefix}once/") as once:
        results = await asyncio.gather(*(once.put(f"{prefix}{number}", "v") for number in range(50)))
        revisions = [result.revision for result in results]
        assert revisions == sorted(set(revisions))
        assert once.statistics().slots == 1
        assert (await client.range(prefix=f"{prefix}once/", count_only=True)).count == 1


async def test_there_are_as_many_slots_as_writes_at_a_time_but_no_more_than_allowed(
    client: Client, prefix: str
) -> None:
    async with client.exactly_once(slots=8, prefix=f"{prefix}once/") as once:
        await once.put(f"{prefix}0", "v")
        assert once.statistics().slots == 1
        await asyncio.gather(*(once.put(f"{prefix}{number}", "v") for number in range(100)))
        assert once.statistics().slots == 8
        assert once.statistics().in_use == 0


async def test_nothing_is_left_after_the_block(own_server: EtcdServer) -> None:
    async with Client(own_server.endpoint) as client:
        async with client.exactly_once() as once:
            await asyncio.gather(*(once.put(f"k{number}", "v") for number in range(100)))
            assert (await client.range(prefix=DEFAULT_PREFIX, count_only=True)).count > 1
            assert len((await client.leases.list()).ids) == 1
        assert (await client.range(prefix=DEFAULT_PREFIX, count_only=True)).count == 0
        assert (await client.leases.list()).ids == ()
        assert not own_tasks()
        with pytest.raises(ClientUsageError, match="has ended"):
            await once.put("k", "v")
        with pytest.raises(ClientUsageError, match="entered once"):
            await once.__aenter__()
        with pytest.raises(ClientUsageError, match=r"with client\.exactly_once\(\)"):
            await client.exactly_once().put("k", "v")
        async with client.exactly_once():
            pass
        assert (await client.leases.list()).ids == (), "an unused one has no lease"


async def test_the_most_operations(client: Client, prefix: str) -> None:
    async with client.exactly_once(prefix=f"{prefix}once/") as once:
        for has_when, name, most in ((False, None, 127), (True, None, 126), (False, "a", 125), (True, "b", 124)):
            for count in (most, most + 1):
                puts = [op.put(f"{prefix}{number}", "v") for number in range(count)]
                when = [Key(prefix).missing] if has_when else []
                txn = once.txn(id=name).when(*when).then(*puts)
                if count == most:
                    assert len((await txn.commit()).responses) == most
                else:
                    with pytest.raises(TooManyOpsError, match=f"at most {most} operations, got {count}"):
                        await txn.commit()
        whens = [Key(f"{prefix}none{number}").missing for number in range(126)]
        assert await once.txn().when(*whens).then(op.put(prefix, "v")).commit()


@pytest.mark.parametrize(
    "write",
    [
        lambda once, own: once.put(f"{own}x", "v"),
        lambda once, own: once.delete(from_key=own[:-1]),
        lambda once, own: once.delete(own[:-2], range_end=own + "z"),
        lambda once, own: once.txn().when(Key("k").exists).otherwise(op.txn(then=[op.delete(prefix=own)])).commit(),
    ],
)
async def test_its_own_keys_are_not_written(
    client: Client, prefix: str, write: Callable[[ExactlyOnce, str], Awaitable[object]]
) -> None:
    own = f"{prefix}once/"
    async with client.exactly_once(prefix=own) as once:
        with pytest.raises(InvalidRequestError, match="must not change the keys"):
            await write(once, own)
        assert (await client.range(prefix=prefix, count_only=True)).count == 0


# Lost answers.


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice in a row"])
async def test_every_byte_of_the_answer_is_cut(shared_server: EtcdServer, prefix: str, times: int, step: int) -> None:
    replays = 0
    async with Client(shared_server.endpoint) as direct:
        await direct.put(prefix, "first")
        for count, n_bytes in enumerate(range(0, 150, step), 2):
            async with (
                FaultProxy(shared_server.endpoint) as proxy,
                Client(proxy.endpoint, timeout=PATIENCE) as client,
                client.exactly_once(prefix=f"{prefix}once/") as once,
            ):
                await once.put(f"{prefix}other", "v")
                proxy.cut_after(n_bytes, "to_client", connection="open")
                if times == 2:
                    proxy.cut_after(50 + n_bytes, "to_client", connection="next")
                result = await once.put(prefix, str(n_bytes), prev_kv=True)
                proxy.heal()
                replays += once.statistics().replays
            kv = await direct.get(prefix)
            assert kv is not None
            assert (kv.mod_revision, kv.value) == (result.revision, str(n_bytes).encode())
            assert result.prev_kv is not None
            assert result.prev_kv.version == kv.version - 1 == count - 1, "each was applied once"
        assert replays > 50 // step


async def test_without_a_slot_the_same_cuts_apply_writes_twice(shared_server: EtcdServer, prefix: str) -> None:
    async with FaultProxy(shared_server.endpoint) as proxy, Client(proxy.endpoint, timeout=PATIENCE) as client:
        for n_bytes in range(0, 60, 6):
            proxy.cut_after(n_bytes, "to_client", connection="open")
            await client.put(prefix, str(n_bytes), retry="always")
            proxy.heal()
        assert await version(client, prefix) > 10


async def test_a_lost_answer_is_replayed(hooked: Hooked, prefix: str) -> None:
    """Every kind of write, and every result of it."""
    async with hooked.exactly_once(prefix=f"{prefix}once/") as once, hooked.lease(60) as lease:
        for name in "abc":
            await hooked.put(f"{prefix}{name}", name)
        get, range_, gone = op.get(f"{prefix}a"), op.range(prefix=prefix, limit=2), op.delete(f"{prefix}b")

        async def writes() -> list[Any]:
            return [
                await once.put(f"{prefix}a", "1", prev_kv=True, lease=lease),
                await once.txn().when(get_exists).then(get, gone, range_).otherwise(get).commit(),
                await once.txn().when(Key(f"{prefix}none").exists).then(get).otherwise(range_, gone).commit(),
                await once.txn().then(op.put(f"{prefix}d", "4"), range_).commit(),
                await once.delete(prefix=f"{prefix}c", prev_kv=True),
                await once.put(f"{prefix}e", "5"),
            ]

        get_exists = Key(f"{prefix}a").exists
        hooked.hook = lose_answers(of=6)
        found = await writes()
        assert all(result.is_replayed for result in found)
        assert isinstance(found[0], PutResult)
        assert found[0].prev_kv is not None
        assert (found[0].prev_kv.value, found[0].prev_kv.version) == (b"a", 1)
        assert [result.succeeded for result in found[1:4]] == [True, False, True]
        assert found[1][get].value == b"1"
        assert (found[1][gone].deleted, [kv.value for kv in found[1][range_]]) == (1, [b"1", b"c"])
        assert (found[2][gone].deleted, [kv.value for kv in found[2][range_]]) == (0, [b"1", b"c"])
        assert (found[3][range_].count, found[3][range_].more) == (4, True)  # the slot is below the prefix, too
        assert (found[4].deleted, found[4].prev_kvs[0].value) == (1, b"c")
        revisions = [result.revision for result in found]
        assert revisions == sorted(set(revisions))
        kv = await hooked.get(f"{prefix}e")
        assert kv is not None
        assert (kv.version, kv.mod_revision) == (1, revisions[-1])
        statistics = once.statistics()
        assert (statistics.replays, statistics.settled_applied, statistics.settled_not_applied) == (6, 6, 0)


async def test_a_result_that_is_compacted(own_server: EtcdServer) -> None:
    async with Hooked(own_server.endpoint) as client, client.exactly_once() as once:
        await once.put("k", "v")

        async def compact() -> None:
            await client.compact((await client.range("k")).revision)

        client.hook = lose_answers(of=2, then=compact)
        with pytest.raises(ResultLostError) as caught:
            await once.put("k", "w", prev_kv=True)
        kv = await client.get("k")
        assert kv is not None
        assert (kv.version, kv.mod_revision) == (2, caught.value.revision)
        assert (await once.put("k", "x")).is_replayed, "without prev_kv nothing is missing"
        assert await version(client, "k") == 3


async def test_a_leader_is_killed(cluster: EtcdCluster, prefix: str) -> None:
    async with Client(cluster.endpoints, timeout=PATIENCE) as client, client.exactly_once() as once:
        begun = 0

        async def write(worker: int) -> None:
            nonlocal begun
            for number in range(60):
                begun += 1
                result = await once.put(f"{prefix}{worker}", str(number))
                written[worker] = result.revision

        written: dict[int, int] = {}
        writers = [asyncio.create_task(write(worker)) for worker in range(8)]
        for share in (100, 250):
            while begun < share:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.001)
            leader = await cluster.leader()
            await leader.kill()
            await leader.restart()
        await asyncio.gather(*writers)
        found = {int(kv.key_text().removeprefix(prefix)): kv for kv in await client.range(prefix=prefix)}
        assert {worker: kv.version for worker, kv in found.items()} == dict.fromkeys(range(8), 60)
        assert {worker: kv.mod_revision for worker, kv in found.items()} == written


async def test_a_frozen_member_goes_on_after_the_writes_have_returned(cluster: EtcdCluster, prefix: str) -> None:
    async with Client(cluster.endpoints, timeout=PATIENCE) as client, client.exactly_once() as once:
        await asyncio.gather(*(once.put(f"{prefix}warm{number}", "v") for number in range(64)))
        for round_, member in enumerate(cluster.members):
            member.pause()
            results = await asyncio.gather(*(once.put(f"{prefix}{round_}/{number}", "v") for number in range(64)))
            member.resume()
            await cluster.wait_healthy()
            # What the member had received before goes through raft before this read, which it answers itself.
            async with Client(member.endpoint, timeout=PATIENCE) as direct:
                for _ in range(3):
                    found = await direct.range(prefix=f"{prefix}{round_}/")
                    assert {kv.version for kv in found} == {1}
                    assert sorted(kv.mod_revision for kv in found) == sorted(result.revision for result in results)
                    await asyncio.sleep(0.2)


# Writes that are given up.


async def in_many_turns(operation: Operation[Any], send: Send) -> Any:
    """An operation that takes some turns of the loop at least, however fast the server is."""
    for _ in range(5):
        await asyncio.sleep(0)
    result = await send()
    for _ in range(5):
        await asyncio.sleep(0)
    return result


async def test_every_await_is_cancelled(hooked: Hooked, prefix: str) -> None:
    """The call is cancelled after k turns of the loop, for every k that it can take."""
    client, hooked.hook = hooked, in_many_turns
    async with client.exactly_once(slots=2, prefix=f"{prefix}once/") as once:
        for sweep in range(20):
            turns = 0
            while True:
                task = asyncio.ensure_future(once.put(f"{prefix}{sweep}/{turns}", "v"))
                for _ in range(turns):
                    await asyncio.sleep(0)
                if task.done():
                    break
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                turns += 1
                await settled(once)
            assert turns > 10, "the call never waited: the test proves nothing"
            statistics = once.statistics()
            assert statistics.in_use == 0
            if statistics.settled_applied + statistics.settled_not_applied > 0:
                break  # where the loop rarely gets a processor, an answer may be there whenever it looks
        else:
            pytest.fail("no write was cancelled while it was under way")
        found = await client.range(prefix=prefix)
        assert {kv.version for kv in found if b"/once/" not in kv.key} <= {1}
        await asyncio.gather(*(once.put(f"{prefix}last", "v") for _ in range(4)))
    assert (await client.range(prefix=f"{prefix}once/", count_only=True)).count == 0
    assert not own_tasks()


@pytest.mark.parametrize("what", ["write", "close"])
async def test_the_first_write_and_the_close_are_cancelled_at_every_await(own_server: EtcdServer, what: str) -> None:
    """Nothing is left, by what the server says of itself."""
    async with Hooked(own_server.endpoint) as client:
        client.hook = in_many_turns
        turns = 0
        while True:
            once = await client.exactly_once().__aenter__()
            if what == "close":
                await once.put(f"k/{turns}", "v")
            task = asyncio.ensure_future(
                once.put(f"k/{turns}", "v") if what == "write" else once.__aexit__(None, None, None)
            )
            for _ in range(turns):
                await asyncio.sleep(0)
            is_done = task.done()
            if not is_done:
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            await once.__aexit__(None, None, None)
            async with asyncio.timeout(PATIENCE):
                while (await client.leases.list()).ids or own_tasks():  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.005)
            assert (await client.range(prefix=DEFAULT_PREFIX, count_only=True)).count == 0
            assert await version(client, f"k/{turns}") <= 1
            if is_done:
                break
            turns += 1
        assert turns > 3, "the call never waited: the test proves nothing"


async def test_cancelled_waiters_for_a_slot_pass_their_turn_on(client: Client, prefix: str) -> None:
    async with client.exactly_once(slots=1, prefix=f"{prefix}once/") as once:
        tasks = [asyncio.create_task(once.put(f"{prefix}{number}", "v")) for number in range(40)]
        for number in range(0, 40, 3):
            await asyncio.sleep(0.001)
            tasks[number].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, PutResult | asyncio.CancelledError) for result in results)
        assert sum(isinstance(result, PutResult) for result in results) >= 26
        await settled(once)
        assert once.statistics().in_use == 0
        await once.put(prefix, "v")


@pytest.mark.parametrize("direction", ["to_client", "to_server"])
async def test_the_deadline_passes_and_settle_tells(shared_server: EtcdServer, prefix: str, direction: Any) -> None:
    async with (
        Client(shared_server.endpoint) as direct,
        FaultProxy(shared_server.endpoint) as proxy,
        Client(proxy.endpoint, timeout=PATIENCE) as client,
        client.exactly_once(prefix=f"{prefix}once/") as once,
    ):
        before = await once.put(prefix, "first")
        proxy.black_hole(direction)
        with pytest.raises(OutcomeUnknownError) as caught:
            await once.put(prefix, "second", prev_kv=True, timeout=0.3)
        error = caught.value
        assert error.maybe_applied
        assert error.call.startswith("txn")
        assert error.attempts
        assert isinstance(error.__cause__, EtcdTimeoutError)
        assert once.statistics().unsettled == 1
        with pytest.raises(OutcomeUnknownError) as again:
            await once.settle(error, timeout=0.1)
        assert again.value is error
        proxy.heal()
        outcome = await once.settle(error)
        kv = await direct.get(prefix)
        assert kv is not None
        if outcome.applied:
            assert isinstance(outcome.result, PutResult)
            assert (kv.version, kv.mod_revision) == (2, outcome.revision) == (2, outcome.result.revision)
            assert outcome.result.prev_kv == KeyValue(prefix.encode(), b"first", before.revision, before.revision, 1)
        else:
            assert outcome == Outcome(applied=False)
            assert kv.version == 1
        assert await once.settle(error) == outcome, "it does not change any more"
        if direction == "to_client":
            assert outcome.applied
        with pytest.raises(ClientUsageError, match="a write of this object"):
            await once.settle(OutcomeUnknownError())
        async with client.exactly_once(prefix=f"{prefix}once/") as other:
            with pytest.raises(ClientUsageError):
                await other.settle(error)


@pytest.mark.parametrize("needs", ["a slot", "a lease", "a lease of ids"])
async def test_a_write_that_was_never_sent_was_not_applied(shared_server: EtcdServer, prefix: str, needs: str) -> None:
    """No answer comes to the call that makes ready for it."""
    async with (
        FaultProxy(shared_server.endpoint) as proxy,
        Client(proxy.endpoint, timeout=0.5) as client,
        client.exactly_once(prefix=f"{prefix}once/") as once,
    ):
        if needs != "a lease":
            await once.put(f"{prefix}warm", "v", timeout=PATIENCE)
        else:
            await client.get(prefix, timeout=PATIENCE)
        opened = []
        proxy.black_hole("to_client")
        if needs == "a slot":
            opened.append(asyncio.create_task(once.put(f"{prefix}open", "v", timeout=1.5)))
            await asyncio.sleep(0.1)  # it has the slot by then, also if its call is one of a thread
        name = "a" if needs == "a lease of ids" else None
        writes = [once.put(f"{prefix}never/{number}", "v", id=name, timeout=1.5) for number in range(2)]
        for error in await asyncio.gather(*writes, return_exceptions=True):
            assert isinstance(error, EtcdTimeoutError)
            assert not isinstance(error, OutcomeUnknownError)
            assert not error.maybe_applied
            assert "may have been applied" not in str(error)
            assert [note for note in error.__notes__ if "was not sent" in note] == [
                "the write itself was not sent: this is what exactly-once writes need before"
            ]
        proxy.heal()
        for result in await asyncio.gather(*opened, return_exceptions=True):
            assert isinstance(result, OutcomeUnknownError)
        assert (await client.range(prefix=f"{prefix}never/", count_only=True, timeout=PATIENCE)).count == 0


async def test_an_error_that_leaves_the_outcome_open_is_settled_before_it_is_raised(
    hooked: Hooked, prefix: str
) -> None:
    async def refuse(operation: Operation[Any], send: Send) -> Any:
        if is_write(operation):
            raise lost()
        return await send()

    async with hooked.exactly_once(prefix=f"{prefix}once/") as once:
        hooked.hook = refuse
        with pytest.raises(ConnectionLostError) as caught:
            await once.put(prefix, "v")
        assert not caught.value.maybe_applied, "it was not, and never will be"
        hooked.hook = None
        assert await version(hooked, prefix) == 0
        assert (once.statistics().settled_not_applied, once.statistics().in_use) == (1, 0)
        await once.put(prefix, "v")


async def test_one_attempt_and_then_the_truth(hooked: Hooked, prefix: str) -> None:
    async with hooked.exactly_once(prefix=f"{prefix}once/") as once:
        hooked.hook = lose_answers(of=1)
        result = await once.txn().then(op.put(prefix, "v")).commit(retry="never")
        assert (result.succeeded, result.is_replayed, await version(hooked, prefix)) == (True, True, 1)


async def test_a_history_that_is_compacted_leaves_it_unknown_for_ever(own_server: EtcdServer) -> None:
    async with Hooked(own_server.endpoint) as client, client.exactly_once() as once:

        async def delete_and_compact() -> None:
            await client.delete(prefix=DEFAULT_PREFIX)
            put = await client.put("other", "v")
            await client.compact(put.revision)

        client.hook = lose_answers(of=1, then=delete_and_compact)
        with pytest.raises(OutcomeUnknownError) as caught:
            await once.put("k", "v")
        with pytest.raises(OutcomeUnknownError):
            await once.settle(caught.value)
        assert await version(client, "k") == 1
        await once.put("k", "w")
        assert (once.statistics().unsettled, once.statistics().in_use) == (0, 0)


# Slots that are gone.


@pytest.mark.parametrize("loses_answer", [False, True], ids=["answered", "answer lost"])
@pytest.mark.parametrize("harm", ["revoke", "delete"])
async def test_the_slot_is_gone_between_any_two_steps(own_server: EtcdServer, harm: str, loses_answer: bool) -> None:
    """By a revocation of the lease, or since another user deletes the whole prefix."""
    async with Hooked(own_server.endpoint, timeout=PATIENCE) as client, Client(own_server.endpoint) as other:

        async def do_harm() -> None:
            if harm == "delete":
                await other.delete(prefix=DEFAULT_PREFIX)
            else:
                for lease in (await other.leases.list()).ids:
                    with suppress(LeaseNotFoundError):
                        await other.leases.revoke(lease)

        def harming(at: int, is_before: bool) -> Hook:
            step = 0

            async def hook(operation: Operation[Any], send: Send) -> Any:
                nonlocal step
                step += 1
                is_now = step == at
                if is_now and is_before:
                    await do_harm()
                result = await send()
                if is_now and not is_before:
                    await do_harm()
                if is_now and loses_answer and is_write(operation):
                    raise lost()
                return result

            return hook

        async def is_true(key: str, write: Awaitable[PutResult | TxnResult]) -> None:
            """Whether the result of a write, or its error, is what the store shows."""
            (result,) = await asyncio.gather(write, return_exceptions=True)
            if isinstance(result, BaseException):
                assert loses_answer
                assert isinstance(result, ConnectionLostError)
                assert not result.maybe_applied
            applied = 0 if isinstance(result, BaseException) else result.revision
            kv = await other.get(key)
            found = (0, 0) if kv is None else (kv.version, kv.mod_revision)
            assert found == ((1, applied) if applied else (0, 0))

        for at in range(1, 8):
            for is_before in (True, False):
                key = f"k/{at}/{is_before}/"
                async with client.exactly_once() as once:
                    await once.put("warm", "v")
                    client.hook = harming(at, is_before)
                    txn = once.txn().when(Key(f"{key}a").missing).then(op.put(f"{key}a", "v"))
                    await is_true(f"{key}a", txn.commit())
                    await is_true(f"{key}b", once.put(f"{key}b", "v"))
                    client.hook = None
                    await settled(once)
                    assert once.statistics().in_use == 0
        assert (await other.leases.list()).ids == ()


async def test_an_outage_longer_than_the_ttl(shared_server: EtcdServer, prefix: str) -> None:
    async with (
        Client(shared_server.endpoint) as direct,
        FaultProxy(shared_server.endpoint) as proxy,
        Client(proxy.endpoint, timeout=PATIENCE) as client,
        client.exactly_once(ttl=2, prefix=f"{prefix}once/") as once,
    ):
        await once.put(f"{prefix}a", "v")
        writes = [asyncio.create_task(once.put(f"{prefix}{number}", "v")) for number in range(8)]
        await asyncio.sleep(0.002)
        proxy.refuse()
        proxy.cut()
        async with asyncio.timeout(PATIENCE):
            while (await direct.range(prefix=f"{prefix}once/", count_only=True)).count:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            while once.statistics().lease_losses == 0:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.1)
        proxy.accept()
        results = await asyncio.gather(*writes)
        for number, result in enumerate(results):
            kv = await direct.get(f"{prefix}{number}")
            assert kv is not None
            assert (kv.version, kv.mod_revision) == (1, result.revision)
        assert once.statistics().lease_losses == 1


async def test_the_lease_of_the_write_itself_is_gone(client: Client, prefix: str) -> None:
    async with client.exactly_once(prefix=f"{prefix}once/") as once:
        with pytest.raises(LeaseNotFoundError) as caught:
            await once.put(prefix, "v", lease=0x7EAD)
        assert not caught.value.maybe_applied
        assert (once.statistics().lease_losses, once.statistics().in_use) == (0, 0)
        await once.put(prefix, "v")
        assert once.statistics().slots == 1


async def test_a_lost_lease_of_ids_is_not_told_as_one_of_the_write(
    client: Client, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the time is over before it is known which of its leases is lost: the write has none."""

    async def time_to_live(*_: object, **__: object) -> Any:
        raise EtcdTimeoutError("the time is over, in this test")

    async with client.exactly_once(prefix=f"{prefix}once/") as once:
        await once.put(prefix, "v", id="one")
        (id_key,) = await client.range(prefix=f"{prefix}once/ids/")
        await client.leases.revoke(id_key.lease)
        with monkeypatch.context() as patch:
            patch.setattr(client.leases, "time_to_live", time_to_live)
            with pytest.raises(EtcdTimeoutError) as caught:
                await once.txn(id="two").when(Key(prefix).version == 1).then(op.put(prefix, "w")).commit()
        assert not caught.value.maybe_applied
        assert await version(client, prefix) == 1
        await once.put(prefix, "x", id="two")
        assert await version(client, prefix) == 2


# What the server refuses.


async def test_no_space() -> None:
    async with (
        EtcdServer(flags=["--quota-backend-bytes=1000000"]) as server,
        Client(server.endpoint) as client,
        client.exactly_once(slots=4) as once,
    ):
        await once.put("k", "v")
        with suppress(NoSpaceError):
            for number in range(500):
                await client.put(f"f{number}", b"x" * 100_000)
            pytest.fail("it is not full")
        await skip_if_full_store_keeps_all(client)
        with pytest.raises(NoSpaceError) as caught:
            await once.put("k", "w")
        assert not caught.value.maybe_applied
        for _ in range(5):
            with pytest.raises(NoSpaceError) as caught:
                await once.put("k", "w")
            assert not caught.value.maybe_applied, "the slot could not be created"
        assert once.statistics().slots == 0
        assert await version(client, "k") == 1
        assert once.statistics().settled_not_applied == 1, "its slot was deleted, which needs no space"
        last = await client.delete(prefix="f")
        await client.compact(last.revision, physical=True)
        for member in await client.cluster.members():
            await client.maintenance.defragment(member.client_urls[0])
        await client.maintenance.disarm("nospace")
        await once.put("k", "w")
        assert await version(client, "k") == 2
        assert (once.statistics().unsettled, once.statistics().in_use) == (0, 0)


@pytest.mark.whole_store
async def test_without_the_permission_for_its_prefix() -> None:
    async with EtcdServer(flags=[QUICK_LOGINS]) as server:
        await enable_auth(server, web=True)
        async with Client(server.endpoint, auth=WEB, allow_insecure_auth=True) as client:
            async with client.exactly_once() as once:
                with pytest.raises(PermissionDeniedError, match=r"need to read and write prefix=.*__etcd_aio/once/"):
                    await once.put("app/k", "v")
                assert once.statistics().slots == 0
            async with client.exactly_once(prefix="app/once/") as once:
                await once.put("app/k", "v")
                with pytest.raises(PermissionDeniedError):
                    await once.put("other", "v")
                await once.put("app/k", "w")
                assert once.statistics().slots == 1
            assert await version(client, "app/k") == 2
            assert (await client.range(prefix="app/once/", count_only=True)).count == 0


# Ids.


async def test_an_id_is_used_by_one_write_of_all_processes(shared_server: EtcdServer, prefix: str) -> None:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(Client(shared_server.endpoint)) for _ in range(3)]
        once_blocks = [client.exactly_once(prefix=f"{prefix}once/") for client in clients]
        writers = [await stack.enter_async_context(once) for once in once_blocks]
        client = clients[0]
        await client.put(prefix, "old")
        results = await asyncio.gather(
            *(once.put(prefix, "new", prev_kv=True, id="order-42") for once in writers for _ in range(5))
        )
        assert await version(client, prefix) == 2
        assert len({result.revision for result in results}) == 1
        assert {result.prev_kv.value for result in results if result.prev_kv is not None} == {b"old"}
        assert all(result.prev_kv for result in results)
        assert sum(not result.is_replayed for result in results) == 1
        with pytest.raises(InvalidRequestError) as raised:
            await writers[0].put(prefix, "another-value", id="order-42")
        assert raised.value.call == f"put '{prefix}'"
        assert f"'{prefix}once/ids/order-42'" in str(raised.value)
        assert "for another request" in str(raised.value)
        assert "another-value" not in str(raised.value)
        again = await writers[1].put(prefix, "new", prev_kv=True, id="order-42")
        assert again.revision == results[0].revision
        txn = [
            await once.txn(id="txn").when(Key(f"{prefix}t").missing).then(op.put(f"{prefix}t", "v")).commit()
            for once in writers
        ]
        assert [(result.succeeded, result.is_replayed) for result in txn] == [(True, False), (True, True), (True, True)]
        failed = [
            await once.txn(id="no").when(Key(f"{prefix}t").missing).then(op.put(f"{prefix}t", "v")).commit()
            for once in writers
        ]
        assert [result.succeeded for result in failed] == [False] * 3
        assert await version(client, f"{prefix}t") == 1
    async with Client(shared_server.endpoint) as direct:
        left = await direct.range(prefix=f"{prefix}once/")
        assert {kv.key_text().removeprefix(f"{prefix}once/") for kv in left} == {"ids/order-42", "ids/txn", "ids/no"}
        assert b"new" not in b"".join(kv.value for kv in left)
        for lease in {kv.lease for kv in left}:
            assert 24 * 3600 < (await direct.leases.time_to_live(lease)).ttl <= 48 * 3600 + 5, (
                "for two windows and a call"
            )
            await direct.leases.revoke(lease)


async def test_a_lost_answer_to_a_write_with_an_id(hooked: Hooked, prefix: str) -> None:
    async with hooked.exactly_once(prefix=f"{prefix}once/") as once:
        hooked.hook = lose_answers(of=2)
        first = await once.put(prefix, "v", id="a")
        second = await once.put(prefix, "v", id="a")
        assert (first.is_replayed, second.is_replayed) == (True, True)
        assert first.revision == second.revision
        assert await version(hooked, prefix) == 1


async def test_after_its_window_an_id_is_new(client: Client, prefix: str) -> None:
    async with client.exactly_once(window=1, prefix=f"{prefix}once/") as once:
        await once.put(prefix, "v", id="a", timeout=3)
        await once.put(prefix, "v", id="a", timeout=3)
        assert await version(client, prefix) == 1
        await client.wait_deleted(f"{prefix}once/ids/a", timeout=PATIENCE)
        result = await once.put(prefix, "v", id="a", timeout=3)
        assert (result.is_replayed, await version(client, prefix)) == (False, 2)
        with pytest.raises(InvalidRequestError, match="id is empty"):
            await once.put(prefix, "v", id="")
        with pytest.raises(TypeError):
            await once.put(prefix, "v", id=7)  # type: ignore[arg-type]


async def test_a_lost_lease_of_ids_is_replaced(own_server: EtcdServer) -> None:
    async with Client(own_server.endpoint) as client, client.exactly_once() as once:
        await once.put("k", "v", id="a")
        for lease in (await client.leases.list()).ids:
            await client.leases.revoke(lease)
        await once.put("k", "v", id="b")
        assert await version(client, "k") == 2


async def test_a_lost_lease_of_ids_is_replaced_for_many_writes_at_a_time(own_server: EtcdServer) -> None:
    """Some of them find out only when another one has a new lease already."""
    async with Client(own_server.endpoint) as client, Client(own_server.endpoint) as other:
        for at in range(5):
            async with client.exactly_once(slots=3) as once:
                await once.put("warm", "v", id=f"warm {at}")
                kv = await other.get(f"{DEFAULT_PREFIX}ids/warm {at}")
                assert kv is not None
                await other.leases.revoke(kv.lease)
                await asyncio.gather(*(once.put(f"{at}/{number}", "v", id=f"{at}/{number}") for number in range(12)))
                assert (await other.range(prefix=f"{at}/", count_only=True)).count == 12


# Closing.


async def test_writes_under_way_when_the_block_ends_are_applied_before_that_or_never(
    client: Client, prefix: str
) -> None:
    async with client.exactly_once(slots=4, prefix=f"{prefix}once/") as once:
        await asyncio.gather(*(once.put(f"{prefix}warm", "v") for _ in range(4)))
        tasks = [asyncio.create_task(once.put(f"{prefix}{number}", "v")) for number in range(20)]
        await asyncio.sleep(0.001)
    revision = (await client.range(prefix)).revision
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for number, result in enumerate(results):
        kv = await client.get(f"{prefix}{number}")
        if isinstance(result, PutResult):
            assert kv is not None
            assert (kv.version, kv.mod_revision) == (1, result.revision)
            assert result.revision <= revision
        else:
            assert isinstance(result, ClientUsageError), result
            assert kv is None
    assert any(isinstance(result, ClientUsageError) for result in results), "some waited for a slot"
    assert (await client.range(prefix=f"{prefix}once/", count_only=True)).count == 0


async def test_the_client_is_closed_before_it(shared_server: EtcdServer, prefix: str) -> None:
    client = await Client(shared_server.endpoint).connect()
    async with client.exactly_once(ttl=2, prefix=f"{prefix}once/") as once:
        await once.put(prefix, "v")
        await client.aclose()
        with pytest.raises(ClientUsageError):
            await once.put(prefix, "v")
    assert not own_tasks()


@pytest.mark.parametrize("closes", ["in the block", "in another task", "twice"])
@pytest.mark.usefixtures("patient_close")
async def test_closing_the_client_ends_its_blocks(own_server: EtcdServer, closes: str) -> None:
    async with Client(own_server.endpoint) as direct:
        client = await Client(own_server.endpoint).connect()
        async with client.exactly_once(slots=4) as once, client.exactly_once(prefix="other/"):
            await asyncio.gather(*(once.put(f"warm/{number}", "v") for number in range(4)))
            tasks = [asyncio.create_task(once.put(f"k/{number}", "v")) for number in range(20)]
            await asyncio.sleep(0.001)
            if closes == "in the block":
                await client.aclose()
            else:
                await asyncio.gather(*(asyncio.create_task(client.aclose()) for _ in range(1 + (closes == "twice"))))
            after = await direct.range(prefix="k/")
            assert (await direct.range(prefix=DEFAULT_PREFIX, count_only=True)).count == 0
            assert (await direct.leases.list()).ids == ()
        for number, result in enumerate(await asyncio.gather(*tasks, return_exceptions=True)):
            found = [kv.mod_revision for kv in after if kv.key == b"k/%d" % number]
            if isinstance(result, PutResult):
                assert found == [result.revision]
            elif not isinstance(result, OutcomeUnknownError):
                assert isinstance(result, ClientUsageError), result
        assert (await direct.range(prefix="k/")).kvs == after.kvs, "nothing lands later"
        assert not own_tasks()


async def test_closing_the_client_does_not_wait_for_a_cluster_that_is_silent(
    shared_server: EtcdServer, prefix: str
) -> None:
    async with FaultProxy(shared_server.endpoint) as proxy:
        client = await Client(proxy.endpoint).connect()
        async with client.exactly_once(ttl=2, prefix=f"{prefix}once/") as once:
            await once.put(prefix, "v")
            proxy.black_hole()
            writing = asyncio.create_task(once.put(prefix, "v", timeout=PATIENCE))
            await asyncio.sleep(0)
            async with asyncio.timeout(PATIENCE / 2):
                await client.aclose()
            (error,) = await asyncio.gather(writing, return_exceptions=True)
            assert isinstance(error, ClientUsageError | OutcomeUnknownError)
        assert not own_tasks()


async def test_what_is_not_settled_in_time_is_logged_with_the_keys_of_its_slots(
    shared_server: EtcdServer, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with FaultProxy(shared_server.endpoint) as proxy, Client(proxy.endpoint) as client:
        async with client.exactly_once(ttl=5, prefix=f"{prefix}once/") as once:
            await once.put(prefix, "c4n4ry-1")
            proxy.black_hole()
            with pytest.raises(OutcomeUnknownError):
                await once.put(prefix, "c4n4ry-2", timeout=0.2)
        text = next(record.getMessage() for record in caplog.records if "exactly-once" in record.getMessage())
        assert f"{prefix}once/" in text
        await asyncio.sleep(0)
        assert not own_tasks()
        proxy.heal()


# Many.


async def test_increments_through_a_proxy_that_breaks_connections(run_seed: int) -> None:
    """The short form of `python -m tests.faults.increments`."""
    async with EtcdServer(flags=["--unsafe-no-fsync"]) as server:
        counts = await increments(server.endpoint, 1000, seed=run_seed, every=1.0)
        assert counts.is_exact, counts
        assert counts.ambiguous > 0
        plain = await increments(server.endpoint, 1000, seed=run_seed, every=1.0, plain=True)
        assert not plain.is_exact, "the cuts do nothing"
