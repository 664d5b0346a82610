"""A part of the load: processes that put jobs into a work queue, and workers that do them, or fail, or are too slow."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from itertools import count, pairwise
from math import inf
from typing import Final

from etcd_aio import EtcdError, OutcomeUnknownError, Writer, op
from etcd_aio.errors import ItemInDoubtError, JobLostError
from etcd_aio.recipes import Job, Worker, WorkQueue
from tests.faults.ownership import Violation
from tests.simulation.processes import TIMEOUT, Crowd, Process
from tests.simulation.puts import Put
from tests.simulation.world import World

_NAME: Final = "i/recipes/jobs"
_DONE: Final = "i/recipes/done/"
_CONCURRENCY: Final = 2
_LATE: Final = 10.0  # seconds after the faults, in which copies of puts are still applied
_MOST_TRIES: Final = 10_000


@dataclass(slots=True)
class _Attempt:
    """One block of a job.

    Attributes:
        name: of the process.
        mark: the value that its completion puts.
        value: of the job.
        tries: which attempt of the job it was.
        token: its fencing token.
        began: the instant.
        ended: of the end of its work, or of its process.
        is_done: its completion was answered; None if it may have been applied.
    """

    name: str
    mark: bytes
    value: bytes
    tries: int
    token: int
    began: float
    ended: float = inf
    is_done: bool | None = False


class Jobs(Crowd):
    """Processes that have one work queue, some by exactly-once writes."""

    def __init__(self, world: World) -> None:
        self._values = count(1)
        self._puts: list[Put] = []
        self._attempts: list[_Attempt] = []
        self._running: dict[str, list[_Attempt]] = {}
        super().__init__(world, "jobs")

    async def work(self, process: Process) -> None:
        """See `Crowd.work`."""
        if process.random.random() < 0.5:
            await self._work(process, None)
        else:
            async with process.client.exactly_once(prefix="i/recipes/once/") as once:
                await self._work(process, once)

    async def _work(self, process: Process, writer: Writer | None) -> None:
        ttl = self.world.plan.ttl
        queue = WorkQueue(process.client, _NAME, ttl=ttl, max_tries=_MOST_TRIES, writer=writer, timeout=TIMEOUT)
        putting = asyncio.ensure_future(self._put(process, queue))
        try:
            while not self.world.calm.is_set():
                await self._be_worker(process, queue, process.random.uniform(1.0, 40.0))
            await putting
            await asyncio.sleep(_LATE)
            await self._be_worker(process, queue, inf)
        finally:
            putting.cancel()
            await asyncio.wait([putting])
        await asyncio.sleep(3.0 * ttl)

    async def _be_worker(self, process: Process, queue: WorkQueue, seconds: float) -> None:
        """Be a worker for some time, or for as long as there are jobs."""
        ending = asyncio.ensure_future(self._end(queue, seconds))
        try:
            async with queue.worker(concurrency=_CONCURRENCY, owner=process.name) as worker:
                taking = [asyncio.ensure_future(self._take(process, worker)) for _ in range(_CONCURRENCY)]
                try:
                    await asyncio.wait([ending, *taking], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for task in taking:
                        task.cancel()
                    await asyncio.wait(taking)
        except EtcdError as error:
            process.tell("worker", type(error).__name__)
            await process.rest()
        finally:
            ending.cancel()

    async def _end(self, queue: WorkQueue, seconds: float) -> None:
        if seconds < inf:
            await asyncio.wait([asyncio.ensure_future(self.world.calm.wait())], timeout=seconds)
            return
        while await queue.size(timeout=None):  # noqa: ASYNC110 - by other processes
            await asyncio.sleep(1.0)

    async def _put(self, process: Process, queue: WorkQueue) -> None:
        while not self.world.calm.is_set():
            put = Put(b"%d" % next(self._values))
            self._puts.append(put)
            delay = process.random.choice((0.0, 0.0, 0.0, 1.5))
            name = put.value.decode() if process.random.random() < 0.5 else None
            try:
                key = await queue.put(put.value, delay=delay, id=name)
            except ItemInDoubtError:
                pass
            except EtcdError as error:
                put.is_refused = process.is_alive and not error.maybe_applied
            else:
                put.key = key if process.is_alive else None
            process.tell("put", put.value, put.key, put.is_refused)
            await process.rest()

    async def _take(self, process: Process, worker: Worker) -> None:
        while True:
            try:
                job = await anext(worker)
            except EtcdError as error:
                process.tell("take", type(error).__name__)
                await process.rest()
                continue
            try:
                await self._do(process, job)
            except (EtcdError, ZeroDivisionError) as error:
                process.tell("job", job.value, type(error).__name__)

    async def _do(self, process: Process, job: Job) -> None:
        world, chance = self.world, process.random
        async with job:
            mark = b"%b %b %d %d" % (job.value, process.name.encode(), job.tries, job.fencing_token)
            one = _Attempt(process.name, mark, job.value, job.tries, job.fencing_token, world.instant())
            if process.is_alive:
                self._attempts.append(one)
                self._running.setdefault(process.name, []).append(one)
            process.tell("job", job.value, job.tries, job.fencing_token)
            try:
                is_long = chance.random() < world.plan.long and not world.calm.is_set()
                await asyncio.sleep(chance.uniform(0.0, 1.5 * world.plan.ttl if is_long else 0.3))
                if process.is_alive:  # what ends it decides itself; then it may be claimed before the answer is here
                    one.ended = world.instant()
                match chance.choice(("complete", "complete", "complete", "retry", "reject", "fail", "again")):
                    case "retry":
                        await job.retry(delay=chance.choice((0.0, 0.5)))
                    case "reject":
                        await job.reject("why")
                    case "fail":
                        raise ZeroDivisionError
                    case how:
                        await self._complete(process, job, one, again=how == "again")
            finally:
                if process.is_alive:
                    one.ended = min(one.ended, world.instant())

    async def _complete(self, process: Process, job: Job, one: _Attempt, *, again: bool) -> None:
        """Complete a job; perhaps again if its answer was lost, or if the call was cancelled."""
        for _ in range(3 if again else 1):
            one.is_done = None
            try:
                async with asyncio.timeout(process.random.uniform(0.001, 0.2) if again else None):
                    await job.complete(op.put(_DONE + job.value.decode(), one.mark))
            except JobLostError as error:
                if process.is_alive and not error.maybe_applied:
                    one.is_done = False
                raise
            except (OutcomeUnknownError, TimeoutError) as error:
                if not again:
                    raise
                process.tell("complete", type(error).__name__)
            except EtcdError as error:
                if not error.maybe_applied and process.is_alive and not again:
                    one.is_done = False
                raise
            else:
                if process.is_alive:
                    one.is_done = True
                return
        raise ZeroDivisionError

    def replace(self) -> None:
        """See `Crowd.replace`: what the process does ends here."""
        for one in self._running.get(self.processes[0].name, ()):
            if one.ended == inf:
                one.ended = self.world.instant()
        super().replace()

    def judge(self) -> tuple[list[Violation], int]:
        """Each job is done once, by one worker at a time, or given up; nothing else stays."""
        changes = self.world.history.watched(f"{_NAME}/")
        done = [(key, value) for _, key, value in self.world.history.watched(_DONE) if value is not None]
        for key, times in Counter(key for key, _ in done).items():
            if times > 1:
                self.blame("a job done twice", f"{key!r}: {[value for other, value in done if other == key]}")
        self._judge_attempts({value for _, value in done})
        values = {key[len(_DONE) :] for key, _ in done}
        items: dict[bytes, set[bytes]] = {}
        dead = set()
        for _, key, value in changes:
            if value is not None and b"/items/" in key:
                items.setdefault(value, set()).add(key)
            elif value is not None and b"/dead/" in key:
                dead.add(value)
        for one in self._puts:
            if one.is_refused and one.value in items:
                self.blame("a job put that was refused", f"{one.value!r}")
            if one.key is not None and one.key not in items.get(one.value, ()):
                self.blame("a job was not put", f"{one.value!r}")
        for value, keys in items.items():
            if len(keys) > 1:
                self.blame("a job put twice", f"{value!r}: {sorted(keys)}")
            if value not in values | dead:
                self.blame("a job lost", f"{value!r}")
        for value in values & dead:
            self.blame("a job done and given up", f"{value!r}")
        final = self.states(f"{_NAME}/").at(self.world.fake.revision)
        left = sorted(key for key in final if not any(part in key for part in (b"/dead/", b"/reasons/")))
        if left:
            self.blame("keys stay", f"{left[:5]}")
        return self.violations, len(self._attempts)

    def _judge_attempts(self, marks: set[bytes]) -> None:
        by_job: dict[bytes, list[_Attempt]] = {}
        for one in self._attempts:
            by_job.setdefault(one.value, []).append(one)
            if one.is_done and one.mark not in marks:
                self.blame("a job is not done", f"{one.value!r} by {one.name}")
            if one.is_done is False and one.mark in marks:
                self.blame("a job done that was lost", f"{one.value!r} by {one.name}")
        for value, ones in by_job.items():
            ones.sort(key=lambda one: one.token)
            tries = [one.tries for one in ones]
            if tries != sorted(set(tries)):
                self.blame("a try counted wrongly", f"{value!r}: {tries}")
            for before, after in pairwise(ones):
                if after.began < before.ended:
                    self.blame("two workers of one job", f"{value!r}: {before.name} and {after.name}")
