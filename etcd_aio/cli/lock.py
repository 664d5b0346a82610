"""The verb lock: holds a lock until it is interrupted, or while a command runs."""

from contextlib import suppress
from typing import Any

from etcd_aio import Client
from etcd_aio.cli.arguments import raw
from etcd_aio.cli.child import run_while_held
from etcd_aio.cli.go_text import as_text
from etcd_aio.cli.grammar import Switch, value, verb
from etcd_aio.cli.outcome import ExitCode, Failure, bad_arguments
from etcd_aio.cli.session import Session
from etcd_aio.config import read_option
from etcd_aio.errors import LockTimeoutError


def seconds(text: str, flag: str) -> float:
    """The seconds of a duration: `10`, `10s`, `1m`.

    Raises:
        ConfigError: the text is not a duration.
    """
    return float(read_option("connect_timeout", text, flag) or 0.0)


def grace_within(ttl: int, text: str) -> float:
    """The seconds from SIGTERM to SIGKILL, which is also how long before its end the lease counts as lost.

    Raises:
        ConfigError: the text is not a duration.
    """
    return min(seconds(text, "--grace"), ttl / 3)


@verb(
    "lock",
    "<lockname> [--] [command...]",
    value("--ttl", default="10", help="seconds until the lock is free after a crash of this process"),
    value("--wait", default="", help="give up after this time, such as 30s"),
    Switch("--try", help="give up at once if the lock is taken"),
    value("--on-lost", default="term", help="what the command gets when the lock is lost: term, kill or ignore"),
    value("--grace", default="5s", help="time between SIGTERM and SIGKILL; at most a third of the ttl"),
    value("--conflict-exit", kind=int, default=75, help="the exit code if the lock was not acquired"),
    runs_command=True,
)
async def lock(session: Session, words: tuple[str, ...], **options: Any) -> None:
    """Acquires a lock, and runs a command while it is held.

    The command gets ETCD_LOCK_KEY, ETCD_LOCK_REV, ETCD_LOCK_LEASE and ETCD_LOCK_FENCING_TOKEN. The exit code is that of
    the command, 128 and the signal that ended it, or 5 if the lock was lost. Without a command an interrupt ends it
    with 0.
    """
    if not words:
        raise bad_arguments("lock takes a lock name argument and an optional command to execute")
    if options["on_lost"] not in ("term", "kill", "ignore"):
        raise bad_arguments("--on-lost must be term, kill or ignore")
    async with session.client() as client:
        await _hold(session, client, words[0], (*words[1:], *options["command"]), options)


async def _hold(session: Session, client: Client, name: str, command: tuple[str, ...], options: dict[str, Any]) -> None:
    ttl = max(1, round(seconds(options["ttl"], "--ttl")))
    timeout = seconds(options["wait"], "--wait") if options["wait"] else None
    grace = grace_within(ttl, options["grace"])
    made = client.lock(raw(name), ttl=ttl, timeout=timeout, value="", margin=grace, on_lost="signal")
    session.interrupted = Failure(ExitCode.INTERRUPTED, "interrupted while waiting for the lock")
    if options["try"]:
        await made.try_acquire()
    else:
        with suppress(LockTimeoutError):
            await made.acquire()
    if not made.is_held:
        raise Failure(options["conflict_exit"], "the lock is taken")
    session.interrupted = Failure(ExitCode.INTERRUPTED if command else ExitCode.OK)
    try:
        kept = await client.range(made.key)
        if not kept:
            raise Failure(ExitCode.ERROR, "lock lost on init")
        if not command:
            session.show(kept)
            await made.lost()
            raise Failure(ExitCode.ERROR, "session expired")
        environ = {
            "ETCD_LOCK_KEY": as_text(made.key),
            "ETCD_LOCK_REV": f"{kept.revision}",
            "ETCD_LOCK_LEASE": f"{kept[0].lease:x}",
            "ETCD_LOCK_FENCING_TOKEN": f"{made.fencing_token}",
        }
        await run_while_held(command, environ, made, on_lost=options["on_lost"], grace=grace)
    finally:
        if made.is_held:
            await made.release()
