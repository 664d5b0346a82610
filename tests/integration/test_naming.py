"""Registration and discovery of services on real servers: healed after outages, and open to Go's naming."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

import pytest

from etcd_aio import Candidate, Client
from etcd_aio.errors import (
    ClientClosedError,
    EtcdError,
    EtcdTimeoutError,
    NoServiceEndpointError,
    NoSpaceError,
    PermissionDeniedError,
    ServiceConflictError,
)
from etcd_aio.services import Endpoints, NewEndpoint, Registration, ServiceEndpoint, naming
from etcd_aio.testing import EtcdCluster, EtcdServer, FaultProxy
from tests.support.auth import QUICK_LOGINS, ROOT, WEB, enable_auth
from tests.support.recipes import golayers
from tests.support.until import PATIENCE, until, until_keys

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

TTL = 2  # seconds: the least that etcd grants
LONGER = 6  # where it is not to end by itself, though a process stands still for a moment


@pytest.fixture
async def own_server() -> AsyncIterator[EtcdServer]:
    """A member of this test's own."""
    async with EtcdServer() as server:
        yield server


def addresses(endpoints: tuple[ServiceEndpoint, ...]) -> list[str]:
    return [endpoint.address for endpoint in endpoints]


async def until_addresses(service: Endpoints, *wanted: str) -> tuple[ServiceEndpoint, ...]:
    """Wait until the endpoints are these."""
    async with asyncio.timeout(PATIENCE):
        async for change in service.changes():
            if addresses(change.endpoints) == list(wanted):
                return change.endpoints
    raise AssertionError("the iteration has ended")


# One process and another.


async def test_registered_endpoints_are_resolved(client: Client, prefix: str) -> None:
    target = f"{prefix}web"
    async with client.resolve(target) as web:
        assert len(web) == 0
        with pytest.raises(NoServiceEndpointError):
            web.pick()
        with pytest.raises(EtcdTimeoutError):
            await web.wait_endpoints(timeout=0.01)
        waiting = asyncio.create_task(web.wait_endpoints(timeout=PATIENCE))
        async with client.register(target, "10.0.0.1:80", metadata={"zone": "a"}, ttl=10) as registration:
            found = ServiceEndpoint(
                f"{target}/10.0.0.1:80".encode(), "10.0.0.1:80", {"zone": "a"}, registration.revision
            )
            assert await waiting == web.endpoints == (found,)
            assert found.metadata == web.endpoints[0].metadata
            async with client.register(target, "10.0.0.2:80", name="second"):
                await until_addresses(web, "10.0.0.1:80", "10.0.0.2:80")
                picked = [web.pick().address for _ in range(4)]
                assert picked == ["10.0.0.1:80", "10.0.0.2:80"] * 2
                assert web.pick("random") in web.endpoints
                assert web.pick(lambda endpoints: endpoints[-1]).address == "10.0.0.2:80"
            await until_addresses(web, "10.0.0.1:80")
            await registration.update(metadata="b")
            await web.wait_revision(registration.revision)
            assert web.endpoints[0].metadata == "b"
        await until_addresses(web)
        await web.wait_current()
        assert len(web) == 0
        assert web.age < PATIENCE
    assert web.has_ended
    assert [addresses(change.endpoints) async for change in web.changes()] == [[]], "the last ones stay"


async def test_a_service_never_sees_one_whose_name_begins_with_its_own(client: Client, prefix: str) -> None:
    async with (
        client.register(f"{prefix}foo", "a:1"),
        client.register(f"{prefix}foo_other", "b:1"),
        client.register(f"{prefix}foo/inner", "c:1"),
        client.resolve(f"{prefix}foo") as foo,
    ):
        assert addresses(foo.endpoints) == ["a:1", "c:1"]  # Go's sees what is below it, too


