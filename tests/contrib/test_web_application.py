"""contrib/web/, contrib/source.py: the life of its client, readiness, background tasks, and blocks that run once."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress

import pytest

from etcd_aio import Client, LockLostError
from etcd_aio.concurrency import Leadership
from etcd_aio.contrib.source import new_client
from etcd_aio.contrib.web import EtcdApplication, Readiness
from etcd_aio.contrib.web.jobs import Work
from etcd_aio.errors import ClientUsageError, ConfigError, InvalidRequestError, NoAvailableEndpointsError
from etcd_aio.fake import FakeEtcd
from tests.support.until import until

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


@pytest.fixture
async def fake() -> AsyncIterator[FakeEtcd]:
    async with FakeEtcd(members=3) as fake:
        yield fake


def application(fake: FakeEtcd, **options: object) -> EtcdApplication:
    return EtcdApplication(fake.client, **options)  # type: ignore[arg-type]


async def forever(leadership: Leadership) -> None:
    await asyncio.Event().wait()


def is_clean(fake: FakeEtcd) -> bool:
    return not fake.leases and not fake.watchers and not any(member.connections for member in fake.members)


# --- where the client comes from ---


async def test_a_source_is_endpoints_a_url_or_a_function() -> None:
    assert new_client(None).endpoints == ("127.0.0.1:2379",)
    assert new_client("m1,http://m2").endpoints == ("m1:2379", "http://m2:2379")
    assert new_client(["m1", "m2"]).endpoints == ("m1:2379", "m2:2379")
    assert new_client("etcd://m1/?timeout=3s").endpoints == ("http://m1:2379",)
    assert new_client("ETCD://m1").endpoints == ("http://m1:2379",)
    assert new_client(lambda: Client("m3")).endpoints == ("m3:2379",)
    with pytest.raises(TypeError, match="must return a Client, not NoneType"):
        new_client(lambda: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(ConfigError):
        new_client("http://")


# --- its life ---


@pytest.mark.virtual_time  # so that a slow machine takes nothing of the half second in which locks are released
async def test_nothing_is_made_before_it_runs_and_nothing_is_left_behind(fake: FakeEtcd) -> None:
    made: list[Client] = []

    def source() -> Client:
        made.append(fake.client())
        return made[-1]

    etcd = EtcdApplication(source)
    etcd.leader_only("job")(forever)
    tasks = asyncio.all_tasks()
    for number in range(2):  # a server may start it again
        assert len(made) == number
        async with etcd.running() as client:
            assert client is etcd.client is made[-1]
            await client.put("a", "1")
            await until(lambda: len(fake.leases) == 1)
            assert "running" in repr(etcd)
        assert fake.leases == ()  # revoked, and not expired
        await until(lambda: is_clean(fake))
        await until(lambda: not asyncio.all_tasks() - tasks)
    assert repr(etcd) == "<EtcdApplication not running>"


async def test_without_a_start_the_error_names_the_line_to_add(fake: FakeEtcd) -> None:
    etcd = application(fake)
    for use in (lambda: etcd.client, etcd.start_jobs, lambda: etcd.singleton("a")):
        with pytest.raises(RuntimeError, match=r"async with etcd\.running\(\)"):
            use()
    with pytest.raises(RuntimeError, match=r"async with etcd\.running\(\)"):
        await etcd.readiness()
    await etcd.stop()
    await etcd.stop_jobs()


async def test_it_runs_once_at_a_time(fake: FakeEtcd) -> None:
    etcd = application(fake)
    async with etcd.running() as client:
        with pytest.raises(RuntimeError, match="runs already"):
            await etcd.start()
        await client.ping()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on Windows")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
async def test_the_child_of_a_fork_starts_it_for_itself() -> None:
    """What runs in the parent is not the child's: it can neither use nor close it."""
    etcd = EtcdApplication(lambda: Client("http://127.0.0.1:1"))

    async def in_child() -> None:
        await etcd.stop()
        with pytest.raises(RuntimeError, match="does not run"):
            _ = etcd.client
        async with etcd.running() as client:
            assert client is etcd.client

    async with etcd.running() as client:
        child = os.fork()
        if not child:
            code = 1
            try:
                with ThreadPoolExecutor(1) as threads:  # this thread's loop is the parent's
                    threads.submit(asyncio.run, in_child()).result()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode((await asyncio.to_thread(os.waitpid, child, 0))[1]) == 0
        assert etcd.client is client


