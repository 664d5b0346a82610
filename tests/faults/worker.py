"""One client process of a run: it contends for everything, writes fenced records, and logs what it believes.

The log has one JSON list a line, written at once, since the process may be killed at any moment:

    ["began", claim, kind, name, key, token, permits, limit, time]  it believes that it owns something from now on
    ["ended", claim, time]                                     and no longer
    ["wrote", record, revision]                                a fenced write was acknowledged
    ["refused", record]                                        it ended with an error that says: not applied
    ["told", observer, name, leader or null]                   an observer of an election
    ["counted", counter, operation, outcome, revision]         an exactly-once increment
    ["stall", began, ended]                                    the event loop stood still
    ["error", where, class, text, is expected]                 anything that was raised
    ["stuck", where]                                           a task waits although everything works
    ["done"]                                                   told to stop, and nothing is held or waited for
    ["quiet"]                                                  told to observe no more

Times are the machine's monotonic clock. It stops at a line on stdin, observes until the next one, and ends when stdin
is closed.
"""

import argparse
import asyncio
import itertools
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from etcd_aio import Client, EtcdError, Key, Writer, op
from etcd_aio.concurrency import Leadership
from etcd_aio.errors import LeadershipLostError, LockLostError, OutcomeUnknownError
from tests.faults import sabotage
from tests.faults.late import LateClient
from tests.faults.loops import new_loop, tell_stalls
from tests.faults.ownership import Record
from tests.faults.store import COUNTER, RECORD, ROOT

_LIMIT: Final = 3
_OBSERVER: Final = "observer a"
_REST: Final = 0.02  # seconds between two claims of a task, at most


class Owned(Protocol):
    """What a lock, a permit and a leadership have in common."""

    @property
    def key(self) -> bytes: ...
    @property
    def fencing_token(self) -> int: ...
    @property
    def fenced(self) -> Writer: ...


