"""Slot: a key of the client's own, through which it makes one write at a time. Pure.

Each write is a txn with the condition "the slot's mod_revision is still m" that also puts the slot. Whatever number of
copies of it travels, and for however long, at most one is applied: that one ends the only interval of revisions in
which the slot's mod_revision is m. While the slot exists every put of it gives a larger mod_revision, and a slot that
was deleted and created again gets a larger one too, so m never comes back. (A condition "the slot is missing" can hold
again after a deletion, so no write creates its own slot.)

    state       meaning                                      followed by
    NEW         its creation is under way                    FREE, GONE
    FREE        nothing travels that could change it         BUSY, GONE (the lease is lost)
    BUSY        copies of write n travel, its caller waits   FREE (n was applied, or is refused for good)
                                                             UNSETTLED (the caller does not know, and stops)
                                                             HISTORY (it is not as this client left it)
    UNSETTLED   copies of write n may travel, nothing waits  FREE (n was applied), GONE (n was not: it is deleted)
                                                             HISTORY (it is not as this client left it)
    HISTORY     every copy is dead; what happened is read    GONE
    GONE        the slot is never used again                 -

The client and all copies of a write agree on n, which the slot's value holds, and on m. So the answer to any copy, or
to the settling txn, says whether the write was applied: see `write_verdicts.py`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from etcd_aio import Key, op
from etcd_aio.base import when_constructed


class SlotState(Enum):
    """The state of a slot; see above."""

    NEW = "new"
    FREE = "free"
    BUSY = "busy"
    UNSETTLED = "unsettled"
    HISTORY = "history"
    GONE = "gone"

    __hash__ = object.__hash__  # that of an enum is a function in Python, and every write looks into the table


_MAY_FOLLOW: Final[Mapping[SlotState, frozenset[SlotState]]] = {
    SlotState.NEW: frozenset({SlotState.FREE, SlotState.GONE}),
    SlotState.FREE: frozenset({SlotState.BUSY, SlotState.GONE}),
    SlotState.BUSY: frozenset({SlotState.FREE, SlotState.UNSETTLED, SlotState.HISTORY}),
    SlotState.UNSETTLED: frozenset({SlotState.FREE, SlotState.HISTORY, SlotState.GONE}),
    SlotState.HISTORY: frozenset({SlotState.GONE}),
    SlotState.GONE: frozenset(),
}


class Slot:
    """One slot; see above.

    Attributes:
        key: its key. A key is never used for two slots.
        lease: the id of the lease that it is attached to.
        state: see above.
        number: n, of the last write that was begun; the first is 1.
        revision: m, its mod_revision before that write; 0 before it is created.
        comparison: of its mod_revision with some number, to make the condition of its txns of.
        look: reads the slot.
    """

    __slots__ = ("comparison", "key", "lease", "look", "number", "revision", "state")

    def __init__(self, key: bytes, lease: int) -> None:
        self.key = key
        self.lease = lease
        self.comparison = Key(key).mod_revision == 0
        self.look = op.get(key)
        self.state = SlotState.NEW
        self.number = 0
        self.revision = 0

    @when_constructed
    def __repr__(self) -> str:
        return f"<Slot {self.key!r} {self.state.value} n={self.number} m={self.revision}>"

    def move(self, state: SlotState, revision: int = 0) -> None:
        """Change the state. `BUSY` begins the next write.

        Args:
            state: the next state.
            revision: the slot's mod_revision from now on, if that has changed.

        Raises:
            RuntimeError: a bug: this state cannot follow.
        """
        if state not in _MAY_FOLLOW[self.state]:
            raise RuntimeError(f"a slot that is {self.state.value} cannot become {state.value}")
        self.state = state
        if state is SlotState.BUSY:
            self.number += 1
        elif revision:
            self.revision = revision
