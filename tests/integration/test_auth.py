"""Authentication on real servers: its calls, and credentials that last for as long as the client does."""

import asyncio
import logging
import re
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from etcd_aio import Client, Event, op
from etcd_aio.admin import KeyPermission, Permission
from etcd_aio.errors import (
    AuthenticationFailedError,
    AuthError,
    AuthOldRevisionError,
    ClusterChangedError,
    InvalidTokenError,
    LeaseExpiredError,
    PermissionDeniedError,
    PermissionNotGrantedError,
    RequestTimedOutError,
    RoleNotFoundError,
    RootUserNotExistError,
    TokenUnavailableError,
    UserAlreadyExistsError,
    UserEmptyError,
    UserNotFoundError,
)
from etcd_aio.testing import EtcdCluster, EtcdServer, FaultProxy, find_etcd
from tests.support.auth import QUICK_LOGINS, ROOT, WEB, enable_auth, jwt_flag
from tests.support.locks import metric, until
from tests.support.servers import QUICK_ELECTIONS
from tests.support.until import PATIENCE
from tests.support.versions import need

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

EACH = pytest.mark.usefixtures("each_engine")
HAS_STATUS = pytest.mark.skipif(find_etcd().version_info < (3, 5, 0), reason="AuthStatus came with etcd 3.5")


def new(server: EtcdServer | FaultProxy, who: tuple[str, str] | None = WEB, **options: object) -> Client:
    return Client(server.endpoint, auth=who, allow_insecure_auth=True, **options)  # type: ignore[arg-type]  # any of the client's


@asynccontextmanager
async def guarded(*flags: str) -> AsyncIterator[EtcdServer]:
    """A member that knows root and web."""
    async with EtcdServer(flags=(QUICK_LOGINS, *flags)) as server:
        await enable_auth(server, web=True)
        yield server


async def logins(server: EtcdServer) -> float:
    """How many logins a member has answered, well or not."""

    def read() -> str:
        with urllib.request.urlopen(f"{server.endpoint}/metrics", timeout=5) as reply:
            text: str = reply.read().decode()
            return text

    text = await asyncio.to_thread(read)
    pattern = r'^grpc_server_handled_total\{.*grpc_method="Authenticate".*\} (\S+)$'
    return sum(float(found) for found in re.findall(pattern, text, re.MULTILINE))


async def take(watcher: AsyncIterator[Event], number: int = 1) -> list[Event]:
    async with asyncio.timeout(PATIENCE):
        return [await anext(watcher) for _ in range(number)]


@pytest.mark.both_engines
@EACH
@HAS_STATUS
async def test_all_17_calls() -> None:
    async with EtcdServer(flags=(QUICK_LOGINS,)) as server, new(server, ROOT) as client:
        auth = client.auth
        assert not await auth.status()
        with pytest.raises(RootUserNotExistError):
            await auth.enable()
        await auth.user_add(*ROOT)
        await auth.role_add("root")
        await auth.user_grant_role("root", "root")
        await auth.user_add("known-by-certificate")
        await auth.user_add(*WEB)
        with pytest.raises(UserAlreadyExistsError):
            await auth.user_add(*WEB)
        await auth.role_add("app")
        await auth.user_grant_role("web", "app")
        granted = [
            KeyPermission(Permission.READWRITE, b"app/", b"app0"),
            KeyPermission(Permission.READ, b"one"),
            KeyPermission(Permission.WRITE, b"s", b"t"),
            KeyPermission(Permission.READ, b"z", b"\0"),
        ]
        await auth.role_grant_permission("app", prefix="app/", permission="readwrite")
        await auth.role_grant_permission("app", "one", permission=Permission.READ)
        await auth.role_grant_permission("app", "s", range_end="t", permission="write")
        await auth.role_grant_permission("app", from_key="z", permission="read")
        await auth.enable()
        status = await auth.status()
        assert status.enabled
        assert status.auth_revision > 1
        assert sorted((await auth.role_get("app")).permissions, key=lambda one: one.key) == granted
        assert (await auth.user_get("web")).roles == ("app",)
        assert set(await auth.user_list()) == {"root", "web", "known-by-certificate"}
        assert set(await auth.role_list()) == {"root", "app"}

        token = (await auth.authenticate(*WEB)).token
        async with Client(server.endpoint, token=token, allow_insecure_auth=True) as web:
            await web.put("app/k", "v")
            await web.put("s", "v")
            assert await web.get("one") is None
            assert not await web.range(from_key="z")
            for call in (web.put("one", "v"), web.get("s"), web.get("other"), web.auth.user_list()):
                with pytest.raises(PermissionDeniedError):
                    await call
            assert (await web.auth.user_get("web")).roles == ("app",)

            await auth.role_revoke_permission("app", "s", range_end="t")
            with pytest.raises(PermissionNotGrantedError):
                await auth.role_revoke_permission("app", prefix="s")
            with pytest.raises(PermissionDeniedError):
                await web.put("s", "v")
            await auth.user_revoke_role("web", "app")
            with pytest.raises(PermissionDeniedError):
                await web.put("app/k", "v")
            await auth.user_change_password("web", "new-c4n4ry")
            with pytest.raises(AuthError):
                await web.put("app/k", "v")
        with pytest.raises(AuthenticationFailedError):
            await auth.authenticate(*WEB)
        assert (await auth.authenticate("web", "new-c4n4ry")).token
        await auth.role_delete("app")
        with pytest.raises(RoleNotFoundError):
            await auth.role_get("app")
        await auth.user_delete("web")
        with pytest.raises(UserNotFoundError):
            await auth.user_get("web")
        await auth.role_grant_permission("root", all_keys=True, permission="readwrite")
        await auth.disable()
        async with Client(server.endpoint) as anonymous:
            await anonymous.put("other", "v")


