"""Known vulnerabilities of etcd: the releases that `docs/pages/compatibility.md` names have the corrections alone."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from etcd_aio import Client, op
from etcd_aio.errors import PermissionDeniedError, UserEmptyError
from etcd_aio.testing import EtcdServer
from tests.support.auth import QUICK_LOGINS, ROOT, WEB, enable_auth
from tests.support.versions import is_at_least

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

Attempt = Callable[[Client, Client, Client], Awaitable[object]]  # by the user of `app/`, no user, and root


async def watch_behind(user: Client, no_user: Client, root: Client) -> None:
    async with user.watch(from_key="app/") as watcher, asyncio.timeout(20):
        await root.put("secret", "new")
        assert (await anext(watcher)).key == b"secret"


async def read_nested(user: Client, no_user: Client, root: Client) -> None:
    await user.txn().then(op.txn(then=[op.get("secret")])).commit()


async def attach_lease(user: Client, no_user: Client, root: Client) -> None:
    lease = await root.leases.grant(100)
    await root.put("secret", "x", lease=lease.id)
    await user.txn().then(op.put("app/a", "x", lease=lease.id)).commit()


async def list_members(user: Client, no_user: Client, root: Client) -> None:
    await no_user.cluster.members()


async def show_names(user: Client, no_user: Client, root: Client) -> None:
    lease = await root.leases.grant(100)
    await root.put("secret", "x", lease=lease.id)
    assert (await user.leases.time_to_live(lease.id, keys=True)).keys == (b"secret",)


@pytest.mark.parametrize(
    ("attempt", "corrected"),
    [
        pytest.param(watch_behind, ("3.5.33", "3.6.14", "3.7.1"), id="CVE-2026-73499"),
        pytest.param(attach_lease, ("3.4.44", "3.5.30", "3.6.11"), id="CVE-2026-44283"),
        pytest.param(read_nested, ("3.4.42", "3.5.28", "3.6.9"), id="CVE-2026-33343"),
        pytest.param(list_members, ("3.4.42", "3.5.28", "3.6.9"), id="CVE-2026-33413"),
        pytest.param(show_names, ("3.4.26", "3.5.9"), id="CVE-2023-32082"),
    ],
)
async def test_the_page_says_which_releases_are_affected(attempt: Attempt, corrected: tuple[str, ...]) -> None:
    async with EtcdServer(flags=[QUICK_LOGINS]) as server:
        await enable_auth(server, web=True)
        async with (
            Client(server.endpoint, auth=ROOT, allow_insecure_auth=True) as root,
            Client(server.endpoint, auth=WEB, allow_insecure_auth=True) as user,
            Client(server.endpoint) as no_user,
        ):
            await root.put("secret", "x")
            is_old_alpha = attempt is watch_behind and server.version == "3.8.0-alpha.0"
            if is_at_least(*corrected) and not is_old_alpha:
                with pytest.raises((PermissionDeniedError, UserEmptyError)):
                    await attempt(user, no_user, root)
            else:
                await attempt(user, no_user, root)
