"""Histories under faults: `python -m tests.faults.run --minutes 30`.

Several client processes contend for locks, permits and leaderships on three members, and count, while members,
connections and processes fail. Then the history of the store is judged, and what the clients believed. The exit status
is 1 if a rule was broken, and 2 if the run proves nothing: no history, or nothing owned.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Final

from etcd_aio import Client, EtcdError, Event
from etcd_aio.testing import EtcdCluster, FaultProxy
from tests.faults import sabotage
from tests.faults.account import keys_of
from tests.faults.ownership import RULES
from tests.faults.store import ROOT, Change, IncompleteError, checked
from tests.faults.trouble import FAULTS, Process, Trouble
from tests.faults.verdict import LAST, Logs, Verdict, judge
from tests.support.servers import QUICK_ELECTIONS

PARTS: Final = (*RULES, "counter")
RATES: Final = (1.0, 0.9, 1.1, 1.0)
_SERVER_FLAGS: Final = ("--quota-backend-bytes=8589934592",)
_QUIET_SECONDS: Final = 240.0  # that a process may take to end what it does; a busy machine needs a few
_CLEAN_SECONDS: Final = 20.0  # until nothing is left in the lines; longer than a lease of a process that was killed


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run.

    Attributes:
        seconds: how long there is trouble.
        seed: of the faults and the load.
        workers: the number of client processes.
        ttl: seconds of every lease.
        parts: what they contend for.
        faults: the names of the faults.
        version: of the servers; None is the newest that is found.
        late: the part of the mutations that are applied late, or without an answer.
        long: the part of the claims that last longer than a lease without renewals.
        patience: seconds within which everything that waits must end, once there is no trouble any more.
        sabotage: the name of a defect that every process has; empty for none.
    """

    seconds: float
    seed: str
    workers: int = 4
    ttl: int = 4
    parts: Sequence[str] = PARTS
    faults: Sequence[str] = tuple(FAULTS)
    version: str | None = None
    late: float = 0.05
    long: float = 0.01
    patience: float = 90.0
    sabotage: str = ""