@EACH
async def test_tokens_expire_and_everything_goes_on() -> None:
    """Each kind of call has a client of its own, whose token no other client renews."""
    async with guarded("--auth-token-ttl=2") as server, AsyncExitStack() as stack:

        async def client(who: tuple[str, str] = WEB) -> Client:
            made = await stack.enter_async_context(new(server, who))
            await made.get("app/k")
            return made

        members = (await (await client(ROOT)).cluster.members()).members
        lease_client, watching, idle, storm = [await client() for _ in range(4)]
        live = await stack.enter_async_context(watching.watch(prefix="app/"))
        single, root = await client(), await client(ROOT)
        granted = await single.leases.grant(600)

        async def scan(one: Client) -> object:
            return [kv async for kv in one.scan(prefix="app/")]

        async def watch(one: Client) -> object:
            async with one.watch("app/put") as fresh:
                await one.put("app/put", "w")
                return await take(fresh)

        async def keep(one: Client) -> object:
            async with one.lease(600) as kept:
                return kept.id

        async def snapshot(one: Client) -> object:
            return b"".join([chunk async for chunk in one.maintenance.snapshot()])

        calls: dict[str, tuple[Callable[[Client], Awaitable[object]], tuple[str, str]]] = {
            "get": (lambda one: one.get("app/k"), WEB),
            "stale get": (lambda one: one.get("app/k", serializable=True), WEB),
            "put": (lambda one: one.put("app/put", "v"), WEB),
            "txn": (lambda one: one.txn().then(op.put("app/txn", "v")).commit(), WEB),
            "scan": (scan, WEB),
            "watch": (watch, WEB),
            "grant": (lambda one: one.leases.grant(600), WEB),
            "keep alive": (lambda one: one.leases.keep_alive_once(granted.id), WEB),
            "lease": (keep, WEB),
            "snapshot": (snapshot, ROOT),
            "cluster": (lambda one: one.cluster.members(), ROOT),
            "status": (lambda one: one.maintenance.status(server.endpoint), ROOT),
            "hash": (lambda one: one.maintenance.hash_kv(server.endpoint), ROOT),
            "users": (lambda one: one.auth.user_list(), ROOT),
        }
        clients = {name: await client(who) for name, (_, who) in calls.items()}
        async with lease_client.lease(3) as lease:
            await asyncio.sleep(4)  # etcd looks for tokens that are over once a second
            assert not lease.is_lost
            await lease_client.put("app/put", "leased", lease=lease)
        assert [event.value for event in await take(live, 2)] == [b"leased", b""]
        found = await asyncio.gather(
            *(call(clients[name]) for name, (call, _) in calls.items()), return_exceptions=True
        )
        assert [error for error in found if isinstance(error, BaseException)] == []
        assert {event.key for event in await take(live, 3)} == {b"app/put", b"app/txn"}
        assert live.statistics().reconnects == 0

        async with watching.watch("app/put") as fresh:  # on the stream whose token is over
            await root.put("app/put", "x")
            await take(fresh)
        assert [event.value for event in await take(live)] == [b"x"]

        before = await logins(server)
        await asyncio.gather(*(storm.put(f"app/storm/{number}", "v") for number in range(500)))
        assert await logins(server) - before == 1
        assert (await idle.range(prefix="app/storm/", count_only=True)).count == 500
        assert len(members) == 1


