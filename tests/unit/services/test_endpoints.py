"""services/endpoints.py, services/last_list.py: the endpoints of a service for clients that must go on, in outages and
when etcd has none any more.
"""

import asyncio
import logging
from typing import Any

import pytest

from etcd_aio import Client, EtcdTimeoutError
from etcd_aio.errors import ClientClosedError, ClientUsageError, InvalidRequestError, PermissionDeniedError
from etcd_aio.fake import FakeEtcd
from etcd_aio.services import Endpoints, NewEndpoint, ServiceChange, ServiceEndpoint, naming
from tests.support.until import PATIENCE, until

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


def addresses(endpoints: tuple[ServiceEndpoint, ...]) -> list[str]:
    return [endpoint.address for endpoint in endpoints]


async def until_addresses(service: Endpoints, *wanted: str) -> None:
    """Wait until the endpoints are these."""
    async with asyncio.timeout(PATIENCE):
        while addresses(service.endpoints) != list(wanted):
            await service.wait_change()


async def test_endpoints_have_a_host_and_a_port() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        new = NewEndpoint("[::1]:443", {"zone": "a"}, name="six")
        await naming.update(client, "svc/api", add=["10.0.0.1:80", "node", "unix:/run/api", "::1", new])
        async with client.resolve("svc/api") as service:
            found = [(one.address, one.host, one.port, one.metadata, one.key) for one in service.endpoints]
    assert found == [
        ("10.0.0.1:80", "10.0.0.1", 80, None, b"svc/api/10.0.0.1:80"),
        ("::1", "::1", None, None, b"svc/api/::1"),
        ("node", "node", None, None, b"svc/api/node"),
        ("[::1]:443", "::1", 443, {"zone": "a"}, b"svc/api/six"),
        ("unix:/run/api", "unix:/run/api", None, None, b"svc/api/unix:/run/api"),
    ]


async def test_changes_come_one_for_a_revision() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await naming.update(client, "svc/api", add=["a:1", "b:1"])
        async with client.resolve("svc/api") as service:
            heard: list[ServiceChange] = []
            service.subscribe(heard.append)
            changes = service.changes()
            first = await anext(changes)
            assert (addresses(first.endpoints), addresses(first.added), first.removed) == (
                ["a:1", "b:1"],
                ["a:1", "b:1"],
                (),
            )
            await naming.update(client, "svc/api", add=["c:1", "d:1"], remove=["a:1"])
            second = await anext(changes)
            assert addresses(second.endpoints) == ["b:1", "c:1", "d:1"]
            assert addresses(second.added) == ["c:1", "d:1"]
            assert addresses(second.removed) == ["a:1"]
            await naming.update(client, "svc/api", add=[NewEndpoint("b:1", "other")])
            third = await anext(changes)
            assert [one.metadata for one in (*third.removed, *third.added)] == [None, "other"]
        assert heard == [second, third]
        assert [change async for change in changes] == []


async def test_an_entry_that_is_put_again_with_the_same_is_no_change() -> None:
    async with FakeEtcd() as fake, fake.client() as client, client.resolve("svc/api") as service:
        heard: list[ServiceChange] = []
        service.subscribe(heard.append)
        await naming.update(client, "svc/api", add=["a:1"])
        again = await naming.update(client, "svc/api", add=["a:1"])
        await naming.update(client, "svc/api", add=["a:1", "b:1"])
        await until_addresses(service, "a:1", "b:1")
        assert [(addresses(change.added), change.removed) for change in heard] == [(["a:1"], ()), (["b:1"], ())]
        assert service.endpoints[0].revision > again.revision


async def test_a_slow_consumer_gets_the_difference() -> None:
    async with FakeEtcd() as fake, fake.client() as client, client.resolve("svc/api") as service:
        changes = service.changes()
        await naming.update(client, "svc/api", add=["a:1"])
        await naming.update(client, "svc/api", add=["b:1"], remove=["a:1"])
        await until_addresses(service, "b:1")
        change = await anext(changes)
        assert (addresses(change.added), change.removed) == (["b:1"], ())


