"""recipes/schedule/: schedules, on a fake and in virtual time: each tick starts at most once, whatever fails."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from etcd_aio import ClientClosedError, EtcdError, InvalidRequestError
from etcd_aio.errors import EmptyKeyError, PermissionDeniedError, ScheduleError
from etcd_aio.fake import FakeEtcd
from etcd_aio.lease import Leases
from etcd_aio.recipes import Schedule, Tick
from tests.support.virtual_time import tasks

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

START = datetime(2030, 1, 1, tzinfo=UTC)


def clock(ahead: float = 0.0) -> Callable[[], float]:
    """A clock that is at START, less a second, when it is made."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    return lambda: START.timestamp() - 1 + loop.time() - began + ahead


class Log:
    """What ran when, by the clock that is right."""

    def __init__(self) -> None:
        self.clock = clock()
        self.ran: list[tuple[str, float]] = []
        self.ticks: list[Tick] = []

    def work(self, seconds: float = 0.0, *, error: Exception | None = None) -> Callable[[Tick], Any]:
        async def work(tick: Tick) -> None:
            self.ran.append((tick.time.strftime("%H:%M:%S"), self.clock()))
            self.ticks.append(tick)
            await asyncio.sleep(seconds)
            if error is not None:
                raise error

        return work

    @property
    def times(self) -> list[str]:
        return [text for text, _ in self.ran]


@asynccontextmanager
async def running(*runs: Any) -> AsyncIterator[list["asyncio.Task[Any]"]]:
    """Calls of `run`, until the block ends."""
    started = [asyncio.ensure_future(run) for run in runs]
    try:
        yield started
    finally:
        for task in started:
            task.cancel()
        for ended in await asyncio.gather(*started, return_exceptions=True):
            assert isinstance(ended, asyncio.CancelledError), ended
        await asyncio.sleep(3)
        assert not {task.get_name() for task in tasks() if "schedule" in task.get_name()}


def hours(fake: FakeEtcd, name: str = "report") -> list[str]:
    """The records."""
    prefix = f"{name}/runs/"
    return [key.decode().removeprefix(prefix) for key in fake.keys(prefix)]


@pytest.mark.parametrize("claim", [False, True])
async def test_each_tick_runs_once_and_in_time(claim: bool) -> None:
    async with FakeEtcd(latency=0.001) as fake:
        log = Log()
        clients = [fake.client() for _ in range(5)]
        for client in clients:
            await client.connect()
        options: dict[str, Any] = {"every": 3600, "clock": log.clock, "claim": claim, "value": "host-1"}
        assert await Schedule(clients[0], "report", **options).last() is None
        async with running(*(Schedule(client, "report", **options).run(log.work()) for client in clients)):
            await asyncio.sleep(3600 * 3 + 10)
            assert log.times == ["00:00:00", "01:00:00", "02:00:00", "03:00:00"]
            for tick, (_, ran) in zip(log.ticks, log.ran, strict=True):
                assert 0 <= ran - tick.time.timestamp() < 0.1
                assert (tick.tries, tick.key) == (1, f"report/runs/{tick.time:%Y-%m-%dT%H:%M:%SZ}".encode())
            assert sorted({tick.fencing_token for tick in log.ticks}) == [tick.fencing_token for tick in log.ticks]
            assert hours(fake) == [f"2030-01-01T0{number}:00:00Z" for number in range(4)]
            assert set(fake.keys("report/runs/").values()) == {b"host-1"}
            assert await Schedule(clients[0], "report", **options).last() == START + timedelta(hours=3)
        assert len(fake.leases) <= 4 + claim * 5, "those of the records, and idle ones of locks"
        for client in clients:
            await client.aclose()


async def test_nothing_before_the_first_call_was_missed() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        log = Log()
        ahead = clock(1800.0)
        async with running(Schedule(client, "report", every=3600, catch_up="all", clock=ahead).run(log.work())):
            await asyncio.sleep(1900)
        assert log.times == ["01:00:00"]


@pytest.mark.parametrize("claim", [False, True])
@pytest.mark.parametrize(
    ("catch_up", "ran"),
    [("none", ["00:00:00", "06:00:00"]), ("last", ["00:00:00", "05:00:00", "06:00:00"]), ("all", None)],
)
async def test_missed_ticks(catch_up: Any, ran: list[str] | None, claim: bool) -> None:
    """No process runs from a quarter past midnight to half past five."""
    async with FakeEtcd() as fake, fake.client() as client:
        log = Log()
        schedule = Schedule(client, "report", every=3600, catch_up=catch_up, clock=log.clock, claim=claim)
        async with running(schedule.run(log.work())):
            await asyncio.sleep(900)
        await asyncio.sleep(5.25 * 3600)
        async with running(schedule.run(log.work())):
            await asyncio.sleep(1900)
        assert log.times == (ran or [f"0{number}:00:00" for number in range(7)])


