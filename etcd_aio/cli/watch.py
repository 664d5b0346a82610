"""The verb watch: prints events, and runs a command for each."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import click

from etcd_aio import Client, EtcdError, Header, Watcher
from etcd_aio.base import start_task
from etcd_aio.cli.arguments import raw
from etcd_aio.cli.follow import Losses, follow, youngest
from etcd_aio.cli.go_text import as_text, quoted, words_of
from etcd_aio.cli.grammar import Switch, value, verb
from etcd_aio.cli.outcome import ExitCode, Failure, bad_arguments
from etcd_aio.cli.results import Watched
from etcd_aio.cli.session import Session
from etcd_aio.cli.watch_command import Commands
from etcd_aio.errors import CompactedError


@verb(
    "watch",
    "[key or prefix] [range_end] [-- command...]",
    Switch("--interactive", "-i", help="read lines from stdin: watch [options] <key>, or progress"),
    Switch("--prefix", help="all keys that begin with the key"),
    value("--rev", kind=int, default=0, help="the first revision"),
    Switch("--prev-kv", help="print the key as it was before, too"),
    Switch("--progress-notify", help="print progress notifications: the revision that the watch has reached"),
    Switch("--follow", help="a line for each change, with the value before"),
    value("--decode", default="", help="kubernetes: show the values that its API server writes as its objects"),
    value("--last", kind=int, default=0, help="with --follow: print so many keys first, those that were changed last"),
    value("--env", default="etcdctl", help="the variables of the command: as etcdctl has them, or raw"),
    value(
        "--jobs", kind=int, default=1, help="how many commands run at once; with 1 they run in the order of the events"
    ),
    runs_command=True,
    completes="keys",
)
async def watch(session: Session, words: tuple[str, ...], **options: Any) -> None:
    """Follows the changes of keys.

    The command after `--` runs for each event, with ETCD_WATCH_REVISION, ETCD_WATCH_EVENT_TYPE, ETCD_WATCH_KEY and
    ETCD_WATCH_VALUE. ETCDCTL_WATCH_KEY and ETCDCTL_WATCH_RANGE_END stand for the words.
    """
    session.decode(options["decode"])
    if options["interactive"]:
        await _interactive(session)
        return
    _check(options)
    if options["follow"]:
        await _follow(session, _keys(_range(words), options), options)
        return
    async with session.client() as client:
        watcher = _watcher(client, _range(words), options)
        await _print(session, client, watcher, _commands(options))


def _check(options: dict[str, Any]) -> None:
    if options["env"] not in ("etcdctl", "raw"):
        raise bad_arguments("--env must be etcdctl or raw")
    if options["jobs"] < 1 or options["last"] < 0:
        raise bad_arguments("--jobs must be at least 1, and --last at least 0")
    if options["follow"] and any(options[name] for name in ("command", "prev_kv", "progress_notify", "decode")):
        raise bad_arguments("`--follow` excludes a command, `--prev-kv`, `--progress-notify` and `--decode`")
    if options["last"] and (not options["follow"] or options["rev"]):
        raise bad_arguments("`--last` needs `--follow`, and excludes `--rev`")


def _commands(options: dict[str, Any]) -> Commands:
    return Commands(options["command"], options["env"], options["jobs"])


async def _follow(session: Session, keys: dict[str, Any], options: dict[str, Any]) -> None:
    losses = Losses(session)
    async with session.client(observers=[losses]) as client:
        first, revision = await youngest(client, keys, options["last"]) if options["last"] else ((), 0)
        since = revision + 1 if revision else max(0, options["rev"])
        await follow(session, client.watch(**keys, start_revision=since, prev_kv=True), losses, first)


def _range(words: tuple[str, ...]) -> tuple[str, ...]:
    """The key, and perhaps the end of the range: the words, or the variables."""
    key, end = os.environ.get("ETCDCTL_WATCH_KEY", ""), os.environ.get("ETCDCTL_WATCH_RANGE_END", "")
    if not key and end:
        raise bad_arguments(f"ETCDCTL_WATCH_KEY is empty but got ETCDCTL_WATCH_RANGE_END={quoted(end)}")
    if key and words:
        raise bad_arguments("bad number of arguments (found conflicting environment key)")
    found = words or ((key, end) if end else (key,) if key else ())
    if not found:
        raise bad_arguments("bad number of arguments")
    return found


def _keys(words: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
    """The arguments that name the keys in calls of the client."""
    key, end = raw(words[0]), raw(words[1]) if len(words) == 2 else b""
    if end and options["prefix"]:
        raise bad_arguments("`range_end` and `--prefix` are mutually exclusive")
    if options["prefix"]:
        return {"prefix": key}
    if end == b"\0":
        return {"from_key": key}
    return {"key": key, "range_end": end} if end else {"key": key}


def _watcher(client: Client, words: tuple[str, ...], options: dict[str, Any]) -> Watcher:
    return client.watch(
        **_keys(words, options),
        start_revision=max(0, options["rev"]),
        prev_kv=options["prev_kv"],
        progress_notify=options["progress_notify"],
    )


async def _print(
    session: Session,
    client: Client,
    watcher: Watcher,
    commands: Commands,
    on_begin: Callable[[], object] = lambda: None,
) -> None:
    """Print the events until the watch ends.

    Raises:
        Failure: the server has ended it, or the command has failed.
        EtcdError: no member has answered before it began.
    """
    # A batch does not say which member has sent it; fields and JSON show the member that answers now.
    header = Header() if session.is_simple else (await client.cluster.members(serializable=True)).header
    try:
        async with watcher:
            on_begin()
            async for batch in watcher.batches():
                if not batch.events:
                    session.line(f"progress notify: {batch.revision}")
                stamp = Header(header.cluster_id, header.member_id, batch.revision, header.raft_term)
                session.show(Watched(stamp, batch.events))
                for event in batch.events:
                    await commands.run(event, batch.revision)
    except EtcdError as error:
        session.complain(f"watch was canceled ({error.message})")
        compacted = error.compact_revision if isinstance(error, CompactedError) else 0
        session.show(Watched(replace(header, revision=0) if compacted else Header(), (), True, compacted))
        raise Failure(ExitCode.INTERRUPTED, "watch is canceled by the server") from None
    finally:
        await commands.aclose()


# Interactive.


async def _interactive(session: Session) -> None:
    """Watch what the lines on stdin say, until stdin ends.

    Raises:
        Failure: stdin has ended.
    """
    watches = _Watches(session)
    async with session.client() as client:
        try:
            async for line in _lines():
                try:
                    words = [as_text(word) for word in words_of(line)]
                    match words[:1]:
                        case ["watch"]:
                            await watches.add(client, *_parsed(client, words[1:]))
                        case ["progress"]:
                            await watches.request_progress()
                        case _:
                            raise Failure(ExitCode.INVALID_INPUT, "watch and progress supported")
                except (Failure, click.UsageError, ValueError, EtcdError) as error:
                    session.complain(f"Invalid command {as_text(line)} ({_reason(error)})")
        finally:
            await watches.aclose()
    raise Failure(ExitCode.INVALID_INPUT, "error reading watch request line: EOF")


class _Watches:
    """The watches of the lines on stdin; each prints in a task of its own, and its end is not that of the others.

    Args:
        session: prints.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._live: dict[Watcher, None] = {}
        self._printing: list[asyncio.Task[None]] = []

    async def add(self, client: Client, watcher: Watcher, commands: Commands) -> None:
        """Wait until a watch has begun, or has failed, which is complained about."""
        settled = asyncio.Event()

        def begin() -> None:
            self._live[watcher] = None
            settled.set()

        async def run() -> None:
            try:
                await _print(self._session, client, watcher, commands, begin)
            except (Failure, EtcdError) as error:
                self._session.complain(_reason(error))
            finally:
                self._live.pop(watcher, None)
                settled.set()

        self._printing.append(start_task(run(), name="etcd-aio watch"))
        await settled.wait()

    async def request_progress(self) -> None:
        """Request the progress of all watches that have not ended."""
        for watcher in tuple(self._live):
            with suppress(EtcdError):  # it has ended, and is about to say so
                await watcher.request_progress()

    async def aclose(self) -> None:
        """End all of them."""
        for task in self._printing:
            task.cancel()
        await asyncio.gather(*self._printing, return_exceptions=True)


def _parsed(client: Client, words: list[str]) -> tuple[Watcher, Commands]:
    """The watch of a line, and its command."""
    found = watch.of_line(words)
    _check(found.options)
    if any(found.options[name] for name in ("interactive", "follow", "decode")):
        raise bad_arguments("`--interactive`, `--follow` and `--decode` are not for a line")
    return _watcher(client, _range(found.words), found.options), _commands(found.options)


def _reason(error: Exception) -> str:
    return error.format_message() if isinstance(error, click.UsageError) else f"{error}"


def _is_waited_for() -> bool:
    """Whether stdin is a pipe, a socket or a terminal, and no file."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except OSError:  # none of the system
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode)


async def _lines() -> AsyncIterator[bytes]:
    """The lines of stdin, as they come. A file, which a loop cannot wait for, is read at once."""
    if not _is_waited_for():
        for line in sys.stdin.buffer.read().splitlines():
            yield line
        return
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    try:
        while line := await reader.readline():
            yield line.rstrip(b"\n")
    finally:
        transport.close()