class Worker:
    """The tasks of the process.

    Args:
        client: theirs.
        name: of the process; the ids of its claims begin with it.
        ttl: seconds of every lease.
        seed: of what they do.
        patience: seconds within which all of those who wait hold in turn, some for longer than a lease lasts.
        long: the part of their claims that last longer than a lease without renewals.
        rest: seconds between two claims of a task, at most.
        slot_ttl: seconds for which the slots of exactly-once writes outlive an outage.
        clock: of the times in the log, which all processes share.
        log: where they log.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        ttl: int,
        seed: str,
        *,
        patience: float,
        long: float,
        rest: float = _REST,
        slot_ttl: int = 300,
        clock: Callable[[], float] = time.monotonic,
        log: Callable[..., None],
    ) -> None:
        self._patience, self._long, self._rest, self._clock = patience, long, rest, clock
        self._client, self._name, self._ttl, self._log = client, name, ttl, log
        self._slot_ttl = slot_ttl
        self._random = random.Random(f"{seed} {name}")
        self._claims = itertools.count()
        self._is_stopping = False

    # The tasks.

    def tasks(self, parts: set[str]) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """What each task does, for the parts that the run has, with a name for it."""
        client, ttl, own = self._client, self._ttl, self._name
        if "lock" in parts:
            for name in ("a", "a", "b"):
                make = partial(client.lock, f"{ROOT}lock/{name}", ttl=ttl, value=own)
                yield f"lock {name}", self._contend("lock", name, make)
        if "rwlock" in parts:
            for _ in range(2):
                rwlock = client.rwlock(f"{ROOT}rwlock/a", ttl=ttl, value=own)
                yield "reader a", self._contend("rwlock", "a", rwlock.reading)
                yield "writer a", self._contend("rwlock", "a", rwlock.writing)
        if "semaphore" in parts:
            for _ in range(3):
                yield "semaphore a", self._contend("semaphore", "a", self._permit)
        if "election" in parts:
            election = client.election(f"{ROOT}election/a", ttl=ttl)
            for _ in range(2):
                yield "election a", self._contend("election", "a", partial(election.lead, self._name))
            yield "run b", self._run("b")
            yield _OBSERVER, self._observe("a")
        if "counter" in parts:
            yield "counter a", self._count("a")

    def _permit(self) -> AbstractAsyncContextManager[Owned]:
        permits = self._random.choice((1, 1, 2))
        return self._client.semaphore(f"{ROOT}semaphore/a", limit=_LIMIT, permits=permits, ttl=self._ttl)

    async def _contend(self, kind: str, name: str, make: Callable[[], AbstractAsyncContextManager[Owned]]) -> None:
        """Claim, do something, and let go, again and again."""
        while not self._is_stopping:
            async with self._survived(f"{kind} {name}"), make() as owned:
                await self._body(kind, name, owned)
            await asyncio.sleep(self._random.random() * self._rest)

    async def _run(self, name: str) -> None:
        """Work as the leader, by `run`."""

        async def work(leadership: Any) -> None:
            await self._body("election", name, leadership)

        while not self._is_stopping:
            async with self._survived(f"run {name}"):
                await self._client.election(f"{ROOT}election/{name}", ttl=self._ttl).run(work, self._name)
            await asyncio.sleep(self._random.random() * self._rest)

    async def _body(self, kind: str, name: str, owned: Owned) -> None:
        claim, key, token = f"{self._name}-{next(self._claims)}", owned.key.decode(), owned.fencing_token
        writer, proclamations = owned.fenced, itertools.count(1)
        permits = getattr(owned, "permits", 1)
        self._log("began", claim, kind, name, key, token, permits, _LIMIT, self._clock())
        try:
            for step in ("enter", "work", "leave"):
                text = Record(claim, kind, name, key, token, step).text()
                try:
                    result = await writer.put(f"{ROOT}{RECORD}/{kind}/{name}", text)
                except EtcdError as error:
                    if not error.maybe_applied:
                        self._log("refused", text)
                    raise
                self._log("wrote", text, result.revision)
                if isinstance(owned, Leadership):
                    await owned.proclaim(f"{claim} {next(proclamations)}")
                    await owned.proclaim(f"{claim} {next(proclamations)}")
                if step == "enter":
                    await asyncio.sleep(self._length())
        finally:
            self._log("ended", claim, self._clock())

    def _length(self) -> float:
        """Seconds: mostly short, now and then longer than a lease lasts without renewals."""
        is_long = self._random.random() < self._long
        return 1.5 * self._ttl if is_long else self._random.choice((0.0, 0.01, 0.05, 0.4))

    async def _observe(self, name: str) -> None:
        for number in itertools.count():
            observer = f"{self._name}-{name}-{number}"
            observation = self._client.election(f"{ROOT}election/{name}").changes()
            async with self._survived(f"observe {name}"), observation as leaders:
                async for leader in leaders:
                    told = None if leader is None else (leader.key.decode(), leader.fencing_token, leader.text())
                    self._log("told", observer, name, told)
            await asyncio.sleep(0.1)

    async def _count(self, name: str) -> None:
        """Increment a counter exactly once each."""
        key = f"{ROOT}{COUNTER}/{name}"
        async with self._client.exactly_once(ttl=self._slot_ttl) as once:
            while not self._is_stopping:
                operation = f"{self._name}-{next(self._claims)}"
                async with self._survived(f"count {name}"):
                    outcome, revision = await self._increment(once, key, operation)
                    if outcome:
                        self._log("counted", name, operation, outcome, revision)
                await asyncio.sleep(self._random.random() * self._rest / 10)

    async def _increment(self, once: Any, key: str, operation: str) -> tuple[str, int]:
        kv = await self._client.get(key)
        number = 0 if kv is None else json.loads(kv.value)[0]
        unchanged = Key(key).missing if kv is None else Key(key).mod_revision == kv.mod_revision
        txn = once.txn().when(unchanged).then(op.put(key, json.dumps([number + 1, operation])))
        try:
            result = await txn.commit()
        except OutcomeUnknownError as error:
            for _ in range(20):
                try:
                    settled = await once.settle(error)
                except EtcdError:
                    await asyncio.sleep(0.5)
                    continue
                if settled.applied and settled.result is None:
                    return "unknown", 0  # which branch was applied, only the history would tell
                is_counted = settled.applied and settled.result.succeeded
                return ("applied", settled.revision) if is_counted else ("not applied", 0)
            return "unknown", 0
        return ("applied", result.revision) if result.succeeded else ("not applied", 0)

    @asynccontextmanager
    async def _survived(self, where: str) -> AsyncIterator[None]:
        """Log an error; the task goes on after a while."""
        try:
            yield
        except EtcdError as error:
            is_loss = isinstance(error, LockLostError | LeadershipLostError)
            self._log("error", where, type(error).__name__, str(error), is_loss or error.retryable)
            await asyncio.sleep(0.0 if is_loss else 0.1)

    # The end.

    async def run(self, parts: set[str], next_line: Callable[[], Coroutine[object, object, object]]) -> None:
        """Run the tasks until told to stop, then end them all; observers until told again."""
        tasks = [asyncio.create_task(work, name=name) for name, work in self.tasks(parts)]
        try:
            await self._run_until_told(tasks, next_line)
        finally:
            await _cancel(tasks)

    async def _run_until_told(
        self, tasks: list["asyncio.Task[None]"], next_line: Callable[[], Coroutine[object, object, object]]
    ) -> None:
        observing = [task for task in tasks if task.get_name() == _OBSERVER]
        stopping = asyncio.create_task(next_line())
        done, _ = await asyncio.wait([stopping, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in done - {stopping}:
            task.result()  # an error that none of them should survive
        self._is_stopping = True
        pending = [task for task in tasks if task not in observing]
        await asyncio.wait(pending, timeout=self._patience)
        for task in pending:
            if not task.done():
                self._log("stuck", task.get_name())
        await _cancel(pending)
        self._log("done")
        await next_line()
        await _cancel(observing)
        self._log("quiet")


async def _cancel(tasks: list["asyncio.Task[None]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _main(given: argparse.Namespace) -> None:
    with Path(given.log).open("a", buffering=1) as file:  # noqa: ASYNC230 - a line a time

        def log(*words: object) -> None:
            file.write(json.dumps(words) + "\n")

        async with AsyncExitStack() as stack:
            late = LateClient(given.endpoints.split(","), chance=given.late, seed=given.seed, timeout=2.0)
            client = await stack.enter_async_context(late)
            stalls = asyncio.create_task(tell_stalls(lambda began, ended: log("stall", began, ended)))
            stack.callback(stalls.cancel)
            worker = Worker(
                client, given.name, given.ttl, given.seed, patience=given.patience, long=given.long, log=log
            )
            await worker.run(set(given.parts.split(",")), lambda: asyncio.to_thread(sys.stdin.readline))
            await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    """Run the process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--endpoints", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--ttl", type=int, required=True)
    parser.add_argument("--seed", required=True)
    parser.add_argument("--parts", required=True)
    parser.add_argument("--patience", type=float, default=90.0, help="seconds to end; who waits for longer is stuck")
    parser.add_argument("--rate", type=float, default=1.0, help="of the clock of the event loop")
    parser.add_argument("--long", type=float, default=0.01, help="part of the claims that last longer than a lease")
    parser.add_argument("--late", type=float, default=0.0, help="see late.py")
    parser.add_argument("--sabotage", default="", help=f"one of: {', '.join(sabotage.ALL)}")
    given = parser.parse_args()
    if given.sabotage:
        sabotage.ALL[given.sabotage]()
    with asyncio.Runner(loop_factory=new_loop(given.rate)) as runner:
        runner.run(_main(given))


if __name__ == "__main__":
    main()
