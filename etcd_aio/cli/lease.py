"""The verbs of leases."""

import asyncio
from typing import Final

from etcd_aio.cli.arguments import lease_of, only_word, whole
from etcd_aio.cli.format_simple import lease_word
from etcd_aio.cli.grammar import Entry, Switch, VerbGroup, verb
from etcd_aio.cli.outcome import ExitCode, Failure
from etcd_aio.cli.results import Done, LeaseShown
from etcd_aio.cli.session import Session
from etcd_aio.errors import EtcdError, LeaseNotFoundError

_RENEWALS_IN_A_TTL: Final = 3  # as etcd's Go client


@verb("grant", "<ttl>")
async def grant(session: Session, words: tuple[str, ...]) -> None:
    """Grants a lease of so many seconds."""
    ttl = whole(only_word(words, "lease grant command needs TTL argument"), "bad TTL")
    async with session.client() as client:
        try:
            session.show(await client.leases.grant(ttl))
        except EtcdError as error:
            raise _failed(f"failed to grant lease ({error})") from None


@verb("revoke", "<leaseID>")
async def revoke(session: Session, words: tuple[str, ...]) -> None:
    """Revokes a lease, which deletes its keys."""
    lease = lease_of(only_word(words, "lease revoke command needs 1 argument"))
    async with session.client() as client:
        try:
            result = await client.leases.revoke(lease)
        except EtcdError as error:
            raise _failed(f"failed to revoke lease ({error})") from None
    session.show(Done(f"lease {lease_word(lease)} revoked", result.header))


def _failed(text: str, code: int = ExitCode.ERROR) -> Failure:
    return Failure(code, text)


@verb("timetolive", "<leaseID>", Switch("--keys", help="print the keys that are attached to it, too"))
async def timetolive(session: Session, words: tuple[str, ...], *, keys: bool) -> None:
    """Shows how long a lease still lasts."""
    lease = lease_of(only_word(words, "lease timetolive command needs lease ID as argument"))
    async with session.client() as client:
        try:
            result = await client.leases.time_to_live(lease, keys=keys)
        except EtcdError as error:
            raise _failed(f"{error}", ExitCode.BAD_CONNECTION) from None
    session.show(LeaseShown(result, keys))


@verb("list")
async def list_(session: Session, words: tuple[str, ...]) -> None:
    """Lists the ids of all leases."""
    async with session.client() as client:
        try:
            session.show(await client.leases.list())
        except EtcdError as error:
            raise _failed(f"{error}", ExitCode.BAD_CONNECTION) from None


@verb("keep-alive", "<leaseID>", Switch("--once", help="renew it once"))
async def keep_alive(session: Session, words: tuple[str, ...], *, once: bool) -> None:
    """Renews a lease, until it is revoked or the command is interrupted."""
    lease = lease_of(only_word(words, "lease keep-alive command needs lease ID as argument"))
    async with session.client() as client:
        while True:
            try:
                result = await client.leases.keep_alive_once(lease)
            except LeaseNotFoundError as error:
                if once:
                    raise _failed(f"{error}", ExitCode.BAD_CONNECTION) from None
                break
            except EtcdError as error:
                raise _failed(f"{error}", ExitCode.BAD_CONNECTION) from None
            session.show(result)
            if once:
                return
            await asyncio.sleep(result.ttl / _RENEWALS_IN_A_TTL)
    if session.is_simple:
        session.line(f"lease {lease_word(lease)} expired or revoked.")


GROUP = VerbGroup(
    "lease",
    "Grants, renews, shows and revokes leases",
    {
        "grant": Entry("lease:grant", "Grants a lease"),
        "revoke": Entry("lease:revoke", "Revokes a lease"),
        "timetolive": Entry("lease:timetolive", "Shows how long a lease still lasts"),
        "list": Entry("lease:list_", "Lists all leases"),
        "keep-alive": Entry("lease:keep_alive", "Renews a lease"),
    },
)
