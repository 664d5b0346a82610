"""A part of the load: writes, and watches of every kind, as in `tests/support/watch_history.py`."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Final

from etcd_aio import EtcdError
from etcd_aio.errors import ClientUsageError
from tests.faults.ownership import Violation
from tests.simulation.world import World
from tests.support.until import PATIENCE
from tests.support.watch_history import Change, Follower, Writes, caught_up, following, kinds

_PREFIX: Final = "k/"  # behind the keys of all other parts: a watch from a key on tells of no others
_FOLLOWERS: Final = 6
_RATE: Final = 4.0  # writes in a second
_EVERY: Final = 5  # batches from one rest, or one new watch, of a follower to the next
_MOST_PENDING: Final = 3_000  # bytes, of a follower that rests
_PROGRESS: Final = 0.5  # seconds from one question for progress to the next, on average
_OF_COMPACTION: Final = {"on_compaction", "prev_kv"}
"""Arguments whose effect a compaction changes."""


class Watching:
    """A client that writes, and one that watches.

    Args:
        world: where they live.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        chance = world.random("watching")
        # All watches are entered before anything is judged, whatever fails meanwhile.
        self._writer, self._client = world.client(), world.client(timeout=PATIENCE)
        self._writes = Writes(self._writer, _PREFIX, rate=_RATE, seed=chance.getrandbits(32))
        may_end = any(fault.name == "compact" for fault in world.plan.faults)
        able = [kind for kind in kinds(_PREFIX) if not (may_end and _OF_COMPACTION & kind.arguments.keys())]
        self._random = chance
        self._followers = [_quickened(replace(kind, may_end=may_end)) for kind in chance.sample(able, _FOLLOWERS)]
        self._failure = ""
        self._end = 0  # the last revision that all of them must have delivered

    async def run(self) -> None:
        """Write and watch until there is calm, and everything has arrived."""
        world = self._world
        try:
            async with self._writer, self._client, following(self._client, _PREFIX, self._followers):
                async with self._writes.going_on():
                    await self._ask_until_calm()
                await self._writes.finish()
                world.history.collect()
                self._end = world.fake.revision
                for follower in self._followers:
                    await caught_up([follower], self._history(follower))
        except (AssertionError, TimeoutError) as error:
            self._failure = f"{type(error).__name__} {error}"[:500]

    async def _ask_until_calm(self) -> None:
        """Ask now and then how far a watch is, until there is calm."""
        while not self._world.calm.is_set():
            with suppress(EtcdError, ClientUsageError):  # it has ended, or is being renewed
                await self._random.choice(self._followers).watcher.request_progress()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._random.expovariate(1 / _PROGRESS)):
                    await self._world.calm.wait()

    def judge(self) -> tuple[list[Violation], int]:
        """What was wrong, and how many events there were."""
        delivered = sum(len(follower.delivered) for follower in self._followers)
        violations = [Violation("watched wrongly", self._failure)] if self._failure else []
        try:
            self._writes.check(self._world.history.watched(_PREFIX))
        except AssertionError as error:
            violations.append(Violation("written wrongly", f"{error}"[:500]))
        for follower in self._followers:
            try:
                follower.check(self._history(follower))
            except AssertionError as error:
                violations.append(Violation("watched wrongly", f"{error}"[:500]))
        return violations, delivered

    def _history(self, follower: Follower) -> list[Change]:
        last = max([self._end, *(revision for revision, _, _ in follower.delivered[-1:])])
        found = self._world.history.watched("" if "all_keys" in follower.arguments else _PREFIX)
        return [change for change in found if change[0] <= last]


def _quickened(follower: Follower) -> Follower:
    """A follower that is slow or renewed where there are few events."""
    arguments = dict(follower.arguments)
    if "max_pending" in arguments:
        arguments["max_pending"] = _MOST_PENDING
    return replace(follower, arguments=arguments, every=_EVERY)
