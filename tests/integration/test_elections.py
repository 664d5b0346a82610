"""Elections on real servers: candidates, leaders, observers; and the defects that other clients have had."""

# ruff: noqa: PT012 - the block is what is tested

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from etcd_aio import Client, Key, op
from etcd_aio.base.backoff import Backoff
from etcd_aio.concurrency import Leader, Leaders, Leadership
from etcd_aio.concurrency import election as elections
from etcd_aio.errors import (
    ClientClosedError,
    ClientUsageError,
    ElectionTimeoutError,
    EtcdError,
    EtcdTimeoutError,
    InvalidRequestError,
    LeadershipLostError,
    NotLeaderError,
)
from etcd_aio.testing import EtcdServer, FaultProxy
from tests.support.until import PATIENCE, until, until_keys

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.usefixtures("each_store")]


@asynccontextmanager
async def another(server: EtcdServer) -> AsyncIterator[Client]:
    async with Client(server.endpoint) as client:
        yield client


async def keys(client: Client, name: str) -> list[bytes]:
    return [kv.key for kv in await client.range(prefix=f"{name}/", sort_by="create_revision")]


async def revoke(client: Client, leadership: Leadership) -> None:
    """Revoke the lease of a leader, as an operator may do."""
    kv = await client.get(leadership.key)
    assert kv is not None
    await client.leases.revoke(kv.lease)


async def next_leader(leaders: Leaders) -> Leader | None:
    async with asyncio.timeout(PATIENCE):
        return await anext(leaders)


# One leader.


async def test_a_leader_leads_and_resigns(client: Client, prefix: str) -> None:
    name = f"{prefix}e"
    election = client.election(name)
    assert await election.leader() is None
    async with election.lead("host-1") as leadership:
        leader = await election.leader()
        kv = await client.get(leadership.key)
        assert leader is not None
        assert kv is not None
        assert leader == Leader(kv.key, b"host-1", kv.lease, kv.mod_revision, leadership.fencing_token)
        assert kv.key == f"{name}/{kv.lease:x}".encode()
        assert kv.create_revision == leadership.fencing_token
        assert not leadership.is_lost
        assert 5 < leadership.remaining <= 9
        assert (await client.txn().when(leadership.held_condition()).commit()).succeeded
        await leadership.fenced.put(f"{prefix}state", "1")
        async with client.exactly_once() as once:
            await leadership.fenced_by(once).put(f"{prefix}once", "1")
        assert "leading" in repr(leadership)
    assert await election.leader() is None
    assert await keys(client, name) == []
    assert "resigned" in repr(leadership)
    assert await client.get(f"{prefix}state") is not None


async def test_candidates_lead_in_the_order_of_arrival(client: Client, prefix: str) -> None:
    name, order = f"{prefix}e", []

    async def stand(number: int) -> None:
        async with client.election(name).lead(f"{number}") as leadership:
            order.append((number, leadership.fencing_token))

    async with asyncio.TaskGroup() as group, client.election(name).lead("first"):
        for number in range(10):
            group.create_task(stand(number))
            await until_keys(client, f"{name}/", number + 2)
        assert order == []
    assert [number for number, _ in order] == list(range(10))
    assert order == sorted(order, key=lambda each: each[1])
    assert await keys(client, name) == []


async def test_a_candidate_gives_up_after_its_timeout(client: Client, prefix: str) -> None:
    name = f"{prefix}e"
    async with client.election(name).lead("first"):
        with pytest.raises(ElectionTimeoutError, match=r"not won in time.*still before") as raised:
            async with client.election(name).lead("second", timeout=2):  # enough to get in line
                pytest.fail("there is a leader")
        assert isinstance(raised.value, TimeoutError)
        assert len(await until_keys(client, f"{name}/", 1)) == 1


