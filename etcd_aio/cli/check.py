"""The verbs of check: a load of puts, and whether the cluster can sustain it; or how much memory keys take in a member.

The loads and the limits are etcdctl's. It has a connection for each of its clients; here they share one client, with
as many puts under way.
"""

import asyncio
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Final

from etcd_aio import Client, EtcdError
from etcd_aio.cli.arguments import raw
from etcd_aio.cli.go_text import quoted
from etcd_aio.cli.grammar import Switch, VerbGroup, value
from etcd_aio.cli.outcome import ExitCode, Failure, bad_arguments
from etcd_aio.cli.session import Session, endpoint_of
from etcd_aio.dataclass import dataclass

_MODELS: Final = {"small": "s", "medium": "m", "large": "l", "xLarge": "xl"}
_RATES: Final = {"s": 150, "m": 1000, "l": 8000, "xl": 15000}  # puts a second
_PAIRS: Final = {"s": 10_000, "m": 100_000, "l": 1_000_000, "xl": 3_000_000}
_CLIENTS: Final = {"s": 50, "m": 200, "l": 500, "xl": 1000}
_SECONDS: Final = 60.0
_LEAST_RATE: Final = 0.9  # of that of the load
_SLOWEST: Final = 0.5  # seconds
_LARGEST_DEVIATION: Final = 0.1  # seconds
_CLEANING: Final = 30.0  # seconds for each call after the load
_BUSY: Final = 0.9  # of the time: then this process may be what is slow
_MEMORY: Final = "process_resident_memory_bytes"
_PAIR_BYTES: Final = 1024  # as etcdctl says; the prefix comes on top

GROUP = VerbGroup("check", "Checks whether the cluster can sustain a load")


@dataclass(slots=True)
class PutLoad:
    """Puts at a rate, or as fast as they go.

    Attributes:
        client: makes them.
        prefix: of the keys.
        sizes: bytes of a key behind the prefix, and of a value.
        took: the seconds of each put that has succeeded.
        errors: how often each error came.
    """

    client: Client
    prefix: bytes
    sizes: tuple[int, int]
    took: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)

    async def run(self, workers: int, next_due: Callable[[], float | None], show: Callable[[int], None]) -> float:
        """Put until there is nothing to do; returns the seconds.

        Args:
            workers: the number of puts that may be under way.
            next_due: the instant of the next put; None if there is none.
            show: told how many were made.
        """
        clock = asyncio.get_running_loop().time
        began = clock()

        async def work() -> None:
            while (due := next_due()) is not None:
                if due > clock():
                    await asyncio.sleep(due - clock())
                await self._put(clock)
                show(len(self.took) + self.errors.total())

        async with asyncio.TaskGroup() as group:
            for number in range(workers):
                group.create_task(work(), name=f"etcd-aio check {number}")
        return clock() - began

    async def _put(self, clock: Callable[[], float]) -> None:
        key_size, value_size = self.sizes
        key = self.prefix + random.randbytes(8).ljust(key_size, b"\0")
        began = clock()
        try:
            await self.client.put(key, bytes(value_size))
        except EtcdError as error:
            self.errors[error.message] += 1
        else:
            self.took.append(clock() - began)


def steady(rate: float, began: float, end: float, clock: Callable[[], float]) -> Callable[[], float | None]:
    """Instants at a rate. What could not be made in time is not made up for, as by etcdctl.

    Args:
        rate: instants in a second.
        began: the first one.
        end: none is later.
        clock: the instant of now.
    """
    following = began

    def next_due() -> float | None:
        nonlocal following
        due = max(following, clock())
        following = due + 1 / rate
        return due if due < end else None

    return next_due


def _options(prefix: str) -> tuple[Any, ...]:
    return (
        value("--load", default="s", help="the load: s (small), m (medium), l (large), xl (xLarge)"),
        value("--prefix", default=prefix, help="of the keys that are written, and deleted afterwards"),
        Switch("--auto-compact", help="compact afterwards"),
        Switch("--auto-defrag", help="defragment every endpoint afterwards"),
    )


@GROUP.verb("perf", "", *_options("/etcdctl-check-perf/"))
async def perf(session: Session, words: tuple[str, ...], **options: Any) -> None:
    """Puts keys for a minute, and fails if that is too slow."""
    model, prefix = _model(options["load"]), _prefix(options["prefix"])
    rate = _RATES[model]
    clock = asyncio.get_running_loop().time
    async with session.client() as client:
        await _check_empty(client, prefix)
        load = PutLoad(client, prefix, (256, 1024))
        bar = ProgressBar(f"{rate * int(_SECONDS)} puts")
        busy = time.process_time()
        due = steady(rate, clock(), clock() + _SECONDS, clock)
        with _telling_what_is_left(session, prefix):
            seconds = await load.run(_CLIENTS[model], due, bar.show)
        busy = time.process_time() - busy
        bar.end()
        await _clean(session, client, prefix, options)
    is_good = _show_errors(session, load)
    for line, is_passed in verdicts(load.took, rate, seconds):
        session.line(line)
        is_good = is_good and is_passed
    if busy > _BUSY * seconds:
        session.complain("etcd-aio itself was busy all the time: the cluster may sustain more than it could send")
    session.line("PASS" if is_good else "FAIL")
    if not is_good:
        raise Failure(ExitCode.ERROR)