async def test_waiting_for_endpoints() -> None:
    async with FakeEtcd() as fake, fake.client() as client, client.resolve("svc/api") as service:
        with pytest.raises(EtcdTimeoutError):
            await service.wait_endpoints(timeout=1)
        waiting = asyncio.create_task(service.wait_endpoints(at_least=2))
        await naming.update(client, "svc/api", add=["a:1"])
        await until_addresses(service, "a:1")
        await naming.update(client, "svc/api", add=["b:1"])
        assert addresses(await waiting) == ["a:1", "b:1"]
        assert addresses(await service.wait_endpoints(at_least=0, timeout=0)) == ["a:1", "b:1"]
        last = asyncio.create_task(service.wait_endpoints(at_least=3))
        await asyncio.sleep(0)
    with pytest.raises(ClientUsageError):
        await last
    assert addresses(service.endpoints) == ["a:1", "b:1"]


async def test_broken_entries_are_passed_over_and_warned_about_once(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.put("svc/api/bad", "no JSON")
        async with client.resolve("svc/api") as service:
            for number in range(3):
                await client.put("svc/api/bad", f"no JSON {number}")
                await naming.update(client, "svc/api", add=[f"{number}:1"])
            await until_addresses(service, "0:1", "1:1", "2:1")
    assert len([record for record in caplog.records if "svc/api/bad" in record.getMessage()]) == 1


async def test_an_outage_of_ten_minutes_and_other_endpoints_behind_it() -> None:
    """The last endpoints stay; those that etcd has afterwards are there as soon as it has a leader again."""
    loop = asyncio.get_running_loop()
    async with FakeEtcd() as fake, fake.client() as client:
        await naming.update(client, "svc/api", add=["a:1", "b:1"])
        async with client.resolve("svc/api") as service:
            for member in fake.members:
                member.stop()
            for _ in range(60):
                await asyncio.sleep(10)
                assert addresses(service.endpoints) == ["a:1", "b:1"]
            assert service.age > 590
            for member in fake.members:
                member.start()
            async with fake.client() as other:  # which waits for an election, of a second
                await naming.update(other, "svc/api", add=["c:1"], remove=["a:1"])
            written = loop.time()
            await until_addresses(service, "b:1", "c:1")
            assert loop.time() - written <= 1.0


@pytest.mark.parametrize("hangs", [False, True], ids=["refused", "hanging"])
@pytest.mark.parametrize("phase", [number * 0.13 for number in range(10)])
async def test_a_member_that_returns_is_followed_within_a_second(hangs: bool, phase: float) -> None:
    """The rest of the cluster was there all the time, so there is no election. Nothing waits but the dials."""
    loop = asyncio.get_running_loop()
    async with FakeEtcd(members=3) as fake:
        fake.elect(fake.members[2])
        only = fake.endpoints[0]
        async with Client(only, engine=fake.engine) as client, client.resolve("svc/api") as service:
            if hangs:
                fake.members[0].pause()
            else:
                fake.members[0].stop()
            async with Client(fake.endpoints[1:], engine=fake.engine) as other:
                await naming.update(other, "svc/api", add=["a:1"])
            await asyncio.sleep(600 + phase)
            assert not service.endpoints
            if hangs:
                fake.members[0].resume()
            else:
                fake.members[0].start()
            back = loop.time()
            await until_addresses(service, "a:1")
            assert loop.time() - back <= 1.0


async def test_a_member_without_a_leader_is_not_asked_again_and_again() -> None:
    """It answers serializable reads, so the service looks reachable, and still cannot be followed there."""
    async with FakeEtcd(members=3) as fake:
        fake.elect(fake.members[2])
        async with Client(fake.endpoints[0], engine=fake.engine) as client, client.resolve("svc/api") as service:
            fake.members[0].isolate()
            await asyncio.sleep(120)
            before = len(fake.calls)
            await asyncio.sleep(120)
            # Health checks are refused there; what the service reads is not.
            ranges = [call for call in fake.calls[before:] if call.method == "KV/Range" and call.is_applied]
            assert len(ranges) <= 2
            fake.members[0].heal()
            await naming.update(client, "svc/api", add=["a:1"])
            await until_addresses(service, "a:1")


@pytest.mark.parametrize("comes_back", [True, False])
async def test_the_last_endpoints_stay_for_a_while_when_etcd_has_none(
    comes_back: bool, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.get_running_loop()
    async with FakeEtcd() as fake, fake.client() as client:
        await naming.update(client, "svc/api", add=["a:1", "b:1"])
        async with client.resolve("svc/api", keep_last=30) as service:
            revision = (await client.delete(prefix="svc/")).revision
            await until(lambda: service.revision >= revision)
            gone = loop.time()
            await asyncio.sleep(20)
            assert service.is_keeping_last
            assert addresses(service.endpoints) == ["a:1", "b:1"]
            if comes_back:
                await naming.update(client, "svc/api", add=["b:1"])
                await until_addresses(service, "b:1")
                await asyncio.sleep(20)
                assert addresses(service.endpoints) == ["b:1"]
            else:
                await service.wait_change()
                assert service.endpoints == ()
                assert 29 <= loop.time() - gone <= 31
            assert not service.is_keeping_last
    said = [record.getMessage() for record in caplog.records if record.name == "etcd_aio.naming"]
    assert said[0] == "b'svc/api' has no endpoint; the last 2 are kept for 30 s"
    assert len(said) == (1 if comes_back else 2)


@pytest.mark.parametrize("options", [{}, {"keep_last": 0}])
async def test_without_a_grace_an_empty_list_is_taken_at_once(options: dict[str, float]) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await naming.update(client, "svc/api", add=["a:1"])
        async with client.resolve("svc/api", **options) as service:
            await naming.update(client, "svc/api", remove=["a:1"])
            await service.wait_change(timeout=1)
            assert service.endpoints == ()


async def test_a_permission_that_is_taken_away_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "etcd_aio.naming")
    async with FakeEtcd() as fake, fake.client() as client, fake.client() as other:
        await naming.update(client, "svc/api", add=["a:1"])
        async with client.resolve("svc/api") as service:
            denied = {"status": "PERMISSION_DENIED"}
            with fake.fault("KV/Range", **denied), fake.fault("Watch/Watch", **denied):  # type: ignore[arg-type]
                fake.members[0].stop()
                fake.members[0].start()
                await until(lambda: service.error is not None)
                assert isinstance(service.error, PermissionDeniedError)
                await asyncio.sleep(100)
                assert addresses(service.endpoints) == ["a:1"]
            await naming.update(other, "svc/api", add=["b:1"])
            await until_addresses(service, "a:1", "b:1")
            assert service.error is None
    said = [record.getMessage() for record in caplog.records if record.name == "etcd_aio.naming"]
    assert len([text for text in said if "cannot be read from etcd" in text]) == 1
    assert said[-1] == "the endpoints of b'svc/api' are read from etcd again"


async def test_a_closed_client_ends_it_and_the_last_endpoints_stay() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await naming.update(client, "svc/api", add=["a:1"])
        async with client.resolve("svc/api") as service:
            changes = service.changes()
            await anext(changes)
            await client.aclose()
            assert [change async for change in changes] == []
            assert service.has_ended
            assert isinstance(service.error, ClientClosedError)
            assert addresses(service.endpoints) == ["a:1"]


async def test_wrong_use_is_said() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        service = client.resolve("svc/api")
        with pytest.raises(ClientUsageError):
            service.endpoints  # noqa: B018
        with pytest.raises(ClientUsageError):
            service.changes()
        wrongs: list[dict[str, Any]] = [{"target": "svc/"}, {"target": "svc", "keep_last": -1}]
        for wrong in wrongs:
            with pytest.raises(InvalidRequestError):
                client.resolve(**wrong)
        async with service:
            with pytest.raises(ClientUsageError):
                await service.__aenter__()
        with fake.fault("KV/Range", status="PERMISSION_DENIED"), pytest.raises(PermissionDeniedError):
            await client.resolve("svc/api").__aenter__()


async def test_a_listener_that_fails_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeEtcd() as fake, fake.client() as client, client.resolve("svc/api") as service:
        heard: list[ServiceChange] = []

        def fail(change: ServiceChange) -> None:
            raise ValueError

        end = service.subscribe(fail)
        service.subscribe(heard.append)
        await naming.update(client, "svc/api", add=["a:1"])
        await until_addresses(service, "a:1")
        end()
        end()
        await naming.update(client, "svc/api", add=["b:1"])
        await until_addresses(service, "a:1", "b:1")
    assert len(heard) == 2
    assert len([record for record in caplog.records if record.exc_info]) == 1


async def test_cancelling_the_entering_at_every_await_leaves_nothing() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.get("k")
        before = asyncio.all_tasks()
        for turns in range(40):
            entering = asyncio.create_task(_enter_and_stay(client.resolve("svc/api")))
            for _ in range(turns):
                await asyncio.sleep(0)
            entering.cancel()
            await asyncio.wait([entering])
            assert entering.cancelled()
        await asyncio.sleep(1)
        left = {task for task in asyncio.all_tasks() - before if "endpoints of" in task.get_name()}
        assert not left
        assert not fake.watchers


async def _enter_and_stay(service: Endpoints) -> None:
    async with service:
        await asyncio.Event().wait()