async def test_authentication_is_switched_on_and_off_under_a_client() -> None:
    async with (
        EtcdServer(flags=(QUICK_LOGINS,)) as server,
        new(server) as client,
        client.watch(prefix="app/") as watcher,
    ):
        await client.put("app/k", "0")
        assert await logins(server) == 1
        await enable_auth(server, web=True)
        async with new(server, ROOT) as root:
            for number in range(1, 6):
                await client.put("app/k", str(number))
                async with client.watch("app/k", start_revision=1) as fresh:
                    await take(fresh, number)
                await (root.auth.disable() if number % 2 else root.auth.enable())
            async with Client(server.endpoint) as anonymous:
                assert await anonymous.get("app/k") is not None
        values = [event.value for event in await take(watcher, 6)]
        assert values == [b"0", b"1", b"2", b"3", b"4", b"5"]


async def test_a_wrong_password_is_tried_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with guarded() as server, new(server, ("web", "wrong-c4n4ry")) as client:
        before = await logins(server)
        found = await asyncio.gather(*(client.put("app/k", "v") for _ in range(50)), return_exceptions=True)
        assert {type(error) for error in found} == {AuthenticationFailedError}
        assert await logins(server) - before == 1
        with pytest.raises(AuthenticationFailedError):
            async with client.watch("app/k"):
                pass
        shown = [repr(error) + str(error) + "".join(getattr(error, "__notes__", [])) for error in found]
        assert "c4n4ry" not in "".join(shown) + caplog.text


async def test_what_is_changed_about_a_user_while_he_works() -> None:
    async with guarded() as server, new(server, ROOT) as root, new(server) as client:
        await client.put("app/k", "v")
        await root.auth.user_change_password("web", "new-c4n4ry")
        with pytest.raises(AuthenticationFailedError) as caught:
            await client.put("app/k", "v")
        assert not caught.value.maybe_applied
        async with new(server, ("web", "new-c4n4ry")) as changed:
            await changed.put("app/k", "v")
            for number in range(5):  # changes of other users disturb no call
                await root.auth.user_add(f"other{number}", "c4n4ry")
                await changed.put("app/k", "v")
            await root.auth.user_delete("web")
            with pytest.raises(AuthError):
                await changed.put("app/k", "v")
        async with Client(server.endpoint) as anonymous:
            with pytest.raises(UserEmptyError):
                await anonymous.get("app/k")
            with pytest.raises(UserEmptyError):
                [chunk async for chunk in anonymous.maintenance.snapshot()]


@EACH
async def test_a_role_is_revoked_under_a_watch() -> None:
    async with (
        guarded() as server,
        FaultProxy(server.endpoint) as proxy,
        new(server, ROOT) as root,
        new(proxy) as client,
        client.watch(prefix="app/") as watcher,
    ):
        await root.put("app/k", "1")
        await take(watcher)
        await root.auth.user_revoke_role("web", "app")
        with pytest.raises(PermissionDeniedError):
            await client.get("app/k")
        proxy.reset()
        with pytest.raises(PermissionDeniedError):
            await take(watcher)


async def test_signed_tokens(tmp_path: Path) -> None:
    async with guarded(jwt_flag(tmp_path)) as server, new(server, ROOT) as root, new(server) as client:
        given: list[str] = []
        began = asyncio.get_running_loop().time()

        async def give() -> str:
            given.append((await root.auth.authenticate(*WEB)).token)
            return given[-1]

        def expired() -> int:
            """How many tokens may have expired by now: a busy machine may take longer than one of them lasts."""
            return int((asyncio.get_running_loop().time() - began) / 2)

        static = (await root.auth.authenticate(*WEB)).token
        async with (
            Client(server.endpoint, token=static, allow_insecure_auth=True) as fixed,
            Client(server.endpoint, token=give, allow_insecure_auth=True) as asking,
            client.watch("app/k") as watcher,
        ):
            for one in (fixed, asking, client):
                await one.put("app/k", "1")
            await root.auth.role_add("other")  # which outdates all tokens
            with pytest.raises(AuthOldRevisionError):
                await fixed.put("app/k", "2")
            await asyncio.gather(*(one.put("app/k", "2") for one in [client, asking] * 20))
            assert 2 <= len(given) <= 2 + expired()
            await asyncio.sleep(3.1)
            with pytest.raises(InvalidTokenError):
                await fixed.put("app/k", "3")
            await asyncio.gather(*(one.put("app/k", "3") for one in [client, asking] * 20))
            async with client.watch("app/k", start_revision=1) as fresh:
                await take(fresh, 83)
            await take(watcher, 83)
            assert 3 <= len(given) <= 2 + expired()


