"""What the plugin does with a server itself: it switches authentication on, and removes what a test leaves."""

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from etcd_aio import Client
from etcd_aio.errors import LeaseNotFoundError

if TYPE_CHECKING:
    from pytest_etcd_aio.access import Access

_TIMEOUT: Final = 20.0  # seconds for a call; the server may have been restarted just now


async def enable_auth(access: "Access") -> None:
    """Switch authentication on.

    Args:
        access: with the user `root` and the password that it gets.
    """
    async with access.client(Client, auth=None, timeout=_TIMEOUT) as client:
        await add_root(client, access.auth)


async def add_root(client: Client, user: tuple[str, str] | None) -> None:
    """Add the user `root` and switch authentication on."""
    if user is not None:
        await client.auth.user_add(*user)
        await client.auth.role_add("root")
        await client.auth.user_grant_role("root", "root")
        await client.auth.enable()


async def lease_ids(access: "Access") -> frozenset[int]:
    """The leases that there are."""
    async with access.client(Client, timeout=_TIMEOUT) as client:
        return frozenset(lease.id for lease in (await client.leases.list()).leases)


async def clean(access: "Access", namespace: str, kept: frozenset[int] | None) -> None:
    """Delete the keys of a namespace, and revoke leases.

    Args:
        access: of the server.
        namespace: the prefix of the keys.
        kept: the leases that stay; None keeps those that no key of the namespace is attached to.
    """
    async with access.client(Client, timeout=_TIMEOUT) as client:
        if kept is None:
            leases = {kv.lease async for kv in client.scan(prefix=namespace) if kv.lease}
        else:
            leases = {lease.id for lease in (await client.leases.list()).leases} - kept
        for lease in leases:
            with suppress(LeaseNotFoundError):  # expired meanwhile
                await client.leases.revoke(lease)
        await client.delete(prefix=namespace)