async def test_wrong_arguments_are_refused_before_anything_is_sent(client: Client) -> None:
    with pytest.raises(InvalidRequestError, match="on_lost"):
        client.election("e", on_lost="ignore")  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError, match="margin"):
        client.election("e", margin=6)
    with pytest.raises(TypeError, match="value"):
        client.election("e").lead(1)  # type: ignore[arg-type]
    with pytest.raises((TypeError, InvalidRequestError)):
        client.election("e").lead(timeout=-1)
    with pytest.raises(InvalidRequestError, match=r"above 0 .* got 0"):
        client.election("e").lead(timeout=0)


async def test_entering_an_election_itself_says_what_to_enter(client: Client) -> None:
    with pytest.raises(TypeError, match=r"\.lead\(\)"):
        async with client.election("e"):  # type: ignore[attr-defined]
            pytest.fail("it is no block")


async def test_a_leadership_is_entered_once_and_over_when_it_was_left(client: Client, prefix: str) -> None:
    leadership = client.election(f"{prefix}e").lead("x")
    for use in (leadership.lost, leadership.resign, lambda: leadership.proclaim("y")):
        with pytest.raises(NotLeaderError):
            await use()
    async with leadership:
        with pytest.raises(ClientUsageError, match="once"):
            await leadership.__aenter__()
    for use in (leadership.resign, lambda: leadership.proclaim("z")):
        with pytest.raises(NotLeaderError):
            await use()
    assert await leadership.lost() is None
    with pytest.raises(NotLeaderError):
        _ = leadership.fenced


async def test_resigning_within_the_block(client: Client, prefix: str) -> None:
    name = f"{prefix}e"
    async with client.election(name).lead("x") as leadership:
        lost = asyncio.create_task(leadership.lost())
        await leadership.resign()
        assert await keys(client, name) == []
        assert await lost is None
    assert await client.election(name).leader() is None


async def test_a_lock_of_the_same_name_excludes_the_leader(client: Client, prefix: str) -> None:
    name = f"{prefix}e"
    async with client.lock(name):
        with pytest.raises(ElectionTimeoutError):
            async with client.election(name).lead(timeout=0.1):
                pytest.fail("the lock is held")


async def test_elections_whose_names_begin_with_this_one_are_others(client: Client, prefix: str) -> None:
    name = f"{prefix}e"
    async with client.election(f"{name}/a").lead("nested 1"), client.election(f"{name}/b").lead("nested 2"):
        assert await client.election(name).leader() is None
        async with client.election(name).changes() as leaders:
            assert await next_leader(leaders) is None
            async with client.election(name).lead("own"):
                for leader in (await next_leader(leaders), await client.election(name).leader()):
                    assert leader is not None
                    assert leader.text() == "own"


# Loss.


async def test_a_loss_cancels_the_block(client: Client, prefix: str) -> None:
    leadership = client.election(f"{prefix}e", ttl=5).lead("x")

    async def block() -> None:
        async with leadership:
            await revoke(client, leadership)
            with pytest.raises(LeadershipLostError):
                await leadership.fenced.put(f"{prefix}state", "late")
            await asyncio.sleep(PATIENCE)

    with pytest.raises(LeadershipLostError):
        await block()
    assert leadership.is_lost
    assert "lost" in repr(leadership)
    assert await client.get(f"{prefix}state") is None
    with pytest.raises(NotLeaderError):
        _ = leadership.fencing_token


async def test_the_key_deleted_by_an_operator_is_a_loss(client: Client, prefix: str) -> None:
    async def block() -> None:
        async with client.election(f"{prefix}e", ttl=60).lead("x") as leadership:
            await asyncio.sleep(1)  # short blocks do not watch their key
            await client.delete(leadership.key)
            await asyncio.sleep(PATIENCE)

    with pytest.raises(LeadershipLostError, match="deleted"):
        await block()


async def test_a_signalled_loss_leaves_the_block_alone(client: Client, prefix: str) -> None:
    steps = []

    async def block() -> None:
        async with client.election(f"{prefix}e", on_lost="signal").lead("x") as leadership:
            await revoke(client, leadership)
            with pytest.raises(LeadershipLostError):
                await leadership.proclaim("y")
            steps.append(type(await leadership.lost()))
            assert leadership.is_lost

    with pytest.raises(LeadershipLostError):
        await block()
    assert steps == [LeadershipLostError]