async def test_a_tick_is_not_missed_within_the_grace() -> None:
    """A deployment at midnight: the tick is started a little late."""
    async with FakeEtcd() as fake, fake.client() as client:
        log = Log()
        schedule = Schedule(client, "report", every=3600, clock=log.clock, grace=60)
        async with running(schedule.run(log.work())):
            await asyncio.sleep(0.5)
        await asyncio.sleep(40)
        async with running(schedule.run(log.work())):
            await asyncio.sleep(1)
        assert log.times == ["00:00:00"]


async def test_work_that_takes_long_leaves_the_next_tick_to_another_process() -> None:
    async with FakeEtcd() as fake, fake.client() as client, fake.client() as other:
        log = Log()
        runs = [Schedule(one, "report", every=10, clock=log.clock).run(log.work(15.0)) for one in (client, other)]
        async with running(*runs):
            await asyncio.sleep(36)
        assert log.times == ["00:00:00", "00:00:10", "00:00:20", "00:00:30"]
        assert all(ran % 10 < 5.1 for _, ran in log.ran)


async def test_clocks_that_differ_start_no_tick_twice() -> None:
    async with FakeEtcd() as fake, fake.client() as client, fake.client() as other, fake.client() as third:
        log = Log()
        runs = [
            Schedule(one, "report", every=60, catch_up="all", clock=clock(ahead)).run(log.work())
            for one, ahead in ((client, 0.0), (other, 50.0), (third, -200.0))
        ]
        async with running(*runs):
            await asyncio.sleep(600)
        assert len(log.times) == len(set(log.times)) >= 11
        assert log.ticks == sorted(log.ticks, key=lambda tick: tick.time)


async def test_a_clock_that_is_far_ahead_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        log = Log()
        async with running(Schedule(client, "report", every=60, clock=clock(86400.0)).run(log.work())):
            await asyncio.sleep(10)
        assert len(log.times) == 1
        async with running(Schedule(client, "report", every=60, clock=log.clock).run(log.work())):
            await asyncio.sleep(600)
        assert len(log.times) == 1
        (text,) = [record.getMessage() for record in caplog.records]
        assert "ahead of this clock" in text


