"""The verbs of leases."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from etcd_aio.cli.arguments import lease_of, only_word, whole
from etcd_aio.cli.format_simple import lease_word
from etcd_aio.cli.grammar import Switch, VerbGroup
from etcd_aio.cli.outcome import ExitCode, Failure
from etcd_aio.cli.results import Done, LeaseShown
from etcd_aio.cli.session import Session
from etcd_aio.errors import EtcdError, LeaseNotFoundError

_RENEWALS_IN_A_TTL: Final = 3  # as etcd's Go client

GROUP = VerbGroup("lease", "Grants, renews, shows and revokes leases")


@contextmanager
def _failing(code: int, text: str = "{}") -> Iterator[None]:
    """End the command with an exit code and a text if a call of the block fails."""
    try:
        yield
    except EtcdError as error:
        raise Failure(code, text.format(error)) from None


@GROUP.verb("grant", "<ttl>", short="Grants a lease")
async def grant(session: Session, words: tuple[str, ...]) -> None:
    """Grants a lease of so many seconds."""
    ttl = whole(only_word(words, "lease grant command needs TTL argument"), "bad TTL")
    with _failing(ExitCode.ERROR, "failed to grant lease ({})"):
        session.show(await session.call(lambda client: client.leases.grant(ttl)))


@GROUP.verb("revoke", "<leaseID>", short="Revokes a lease")
async def revoke(session: Session, words: tuple[str, ...]) -> None:
    """Revokes a lease, which deletes its keys."""
    lease = lease_of(only_word(words, "lease revoke command needs 1 argument"))
    with _failing(ExitCode.ERROR, "failed to revoke lease ({})"):
        result = await session.call(lambda client: client.leases.revoke(lease))
    session.show(Done(f"lease {lease_word(lease)} revoked", result.header))


@GROUP.verb("timetolive", "<leaseID>", Switch("--keys", help="print the keys that are attached to it, too"))
async def timetolive(session: Session, words: tuple[str, ...], *, keys: bool) -> None:
    """Shows how long a lease still lasts."""
    lease = lease_of(only_word(words, "lease timetolive command needs lease ID as argument"))
    with _failing(ExitCode.BAD_CONNECTION):
        result = await session.call(lambda client: client.leases.time_to_live(lease, keys=keys))
    session.show(LeaseShown(result, keys))


@GROUP.verb("list", short="Lists all leases")
async def list_(session: Session, words: tuple[str, ...]) -> None:
    """Lists the ids of all leases."""
    with _failing(ExitCode.BAD_CONNECTION):
        session.show(await session.call(lambda client: client.leases.list()))


@GROUP.verb("keep-alive", "<leaseID>", Switch("--once", help="renew it once"), short="Renews a lease")
async def keep_alive(session: Session, words: tuple[str, ...], *, once: bool) -> None:
    """Renews a lease, until it is revoked or the command is interrupted."""
    lease = lease_of(only_word(words, "lease keep-alive command needs lease ID as argument"))
    with _failing(ExitCode.BAD_CONNECTION):
        async with session.client() as client:
            while True:
                try:
                    result = await client.leases.keep_alive_once(lease)
                except LeaseNotFoundError:
                    if once:
                        raise
                    break
                session.show(result)
                if once:
                    return
                await asyncio.sleep(result.ttl / _RENEWALS_IN_A_TTL)
    if session.is_simple:
        session.line(f"lease {lease_word(lease)} expired or revoked.")
