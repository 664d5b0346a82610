"""KnownItems: the items that a process knows of, and which of them it tries to take. Pure.

Consumers of several processes that all try the first item would mostly fail. So each draws one of the first items of a
window, which doubles with each claim that fails and shrinks slowly with each that succeeds: one claim in ten or so
fails, with any number of consumers. And after a put it waits for a random time, in which it may see that another was
faster.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from typing import Final

from etcd_aio.dataclass import dataclass

MOST: Final = 256
"""Items that a process keeps in mind; it lists again when they are taken."""

_FIRST_SPREAD: Final = 0.001  # seconds, after the first lost claim
_LONGEST_SPREAD: Final = 0.050  # seconds
_GROWTH: Final = 4  # many idle processes are apart after three lost claims

LARGEST_WINDOW: Final = 128
"""Items; with more than about sixteen consumers, more than one claim in ten fails."""

_SHRINKING: Final = 15 / 16  # of the window, by a claim that succeeds


@dataclass(frozen=True, slots=True, order=True)
class KnownItem:
    """An item that may still be there.

    Attributes:
        key: its key.
        revision: its `mod_revision`.
    """

    key: bytes
    revision: int


class KnownItems:
    """The first items of a queue in key order, as far as they are known.

    Attributes:
        keys: their keys, in order.
        revisions: their `mod_revision`s, by key.
        is_complete: whether no item is left out.
    """

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self.revisions: dict[bytes, int] = {}
        self.is_complete = False

    def __len__(self) -> int:
        return len(self.keys)

    def replace(self, found: Iterable[KnownItem], *, is_complete: bool) -> None:
        """Know these and no others."""
        self.revisions = {item.key: item.revision for item in found}
        self.keys = sorted(self.revisions)
        self.is_complete = is_complete

    def forget(self) -> None:
        """Know none."""
        self.replace((), is_complete=False)

    def add(self, found: KnownItem, most: int | None = None) -> None:
        """An item was put. If they are more than `most`, the last one is left out. Default: `MOST`."""
        if found.key not in self.revisions:
            if not self.is_complete and (not self.keys or found.key > self.keys[-1]):
                return  # items before it may be left out
            insort(self.keys, found.key)
        self.revisions[found.key] = found.revision
        if len(self.keys) > (MOST if most is None else most):
            del self.revisions[self.keys.pop()]
            self.is_complete = False

    def remove(self, key: bytes) -> None:
        """An item is gone."""
        if self.revisions.pop(key, None) is not None:
            del self.keys[bisect_left(self.keys, key)]

    def pick(self, count: int, window: float, random: Callable[[], float]) -> list[KnownItem]:
        """Choose items to try: the first ones, or some further back if others compete.

        Args:
            count: how many at most.
            window: of how many items one is drawn; 1 for the first.
            random: returns a number in [0, 1).
        """
        first = int(random() * min(len(self.keys), window))
        return [KnownItem(key, self.revisions[key]) for key in self.keys[first : first + count]]


class Spread:
    """How far the consumers of several processes keep apart, by how their claims have ended.

    Attributes:
        window: of how many items one is drawn.
        seconds: the longest time to wait after a put.
    """

    def __init__(self) -> None:
        self.window = 1.0
        self.seconds = 0.0

    def won(self) -> None:
        """A claim has succeeded."""
        self.window = max(self.window * _SHRINKING, 1.0)
        self.seconds = self.seconds / 2 if self.seconds > _FIRST_SPREAD else 0.0

    def lost(self) -> None:
        """Another process was faster."""
        self.window = min(2 * self.window, LARGEST_WINDOW)
        self.seconds = min(max(self.seconds * _GROWTH, _FIRST_SPREAD), _LONGEST_SPREAD)