class Recorder:
    """The history of the store, followed from the first revision on."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._created: dict[str, int] = {}
        self.changes: list[Change] = []
        self.revision = 0

    async def run(self) -> None:
        """Follow, until it is cancelled."""
        async with self._client.watch(prefix=ROOT, start_revision=1, progress_notify=True) as watcher:
            async for batch in watcher.batches():
                for event in batch:
                    self.changes.append(self._change(event))
                self.revision = max(self.revision, batch.revision)

    def _change(self, event: Event) -> Change:
        key = event.key.decode()
        if not event.is_put:
            return Change(event.revision, key, None, self._created.pop(key, 0), 0)
        self._created[key] = event.kv.create_revision
        return Change(event.revision, key, event.text(), event.kv.create_revision, event.kv.version)

    async def until(self, revision: int) -> None:
        """Wait until everything up to a revision is here, and all of it below `ROOT` is an event."""
        while self.revision < revision:  # noqa: ASYNC110 - nothing signals it
            await asyncio.sleep(0.05)


class Run:
    """One run; `folder` gets the logs."""

    def __init__(self, options: Options, folder: Path) -> None:
        self._options, self._folder = options, folder
        self._numbers = 0
        self._processes: list[Process] = []
        self._ends: dict[str, float] = {}
        self._stack = AsyncExitStack()

    async def go(self) -> Verdict:
        """Start everything, make trouble, end everything, and judge."""
        options = self._options
        async with self._stack as stack:
            cluster = EtcdCluster(
                size=3, peer_proxies=True, flags=_SERVER_FLAGS, version=options.version, **QUICK_ELECTIONS
            )
            await stack.enter_async_context(cluster)
            client = await stack.enter_async_context(Client(cluster.endpoints, timeout=10.0))
            recorder = Recorder(client)
            async with _running(recorder.run()) as recording:
                for number in range(options.workers):
                    self._processes.append(await self._start(cluster, number))
                await self._until_all_say("began" if set(options.parts) & RULES.keys() else "counted")
                chance = random.Random(options.seed)
                trouble = Trouble(
                    cluster,
                    client,
                    self._processes,
                    lambda process: self._replace(cluster, process),
                    lambda: recorder.revision,
                    options.ttl,
                    chance,
                )
                await trouble.go_on(time.monotonic() + options.seconds, {name: FAULTS[name] for name in options.faults})
                left = await self._end(client)
                last = await client.put(f"{ROOT}end/end", "")
                async with asyncio.timeout(_QUIET_SECONDS):
                    await recorder.until(last.revision)
                if recording.done():
                    recording.result()
        meddled = trouble.meddled | keys_of(trouble.revoked, recorder.changes)
        logs = Logs(standstills=trouble.standstills, meddled=meddled)
        for path in sorted(self._folder.glob("*.log")):
            logs.read(path.stem, path.read_text(), self._ends.get(path.stem, inf))
        verdict = judge(
            checked(recorder.changes),
            logs,
            parts=options.parts,
            left=left,
            lasting=[process.name for process in self._processes],
            is_gapless="compact" not in options.faults,
        )
        return replace(verdict, faults=trouble.counts)

    # The processes.

    async def _start(self, cluster: EtcdCluster, number: int) -> Process:
        proxies = [await self._stack.enter_async_context(FaultProxy(endpoint)) for endpoint in cluster.endpoints]
        return await self._launch(proxies, number)

    async def _launch(self, proxies: Sequence[FaultProxy], number: int) -> Process:
        options = self._options
        name = f"w{self._numbers}"
        self._numbers += 1
        command = [sys.executable, "-m", "tests.faults.worker", "--name", name]
        command += ["--endpoints", ",".join(proxy.endpoint for proxy in proxies)]
        command += ["--log", str(self._folder / f"{name}.log"), "--ttl", str(options.ttl), "--seed", options.seed]
        command += ["--parts", ",".join(options.parts), "--rate", str(RATES[number % len(RATES)])]
        command += ["--late", str(options.late), "--long", str(options.long), "--patience", str(options.patience)]
        if options.sabotage:
            command += ["--sabotage", options.sabotage]
        (self._folder / f"{name}.log").touch()
        with (self._folder / f"{name}.err").open("wb") as errors:
            child = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.PIPE, stdout=errors, stderr=errors
            )
        self._stack.push_async_callback(_kill, child)
        return Process(name, child, proxies)

    async def _replace(self, cluster: EtcdCluster, process: Process) -> None:
        await _kill(process.child)
        self._ends[process.name] = time.monotonic()
        number = self._processes.index(process)
        self._processes[number] = await self._launch(process.proxies, number)

    async def _end(self, client: Client) -> list[str]:
        """Let every process end what it does. Returns the keys that are left in the lines while their clients live."""
        self._tell("stop")
        await self._until_all_say("done")
        if "election" in self._options.parts:
            async with client.election(f"{ROOT}election/a").lead(LAST):
                await self._until_all_say(LAST)
        self._tell("end")
        await self._until_all_say("quiet")
        left = await _left(client)
        until = time.monotonic() + _CLEAN_SECONDS
        while left and time.monotonic() < until:
            await asyncio.sleep(0.2)
            left = await _left(client)
        for process in self._processes:
            assert process.child.stdin is not None
            process.child.stdin.close()
        return left

    def _tell(self, line: str) -> None:
        for process in self._processes:
            assert process.child.stdin is not None
            with suppress(ConnectionError):  # it has ended by itself, which its log tells
                process.child.stdin.write(f"{line}\n".encode())

    async def _until_all_say(self, word: str) -> None:
        """Wait until this stands in the log of every process that runs; not for ever, since one may be stuck."""
        waiting = list(self._processes)
        until = time.monotonic() + _QUIET_SECONDS
        while waiting and time.monotonic() < until:
            await asyncio.sleep(0.1)
            logs = {process.name: self._folder / f"{process.name}.log" for process in waiting}
            waiting = [
                process
                for process in waiting
                if f'"{word}"' not in logs[process.name].read_text() and process.child.returncode is None
            ]


@asynccontextmanager
async def _running(work: Coroutine[object, object, None]) -> AsyncIterator["asyncio.Task[None]"]:
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _kill(child: asyncio.subprocess.Process) -> None:
    if child.returncode is None:
        with suppress(ProcessLookupError):
            child.kill()
    await child.wait()


async def _left(client: Client) -> list[str]:
    while True:
        try:
            return [
                kv.key.decode() for kind in RULES for kv in await client.range(prefix=f"{ROOT}{kind}/", keys_only=True)
            ]
        except EtcdError:
            await asyncio.sleep(0.2)


def show(verdict: Verdict, seconds: float) -> None:
    """Print what a run has shown."""
    print(f"{seconds:.0f} s, {verdict.revisions} changes, {sum(verdict.faults.values())} faults")
    for title, counts in (("owned", verdict.owned), ("faults", verdict.faults), ("errors", verdict.errors)):
        print(f"{title}: " + (", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"))
    print(f"standstills: {verdict.standstills}")
    print(f"violations: {len(verdict.violations)}")
    for violation in verdict.violations[:50]:
        print(f"  {violation.rule}: {violation.text}"[:500])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.run", description="histories under faults")
    parser.add_argument("--minutes", type=float, default=2.0, help="of trouble (default: %(default)s)")
    parser.add_argument("--seed", default=str(random.randrange(10**6)), help="of faults and load (default: random)")
    parser.add_argument("--workers", type=int, default=4, help="client processes (default: %(default)s)")
    parser.add_argument("--ttl", type=int, default=4, help="seconds of every lease (default: %(default)s)")
    parser.add_argument("--parts", default=",".join(PARTS), help="what is contended for (default: %(default)s)")
    parser.add_argument("--faults", default=",".join(FAULTS), help="default: %(default)s")
    parser.add_argument("--server", help="which etcd, such as 3.5.35 (default: the newest that is found)")
    parser.add_argument("--late", type=float, default=0.05, help="part of the mutations (default: %(default)s)")
    parser.add_argument("--long", type=float, default=0.01, help="part of the claims (default: %(default)s)")
    parser.add_argument("--sabotage", default="", choices=["", *sabotage.ALL], help="a defect for every client")
    parser.add_argument("--folder", type=Path, help="where to keep the logs; a new one")
    given = parser.parse_args(arguments)
    if given.folder is not None and given.folder.exists():
        parser.error(f"{given.folder} exists")
    options = Options(
        60 * given.minutes,
        given.seed,
        given.workers,
        given.ttl,
        given.parts.split(","),
        [name for name in given.faults.split(",") if name],
        given.server,
        given.late,
        given.long,
        sabotage=given.sabotage,
    )
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            verdict = asyncio.run(Run(options, folder).go())
        except IncompleteError as error:
            print(f"the history is not whole: {error}")
            return 2
    show(verdict, options.seconds)
    if verdict.violations:
        return 1
    return 0 if all(verdict.owned.values()) else 2


if __name__ == "__main__":
    raise SystemExit(main())