# Defects of other clients.


async def test_etcd_11007_a_candidate_whose_lease_has_ended_never_leads(
    client: Client, shared_server: EtcdServer, prefix: str
) -> None:
    """Go's Campaign has returned success without a key (also etcdv3/etcd-client#14)."""
    name = f"{prefix}e"
    async with another(shared_server) as other:
        async with client.election(name).lead("first"):
            waiting = asyncio.create_task(other.election(name).lead("second").__aenter__())
            mine, theirs = await until_keys(client, f"{name}/", 2)
            kv = await client.get(theirs)
            assert kv is not None
            await client.txn().then(op.delete(theirs)).commit()
            await client.leases.revoke(kv.lease)
            with pytest.raises(LeadershipLostError):
                await waiting
            assert await keys(client, name) == [mine]
        assert await client.election(name).leader() is None


async def test_etcd_19597_a_candidate_whose_lease_has_ended_does_not_wait_on(
    client: Client, shared_server: EtcdServer, prefix: str
) -> None:
    name = f"{prefix}e"
    async with another(shared_server) as other, client.election(name).lead("first"):
        waiting = asyncio.create_task(other.election(name, ttl=5).lead("second").__aenter__())
        _, theirs = await until_keys(client, f"{name}/", 2)
        kv = await client.get(theirs)
        assert kv is not None
        await client.leases.revoke(kv.lease)
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(LeadershipLostError):
                await waiting  # while the first leads on


async def test_etcd_21128_a_candidate_that_fails_leaves_no_key(client: Client, prefix: str) -> None:
    """A compaction ends no candidacy, and a cancelled one leaves nothing."""
    name = f"{prefix}e"
    async with client.election(name).lead("first") as leadership:
        waiting = asyncio.create_task(client.election(name).lead("second").__aenter__())
        await until_keys(client, f"{name}/", 2)
        result = await leadership.fenced.put(f"{prefix}x", "")
        await client.compact(result.revision)
        third = asyncio.create_task(client.election(name).lead("third").__aenter__())
        await until_keys(client, f"{name}/", 3)
        third.cancel()
        await asyncio.wait([third])
        await until_keys(client, f"{name}/", 2)
        assert not waiting.done()
    led = await waiting
    assert (await client.election(name).leader()).text() == "second"  # type: ignore[union-attr]
    await led.resign()


async def test_etcd_22123_and_22124_resigning_without_an_answer_goes_on(
    client: Client, shared_server: EtcdServer, prefix: str
) -> None:
    """The object knows its key although the call fails, and the key is deleted as soon as etcd can be reached."""
    name = f"{prefix}e"
    async with (
        FaultProxy(shared_server.endpoint) as proxy,
        Client(proxy.endpoint, timeout=5.0) as cut_off,
        cut_off.election(name, ttl=60).lead("x") as leadership,
    ):
        proxy.black_hole()
        await leadership.resign()
        assert len(await keys(client, name)) == 1
        proxy.heal()
        await until_keys(client, f"{name}/", 0)


async def test_etcd_22082_a_resignation_that_is_repeated_spares_the_next_leader(
    client: Client, shared_server: EtcdServer, prefix: str
) -> None:
    name = f"{prefix}e"
    async with (
        FaultProxy(shared_server.endpoint) as proxy,
        Client(proxy.endpoint, timeout=5.0) as other,
        client.election(name).changes() as leaders,
    ):
        assert await next_leader(leaders) is None
        leading = other.election(name, ttl=60).lead("x")
        await leading.__aenter__()
        assert await next_leader(leaders) is not None
        proxy.black_hole("to_client")
        resigning = asyncio.create_task(leading.resign())
        assert await next_leader(leaders) is None
        proxy.reset()  # applied, and the answer is lost
        proxy.heal()
        async with client.election(name).lead("next") as leadership:
            await resigning
            assert await keys(client, name) == [leadership.key]
            assert not leadership.is_lost


