"""Leases between timeouts, scopes, task groups and each other, lost and cancelled at any instant.

The invariants, however they are nested:

(a) whatever cancels takes back its own requests and no others: after the nest the task's count of them is that of the
    cancellations from outside;
(b) no cancellation comes out of a nest that was not cancelled from outside, and none hits what comes after it;
(c) no lease is kept alive any longer, each is revoked or was lost, and no task is left.
"""

import asyncio
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import anyio
import pytest

from etcd_aio.errors import LeaseLostError
from etcd_aio.lease.lease import Lease, OnLost
from tests.support.leases import FakeLeases
from tests.support.virtual_time import VirtualTimeLoop, tasks, timers, turns

ROUNDS = 400

# From Python 3.13 on, a group of asyncio that raises an error requests the cancellation of its task once more if there
# is one, and a scope of anyio around it, whose request that was, lets the `CancelledError` pass.
REPEATS_CANCELLATION = sys.version_info >= (3, 13)


class Nest:
    """One random nest of blocks around a random body."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.members = FakeLeases()
        self.leases: list[Lease] = []
        self.story: list[str] = []
        self.scopes = 0  # of anyio, around the present block

    def instant(self) -> float:
        """Some are the same, so that causes meet in one turn."""
        return self.chance.choice([0.0, 0.005, 0.01, 1.0, 2.0, 3.99, 4.0, 10.0, self.chance.uniform(0, 12)])

    async def enter(self, depth: int) -> None:
        kind = self.chance.choice(["lease", "lease", "timeout", "scope", "group", "anyio group", "body"])
        if depth == 0:
            kind = "body"
        self.story.append(kind)
        inner = depth - 1
        match kind:
            case "lease":
                modes: tuple[OnLost, ...] = ("cancel", "cancel", "signal")
                lease = self.members.group.block(self.chance.choice([2, 4, 10]), self.chance.choice(modes))
                self.leases.append(lease)
                async with lease:
                    await self.enter(inner)
                    await self.look(lease)
            case "timeout":
                async with asyncio.timeout(self.instant()):
                    await self.enter(inner)
            case "scope":
                with self.scope(), anyio.move_on_after(self.instant()):
                    await self.enter(inner)
            case "group":
                error: Exception | None = None
                async with asyncio.TaskGroup() as group:
                    # None that fails: up to Python 3.12 a group whose child fails while it is left keeps its request.
                    group.create_task(asyncio.sleep(self.instant()))
                    try:
                        await self.enter(inner)
                    except Exception as raised:
                        if not (self.scopes and REPEATS_CANCELLATION):
                            raise
                        error = raised
                if error is not None:
                    raise error
            case "anyio group":
                with self.scope():
                    async with anyio.create_task_group() as scopes:
                        scopes.start_soon(self.child)
                        await self.enter(inner)
            case _:
                await self.body()

    @contextmanager
    def scope(self) -> Iterator[None]:
        self.scopes += 1
        try:
            yield
        finally:
            self.scopes -= 1

    async def look(self, lease: Lease) -> None:
        if self.chance.random() < 0.3:
            self.stall()
            assert lease.is_lost or lease.remaining > 0

    async def child(self) -> None:
        await asyncio.sleep(self.instant())
        if self.chance.random() < 0.2:
            raise ValueError("a child's")

    async def body(self) -> None:
        what = self.chance.choice(["sleep", "sleep", "swallow", "raise", "raise from", "clean up", "stall"])
        self.story.append(what)
        match what:
            case "swallow":
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(self.instant())
            case "raise":
                await asyncio.sleep(self.instant())
                raise ValueError("mine")
            case "raise from":
                try:
                    await asyncio.sleep(self.instant())
                except asyncio.CancelledError:
                    raise ValueError("instead") from None
            case "clean up":
                try:
                    await asyncio.sleep(self.instant())
                finally:
                    await asyncio.sleep(0.5)
            case "stall":
                self.stall()
            case _:
                await asyncio.sleep(self.instant())

    def stall(self) -> None:
        assert isinstance(self.members.loop, VirtualTimeLoop)
        self.members.loop._jumping.now += self.instant()

    def lose(self) -> Callable[[], None]:
        """A way to lose leases."""

        def outage() -> None:
            self.members.is_reachable = False

        def expiry() -> None:
            self.members.leases.clear()

        return self.chance.choice([outage, expiry])


async def run_nest(seed: int) -> None:
    nest = Nest(seed)
    loop, members = nest.members.loop, nest.members
    requested = 0
    seen: list[tuple[type[BaseException] | None, int]] = []

    async def holder() -> None:
        task = asyncio.current_task()
        assert task is not None
        ended: type[BaseException] | None = None
        try:
            await nest.enter(4)
        except BaseException as error:  # recorded below
            ended = type(error)
        seen.append((ended, task.cancelling()))
        if not task.cancelling():
            await turns(5)
            await asyncio.sleep(5)

    task = asyncio.create_task(holder())

    def cancel() -> None:
        nonlocal requested
        if not seen:
            requested += 1
            task.cancel()

    if nest.chance.random() < 0.7:
        loop.call_later(nest.instant(), nest.lose())
    for _ in range(nest.chance.choice([0, 0, 1, 2])):
        loop.call_later(nest.instant(), cancel)
    await asyncio.wait([task])
    [(ended, count)] = seen
    assert count == requested, (ended, count, requested)
    if not requested:
        assert ended is not asyncio.CancelledError
        assert not task.cancelled(), "hit after the nest"
    await asyncio.sleep(30)
    assert not members.streams[0].is_open
    assert not members.streams[0].handler.is_needed
    for lease in nest.leases:
        assert lease.is_lost or lease._id not in members.leases
        if lease.is_lost:
            assert isinstance(await lease.lost(), LeaseLostError)
    assert not tasks()
    assert not timers()


@pytest.mark.parametrize("block", range(4))
def test_any_nest(block: int) -> None:
    for seed in range(block * ROUNDS, (block + 1) * ROUNDS):
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            try:
                runner.run(run_nest(seed))
            except BaseException as error:
                error.add_note(f"seed {seed}")
                raise