async def test_it_starts_while_etcd_is_down_unless_it_must_be_connected(fake: FakeEtcd) -> None:
    for member in fake.members:
        member.stop()
    async with application(fake).running():
        pass
    tasks = asyncio.all_tasks()
    etcd = application(fake, ready="connected", ready_timeout=0.01)
    with pytest.raises(NoAvailableEndpointsError):
        await etcd.start()
    with pytest.raises(RuntimeError):
        etcd.client  # noqa: B018
    await until(lambda: not asyncio.all_tasks() - tasks)
    fake.members[1].start()
    async with application(fake, ready="connected").running() as client:
        assert any(one.state.name == "READY" for one in client.statistics())


async def test_an_error_of_the_application_is_not_changed(fake: FakeEtcd) -> None:
    error = KeyError("its own")
    with pytest.raises(KeyError) as raised:
        async with application(fake).running():
            raise error
    assert raised.value is error
    assert error.__context__ is None
    await until(lambda: is_clean(fake))


async def test_a_cancelled_start_closes_the_client(fake: FakeEtcd) -> None:
    for member in fake.members:
        member.stop()
    etcd = application(fake, ready="connected")
    tasks = asyncio.all_tasks()
    starting = asyncio.create_task(etcd.start())
    await until(lambda: len(asyncio.all_tasks()) > len(tasks) + 1)
    starting.cancel()
    await asyncio.wait([starting])
    assert starting.cancelled()
    await until(lambda: not asyncio.all_tasks() - tasks)


def test_arguments_are_checked_when_it_is_made() -> None:
    with pytest.raises(ValueError, match="ready must be"):
        EtcdApplication(ready="soon")  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError, match="shutdown_timeout"):
        EtcdApplication(shutdown_timeout=-1)
    with pytest.raises(TypeError, match="read must be"):
        EtcdApplication(read="no")  # type: ignore[arg-type]
    etcd = EtcdApplication()
    with pytest.raises(TypeError, match="coroutine function"):
        etcd.leader_only("a")(print)  # type: ignore[type-var]
    with pytest.raises(InvalidRequestError):
        etcd.leader_only("a", ttl=0)
    etcd.leader_only("a")(forever)
    with pytest.raises(ValueError, match="forever of this name already"):
        etcd.leader_only(b"a")(forever)


async def test_background_tasks_are_registered_before_the_start(fake: FakeEtcd) -> None:
    etcd = application(fake)
    async with etcd.running():
        with pytest.raises(RuntimeError, match="before the application starts"):
            etcd.leader_only("a")(forever)


# --- readiness ---


def reads(fake: FakeEtcd) -> int:
    return len([call for call in fake.calls if call.method == "KV/Range"])


@pytest.mark.virtual_time
async def test_readiness_follows_etcd(fake: FakeEtcd) -> None:
    """Down at the start, up within two seconds of virtual time, without a quorum, frozen, stopped, and up again."""
    loop = asyncio.get_running_loop()

    async def becomes(*, ready: bool, within: float = 5.0) -> str:
        began = loop.time()
        while (found := await etcd.readiness()).is_ready is not ready:
            assert loop.time() - began <= within
            await asyncio.sleep(0.1)
        assert found.status == (200 if ready else 503)
        return found.reason

    for member in fake.members:
        member.stop()
    etcd = application(fake)
    async with etcd.running():
        assert await becomes(ready=False) == "no member is connected"
        await asyncio.sleep(60)
        for member in fake.members:
            member.start()
        assert await becomes(ready=True, within=2.0) == ""
        for change, undo in (("isolate", "heal"), ("pause", "resume"), ("stop", "start")):
            for member in fake.members:
                getattr(member, change)()
            assert await becomes(ready=False)
            for member in fake.members:
                getattr(member, undo)()
            await becomes(ready=True)
        fake.members[0].pause()  # one of three: reads move to others
        for _ in range(50):
            assert (await etcd.readiness()).is_ready
            await asyncio.sleep(0.1)