# Proclaiming.


async def test_a_proclamation_is_seen(client: Client, prefix: str) -> None:
    name = f"{prefix}e"
    election = client.election(name)
    async with election.changes() as leaders, election.lead("one") as leadership:
        assert await next_leader(leaders) is None
        for value in ("one", "two", "three", "three"):
            if value != "one":
                await leadership.proclaim(value)
        seen = [await next_leader(leaders) for _ in range(3)]
        assert [leader and leader.text() for leader in seen] == ["one", "two", "three"]
        assert {leader and leader.fencing_token for leader in seen} == {leadership.fencing_token}
        kv = await client.get(leadership.key)
        assert kv is not None
        assert (kv.version, kv.lease > 0) == (4, True)


async def test_an_earlier_proclamation_never_replaces_a_later_one(client: Client, prefix: str) -> None:
    """Each compares the revision that the last one has left: a copy of an earlier one is refused, however late."""
    async with client.election(f"{prefix}e").lead("one") as leadership:
        kv = await client.get(leadership.key)
        assert kv is not None
        await leadership.proclaim("two")
        late = client.txn().when(Key(leadership.key).mod_revision == kv.mod_revision)
        assert not (await late.then(op.put(leadership.key, "late", ignore_lease=True)).commit()).succeeded
        await leadership.proclaim("three")
        leader = await client.election(f"{prefix}e").leader()
        assert leader is not None
        assert leader.text() == "three"


@pytest.mark.parametrize("cut", [0, 20, 60])
async def test_a_proclamation_whose_answer_is_lost_is_applied_once(
    client: Client, shared_server: EtcdServer, prefix: str, cut: int
) -> None:
    name = f"{prefix}e"
    async with (
        FaultProxy(shared_server.endpoint) as proxy,
        Client(proxy.endpoint) as other,
        other.election(name, ttl=60).lead("one") as leadership,
    ):
        for number in range(5):
            proxy.cut_after(cut, "to_client", connection="open")
            await leadership.proclaim(f"value {number}")
        kv = await client.get(leadership.key)
        assert kv is not None
        assert (kv.text(), kv.version) == ("value 4", 6)


async def test_a_proclamation_after_the_key_is_gone_is_a_loss(client: Client, prefix: str) -> None:
    async def block() -> None:
        async with client.election(f"{prefix}e", ttl=60).lead("one") as leadership:
            await client.delete(leadership.key)
            await leadership.proclaim("two")

    with pytest.raises(LeadershipLostError):
        await block()
    assert await keys(client, f"{prefix}e") == []


async def test_a_value_that_another_program_has_put_is_replaced(client: Client, prefix: str) -> None:
    async with client.election(f"{prefix}e").lead("one") as leadership:
        await client.put(leadership.key, "meddled", ignore_lease=True)
        await leadership.proclaim("two")
        leader = await client.election(f"{prefix}e").leader()
        assert leader is not None
        assert leader.text() == "two"


async def test_a_key_that_another_program_has_made_anew_is_not_the_leaders(client: Client, prefix: str) -> None:
    async def block() -> None:
        async with client.election(f"{prefix}e", ttl=60).lead("one") as leadership:
            kv = await client.get(leadership.key)
            assert kv is not None
            await client.delete(leadership.key)
            await client.put(leadership.key, "two", lease=kv.lease)
            await leadership.proclaim("two")

    with pytest.raises(LeadershipLostError):
        await block()