async def test_what_is_no_entry_is_passed_over(client: Client, prefix: str, caplog: pytest.LogCaptureFixture) -> None:
    await client.put(f"{prefix}web/bad", "secret, and no JSON")
    async with client.resolve(f"{prefix}web") as web:
        await naming.update(client, f"{prefix}web", add=["a:1"])
        await until_addresses(web, "a:1")
        await client.put(f"{prefix}web/bad", "secret again")
        entry = await client.put(f"{prefix}web/a:1", "secret instead of an entry")
        await web.wait_revision(entry.revision)
        assert addresses(web.endpoints) == ["a:1"]
        await client.delete(f"{prefix}web/a:1")
        await until_addresses(web)
    assert "secret" not in caplog.text
    assert f"{prefix}web/bad" in caplog.text


async def test_endpoints_are_read_again_after_each_change_and_no_other_time(client: Client, prefix: str) -> None:
    async with client.register(f"{prefix}web", "a:1"), client.resolve(f"{prefix}web") as web:
        before, revision = web.endpoints, web.revision
        await client.put(f"{prefix}elsewhere", "1")
        await web.wait_current()
        assert web.revision > revision
        assert web.endpoints is before
        # A store that was replaced may be at the same revision.
        web.cache._replica.revision = revision
        await client.put(f"{prefix}web/b:1", '{"Addr": "b:1"}')
        await until(lambda: len(web.cache) == 2)
        web.cache._replica.revision = revision
        assert addresses(web.endpoints) == ["a:1", "b:1"]


async def test_all_changes_of_one_txn_are_seen_at_once(client: Client, prefix: str) -> None:
    target = f"{prefix}web"
    async with client.resolve(target) as web:
        seen: list[list[str]] = []

        async def follow() -> None:
            async for change in web.changes():
                seen.append(addresses(change.endpoints))  # noqa: PERF401 - it is looked at meanwhile

        following = asyncio.create_task(follow())
        for number in range(50):
            ours = [f"{side}:{number}" for side in "abc"]
            theirs = [f"{side}:{number - 1}" for side in "abc"] if number else []
            await naming.update(client, target, add=ours, remove=theirs)
        result = await naming.update(client, target, add=[NewEndpoint("last:1", 1)], remove=web_list(49))
        await web.wait_revision(result.revision)
        await until(lambda: bool(seen) and seen[-1] == ["last:1"], [following])
        assert all(len({address.split(":")[1] for address in state}) <= 1 for state in seen)
        assert all(len(state) in (0, 3) for state in seen[:-1])
        following.cancel()


def web_list(number: int) -> list[str]:
    return [f"{side}:{number}" for side in "abc"]


# Outages.


async def test_an_outage_longer_than_the_ttl_is_healed(own_server: EtcdServer) -> None:
    """The entry is there again within 2 seconds after the outage, and the endpoints never were empty here."""
    loop = asyncio.get_running_loop()
    async with (
        FaultProxy(own_server.endpoint) as proxy,
        Client(proxy.endpoint) as client,
        Client(own_server.endpoint) as direct,
        client.register("svc/web", "a:1", ttl=TTL) as registration,
        client.resolve("svc/web", keep_current=0.2) as web,
    ):
        states: list[list[str]] = []

        async def follow() -> None:
            async for change in web.changes():
                states.append(addresses(change.endpoints))  # noqa: PERF401 - it is looked at meanwhile

        following = asyncio.create_task(follow())
        proxy.refuse()
        proxy.reset()
        assert await registration.lost() is not None
        assert not registration.is_registered
        await until_keys(direct, "svc/", 0)
        await asyncio.sleep(3 * TTL)  # the outage itself
        assert addresses(web.endpoints) == ["a:1"]  # the last ones stay
        assert web.age > TTL
        proxy.heal()
        healed = loop.time()
        async with asyncio.timeout(PATIENCE):
            await registration.wait_registered()
        took = loop.time() - healed
        print(f"registered again {took:.2f} s after an outage of {3 * TTL} s")
        assert took < 20  # on a quiet machine below 2
        await web.wait_revision(registration.revision)
        assert addresses(web.endpoints) == ["a:1"]
        following.cancel()
        assert all(state in (["a:1"], []) for state in states)
    assert registration.error is None