@pytest.mark.virtual_time
@pytest.mark.parametrize("is_up", [True, False])
async def test_many_probes_make_one_read_a_second(fake: FakeEtcd, is_up: bool) -> None:
    etcd = application(fake)
    async with etcd.running() as client:
        await client.wait_ready()
        if not is_up:
            for member in fake.members:
                member.isolate()
        before, began = reads(fake), asyncio.get_running_loop().time()
        answers: list[Readiness] = []
        for _ in range(10 * 5):  # five seconds of 500 probes each
            answers += await asyncio.gather(*(etcd.readiness() for _ in range(50)))
            await asyncio.sleep(0.1)
        assert {answer.is_ready for answer in answers} == {is_up}
        checks = len({id(answer) for answer in answers})
        seconds = asyncio.get_running_loop().time() - began
        assert 4 <= checks <= seconds + 1
        assert not is_up or reads(fake) - before == checks


async def test_readiness_without_a_read_sends_nothing(fake: FakeEtcd) -> None:
    etcd = application(fake, read=False)
    async with etcd.running() as client:
        await client.wait_ready()
        assert (await etcd.readiness()).is_ready
    assert reads(fake) == 0


async def test_a_permission_that_is_missing_is_ready(fake: FakeEtcd) -> None:
    async with fake.client() as root:
        for user in ("root", "app"):
            await root.auth.user_add(user, "pw")
        await root.auth.user_grant_role("root", "root")
        await root.auth.enable()
    etcd = EtcdApplication(lambda: fake.client(auth=("app", "pw"), allow_insecure_auth=True))
    async with etcd.running() as client:
        await client.wait_ready()
        assert (await etcd.readiness()).is_ready


async def test_the_document_has_addresses_only_with_details(fake: FakeEtcd) -> None:
    etcd = application(fake)
    async with etcd.running() as client:
        await client.wait_ready()
        with fake.fault("KV/Range", status="UNAUTHENTICATED", message="at fake1"):
            found = await etcd.readiness()
    assert found.status == 503
    assert "fake" not in str(found.document())
    assert found.document()["ready"] is False
    assert len(found.document()["endpoints"]) == 3  # type: ignore[arg-type]
    assert "http://fake1:2379" in str(found.document(details=True))
    assert "at fake1" in str(found.document(details=True))


async def test_a_cancelled_probe_leaves_the_check_to_others(fake: FakeEtcd) -> None:
    etcd = application(fake)
    async with etcd.running() as client:
        await client.wait_ready()
        with fake.fault("KV/Range", delay=0.05):
            first, second = (asyncio.create_task(etcd.readiness()) for _ in range(2))
            await asyncio.sleep(0)
            first.cancel()
            assert (await second).is_ready
            assert first.cancelled()


async def test_a_probe_while_it_stops_is_answered(fake: FakeEtcd) -> None:
    etcd = application(fake)
    async with etcd.running() as client:
        await client.wait_ready()
        with fake.fault("KV/Range", hang=True):
            probe = asyncio.create_task(etcd.readiness())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await etcd.stop()
            found = await probe
    assert (found.status, found.reason) == (503, "the application stops")


# --- background tasks ---


Works = Callable[[int], Work]


@asynccontextmanager
async def workers(
    fake: FakeEtcd, works: Works, count: int = 3, **options: float
) -> AsyncIterator[list[EtcdApplication]]:
    """Several workers of an application, numbered from 0, of which one at a time runs its work."""
    made = []
    for number in range(count):
        etcd = application(fake, **options)
        etcd.leader_only("job", ttl=5)(works(number))
        await etcd.start()
        etcd.start_jobs()
        made.append(etcd)
    try:
        yield made
    finally:
        for etcd in made:
            await etcd.stop()