@pytest.mark.parametrize("writes", [50, pytest.param(150, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("kind", ["simple", "signed"])
async def test_calls_go_on_while_users_are_added_all_the_time(kind: str, writes: int, tmp_path: Path) -> None:
    """Every change refuses what was on its way, and what was on its way to be repeated."""
    pause, flag = (0.0, "--auth-token=simple") if kind == "simple" else (0.1, jwt_flag(tmp_path))
    async with AsyncExitStack() as stack:
        # Not with quick elections: what is on its way to a leader that stands still for a moment would be lost.
        cluster = await stack.enter_async_context(EtcdCluster(size=3, flags=(QUICK_LOGINS, flag)))
        await cluster.wait_healthy()
        await enable_auth(cluster.members[0], web=True)
        root = await stack.enter_async_context(
            Client(cluster.endpoints, auth=ROOT, allow_insecure_auth=True, timeout=PATIENCE)
        )
        writers = [
            await stack.enter_async_context(
                Client(cluster.endpoints, auth=WEB, allow_insecure_auth=True, timeout=PATIENCE)
            )
            for _ in range(2)
        ]
        is_over = False

        async def write(client: Client) -> None:
            for number in range(writes):
                await client.put("app/k", str(number), retry="always")
                await asyncio.sleep(pause / 10)

        async def add() -> int:
            added = 0
            while not is_over:
                with suppress(RequestTimedOutError):  # of a leader that stood still
                    await root.auth.user_add(f"other{added}", "c4n4ry")
                await asyncio.sleep(pause)
                added += 1
            return added

        adding = asyncio.create_task(add())
        try:
            await asyncio.gather(*(write(client) for client in writers for _ in range(4)))
        finally:
            is_over = True
            added = await adding
        assert added > 10
        if kind == "simple":
            given = sum([await logins(member) for member in cluster.members])
            # A member that lags behind does not know a client's first token yet; it costs that client one login more.
            assert 3 <= given <= 6 < added, "simple tokens outlive every change of others"


async def test_a_function_that_fails_says_so_and_nothing_is_sent() -> None:
    async def give() -> str:
        raise OSError("of the user's own")

    async with guarded() as server, Client(server.endpoint, token=give, allow_insecure_auth=True) as client:
        with pytest.raises(TokenUnavailableError) as caught:
            await client.get("app/k")
        assert isinstance(caught.value.__cause__, OSError)
        assert "own" not in str(caught.value)


async def test_leases_and_watches_outlive_a_function_that_fails_when_they_have_to_reconnect() -> None:
    need("3.4.25", "3.5.8", why="older ones say 'permission denied' of a token that expired, which ends a watch")
    is_down = False
    asked = 0

    async with guarded("--auth-token-ttl=2") as server, FaultProxy(server.endpoint) as proxy, new(server) as other:

        async def give() -> str:
            nonlocal asked
            asked += 1
            if is_down:
                raise OSError("the secret store is down")
            return (await other.auth.authenticate(*WEB)).token

        async with (
            Client(proxy.endpoint, token=give, allow_insecure_auth=True) as client,
            client.lease(60, on_lost="signal") as lease,
            client.watch("app/k") as watcher,
        ):
            is_down = True
            await asyncio.sleep(4)  # the token expires; etcd looks for those once a second
            with pytest.raises(TokenUnavailableError):
                await client.get("app/k")
            another = client.watch("app/other", timeout=PATIENCE)
            entering = asyncio.create_task(another.__aenter__())  # on the stream that is open, with the old token
            await asyncio.sleep(1)
            assert not entering.done()
            proxy.reset()
            before = asked
            async with asyncio.timeout(PATIENCE):
                while asked == before:  # noqa: ASYNC110 - the watch asks for a token, in vain
                    await asyncio.sleep(0.01)
            assert not lease.is_lost
            is_down = False
            await other.put("app/k", "v")
            assert [event.value for event in await take(watcher)] == [b"v"]
            async with asyncio.timeout(PATIENCE):
                await lease.keep_alive_once()
                await entering
            await another.aclose()
            assert not lease.is_lost


async def test_a_lease_outlives_a_password_that_is_wrong_for_a_while() -> None:
    async with (
        guarded() as server,
        FaultProxy(server.endpoint) as proxy,
        new(server, ROOT) as root,
        new(proxy) as client,
        client.lease(60, on_lost="signal") as lease,
    ):
        await root.auth.user_change_password(WEB[0], "other-c4n4ry")
        with pytest.raises(AuthenticationFailedError):
            await client.get("app/k")
        proxy.reset()
        await asyncio.sleep(1)
        assert not lease.is_lost
        await root.auth.user_change_password(*WEB)
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    assert (await lease.keep_alive_once()).ttl == 60
                    break
                except AuthError:
                    await asyncio.sleep(0.1)  # the refused login is remembered
        assert not lease.is_lost


async def test_no_password_goes_to_another_cluster() -> None:
    async with guarded() as server, guarded() as stranger, new(server) as client:
        await client.put("app/k", "v")
        before = await logins(stranger)
        client.set_endpoints([server.endpoint, stranger.endpoint])
        async with asyncio.timeout(PATIENCE):
            while not isinstance(client.statistics()[1].last_error, ClusterChangedError):
                await client.put("app/k", "v")
        for _ in range(10):
            await client.put("app/k", "v")
        assert client.statistics()[1].attempts == 0
        assert await logins(stranger) == before


async def test_one_login_serves_every_member_and_a_new_one_follows_a_lost_one() -> None:
    async with EtcdCluster(size=3, flags=(QUICK_LOGINS, "--auth-token-ttl=2"), **QUICK_ELECTIONS) as cluster:
        await cluster.wait_healthy()

        async def know_the_login() -> bool:
            return len({await metric(one, "etcd_server_proposals_applied_total") for one in cluster.members}) == 1

        await enable_auth(cluster.members[0], web=True)
        before = sum([await logins(member) for member in cluster.members])
        async with (
            Client(cluster.endpoints, auth=WEB, allow_insecure_auth=True, timeout=PATIENCE) as client,
            client.watch(prefix="app/") as watcher,
        ):
            await until(know_the_login)  # a member that lags behind would refuse its token
            await asyncio.gather(*(client.put(f"app/{number}", "v") for number in range(60)))
            assert sum([await logins(member) for member in cluster.members]) - before == 1
            await asyncio.sleep(4)
            await asyncio.gather(*(client.put(f"app/{number}", "w") for number in range(500)))
            after = sum([await logins(member) for member in cluster.members])
            assert after - before <= 1 + 3, "one for each member at most"
            await cluster.members[1].kill()
            await asyncio.gather(*(client.get(f"app/{number}") for number in range(60)))
            await take(watcher, 560)


@pytest.mark.both_engines
@EACH
@pytest.mark.skipif(find_etcd().version_info < (3, 5, 0), reason="etcd 3.4 renews a lease without looking at its keys")
async def test_a_lease_that_may_not_be_renewed_takes_no_other_along() -> None:
    """etcd ends the stream of all leases when it refuses one: here another user's key is attached to that one."""
    async with guarded() as server, new(server, ROOT) as root, new(server) as client, asyncio.timeout(2 * PATIENCE):
        stays = [client.lease(4, on_lost="signal") for _ in range(5)]
        async with AsyncExitStack() as stack:
            for lease in stays[:3]:
                await stack.enter_async_context(lease)
            refused = client.lease(4, on_lost="signal")
            with pytest.raises(LeaseExpiredError) as caught:  # noqa: PT012 - the block is what is tested
                async with refused:
                    for lease in stays[3:]:
                        await stack.enter_async_context(lease)
                    await root.put("secret", "", lease=refused)
                    while refused.renewal_error is None:  # noqa: ASYNC110 - there is no event for it
                        await asyncio.sleep(0.01)
                    assert isinstance(refused.renewal_error, PermissionDeniedError)
                    with pytest.raises(PermissionDeniedError):
                        await refused.keep_alive_once()
                    await refused.lost()
            assert f"keep lease 0x{refused.id:x} alive" in str(caught.value.__cause__)
            await asyncio.sleep(5)
            assert not any(lease.is_lost for lease in stays)
            for lease in stays:
                assert not (await root.leases.time_to_live(lease)).is_expired