@pytest.mark.parametrize("how", ["frozen", "killed", "silent"])
async def test_other_kinds_of_outages_are_healed(own_server: EtcdServer, how: str) -> None:
    async with FaultProxy(own_server.endpoint) as proxy, Client(proxy.endpoint) as client:
        async with client.register("svc/web", "a:1", ttl=TTL) as registration:
            first = registration.revision
            match how:
                case "frozen":
                    own_server.pause()
                case "killed":
                    await own_server.kill()
                case _:
                    proxy.black_hole()
            assert await registration.lost() is not None
            match how:
                case "frozen":
                    own_server.resume()
                case "killed":
                    await own_server.restart()
                case _:
                    proxy.heal()
            async with asyncio.timeout(PATIENCE):
                await registration.wait_registered()
            assert registration.revision > first
            assert await until_keys(client, "svc/", 1) == [b"svc/web/a:1"]
        await until_keys(client, "svc/", 0)


async def test_a_cluster_without_a_leader_is_waited_for(cluster: EtcdCluster) -> None:
    """Members that answer, and refuse."""
    leader, *others = cluster.members
    async with Client(cluster.endpoints) as client, client.register("svc/web", "a:1", ttl=TTL) as registration:
        for member in others:
            await member.kill()
        assert await registration.lost() is not None
        for member in others:
            await member.restart()
        async with asyncio.timeout(PATIENCE):
            await registration.wait_registered()
        assert leader.is_running
        assert await until_keys(client, "svc/", 1) == [b"svc/web/a:1"]


async def test_compaction_while_it_is_cut_off(own_server: EtcdServer) -> None:
    """The endpoints that have gone meanwhile are gone, those that have come are there."""
    async with (
        FaultProxy(own_server.endpoint) as proxy,
        Client(proxy.endpoint) as client,
        Client(own_server.endpoint) as direct,
        client.resolve("svc/web") as web,
    ):
        await naming.update(direct, "svc/web", add=["a:1", "b:1"])
        await until_addresses(web, "a:1", "b:1")
        proxy.refuse()
        proxy.reset()
        result = await naming.update(direct, "svc/web", add=["c:1"], remove=["a:1"])
        await direct.compact((await direct.put("other", "v")).revision)
        assert addresses(web.endpoints) == ["a:1", "b:1"]
        proxy.heal()
        await until_addresses(web, "b:1", "c:1")
        assert web.revision >= result.revision


async def test_many_registrations_of_one_process(own_server: EtcdServer) -> None:
    """All on one keepalive stream; all are healed. Nightly the number of the specification."""
    await heal_many(own_server, 100)


@pytest.mark.nightly
async def test_a_thousand_registrations_of_one_process(own_server: EtcdServer) -> None:
    await heal_many(own_server, 1000)


async def heal_many(server: EtcdServer, count: int) -> None:
    loop = asyncio.get_running_loop()
    async with FaultProxy(server.endpoint) as proxy, Client(proxy.endpoint) as client:
        registrations = [client.register("svc/web", f"10.0.0.{number}:80", ttl=4) for number in range(count)]
        await asyncio.gather(*(registration.__aenter__() for registration in registrations))
        assert len(await until_keys(client, "svc/web/", count)) == count
        assert len(client.streams()) == 1  # that of all leases
        proxy.refuse()
        proxy.reset()
        await asyncio.gather(*(registration.lost() for registration in registrations))
        proxy.heal()
        healed = loop.time()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(registration.wait_registered() for registration in registrations))
        print(f"{count} registrations again {loop.time() - healed:.2f} s after the outage")
        await until_keys(client, "svc/web/", count)
        leases = {kv.lease for kv in await client.range(prefix="svc/web/")}
        assert len(leases) == count
        await asyncio.gather(*(registration.aclose() for registration in registrations))
        await until_keys(client, "svc/web/", 0)
        assert leases.isdisjoint((await client.leases.list()).ids)  # those from before the outage end by their TTLs


# Conflicts, quota, permissions, the end.