async def test_two_stops_at_once_let_a_task_end_with_the_client(fake: FakeEtcd) -> None:
    cleaned: list[int] = []

    def work(number: int) -> Work:
        async def clean(leadership: Leadership) -> None:
            try:
                await forever(leadership)
            finally:
                await asyncio.sleep(0.5)
                await etcd.client.put("cleaned", "1")
                cleaned.append(number)

        return clean

    async with workers(fake, work, 1) as (etcd,):
        await until(lambda: len(fake.leases) > 0)
        await asyncio.sleep(0.1)
        await asyncio.gather(etcd.stop(), etcd.stop())
        assert cleaned == [0]
    assert is_clean(fake)


async def test_one_worker_at_a_time_runs_it_and_a_shutdown_hands_over(fake: FakeEtcd) -> None:
    running: list[int] = []
    tokens: list[int] = []

    def works(number: int) -> Work:
        async def work(leadership: Leadership) -> None:
            assert not running
            running.append(number)
            tokens.append(leadership.fencing_token)
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.02)  # it takes a while to end
                running.remove(number)

        return work

    async with workers(fake, works) as made:
        left = set(range(3))
        while left:
            await until(lambda: bool(running))
            leader = running[0]
            left.remove(leader)
            await made[leader].stop()
            assert leader not in running
    assert len(tokens) == 3
    assert tokens == sorted(tokens)
    await until(lambda: is_clean(fake))


async def test_a_function_that_returns_is_run_again_only_by_the_next_leader(fake: FakeEtcd) -> None:
    runs: list[int] = []

    def works(number: int) -> Work:
        async def work(leadership: Leadership) -> None:
            runs.append(number)

        return work

    async with workers(fake, works, 2) as made:
        await until(lambda: len(runs) == 1)
        async with fake.client() as client:
            for _ in range(20):
                await client.put("a", "1")
            assert len(runs) == 1
            await made[runs[0]].stop()
            await until(lambda: len(runs) == 2)
            assert sorted(runs) == [0, 1]


async def test_a_function_that_fails_is_logged_and_run_by_another_worker(
    fake: FakeEtcd, caplog: pytest.LogCaptureFixture
) -> None:
    runs: list[int] = []

    async def work(leadership: Leadership) -> None:
        runs.append(leadership.fencing_token)
        if len(runs) == 1:
            raise LookupError("its own")
        await asyncio.Event().wait()

    async with workers(fake, lambda _: work, 2):
        await until(lambda: len(runs) == 2)
    failures = [record for record in caplog.records if record.name == "etcd_aio.web"]
    assert [record.levelno for record in failures] == [logging.ERROR]
    assert "work has failed" in failures[0].message.replace("<locals>.", "")
    assert failures[0].exc_info is not None


async def test_the_same_worker_stands_again_after_a_failure(fake: FakeEtcd) -> None:
    runs: list[int] = []

    async def work(leadership: Leadership) -> None:
        runs.append(leadership.fencing_token)
        if len(runs) == 1:
            raise LookupError
        await asyncio.Event().wait()

    async with workers(fake, lambda _: work, 1):
        await until(lambda: len(runs) == 2)


@pytest.mark.parametrize("cancels_itself", [False, True])
async def test_a_function_that_ends_by_a_cancellation_of_its_own_has_failed(
    fake: FakeEtcd, caplog: pytest.LogCaptureFixture, cancels_itself: bool
) -> None:
    runs: list[int] = []

    async def work(leadership: Leadership) -> None:
        runs.append(leadership.fencing_token)
        if len(runs) > 1:
            await asyncio.Event().wait()
        task = asyncio.current_task() if cancels_itself else asyncio.create_task(asyncio.sleep(60))
        assert task is not None
        task.cancel()
        await (asyncio.sleep(0) if cancels_itself else task)

    async with workers(fake, lambda _: work, 1):
        await until(lambda: len(runs) == 2)
    assert "work has failed" in caplog.text.replace("<locals>.", "")


async def test_a_function_that_returns_when_it_is_cancelled_holds_nothing_up(fake: FakeEtcd) -> None:
    began = asyncio.Event()

    async def work(leadership: Leadership) -> None:
        began.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    async with workers(fake, lambda _: work, 1, shutdown_timeout=1000) as (etcd,):
        await began.wait()
        async with asyncio.timeout(900):
            await etcd.stop()
    assert fake.leases == ()  # the next leader begins at once