def verdicts(took: list[float], rate: float, seconds: float) -> list[tuple[str, bool]]:
    """The lines about a load, with whether it has passed.

    Args:
        took: the seconds of each put.
        rate: the intended number of puts per second.
        seconds: the duration of the whole load.
    """
    found = len(took) / seconds if seconds > 0 else 0.0
    slowest = max(took, default=0.0)
    deviation = statistics.pstdev(took) if took else 0.0
    is_fast, is_quick, is_even = found / rate > _LEAST_RATE, slowest <= _SLOWEST, deviation <= _LARGEST_DEVIATION
    writes = f"{int(found) + 1} writes/s"
    return [
        (f"PASS: Throughput is {writes}" if is_fast else f"FAIL: Throughput too low: {writes}", is_fast),
        (
            f"PASS: Slowest request took {slowest:f}s" if is_quick else f"Slowest request took too long: {slowest:f}s",
            is_quick,
        ),
        (f"PASS: Stddev is {deviation:f}s" if is_even else f"Stddev too high: {deviation:f}s", is_even),
    ]


@GROUP.verb("datascale", "", *_options("/etcdctl-check-datascale/"), short="Shows how much memory keys take")
async def datascale(session: Session, words: tuple[str, ...], **options: Any) -> None:
    """Puts many keys, and shows by how much the memory of the first endpoint has grown."""
    model, prefix = _model(options["load"]), _prefix(options["prefix"])
    pairs, clients = _PAIRS[model], _CLIENTS[model]
    async with session.client() as client, session.client(session.connection.endpoints[0]) as first:
        await _check_empty(client, prefix)
        before = await _memory(session, first, "before")
        session.line(
            f"Start data scale check for work load [{pairs} key-value pairs, {_PAIR_BYTES} bytes per key-value, "
            f"{clients} concurrent clients]."
        )
        load = PutLoad(client, prefix, (512, 512))
        bar = ProgressBar(f"{pairs} puts")
        left = iter(range(pairs))
        with _telling_what_is_left(session, prefix):
            await load.run(clients, lambda: None if next(left, None) is None else 0.0, bar.show)
        bar.end()
        after = await _memory(session, first, "after")
        await _clean(session, client, prefix, options)
    if not _show_errors(session, load):
        raise Failure(ExitCode.ERROR)
    session.line(f"PASS: Approximate system memory used : {(after - before) / 2**20:.2f} MB.")


async def _memory(session: Session, first: Client, when: str) -> float:
    """The bytes of memory that a member has."""
    try:
        text = await first.maintenance.metrics(await endpoint_of(first))
    except EtcdError as error:
        session.complain(f"Error: {error.message}")
        text = ""
    found = next((line for line in text.splitlines() if line.startswith(f"{_MEMORY} ")), "")
    try:
        return float(found.partition(" ")[2])
    except ValueError:
        session.line(f"FAIL: Could not read {_MEMORY} {when} the put operations.")
        raise Failure(ExitCode.ERROR) from None


def _model(word: str) -> str:
    """The load of a word.

    Raises:
        Failure: there is no such load.
    """
    model = _MODELS.get(word, word)
    if model not in _RATES:
        raise Failure(ExitCode.BAD_FEATURE, f"unknown load option {word}")
    return model


def _prefix(word: str) -> bytes:
    if not word:
        raise bad_arguments("--prefix must not be empty: all keys below it are deleted afterwards")
    return raw(word)


async def _check_empty(client: Client, prefix: bytes) -> None:
    """Refuse a prefix that has keys, which the verb would delete.

    Raises:
        Failure: the prefix has keys.
    """
    if await client.range(prefix=prefix, limit=1):
        text = f"prefix {quoted(prefix)} has keys. Delete with etcd-aio del --prefix {quoted(prefix)} first"
        raise Failure(ExitCode.INVALID_INPUT, text)


@contextmanager
def _telling_what_is_left(session: Session, prefix: bytes) -> Iterator[None]:
    """Say which keys are left if the block is interrupted: to delete them could take longer than a user waits."""
    try:
        yield
    except asyncio.CancelledError:
        session.complain(f"interrupted: delete the keys with etcd-aio del --prefix {quoted(prefix)}")
        raise


async def _clean(session: Session, client: Client, prefix: bytes, options: dict[str, Any]) -> None:
    """Delete the keys, and what else is to be done behind them."""
    timeout = session.connection.timeout_or(_CLEANING)
    deleted = await client.delete(prefix=prefix, timeout=timeout)
    if options["auto_compact"]:
        session.line(f"Compacting with revision {deleted.revision}")
        await client.compact(deleted.revision, physical=True, timeout=timeout)
        session.line(f"Compacted with revision {deleted.revision}")
    for endpoint in client.endpoints if options["auto_defrag"] else ():
        session.line(f"Defragmenting {quoted(endpoint)}")
        await client.maintenance.defragment(endpoint, timeout=timeout)
        session.line(f"Defragmented {quoted(endpoint)}")


def _show_errors(session: Session, load: PutLoad) -> bool:
    """Print the errors; returns whether there were none."""
    if load.errors:
        session.line("FAIL: too many errors")
    for text, count in load.errors.most_common():
        session.line(f"FAIL: ERROR({text}) -> {count}")
    return not load.errors


class ProgressBar:
    """Shows the progress of a load on stderr, if that is a terminal.

    Args:
        whole: the goal, such as `1000 puts`.
    """

    def __init__(self, whole: str) -> None:
        self._whole = whole
        self._is_shown = sys.stderr.isatty()
        self._then = 0.0

    def show(self, count: int) -> None:
        """Show how many were made, at most once a second."""
        now = time.monotonic()
        if self._is_shown and now - self._then >= 1.0:
            self._then = now
            sys.stderr.write(f"\r{count} of {self._whole} ")
            sys.stderr.flush()

    def end(self) -> None:
        """Leave the line."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