async def test_the_entry_of_another_process(client: Client, prefix: str) -> None:
    target = f"{prefix}web"
    async with client.register(target, "a:1", metadata="theirs") as theirs:
        async with client.register(target, "a:1", metadata="ours") as ours:
            assert not ours.is_registered
            assert isinstance(ours.error, ServiceConflictError)
            await theirs.aclose()
            async with asyncio.timeout(PATIENCE):
                await ours.wait_registered()
        async with (
            client.register(target, "a:1", metadata="first") as first,
            client.register(target, "a:1", metadata="second", on_conflict="replace") as second,
        ):
            assert second.is_registered
            with pytest.raises(ServiceConflictError):
                await first.update(metadata="again")
            kv = await client.get(f"{target}/a:1")
            assert kv is not None
            assert "second" in kv.text()


async def test_a_crashed_process_is_followed_by_its_successor(own_server: EtcdServer) -> None:
    """The old lease still holds an equal entry, and takes nothing away when it ends."""
    async with Client(own_server.endpoint) as client:
        old = await client.leases.grant(LONGER)
        await naming.update(client, "svc/web", add=[NewEndpoint("a:1", {"zone": "a"}, lease=old)])
        async with client.register("svc/web", "a:1", metadata={"zone": "a"}) as registration:
            assert registration.is_registered
            await client.leases.revoke(old)
            assert await until_keys(client, "svc/", 1) == [b"svc/web/a:1"]


async def fill(client: Client) -> None:
    """Put until the store is full."""
    with suppress(NoSpaceError):
        while True:
            await client.put("big", b"x" * (1 << 20))


async def test_no_space() -> None:
    """Raised on entering; later it is waited for."""
    async with EtcdServer(flags=["--quota-backend-bytes=4000000"]) as server, Client(server.endpoint) as client:
        async with client.register("svc/web", "a:1", ttl=LONGER) as registration:
            await fill(client)
            with pytest.raises(NoSpaceError):
                async with client.register("svc/web", "b:1"):
                    raise AssertionError("it was entered")
            kv = await client.get(registration.key)
            assert kv is not None
            await client.leases.revoke(kv.lease)
            assert await registration.lost() is not None
            await until(lambda: isinstance(registration.error, NoSpaceError))
        assert not registration.is_registered


async def test_permissions() -> None:
    async with EtcdServer(flags=[QUICK_LOGINS]) as server:
        await enable_auth(server, web=True)
        async with Client(server.endpoint, auth=WEB, allow_insecure_auth=True) as client:
            with pytest.raises(PermissionDeniedError):
                async with client.register("elsewhere", "a:1"):
                    raise AssertionError("it was entered")
            with pytest.raises(PermissionDeniedError):
                async with client.resolve("elsewhere"):
                    raise AssertionError("it was entered")


async def test_a_permission_that_is_taken_away_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    """Logged once, and tried again until it is granted."""
    caplog.set_level(logging.INFO, "etcd_aio.naming")
    async with EtcdServer(flags=[QUICK_LOGINS]) as server:
        await enable_auth(server, web=True)
        async with (
            Client(server.endpoint, auth=ROOT, allow_insecure_auth=True) as root,
            Client(server.endpoint, auth=WEB, allow_insecure_auth=True) as client,
            client.register("app/svc", "a:1", ttl=LONGER) as registration,
        ):
            kv = await root.get(registration.key)
            assert kv is not None
            await root.auth.role_revoke_permission("app", prefix="app/")
            await root.leases.revoke(kv.lease)
            await until(lambda: isinstance(registration.error, PermissionDeniedError))
            assert not registration.is_registered
            await root.auth.role_grant_permission("app", prefix="app/", permission="readwrite")
            async with asyncio.timeout(PATIENCE):
                await registration.wait_registered()
            assert registration.error is None
            assert await until_keys(root, "app/svc/", 1) == [b"app/svc/a:1"]
        messages = [record.getMessage() for record in caplog.records if record.name == "etcd_aio.naming"]
        assert sum("permission denied" in message for message in messages) == 1
        assert messages[-1].endswith("is registered again")