async def test_an_error_while_it_is_ended_is_logged(fake: FakeEtcd, caplog: pytest.LogCaptureFixture) -> None:
    began = asyncio.Event()

    async def work(leadership: Leadership) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise LookupError("its own")

    async with workers(fake, lambda _: work, 1):
        await began.wait()
    (failure,) = [record for record in caplog.records if record.name == "etcd_aio.web"]
    assert "failed while it was being cancelled" in failure.message
    assert failure.exc_info is not None


async def test_a_function_that_does_not_end_holds_a_shutdown_up_only_for_a_while(
    fake: FakeEtcd, caplog: pytest.LogCaptureFixture
) -> None:
    ends = asyncio.Event()
    began = asyncio.Event()

    async def work(leadership: Leadership) -> None:
        began.set()
        while not ends.is_set():
            try:
                await ends.wait()
            except asyncio.CancelledError:
                continue

    tasks = asyncio.all_tasks()
    try:
        async with workers(fake, lambda _: work, 1, shutdown_timeout=0.05) as (etcd,):
            await began.wait()
            async with asyncio.timeout(60):
                await etcd.stop()
        leases = fake.leases
    finally:
        ends.set()
    assert "is still running" in caplog.text
    assert len(leases) == 1  # no other worker may begin before its time is over
    await until(lambda: not asyncio.all_tasks() - tasks)


# --- blocks that run once ---


async def test_a_singleton_runs_once_and_others_wait_until_it_is_done(fake: FakeEtcd) -> None:
    order: list[str] = []

    async def start(etcd: EtcdApplication) -> bool:
        async with etcd.singleton("migrate-7") as won:
            if won:
                order.append("begin")
                await asyncio.sleep(0.05)
                order.append("end")
        order.append("up")
        return won

    async with workers(fake, lambda _: forever) as made:
        assert sorted(await asyncio.gather(*map(start, made))) == [False, False, True]
        assert order == ["begin", "end", "up", "up", "up"]
        assert await start(made[0]) is False  # for ever, also after a restart
        await made[0].client.delete("migrate-7/done")
        assert await start(made[0]) is True
    assert fake.keys() == {b"migrate-7/done": b"done"}


async def test_names_of_singletons_and_data_may_look_like_keys_of_each_other(fake: FakeEtcd) -> None:
    async with workers(fake, lambda _: forever) as (etcd, *_):
        for data in ("migrate", "migrate/42", "migrate/7/cafe"):
            await etcd.client.put(data, "data")
        for name in ("migrate/7", "migrate", "migrate/done", "migrate/7/done", "migrate/d"):
            for is_first in (True, False):
                async with asyncio.timeout(60), etcd.singleton(name) as won:
                    assert won is is_first, name
        order: list[bool] = []

        async def use() -> None:
            async with etcd.singleton("migrate/do") as won:
                order.append(won)

        await asyncio.gather(use(), use())
        assert sorted(order) == [False, True]


async def test_a_singleton_that_fails_is_run_by_another(fake: FakeEtcd) -> None:
    etcd = application(fake)
    async with etcd.running():
        block = etcd.singleton("migrate")
        with pytest.raises(LookupError):
            async with block:
                raise LookupError
        with pytest.raises(ClientUsageError, match="entered once"):
            await block.__aenter__()
        async with etcd.singleton("migrate") as won:
            assert won


async def test_a_singleton_whose_lock_is_lost_is_not_done(fake: FakeEtcd) -> None:
    etcd = application(fake)
    async with etcd.running() as client:
        with pytest.raises(LockLostError):
            async with etcd.singleton("migrate"):
                await client.delete(prefix="migrate/")
        assert fake.keys("migrate") == {}
        async with etcd.singleton("migrate") as won:
            assert won


async def test_the_mark_of_a_singleton_outlives_a_lost_answer(fake: FakeEtcd) -> None:
    etcd = application(fake)
    async with etcd.running():
        block = etcd.singleton("migrate")
        assert await block.__aenter__()
        with fake.fault("KV/Txn", reset=True, after_apply=True, times=1) as fault:
            await block.__aexit__(None, None, None)
        assert fault.hits == 1
        async with etcd.singleton("migrate") as won:
            assert not won