async def test_proclamations_of_several_tasks_take_turns(
    client: Client, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each would be refused as often as another one is applied before it."""
    proposals = 0
    propose = Leadership._propose

    async def counted(*arguments: Any) -> Any:
        nonlocal proposals
        proposals += 1
        return await propose(*arguments)

    monkeypatch.setattr(Leadership, "_propose", counted)
    async with client.election(f"{prefix}e").lead("start") as leadership:
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(leadership.proclaim(f"{number}"))
        kv = await client.get(leadership.key)
        assert kv is not None
        assert kv.version == 21
        assert proposals == 20


# Observing.


async def test_every_change_is_told_and_none_when_there_is_no_candidate(client: Client, prefix: str) -> None:
    name = f"{prefix}e"
    async with client.election(name).changes() as leaders:
        assert await next_leader(leaders) is None
        tokens = []
        for number in range(5):
            async with client.election(name).lead(f"{number}") as leadership:
                tokens.append(leadership.fencing_token)
        seen = [await next_leader(leaders) for _ in range(10)]
    assert [leader and leader.fencing_token for leader in seen[::2]] == tokens
    assert seen[1::2] == [None] * 5


async def test_etcd_18163_a_candidate_that_only_waits_is_never_told(client: Client, prefix: str) -> None:
    name = f"{prefix}e"
    election = client.election(name)
    async with election.lead("leader"), election.changes() as leaders:
        first = await next_leader(leaders)
        assert first is not None
        for number in range(3):
            waiting = asyncio.create_task(election.lead(f"waits {number}").__aenter__())
            await until_keys(client, f"{name}/", 2)
            waiting.cancel()
            await asyncio.wait([waiting])
            await until_keys(client, f"{name}/", 1)
        telling = asyncio.create_task(anext(leaders))
        marker = await client.put(f"{name}/marker/x", "")
        watcher = leaders._watcher
        assert watcher is not None
        await until(lambda: watcher.revision >= marker.revision)
        assert not telling.done()
        telling.cancel()
        await asyncio.wait([telling])


async def test_observers_follow_over_cut_connections(client: Client, shared_server: EtcdServer, prefix: str) -> None:
    name, changes = f"{prefix}e", 50
    told: list[str | None] = []
    async with (
        FaultProxy(shared_server.endpoint) as proxy,
        Client(proxy.endpoint) as watching,
        watching.election(name).changes() as leaders,
    ):

        async def follow() -> None:
            async for leader in leaders:
                told.append(None if leader is None else leader.text())
                if told[-1] == f"{changes - 1}":
                    return

        following = asyncio.create_task(follow())
        for number in range(changes):
            if number % 10 == 5:
                proxy.reset()
            async with client.election(name).lead(f"{number}"):
                pass
        async with asyncio.timeout(PATIENCE):
            await following
    expected = [None, *(text for number in range(changes) for text in (f"{number}", None))]
    assert told == expected[:-1]


async def test_an_observation_is_entered_first_and_once(client: Client, prefix: str) -> None:
    leaders = client.election(f"{prefix}e").changes()
    with pytest.raises(ClientUsageError, match="not entered"):
        await anext(leaders)
    async with leaders:
        with pytest.raises(ClientUsageError, match="once"):
            await leaders.__aenter__()
        waiting = asyncio.create_task(_all(leaders))
        await asyncio.sleep(0)
    assert await waiting == [None]  # the end of the observation ends the iteration


async def _all(leaders: Leaders) -> list[Leader | None]:
    return [leader async for leader in leaders]


# Running.


async def test_run_works_as_the_leader_and_returns_its_result(client: Client, prefix: str) -> None:
    name = f"{prefix}e"

    async def work(leadership: Leadership) -> str:
        leader = await client.election(name).leader()
        assert leader is not None
        assert leader.fencing_token == leadership.fencing_token
        return leader.text()

    assert await client.election(name).run(work, "host-1") == "host-1"
    assert await keys(client, name) == []


@pytest.mark.parametrize("kind", [ValueError, EtcdTimeoutError, LeadershipLostError, asyncio.CancelledError])
async def test_run_raises_what_the_work_raises_and_resigns(
    client: Client, prefix: str, kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    """Also an error that it would survive itself: of another call, or of another election."""

    async def work(leadership: Leadership) -> None:
        raise kind("of the work")

    with pytest.raises(kind, match="of the work"):
        async with asyncio.timeout(PATIENCE):
            await client.election(f"{prefix}e").run(work)
    assert await keys(client, f"{prefix}e") == []
    said = [record.getMessage() for record in caplog.records if record.name == "etcd_aio.elections"]
    ends = (
        f"election '{prefix}e': run() ends with {kind.__name__}; it is a candidate again only if run() is called again"
    )
    assert said == ([] if kind is asyncio.CancelledError else [ends])


@pytest.mark.parametrize("again", [False, True])
async def test_work_that_resigns_goes_on_to_its_end(client: Client, prefix: str, again: bool) -> None:
    election = client.election(f"{prefix}e")
    tokens: list[int] = []

    async def work(leadership: Leadership) -> int:
        tokens.append(leadership.fencing_token)
        if len(tokens) == 3:
            raise ValueError("enough")
        await leadership.resign()
        async with client.election(f"{prefix}e").lead():  # it waits for others, and others lead meanwhile
            pass
        return 42

    if again:
        with pytest.raises(ValueError, match="enough"):
            await election.run(work, again=True)
        assert tokens == sorted(set(tokens))
    else:
        assert await election.run(work) == 42
        assert len(tokens) == 1
    assert await keys(client, f"{prefix}e") == []


async def test_each_leadership_is_logged_at_info_without_its_value(
    client: Client, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "etcd_aio.elections")
    election, what = client.election(f"{prefix}e"), f"election '{prefix}e'"
    async with election.lead("secret") as won:
        await won.proclaim("secret too")
        said = [(record.levelname, record.getMessage()) for record in caplog.records]
        assert ("INFO", f"{what}: this process leads, with fencing token {won.fencing_token}") in said
        token = won.fencing_token
    assert f"{what}: this process resigns, with fencing token {token}" in caplog.messages
    with pytest.raises(LeadershipLostError):
        async with election.lead("secret") as lost:
            token = lost.fencing_token
            await revoke(client, lost)
            await asyncio.sleep(PATIENCE)
    assert f"{what}: this process has lost the leadership, with fencing token {token}" in caplog.messages
    assert "secret" not in caplog.text


async def test_a_leader_is_told_at_once_of_a_key_that_is_deleted(client: Client, prefix: str) -> None:
    """Its key is watched from the start: a leadership lasts."""
    with pytest.raises(LeadershipLostError, match="it was deleted"):
        async with client.election(f"{prefix}e").lead() as leadership:
            for _ in range(5):
                await asyncio.sleep(0)
            assert any("key of election" in task.get_name() for task in asyncio.all_tasks())
            await client.delete(leadership.key)
            await asyncio.sleep(PATIENCE)


async def test_work_that_returns_at_once_is_run_again_after_a_pause(
    client: Client, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def pause(self: object, seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(elections.Election, "_pause", pause)
    runs = 0

    async def work(leadership: Leadership) -> None:
        nonlocal runs
        runs += 1
        if runs == 5:
            raise ValueError("enough")
        if runs == 3:
            await asyncio.sleep(1.1)

    with pytest.raises(ValueError, match="enough"):
        await client.election(f"{prefix}e").run(work, again=True)
    assert len(pauses) == 3, "none after the long run"
    assert pauses[0] >= 0.5
    assert max(pauses) <= 15


async def test_run_again_stands_again(client: Client, prefix: str) -> None:
    tokens: list[int] = []

    async def work(leadership: Leadership) -> None:
        tokens.append(leadership.fencing_token)
        if len(tokens) == 3:
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        await client.election(f"{prefix}e").run(work, again=True)
    assert tokens == sorted(set(tokens))


async def test_run_cancelled_ends_the_work_and_resigns(client: Client, prefix: str) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def work(leadership: Leadership) -> None:
        started.set()
        try:
            await asyncio.sleep(PATIENCE)
        finally:
            await client.get("x")  # its end takes a while
            ended.set()

    running = asyncio.create_task(client.election(f"{prefix}e").run(work))
    await started.wait()
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()  # more than once
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended.is_set()
    await until_keys(client, f"{prefix}e/", 0)


async def test_run_after_a_loss_waits_for_the_work_and_leads_again(client: Client, prefix: str) -> None:
    """One process never runs it twice at a time (microsoft/etcd3#158)."""
    name, running, most, tokens = f"{prefix}e", 0, 0, []
    again = asyncio.Event()

    async def work(leadership: Leadership) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        tokens.append(leadership.fencing_token)
        try:
            if len(tokens) == 3:
                return "third time"
            await revoke(client, leadership)
            await asyncio.sleep(PATIENCE)
        finally:
            await asyncio.sleep(0.2)
            running -= 1
            again.set()
        return "never"

    async with asyncio.timeout(PATIENCE):
        assert await client.election(name, ttl=5).run(work) == "third time"
    assert most == 1
    assert tokens == sorted(set(tokens))
    assert await keys(client, name) == []


async def test_run_after_a_loss_that_a_task_group_has_found_leads_again(client: Client, prefix: str) -> None:
    """The group raises an `ExceptionGroup` around the error of the loss. One with another error too ends the run."""
    tokens: list[int] = []

    async def write(leadership: Leadership) -> None:
        await client.delete(leadership.key)
        await leadership.fenced.put(f"{prefix}x", "late")

    async def fail(leadership: Leadership) -> None:
        await leadership.lost()
        raise ValueError("of the work")

    async def work(leadership: Leadership) -> None:
        tokens.append(leadership.fencing_token)
        async with asyncio.TaskGroup() as group, asyncio.TaskGroup() as inner:
            inner.create_task(write(leadership))
            if len(tokens) == 3:
                group.create_task(fail(leadership))

    with pytest.raises(ExceptionGroup) as raised:
        async with asyncio.timeout(PATIENCE):
            await client.election(f"{prefix}e").run(work)
    assert raised.group_contains(ValueError, match="of the work")
    assert len(tokens) == 3
    assert await client.get(f"{prefix}x") is None


async def test_work_that_does_not_end_is_reported(
    client: Client, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    is_first = True

    def overdue() -> list[logging.LogRecord]:
        return [record for record in caplog.records if "is still running" in record.getMessage()]

    async def work(leadership: Leadership) -> None:
        nonlocal is_first
        if not is_first:
            return
        is_first = False
        await revoke(client, leadership)
        try:
            await asyncio.sleep(PATIENCE)
        finally:
            await until(lambda: len(overdue()) >= 2)

    await client.election(f"{prefix}e", ttl=5).run(work)
    assert all(record.name == "etcd_aio.elections" for record in overdue())


async def test_run_does_not_outlast_its_client(shared_server: EtcdServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing the client ends the pause before a candidate stands again."""
    monkeypatch.setattr(elections, "_STAND_AGAIN", Backoff(initial=1000.0, multiplier=1.0, maximum=1000.0, jitter=0.0))
    pauses = asyncio.Event()
    monkeypatch.setattr(elections.logger, "warning", lambda *_: pauses.set())

    async def work(leadership: Leadership) -> None:
        pytest.fail("there is no leadership")

    async with FaultProxy(shared_server.endpoint) as proxy:
        proxy.refuse()
        client = await Client(proxy.endpoint, timeout=0.1).connect()
        running = asyncio.create_task(client.election("e").run(work))
        await asyncio.wait_for(pauses.wait(), PATIENCE)
        await client.aclose()
        with pytest.raises(ClientClosedError):
            await asyncio.wait_for(running, PATIENCE)


async def test_run_ends_with_an_error_that_would_come_again(client: Client) -> None:
    async def work(leadership: Leadership) -> None:
        pytest.fail("there is no leadership")

    async with Client("http://127.0.0.1:1", fail_fast=True, timeout=0.5) as unreachable:
        running = asyncio.create_task(unreachable.election("e").run(work))
        done, _ = await asyncio.wait([running], timeout=2)
        assert not done  # it never gives up by itself
        running.cancel()
        await asyncio.wait([running])
    with pytest.raises(EtcdError):
        await client.election("e").run(work, "x" * 3_000_000)


# Resuming.


async def test_a_leadership_of_an_earlier_process_goes_on(
    client: Client, shared_server: EtcdServer, prefix: str
) -> None:
    name = f"{prefix}e"
    async with another(shared_server) as earlier, earlier.session(ttl=60) as session:
        before = await session.election(name).lead("one").__aenter__()
        await before.proclaim("two")
        lease, token, key = session.id, before.fencing_token, before.key
        session.orphan()
    waiting = asyncio.create_task(client.election(name).lead("next").__aenter__())
    await until_keys(client, f"{name}/", 2)
    async with client.election(name).resume(lease, token) as leadership:
        assert (leadership.key, leadership.fencing_token) == (key, token)
        assert leadership.remaining > 20
        await leadership.proclaim("three")
        await leadership.fenced.put(f"{prefix}state", "1")
        leader = await client.election(name).leader()
        assert leader is not None
        assert (leader.text(), leader.fencing_token) == ("three", token)
        assert not waiting.done()
    await (await waiting).resign()
    assert (await client.leases.time_to_live(lease)).is_expired


async def test_a_leadership_is_resumed_beside_elections_whose_names_begin_with_its_own(
    client: Client, shared_server: EtcdServer, prefix: str
) -> None:
    """Their keys are listed with its own, and fill the first look."""
    name = f"{prefix}e"
    async with AsyncExitStack() as stack:
        for number in range(5):
            await stack.enter_async_context(client.election(f"{name}/{number}").lead())
        async with another(shared_server) as earlier, earlier.session(ttl=60) as session:
            before = await session.election(name).lead("one").__aenter__()
            lease, token = session.id, before.fencing_token
            session.orphan()
        async with client.election(name).resume(lease, token) as leadership:
            assert leadership.fencing_token == token


@pytest.mark.parametrize("is_interrupted", [True, False], ids=["cancelled", "key behind another"])
async def test_a_leadership_that_is_not_resumed_is_left_as_it_was(
    client: Client, shared_server: EtcdServer, prefix: str, is_interrupted: bool
) -> None:
    """At whatever await of entering it is cancelled, the lease and the key stay for the next attempt."""
    name = f"{prefix}e"
    async with another(shared_server) as later:
        if not is_interrupted:
            earlier = await client.leases.grant(60)
            await client.put(f"{name}/{earlier.id:x}", "before", lease=earlier.id)
        granted = await client.leases.grant(60)
        created = await client.put(f"{name}/{granted.id:x}", "one", lease=granted.id)
        at = 0  # turns of the loop
        while True:
            at += 1 + at // 32
            entering = asyncio.create_task(later.election(name).resume(granted.id, created.revision).__aenter__())
            for _ in range(at):
                if not entering.done():
                    await asyncio.sleep(0)
            was_in_time = is_interrupted and entering.cancel()
            await asyncio.wait([entering])
            await asyncio.sleep(0.02)  # for a revocation in the background
            if entering.cancelled() or entering.exception():
                kv = await client.get(f"{name}/{granted.id:x}")
                assert kv is not None
                assert kv.create_revision == created.revision
            if not was_in_time:
                break
        assert is_interrupted == (entering.exception() is None)
        if is_interrupted:
            await (await entering).resign()
            assert at > 3


async def test_a_leadership_that_is_over_is_not_resumed(client: Client, prefix: str) -> None:
    name = f"{prefix}e"
    granted = await client.leases.grant(60)

    async def resume(token: int) -> None:
        async with client.election(name).resume(granted.id, token):
            pytest.fail("it is over")

    created = await client.put(f"{name}/{granted.id:x}", "one", lease=granted.id)
    with pytest.raises(LeadershipLostError, match="gone"):
        await resume(created.revision - 1)
    await client.delete(f"{name}/{granted.id:x}")
    with pytest.raises(LeadershipLostError, match="gone"):
        await resume(created.revision)
    assert not (await client.leases.time_to_live(granted.id)).is_expired  # it may have other keys
    await client.leases.revoke(granted.id)
    with pytest.raises(LeadershipLostError, match="gone"):
        await resume(created.revision)
    with pytest.raises(InvalidRequestError):
        await resume(0)