async def test_a_record_that_is_gone_does_not_let_its_tick_start_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process looks, is stopped for longer than records are kept, and goes on: its start is refused."""
    grant, granted = Leases.grant, 0

    async def slow_at_first(self: Leases, ttl: int, *id: int, **options: Any) -> Any:
        nonlocal granted
        granted += 1
        if granted == 1:  # between the look and the start
            await asyncio.sleep(600)
        return await grant(self, ttl, *id, **options)

    monkeypatch.setattr(Leases, "grant", slow_at_first)
    async with FakeEtcd() as fake, fake.client() as client, fake.client() as other:
        log = Log()
        options: dict[str, Any] = {"every": 3600, "clock": log.clock, "keep": 5, "grace": 3000}
        async with running(Schedule(other, "report", **options).run(log.work())):
            await asyncio.sleep(1.5)
            async with running(Schedule(client, "report", **options).run(log.work())):
                await asyncio.sleep(60)
                assert (granted, log.times, hours(fake)) == (2, ["00:00:00"], [])
            await asyncio.sleep(700)
        assert granted == 2
        assert log.times == ["00:00:00"]


# Lost answers.


@pytest.mark.parametrize("claim", [False, True])
@pytest.mark.parametrize("is_applied", [False, True])
@pytest.mark.parametrize("times", [1, 3])
async def test_the_answer_to_a_start_is_lost(is_applied: bool, times: int, claim: bool) -> None:
    async with FakeEtcd() as fake, fake.client() as client, fake.client() as other:
        log = Log()
        schedules = [Schedule(one, "report", every=60, clock=log.clock, claim=claim) for one in (client, other)]
        async with running(*(schedule.run(log.work()) for schedule in schedules)):
            await asyncio.sleep(0.9)
            with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=times):
                await asyncio.sleep(30)
            await asyncio.sleep(60)
        assert Counter(log.times) == {"00:00:00": 1, "00:01:00": 1}


async def test_a_start_that_was_not_answered_in_time_is_found_out() -> None:
    """Each copy is applied, and none is answered until the call is over."""
    async with FakeEtcd() as fake, fake.client(timeout=2.0) as client:
        log = Log()
        schedule = Schedule(client, "report", every=60, clock=log.clock)
        async with running(schedule.run(log.work())):
            await asyncio.sleep(0.9)
            with fake.fault("KV/Txn", hang=True, after_apply=True):
                await asyncio.sleep(10)
                assert hours(fake) == ["2030-01-01T00:00:00Z"]
                assert log.times == []
            await asyncio.sleep(40)
            assert log.times == ["00:00:00"]
            (tick,) = log.ticks
            assert 3 < log.ran[0][1] - START.timestamp() < 30
            assert (await client.txn().when(tick.newest_condition()).then().commit()).succeeded
            await asyncio.sleep(60)
            assert log.times == ["00:00:00", "00:01:00"]
            assert not (await client.txn().when(tick.newest_condition()).then().commit()).succeeded


async def test_an_outage_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeEtcd() as fake, fake.client(timeout=2.0) as client:
        log = Log()
        async with running(Schedule(client, "report", every=60, catch_up="last", clock=log.clock).run(log.work())):
            await asyncio.sleep(10)
            fake.members[0].stop()
            await asyncio.sleep(600)
            fake.members[0].start()
            await asyncio.sleep(30)
        assert log.times == ["00:00:00", "00:10:00"]
        assert "tried again" in caplog.text


@pytest.mark.parametrize("claim", [False, True])
async def test_a_full_store_is_waited_for(claim: bool) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        log = Log()
        options: dict[str, Any] = {"every": 60, "catch_up": "last", "clock": log.clock, "claim": claim}
        async with running(Schedule(client, "report", **options).run(log.work(5.0))):
            await asyncio.sleep(3)
            with fake.fault("Lease/LeaseGrant", status="NO_SPACE"):
                await asyncio.sleep(180)
                assert fake.keys("report/open") == {}, "the tick that ran could end"
            await asyncio.sleep(30)
        assert log.times == ["00:00:00", "00:03:00"]


@pytest.mark.parametrize("claim", [False, True])
async def test_the_lease_of_a_record_that_ends_before_it_is_put(monkeypatch: pytest.MonkeyPatch, claim: bool) -> None:
    grant, granted = Leases.grant, 0

    async def gone_at_first(self: Leases, ttl: int, *id: int, **options: Any) -> Any:
        nonlocal granted
        lease = await grant(self, ttl, *id, **options)
        granted += ttl == 77
        if granted == 1 and ttl == 77:
            await self.revoke(lease)
        return lease

    monkeypatch.setattr(Leases, "grant", gone_at_first)
    async with FakeEtcd() as fake, fake.client() as client:
        log = Log()
        options: dict[str, Any] = {"every": 60, "keep": 77, "clock": log.clock, "claim": claim}
        async with running(Schedule(client, "report", **options).run(log.work())):
            await asyncio.sleep(30)
        assert (granted, log.times) == (2, ["00:00:00"])


# Ends.


@pytest.mark.parametrize("claim", [False, True])
async def test_an_exception_of_the_work_ends_the_run(claim: bool) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        log = Log()
        schedule = Schedule(client, "report", every=60, clock=log.clock, claim=claim)
        with pytest.raises(ZeroDivisionError) as raised:
            await schedule.run(log.work(error=ZeroDivisionError("of the work")))
        assert str(raised.value) == "of the work"
        with pytest.raises(EtcdError, match="of the work"):
            await schedule.run(log.work(error=EtcdError("of the work")))
        assert log.times == ["00:00:00", "00:00:00" if claim else "00:01:00"]
        assert [tick.tries for tick in log.ticks] == [1, 2 if claim else 1]
        await asyncio.sleep(3)


@pytest.mark.parametrize("status", ["PERMISSION_DENIED"])
async def test_an_error_that_would_come_again_is_raised(status: str) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        log = Log()
        with fake.fault("KV/Txn", status=status), pytest.raises(PermissionDeniedError):
            await Schedule(client, "report", every=60, clock=log.clock).run(log.work())


async def test_a_key_that_is_no_tick_is_an_error() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        fake.load({"report/last": "yesterday"})
        schedule = Schedule(client, "report", every=60)
        with pytest.raises(ScheduleError):
            await schedule.run(Log().work())
        with pytest.raises(ScheduleError):
            await schedule.last()


@pytest.mark.parametrize("claim", [False, True])
async def test_cancelled_at_any_await_nothing_stays_but_the_record(claim: bool) -> None:
    seen = set()
    for step in range(30):
        async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
            log = Log()
            options: dict[str, Any] = {"every": 60, "clock": log.clock, "claim": claim, "catch_up": "last"}
            async with running(Schedule(client, "report", **options).run(log.work(0.002))):
                await asyncio.sleep(0.998 + step * 0.001)
            assert fake.keys("report/claim/") == {}
            records = [lease for lease in fake.leases if lease.keys]
            assert sum(not lease.keys for lease in fake.leases) <= claim, "that of the lock, which is idle"
            assert len(records) == len(hours(fake)) <= 1
            seen.add((len(log.times), len(hours(fake)), len(fake.keys("report/open"))))
            async with running(Schedule(client, "report", **options).run(log.work())):
                await asyncio.sleep(30)
            assert fake.keys("report/open") == {}
            assert len(log.times) <= 1 + claim
            assert not claim or log.times, "another run begins it"
    assert len(seen) >= 2 + claim, "before it was started, while it ran, and afterwards"


# Claims.


async def test_a_tick_whose_process_dies_is_run_again() -> None:
    async with FakeEtcd(latency=0.001) as fake:
        log = Log()
        network = fake.network()
        options: dict[str, Any] = {"every": 3600, "clock": log.clock, "claim": True, "ttl": 10}
        async with fake.client() as client, fake.client(engine=network.engine) as dying:
            first = Schedule(dying, "report", **options).run(log.work(100.0))
            second = Schedule(client, "report", **options).run(log.work(100.0))
            async with running(first):
                await asyncio.sleep(3)
                async with running(second):
                    await asyncio.sleep(3)
                    assert log.times == ["00:00:00"]
                    network.black_hole()
                    await asyncio.sleep(20)
                    assert log.times == ["00:00:00", "00:00:00"]
                    assert [tick.tries for tick in log.ticks] == [1, 2]
                    assert log.ran[1][1] - log.ran[0][1] < 5 + 10 + 2
                    old, new = (tick.newest_condition() for tick in log.ticks)
                    assert not (await client.txn().when(old).then().commit()).succeeded
                    assert (await client.txn().when(new).then().commit()).succeeded
                    await asyncio.sleep(200)
                    assert fake.keys("report/open") == {}
                    assert len(log.times) == 2
                    assert not (await client.txn().when(new).then().commit()).succeeded
                network.heal()


async def test_work_is_cancelled_before_another_process_begins_it() -> None:
    """The first process is cut off, and lives on."""
    async with FakeEtcd(latency=0.001) as fake:
        log = Log()
        network = fake.network()
        ended: list[float] = []

        async def work(tick: Tick) -> None:
            log.ticks.append(tick)
            log.ran.append(("", log.clock()))
            try:
                await asyncio.sleep(100)
            finally:
                ended.append(log.clock())

        options: dict[str, Any] = {"every": 3600, "clock": log.clock, "claim": True, "ttl": 10}
        async with (
            fake.client() as client,
            fake.client(engine=network.engine) as cut_off,
            running(Schedule(cut_off, "report", **options).run(work)) as (task,),
        ):
            await asyncio.sleep(3)
            async with running(Schedule(client, "report", **options).run(work)):
                await asyncio.sleep(3)
                network.black_hole()
                await asyncio.sleep(30)
                assert len(log.ran) == 2
                assert ended[0] < log.ran[1][1]
                network.heal()
                await asyncio.sleep(200)
                assert len(log.ran) == 2
                assert not task.done(), "it waits for the next tick"


async def test_a_tick_that_ends_again_and_again_by_an_exception_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        log = Log()
        schedule = Schedule(client, "report", every=3600, clock=log.clock, claim=True, max_tries=3)
        for _ in range(3):
            with suppress(ZeroDivisionError):
                await schedule.run(log.work(error=ZeroDivisionError("secret")))
        async with running(schedule.run(log.work())):
            await asyncio.sleep(4000)
        assert log.times == ["00:00:00", "00:00:00", "00:00:00", "01:00:00"]
        assert [tick.tries for tick in log.ticks] == [1, 2, 3, 1]
        assert "given up" in caplog.text
        assert "secret" not in caplog.text


async def test_a_process_that_is_ended_leaves_its_tick_to_another_one_at_once() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as other:
        log = Log()
        options: dict[str, Any] = {"every": 3600, "clock": log.clock, "claim": True}
        async with running(Schedule(other, "report", **options).run(log.work(50.0))) as (task,):
            await asyncio.sleep(3)
            async with running(Schedule(client, "report", **options).run(log.work(50.0))):
                await asyncio.sleep(3)
                task.cancel()
                await asyncio.sleep(1)
                assert [tick.tries for tick in log.ticks] == [1, 2]
                await asyncio.sleep(100)
        assert len(log.times) == 2


async def test_claimed_ticks_do_not_overlap() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as other:
        log = Log()
        options: dict[str, Any] = {"every": 10, "clock": log.clock, "claim": True, "catch_up": "all"}
        async with running(*(Schedule(one, "report", **options).run(log.work(15.0)) for one in (client, other))):
            await asyncio.sleep(62)
        assert log.times == ["00:00:00", "00:00:10", "00:00:20", "00:00:30", "00:00:40"]
        begins = [ran for _, ran in log.ran]
        assert all(after - before >= 15.0 for before, after in pairwise(begins))


@pytest.mark.parametrize("is_applied", [False, True])
async def test_the_answer_to_an_end_is_lost(is_applied: bool) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        log = Log()
        async with running(Schedule(client, "report", every=60, clock=log.clock, claim=True).run(log.work(5.0))):
            await asyncio.sleep(3)
            with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=3):
                await asyncio.sleep(30)
            assert fake.keys("report/open") == {}
        assert log.times == ["00:00:00"]


# Arguments.


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"name": ""}, EmptyKeyError),
        ({"name": "a/"}, InvalidRequestError),
        ({"every": None}, InvalidRequestError),
        ({"next_tick": lambda after: after}, InvalidRequestError),
        ({"every": None, "next_tick": lambda after: after, "offset": 3}, InvalidRequestError),
        ({"every": None, "next_tick": 5}, TypeError),
        ({"every": 0.5}, InvalidRequestError),
        ({"catch_up": "some"}, InvalidRequestError),
        ({"grace": -1}, InvalidRequestError),
        ({"keep": 0}, InvalidRequestError),
        ({"claim": 1}, TypeError),
        ({"ttl": 0}, InvalidRequestError),
        ({"max_tries": 0}, InvalidRequestError),
        ({"value": 1}, TypeError),
    ],
)
async def test_bad_arguments_send_nothing(arguments: dict[str, Any], error: type[Exception]) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        with pytest.raises(error):
            Schedule(client, **{"name": "report", "every": 60, **arguments})
        assert fake.revision == 1
        assert repr(Schedule(client, "report", every=timedelta(hours=1))) == "<Schedule 'report'>"


async def test_a_function_tells_the_ticks() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        log = Log()

        def weekdays_at_three(after: datetime) -> datetime:
            day = after.replace(hour=3, minute=0, second=0, microsecond=0)
            while day <= after or day.weekday() >= 5:
                day += timedelta(days=1)
            return day

        async with running(Schedule(client, "report", next_tick=weekdays_at_three, clock=log.clock).run(log.work())):
            await asyncio.sleep(7 * 86400)
        assert [tick.time.strftime("%a %H:%M") for tick in log.ticks] == [
            *("Tue 03:00", "Wed 03:00", "Thu 03:00", "Fri 03:00", "Mon 03:00")
        ]


@pytest.mark.parametrize("claim", [False, True])
@pytest.mark.parametrize("namespace", [False, True])
async def test_it_ends_with_its_client_and_not_at_the_next_tick(claim: bool, namespace: bool) -> None:
    async with FakeEtcd() as fake:
        async with fake.client() as client:
            store = client.namespace("ns/") if namespace else client
            schedule = Schedule(store, "report", every=timedelta(days=1), claim=claim, clock=clock())
            run = asyncio.ensure_future(schedule.run(Log().work()))
            await asyncio.sleep(60)
        await asyncio.sleep(1)
        assert run.done()
        assert isinstance(run.exception(), ClientClosedError)


async def test_closing_the_client_revokes_the_lease_of_a_record_that_was_not_put() -> None:
    """Cancelled at each await, by what closes the client too: only the lease of a record stays."""
    for turns in range(100):
        async with FakeEtcd(seed=turns) as fake:
            work = Log().work()

            async def program(fake: FakeEtcd = fake, work: Any = work) -> None:
                async with fake.client() as client:
                    await client.put("report/last", "2029-12-31T23:00:00Z")
                    await Schedule(client, "report", every=3600, catch_up="last", clock=clock(2.0)).run(work)

            run = asyncio.ensure_future(program())
            for _ in range(turns):
                await asyncio.sleep(0)
            run.cancel()
            await asyncio.wait([run])
            await asyncio.sleep(1)
            assert [lease.keys for lease in fake.leases if not lease.keys] == [], turns
            if fake.leases:
                return
    raise AssertionError("no tick was started")
