"""The verb elect: takes part in an election, or observes it."""

from contextlib import suppress
from typing import Final

from etcd_aio import Client, Header, KeyValue, RangeResult
from etcd_aio.cli.arguments import raw
from etcd_aio.cli.child import run_while_held
from etcd_aio.cli.go_text import as_text
from etcd_aio.cli.grammar import Switch, value, verb
from etcd_aio.cli.lock import grace_within, seconds
from etcd_aio.cli.outcome import ExitCode, Failure, bad_arguments
from etcd_aio.cli.session import Session
from etcd_aio.errors import CompactedError

_GRACE: Final = "5s"  # as of `lock`


@verb(
    "elect",
    "<election-name> [proposal] [-- command...]",
    Switch("--listen", "-l", help="print each leader"),
    value("--ttl", default="60", help="seconds until another candidate leads after a crash of this process"),
    runs_command=True,
)
async def elect(session: Session, words: tuple[str, ...], *, listen: bool, ttl: str, command: tuple[str, ...]) -> None:
    """Stands in an election and leads until it is interrupted, or while a command runs; or prints the leaders."""
    if len(words) not in (1, 2):
        raise bad_arguments("elect takes one election name argument and an optional proposal argument")
    if listen and len(words) == 2:
        raise bad_arguments("proposal given but -l is set")
    if not listen and len(words) == 1 and not command:
        raise bad_arguments("no proposal argument but -l not set")
    async with session.client() as client:
        if listen:
            await _observe(session, client, raw(words[0]))
        else:
            proposal = raw(words[1]) if len(words) == 2 else b""
            await _lead(session, client, raw(words[0]), proposal, max(1, round(seconds(ttl, "--ttl"))), command)


async def _observe(session: Session, client: Client, name: bytes) -> None:
    async with client.election(name).changes() as leaders:
        async for leader in leaders:
            if leader is None:
                continue
            kv = KeyValue(leader.key, leader.value, leader.fencing_token, leader.revision, lease=leader.lease)
            session.show(await _with_header(session, client, kv))


async def _with_header(session: Session, client: Client, kv: KeyValue) -> RangeResult:
    """The key of a leader, read again if the format shows its version and the header of a server."""
    if not session.is_simple:
        with suppress(CompactedError):
            found = await client.range(kv.key, revision=kv.mod_revision)
            return RangeResult(found.header, found.kvs)
    return RangeResult(Header(revision=kv.mod_revision), (kv,))


async def _lead(
    session: Session, client: Client, name: bytes, proposal: bytes, ttl: int, command: tuple[str, ...]
) -> None:
    grace = grace_within(ttl, _GRACE)
    election = client.election(name, ttl=ttl, margin=grace, on_lost="signal")
    session.interrupted = Failure(ExitCode.INTERRUPTED, "interrupted while waiting to be elected")
    async with election.lead(proposal) as leadership:
        session.interrupted = Failure(ExitCode.INTERRUPTED if command else ExitCode.OK)
        kept = await client.range(leadership.key)
        if not command:
            session.show(kept)
            await leadership.lost()
            raise Failure(ExitCode.ERROR, "elect: session expired")
        environ = {
            "ETCD_ELECT_KEY": as_text(leadership.key),
            "ETCD_ELECT_FENCING_TOKEN": f"{leadership.fencing_token}",
        }
        await run_while_held(command, environ, leadership, grace=grace)