async def test_a_blocked_loop_does_not_hide_the_loss(own_server: EtcdServer) -> None:
    """The state is right at once, before the loop has had a turn; the entry is put again after it."""
    async with Client(own_server.endpoint) as client, client.register("svc/web", "a:1", ttl=TTL) as registration:
        first = registration.revision
        time.sleep(TTL + 2)  # noqa: ASYNC251 - what is tested
        assert not registration.is_registered
        async with asyncio.timeout(PATIENCE):
            await registration.wait_registered()
        assert registration.revision > first
        assert await until_keys(client, "svc/", 1) == [b"svc/web/a:1"]


async def test_every_cut_of_an_answer_leaves_one_entry(own_server: EtcdServer) -> None:
    """Whatever of the answers to the grant, the put or an update is lost, the entry is there, and goes on leaving."""
    async with FaultProxy(own_server.endpoint) as proxy, Client(own_server.endpoint) as direct:
        for cut in range(0, 300, 12):
            async with Client(proxy.endpoint) as client:
                await client.get("k")
                proxy.cut_after(cut, connection="open")
                with suppress(EtcdError):  # a grant may have been applied
                    async with client.register("svc/web", "a:1", metadata=cut, ttl=10) as registration:
                        await registration.update(metadata=[cut])
                        assert registration.is_registered
                        (kv,) = (await direct.range(prefix="svc/")).kvs
                        assert (kv.mod_revision, kv.lease != 0) == (registration.revision, True)
                        assert json.loads(kv.value)["Metadata"] == [cut]
                proxy.heal()
            await until_keys(direct, "svc/", 0)


async def test_two_registrations_of_one_address(client: Client, prefix: str) -> None:
    """Equal entries are one: the later registration has it, and takes it along."""
    target = f"{prefix}web"
    async with client.register(target, "a:1") as first:
        async with client.register(target, "a:1") as second:
            assert second.revision > first.revision
            with pytest.raises(ServiceConflictError):
                await first.update(metadata="first")
            await second.update(metadata="second")
            kv = await client.get(second.key)
            assert kv is not None
            assert (kv.mod_revision, "second" in kv.text()) == (second.revision, True)
        async with asyncio.timeout(PATIENCE):
            await first.wait_registered()  # it had waited for the entry of the second to go
        kv = await client.get(first.key)
        assert kv is not None
        assert "first" in kv.text()
    await until_keys(client, prefix, 0)


async def test_a_closed_client_says_so(own_server: EtcdServer) -> None:
    async with Client(own_server.endpoint) as client:
        pass
    with pytest.raises(ClientClosedError):
        await client.register("svc/web", "a:1").__aenter__()
    with pytest.raises(ClientClosedError):
        await client.resolve("svc/web").__aenter__()


async def test_closing_the_client_deletes_the_entry(shared_server: EtcdServer, client: Client, prefix: str) -> None:
    async with Client(shared_server.endpoint) as other:
        registration = await other.register(f"{prefix}web", "a:1").__aenter__()
        await until_keys(client, prefix, 1)
    await until_keys(client, prefix, 0)
    assert await registration.lost() is None
    assert not {task.get_name() for task in asyncio.all_tasks() if "registration" in task.get_name()}


async def test_cancelling_it_at_every_await_leaves_nothing(own_server: EtcdServer) -> None:
    async with Client(own_server.endpoint) as client:

        async def serve() -> None:
            async with client.register("svc/web", "a:1", ttl=10) as registration:
                await registration.update(metadata=1)
                await asyncio.Event().wait()

        await client.get("k")
        for turns in range(60):
            serving = asyncio.create_task(serve())
            for _ in range(turns):
                await asyncio.sleep(0)
            serving.cancel()
            await asyncio.wait([serving])
        await until_keys(client, "svc/", 0)
        async with asyncio.timeout(PATIENCE):
            while (await client.leases.list()).ids:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            while any("registration" in task.get_name() for task in asyncio.all_tasks()):  # noqa: ASYNC110
                await asyncio.sleep(0.05)


# Go.


