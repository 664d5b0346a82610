"""A part of the load: writes, and watches of every kind, as in `tests/support/watch_history.py`."""

from dataclasses import replace
from typing import Final

from tests.faults.ownership import Violation
from tests.simulation.world import World
from tests.support.watch_history import PATIENCE, Change, Follower, Writes, caught_up, following, kinds

_PREFIX: Final = "k/"  # behind the keys of all other parts: a watch from a key on tells of no others
_FOLLOWERS: Final = 6
_RATE: Final = 4.0  # writes in a second
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
        self._followers: list[Follower] = [replace(kind, may_end=may_end) for kind in chance.sample(able, _FOLLOWERS)]
        self._failure = ""
        self._end = 0  # the last revision that all of them must have delivered

    async def run(self) -> None:
        """Write and watch until there is calm, and everything has arrived."""
        world = self._world
        try:
            async with self._writer, self._client, following(self._client, _PREFIX, self._followers):
                async with self._writes.going_on():
                    await world.calm.wait()
                await self._writes.finish()
                world.history.collect()
                self._end = world.fake.revision
                for follower in self._followers:
                    await caught_up([follower], self._history(follower))
        except (AssertionError, TimeoutError) as error:
            self._failure = f"{type(error).__name__} {error}"[:500]

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
