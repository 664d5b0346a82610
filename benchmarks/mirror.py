"""Mirrors beside `etcdctl make-mirror`, on two servers, in turns: `python -m benchmarks.mirror`.

changes    small revisions, one put each, which both find in the history of the source: revisions in a second
history    the same changes, read and not written: etcd sends old revisions by a thousand in each tenth of a second
base       all keys of a prefix, to a destination without any: keys in a second; beside a scan of the same keys, and
           beside txns of as many puts, as many at a time: what the destination takes
equal      the same to a destination that has them all: what a mirror does after a compaction that it has missed
follow     the base of `follow`, which writes nothing

Both servers and the mirror share the machine. The time ends when the destination has the last key.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from benchmarks.environments import GoProgram, UnavailableError, default_cache
from etcd_aio import Client, op
from etcd_aio.mirror import Checkpoint, Mirror, follow
from etcd_aio.testing import EtcdServer

VALUE: Final = b"x" * 256
FLAGS: Final = ("--unsafe-no-fsync", "--quota-backend-bytes=8000000000")
_LOOK_EVERY: Final = 0.005  # seconds
_TXN_OPS: Final = 126  # as a mirror has them
_IN_FLIGHT: Final = 8  # as a mirror has them


class Bench:
    """The two servers, and what is measured on them."""

    def __init__(self, source: Client, destination: Client, servers: tuple[str, str], etcdctl: list[str]) -> None:
        self.source, self.destination = source, destination
        self.servers = servers
        self.etcdctl = etcdctl
        self.copies = 0

    async def fill(self, prefix: str, count: int) -> None:
        """Put keys at the source, a hundred in a txn."""

        async def work(worker: int) -> None:
            for start in range(worker * 100, count, 800):
                puts = [op.put(f"{prefix}{at:08}", VALUE) for at in range(start, min(start + 100, count))]
                await self.source.txn().then(*puts).commit()

        await asyncio.gather(*(work(worker) for worker in range(8)))

    async def change(self, prefix: str, count: int) -> None:
        """Put keys at the source, each in a revision of its own."""

        async def work(worker: int) -> None:
            for at in range(worker, count, 64):
                await self.source.put(f"{prefix}{at:08}", VALUE)

        await asyncio.gather(*(work(worker) for worker in range(64)))

    async def until_there(self, prefix: str, count: int) -> None:
        """Wait until the destination has so many keys."""
        while (await self.destination.range(prefix=prefix, count_only=True)).count < count:  # noqa: ASYNC110 - another process
            await asyncio.sleep(_LOOK_EVERY)

    def next_copy(self) -> str:
        """A prefix of the destination without keys."""
        self.copies += 1
        return f"copy-{self.copies}/"

    @asynccontextmanager
    async def mirror(self, prefix: str, to_prefix: str) -> AsyncIterator[None]:
        """Run a mirror of this project."""
        copy = Mirror(self.source, self.destination, prefix=prefix, to_prefix=to_prefix, takeover_delay=0)
        task = asyncio.create_task(copy.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @asynccontextmanager
    async def make_mirror(self, prefix: str, to_prefix: str, *arguments: str) -> AsyncIterator[None]:
        """Run `etcdctl make-mirror`."""
        source, destination = self.servers
        child = await asyncio.create_subprocess_exec(
            *self.etcdctl,
            *(f"--endpoints={source}", "make-mirror", f"--prefix={prefix}", f"--dest-prefix={to_prefix}"),
            *arguments,
            destination.removeprefix("http://"),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            yield
        finally:
            child.kill()
            await child.wait()

    async def seconds(self, copying: Callable[[str], Awaitable[None]]) -> float:
        """The duration of one copy to a new prefix."""
        to_prefix = self.next_copy()
        began = time.perf_counter()
        await copying(to_prefix)
        return time.perf_counter() - began


async def changes(bench: Bench, count: int, rounds: int) -> None:
    """Copy small revisions out of the history."""
    prefix = "changes/"
    head = (await bench.source.range("k")).header
    before = head.revision
    await bench.change(prefix, count)

    async def ours(to_prefix: str) -> None:
        checkpoint = Checkpoint(head.cluster_id, prefix.encode(), to_prefix.encode(), before, True, "benchmark", 1)
        await bench.destination.put(f"__etcd_aio/mirror/{to_prefix}", checkpoint.encode())
        async with bench.mirror(prefix, to_prefix):
            await bench.until_there(to_prefix, count)

    async def theirs(to_prefix: str) -> None:
        async with bench.make_mirror(prefix, to_prefix, f"--rev={before + 1}"):
            await bench.until_there(to_prefix, count)

    async def history(_: str) -> None:
        seen = 0
        async with follow(bench.source, prefix, since=before) as batches:
            while seen < count:
                seen += len((await anext(batches)).changes)

    mine, other, read = [], [], []
    for _ in range(rounds):
        mine.append(count / await bench.seconds(ours))
        read.append(count / await bench.seconds(history))
        if bench.etcdctl:
            other.append(count / await bench.seconds(theirs))
    show("changes", "revisions/s", mine, other, "make-mirror")
    show("changes", "revisions/s", mine, read, "history")


async def base(bench: Bench, count: int, rounds: int) -> None:
    """Copy all keys to a destination without any, and to one that has them."""
    prefix = "base/"
    await bench.fill(prefix, count)

    async def scan(_: str) -> None:
        async for _page in bench.source.scan(prefix=prefix).pages():
            pass

    async def followed(_: str) -> None:
        async with follow(bench.source, prefix) as batches:
            while batches.revision == 0:
                await anext(batches)

    async def ours(to_prefix: str) -> None:
        copy = Mirror(bench.source, bench.destination, prefix=prefix, to_prefix=to_prefix, takeover_delay=0)
        task = asyncio.create_task(copy.run())
        await copy.wait_revision(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def puts(to_prefix: str) -> None:
        async def work(worker: int) -> None:
            for start in range(worker * _TXN_OPS, count, _IN_FLIGHT * _TXN_OPS):
                keys = range(start, min(start + _TXN_OPS, count))
                await bench.destination.txn().then(*(op.put(f"{to_prefix}{at:08}", VALUE) for at in keys)).commit()

        await asyncio.gather(*(work(worker) for worker in range(_IN_FLIGHT)))

    async def equal(_: str) -> None:
        last = f"copy-{bench.copies - 1}/"  # of `ours`, just before
        await bench.destination.delete(f"__etcd_aio/mirror/{last}")
        await ours(last)

    async def theirs(to_prefix: str) -> None:
        async with bench.make_mirror(prefix, to_prefix):
            await bench.until_there(to_prefix, count)

    kinds: dict[str, Callable[[str], Awaitable[None]]] = {
        "scan": scan,
        "follow": followed,
        "base": ours,
        "equal": equal,
        "puts": puts,
    }
    if bench.etcdctl:
        kinds["make-mirror"] = theirs
    rates: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(rounds):
        for name, kind in kinds.items():
            rates[name].append(count / await bench.seconds(kind))
    show("follow", "keys/s", rates["follow"], rates["scan"], "scan")
    show("base", "keys/s", rates["base"], rates.get("make-mirror", []), "make-mirror")
    show("base", "keys/s", rates["base"], rates["scan"], "scan")
    show("base", "keys/s", rates["base"], rates["puts"], "puts")
    show("equal", "keys/s", rates["equal"], rates["scan"], "scan")


def show(what: str, unit: str, mine: Sequence[float], other: Sequence[float], name: str) -> None:
    """Print a line: medians, and the median of the ratios."""
    rate = statistics.median(mine)
    if not other:
        print(f"{what:<8} {rate:>9.0f} {unit}")
        return
    ratio = statistics.median(one / another for one, another in zip(mine, other, strict=True))
    print(f"{what:<8} {rate:>9.0f} {unit:<12} {name} {statistics.median(other):>9.0f}   ratio {ratio:.2f}")


async def main(arguments: Sequence[str]) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description="Mirrors beside etcdctl make-mirror.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--revisions", type=int, default=20_000)
    parser.add_argument("--keys", type=int, default=200_000)
    parser.add_argument("--alone", action="store_true", help="without etcdctl, which takes long with many keys")
    options = parser.parse_args(arguments)
    etcdctl: list[str] = []
    try:
        if not options.alone:
            etcdctl = await asyncio.to_thread(GoProgram("tests/support/etcdctl").prepare, default_cache())
    except UnavailableError as error:
        print(f"without etcdctl: {error}")
    async with (
        EtcdServer(flags=FLAGS) as one,
        EtcdServer(flags=FLAGS) as two,
        Client(one.endpoint, timeout=30) as source,
        Client(two.endpoint, timeout=30) as destination,
    ):
        bench = Bench(source, destination, (one.endpoint, two.endpoint), etcdctl)
        await changes(bench, options.revisions, options.rounds)
        await base(bench, options.keys, options.rounds)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
