"""The verb top: asks every member again and again, and shows the answers on the terminal, or as lines of JSON."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import asdict
from typing import Any, TypeVar

from etcd_aio import Client, EtcdError, Watcher
from etcd_aio.base import start_task
from etcd_aio.cli.arguments import exactly, raw
from etcd_aio.cli.endpoint import endpoints_of, of_cluster
from etcd_aio.cli.grammar import Switch, value, verb
from etcd_aio.cli.lock import seconds
from etcd_aio.cli.outcome import ExitCode, Failure, bad_arguments
from etcd_aio.cli.session import Session, endpoint_of
from etcd_aio.cli.top_metrics import Metrics, read_metrics
from etcd_aio.cli.top_model import Counters, MemberAnswer, Top, TopSnapshot
from etcd_aio.types import MemberHealth

_T = TypeVar("_T")


@verb(
    "top",
    "",
    of_cluster(),
    value("--interval", default="2s", help="time between two refreshes, and limit for the answers"),
    value("--watch", default=(), multiple=True, help="prefix whose changes are counted; may be repeated"),
    Switch("--once", help="print one refresh and end"),
)
async def top(session: Session, words: tuple[str, ...], **options: Any) -> None:
    """Shows the members and their load, again and again; a member that does not answer stays, with its age.

    A line of JSON for each refresh if stdout is not a terminal, or with --write-out=json.
    """
    exactly(words, 0, "top accepts no arguments")
    session.check_format()
    interval = seconds(options["interval"], "--interval")
    if interval <= 0:
        raise bad_arguments("--interval must be above 0")
    try:
        endpoints = await endpoints_of(session, options["cluster"])
        async with _looking(session, endpoints, options["watch"], interval) as looks:
            if session.format == "json" or not _is_screen():
                await _lines(session, looks, is_once=options["once"], interval=interval)
            else:
                await _screen(looks, is_once=options["once"], interval=interval)
    except asyncio.CancelledError:
        raise Failure(ExitCode.OK) from None  # it is left by an interrupt, as pagers are


def _is_screen() -> bool:
    if not sys.stdout.isatty():
        return False
    from rich.console import Console

    return not Console().is_dumb_terminal


async def _lines(session: Session, looks: AsyncIterator[TopSnapshot], *, is_once: bool, interval: float) -> None:
    async for snapshot in looks:
        session.line(json.dumps({"time": round(time.time(), 3), **asdict(snapshot)}))
        if is_once:
            return
        await asyncio.sleep(interval)


async def _screen(looks: AsyncIterator[TopSnapshot], *, is_once: bool, interval: float) -> None:
    from rich.console import Console
    from rich.live import Live

    from etcd_aio.cli.top_screen import screen

    if is_once:
        Console().print(screen(await anext(looks)))
        return
    with Live(screen=True, auto_refresh=False) as live:
        async for snapshot in looks:
            live.update(screen(snapshot), refresh=True)
            await asyncio.sleep(interval)


# Looking.


@asynccontextmanager
async def _looking(
    session: Session, endpoints: Sequence[str], prefixes: Sequence[str], interval: float
) -> AsyncIterator[AsyncIterator[TopSnapshot]]:
    """The snapshots, each made when the next is requested."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(session.client())
        clients = {one: await stack.enter_async_context(session.client(one)) for one in endpoints}
        counters = {prefix: Counters() for prefix in prefixes}
        watchers = [client.watch(prefix=raw(prefix)) for prefix in prefixes]
        tasks = [
            start_task(_count(watcher, counters[prefix]), name=f"etcd-aio top {prefix}")
            for prefix, watcher in zip(prefixes, watchers, strict=True)
        ]
        try:
            async with aclosing(_snapshots(client, clients, counters, watchers, interval)) as snapshots:
                yield snapshots
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _snapshots(
    client: Client,
    clients: dict[str, Client],
    counters: dict[str, Counters],
    watchers: Sequence[Watcher],
    interval: float,
) -> AsyncGenerator[TopSnapshot, None]:
    clock = asyncio.get_running_loop().time
    model = Top(tuple(clients), clock())
    while True:
        for watcher in watchers:
            with suppress(EtcdError):  # it is not entered yet, or has ended
                await watcher.request_progress()
        members, alarms, answers = await asyncio.gather(
            _or_none(client.cluster.members(timeout=interval)),
            _or_none(client.maintenance.alarms(timeout=interval)),
            asyncio.gather(*(_answer(one, interval) for one in clients.values())),
        )
        yield model.look(clock(), dict(zip(clients, answers, strict=True)), members, alarms, counters)


async def _answer(client: Client, limit: float) -> MemberAnswer:
    """Ask a member for its status, and for what it may serve elsewhere or nowhere: its metrics and its readiness."""
    clock = asyncio.get_running_loop().time
    reading = start_task(_documents(client, limit), name="etcd-aio top documents")
    try:
        began = clock()
        status = await client.maintenance.status(await endpoint_of(client), timeout=limit)
        seconds = clock() - began
        metrics, readiness = await reading
    except EtcdError as error:
        return MemberAnswer(None, error=error.message)
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    return MemberAnswer(status, seconds, metrics=metrics, readiness=readiness)


async def _documents(client: Client, limit: float) -> tuple[Metrics | None, MemberHealth | None]:
    endpoint = await endpoint_of(client)
    text, readiness = await asyncio.gather(
        _or_none(client.maintenance.metrics(endpoint, timeout=limit)),
        _or_none(client.maintenance.readyz(endpoint, timeout=limit)),
    )
    return None if text is None else read_metrics(text), readiness


async def _or_none(call: Awaitable[_T]) -> _T | None:
    try:
        return await call
    except EtcdError:
        return None


async def _count(watcher: Watcher, counters: Counters) -> None:
    """Count the events of a watch, until it is cancelled or ends by an error."""
    try:
        async with watcher:
            counters.revision = watcher.revision
            async for batch in watcher.batches():
                counters.add([len(event.key) + len(event.value) for event in batch.events], batch.revision)
    except EtcdError as error:
        counters.error = error.message