async def test_go_resolves_what_is_registered_here(own_server: EtcdServer) -> None:
    endpoint = own_server.endpoint
    async with (
        Client(endpoint) as client,
        golayers("follow", endpoint, "svc/web") as follower,
        golayers("resolve", endpoint, "svc/web") as resolver,
    ):
        assert (json.loads(await follower.line()), json.loads(await resolver.line())) == ("watching", "resolving")
        async with client.register("svc/web", "10.0.0.1:80", metadata={"zone": "a"}) as registration:
            assert json.loads(await follower.line()) == [["10.0.0.1:80", {"zone": "a"}]]
            assert json.loads(await resolver.line()) == ["10.0.0.1:80"]
            await registration.update(metadata=None)
            assert json.loads(await follower.line()) == [["10.0.0.1:80", None]]
            assert json.loads(await resolver.line()) == ["10.0.0.1:80"]
            await naming.update(client, "svc/web", add=["10.0.0.2:80", "10.0.0.3:80"], remove=["10.0.0.1:80"])
            assert json.loads(await follower.line()) == [["10.0.0.2:80", None], ["10.0.0.3:80", None]]
            assert json.loads(await resolver.line()) == ["10.0.0.2:80", "10.0.0.3:80"]
            async with client.register("svc/web_other", "10.0.0.9:80"):
                await naming.update(client, "svc/web", remove=["10.0.0.2:80"])
                assert json.loads(await follower.line()) == [["10.0.0.3:80", None]]


async def test_what_go_registers_is_resolved_here(own_server: EtcdServer) -> None:
    endpoint = own_server.endpoint
    async with Client(endpoint) as client, client.resolve("svc/web") as web:
        options = ["-address", "10.0.0.1:80", "-metadata", '{"zone":"a"}', "-ttl", f"{TTL}"]
        async with golayers("register", endpoint, "svc/web", *options) as go:
            (found,) = await until_addresses(web, "10.0.0.1:80")
            assert (found.key, found.metadata) == (b"svc/web/10.0.0.1:80", {"zone": "a"})
            await go.let_go()
            await until_addresses(web)
        async with golayers("register", endpoint, "svc/web", *options) as go:
            await until_addresses(web, "10.0.0.1:80")
            go.kill()
            await until_addresses(web)


async def test_a_registration_is_what_go_writes(client: Client, shared_server: EtcdServer, prefix: str) -> None:
    """Byte by byte, where there is Go; the recorded bytes are in the unit tests."""
    async with client.register(f"{prefix}ours", "a:1", metadata={"zone": "a"}) as ours:
        options = ["-address", "a:1", "-metadata", '{"zone":"a"}']
        async with golayers("register", shared_server.endpoint, f"{prefix}theirs", *options):
            (key,) = await until_keys(client, f"{prefix}theirs/", 1)
            of_go, of_this = await client.get(key), await client.get(ours.key)
            assert of_go is not None
            assert of_this is not None
            assert of_go.value == of_this.value
            assert key.endswith(b"theirs/a:1")
            assert isinstance(ours, Registration)


async def test_changes_that_were_closed_bring_nothing_more(client: Client, prefix: str) -> None:
    async with client.register(f"{prefix}svc", "10.0.0.1:80"), client.resolve(f"{prefix}svc") as web:
        changes = web.changes()
        await changes.aclose()
        with pytest.raises(StopAsyncIteration):
            await asyncio.wait_for(anext(changes), PATIENCE)


async def test_a_policy_that_raises_for_a_while_does_not_end_a_registration(own_server: EtcdServer) -> None:
    is_broken = False

    def choose(candidates: Sequence[Candidate]) -> Candidate:
        if is_broken:
            raise ZeroDivisionError
        return candidates[0]

    async with Client(own_server.endpoint, policy=choose) as client, Client(own_server.endpoint) as operator:
        is_broken = True
        with pytest.raises(ZeroDivisionError):
            async with client.register("svc", "10.0.0.1:80"):
                pass
        is_broken = False
        async with client.register("svc", "10.0.0.1:80", ttl=LONGER) as registration:
            kv = await operator.get(registration.key)
            assert kv is not None
            is_broken = True
            await operator.leases.revoke(kv.lease)
            await until(lambda: "ZeroDivisionError" in str(registration.error))
            is_broken = False
            await asyncio.wait_for(registration.wait_registered(), PATIENCE)
            assert await operator.get(registration.key) is not None
