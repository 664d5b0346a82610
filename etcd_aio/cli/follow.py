"""`watch --follow`: a line for each change, for people; losses of the connection are reported on stderr."""

import sys
from datetime import datetime
from typing import Any

from etcd_aio import Client, EtcdError, Event, EventType, KeyValue, Watcher
from etcd_aio.cli.follow_text import line_of
from etcd_aio.cli.outcome import ExitCode, Failure
from etcd_aio.cli.session import Session
from etcd_aio.observing import Observer, StreamChange


class Losses(Observer):
    """Tells when the watch is lost, and where it goes on.

    Args:
        session: prints.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.revision = 0
        self._is_lost = False

    def stream_changed(self, change: StreamChange) -> None:
        """Print a line."""
        if change.event == "lost" and not self._is_lost:
            self._is_lost = True
            self._session.complain(f"-- {change.endpoint} lost --")
        elif change.event == "resumed" and self._is_lost:
            self._is_lost = False
            self._session.complain(f"-- resumed on {change.endpoint} after r{self.revision} --")


async def youngest(client: Client, keys: dict[str, Any], number: int) -> tuple[tuple[KeyValue, ...], int]:
    """The keys that were changed last, the oldest of them first; and the revision of the store.

    Args:
        client: reads.
        keys: the arguments that name the keys.
        number: the most keys.
    """
    found = await client.range(**keys, sort_by="mod_revision", sort_order="descend", limit=number)
    return tuple(reversed(found.kvs)), found.revision


async def follow(session: Session, watcher: Watcher, losses: Losses, first: tuple[KeyValue, ...]) -> None:
    """Print the changes until the watch ends.

    Args:
        session: prints.
        watcher: the watch, with the keys as they were before.
        losses: gets to know how far the watch is.
        first: keys that are printed before, as if they were put now.

    Raises:
        Failure: the server has ended the watch.
    """
    is_coloured = has_colours()
    for kv in first:
        session.line(line_of(Event(EventType.PUT, kv), "-" * 12, is_coloured=is_coloured))
    try:
        async with watcher:
            losses.revision = watcher.revision
            async for event in watcher:
                stamp = datetime.now().astimezone().strftime("%H:%M:%S.%f")[:-3]
                session.line(line_of(event, stamp, is_coloured=is_coloured))
                losses.revision = event.revision
    except EtcdError as error:
        raise Failure(ExitCode.INTERRUPTED, f"the watch has ended: {error.message}") from None


def has_colours() -> bool:
    """Whether stdout is a terminal that shows colours."""
    if not sys.stdout.isatty():
        return False
    from rich.console import Console

    return Console().color_system is not None and not Console().no_color
