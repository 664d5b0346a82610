"""Turnstile: lets the transactions of one client pass one after the other, if they conflict on the same keys.

Without it, of many that read a key at the same time one commits, and all others begin again. An entry stands in the
line of each of its keys, and passes when it is the first in all of them. It enters all lines at once, so two entries
stand in the same order in every line that they share: there is no deadlock.

An entry that leaves hands its snapshot of the store to those that pass next: mostly they need no read.

Other clients are not in these lines. For keys that they change too, the client remembers how much contention there is.
"""

import asyncio
from collections import deque
from collections.abc import Collection, Iterable
from typing import Final
from weakref import WeakKeyDictionary

from etcd_aio.base import REMEMBERED, Contention, wake
from etcd_aio.calls import StoreCalls
from etcd_aio.dataclass import dataclass
from etcd_aio.recipes.stm.read_set import KnownKeys

_MOST_CONTENDED: Final = 256  # keys whose contention is remembered


@dataclass(slots=True, eq=False)
class Pass:
    """One entry.

    Attributes:
        keys: whose lines it stands in.
        turn: resolved when it may pass; None if no other entry was before it.
        snapshot: handed on by the entry before it; None if that knew nothing, or if there was none.
    """

    keys: frozenset[bytes]
    turn: "asyncio.Future[None] | None"
    snapshot: KnownKeys | None = None

    @property
    def has_waited(self) -> bool:
        """Whether another entry was before it."""
        return self.turn is not None


class Turnstile:
    """The lines of one client."""

    def __init__(self) -> None:
        self._lines: dict[bytes, deque[Pass]] = {}
        self._contended: dict[bytes, tuple[Contention, float]] = {}  # with the instants of their last changes

    def __len__(self) -> int:
        return len(self._lines)

    def busy(self, keys: Iterable[bytes]) -> frozenset[bytes]:
        """The keys among these that have a line."""
        return frozenset(key for key in keys if key in self._lines)

    def contention(self, keys: Iterable[bytes]) -> Contention | None:
        """The contention for the first of the keys that has any; None if none has."""
        key = self._contended_of(keys)
        return None if key is None else self._contended[key][0]

    def contend(self, keys: Collection[bytes]) -> Contention:
        """The contention for keys that another client has changed just now."""
        key = self._contended_of(keys)
        known = Contention() if key is None else self._contended[key][0]
        if key is None and len(self._contended) >= _MOST_CONTENDED:
            del self._contended[next(iter(self._contended))]
        if key is not None or keys:
            self._contended[min(keys) if key is None else key] = known, asyncio.get_running_loop().time()
        return known

    def changed(self, keys: Iterable[bytes], conflicts: int) -> None:
        """Keys were changed, after so many conflicts with other clients."""
        key = self._contended_of(keys)
        if key is not None:
            known, _ = self._contended[key]
            known.succeeded(conflicts)
            if known.is_over:
                del self._contended[key]
            else:
                self._contended[key] = known, asyncio.get_running_loop().time()

    def _contended_of(self, keys: Iterable[bytes]) -> bytes | None:
        """The first of the keys for which there is contention; what was long ago is forgotten."""
        now = asyncio.get_running_loop().time()
        for key in keys:
            if key in self._contended:
                if now <= self._contended[key][1] + REMEMBERED:
                    return key
                del self._contended[key]
        return None

    async def enter(self, keys: frozenset[bytes]) -> Pass:
        """Stand in the lines of these keys, and wait for the turn. Then `leave`, whatever happens.

        Cancellation: the lines are left.
        """
        is_first = not any(key in self._lines for key in keys)
        entry = Pass(keys, None if is_first else asyncio.get_running_loop().create_future())
        for key in keys:
            self._lines.setdefault(key, deque()).append(entry)
        if entry.turn is not None:
            try:
                await entry.turn
            except asyncio.CancelledError:
                self.leave(entry, None)
                raise
        return entry

    def leave(self, entry: Pass, snapshot: KnownKeys | None) -> None:
        """Leave the lines; those that are the first now pass, with this snapshot."""
        next_ones: dict[Pass, None] = {}
        for key in entry.keys:
            line = self._lines[key]
            was_first = line[0] is entry
            line.remove(entry)
            if not line:
                del self._lines[key]
            elif was_first:
                next_ones[line[0]] = None
        for following in next_ones:
            if all(self._lines[key][0] is following for key in following.keys):
                following.snapshot = snapshot
                wake(following.turn)


_OF_STORES: Final[WeakKeyDictionary[StoreCalls, Turnstile]] = WeakKeyDictionary()


def turnstile_of(store: StoreCalls) -> Turnstile:
    """The turnstile of the transactions of a store. Stores have one each, since they have other names for keys."""
    found = _OF_STORES.get(store)
    if found is None:
        found = _OF_STORES[store] = Turnstile()
    return found
