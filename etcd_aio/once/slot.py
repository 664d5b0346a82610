"""Slot: a key of the client's own, through which it makes one write at a time. Pure.

Each write is a txn with the condition "the slot's mod_revision is still m" that also puts the slot. Whatever number of
copies of it travels, and for however long, at most one is applied: that one ends the only interval of revisions in
which the slot's mod_revision is m. While the slot exists every put of it gives a larger mod_revision, and a slot that
was deleted and created again gets a larger one too, so m never comes back. (A condition "the slot is missing" can hold
again after a deletion, so no write creates its own slot.)

    state       meaning                                        left by
    NEW         its creation is under way                      CREATED, LOST
    FREE        nothing travels that could change it           TAKEN, LOST
    BUSY        copies of write n travel, its caller waits     APPLIED, REFUSED, GIVEN_UP, MISSING
    UNSETTLED   copies of write n may travel, nothing waits    APPLIED, DELETED, MISSING
    HISTORY     every copy is dead; what happened is read      TOLD
    GONE        the slot is never used again                   -

The client and all copies of a write agree on n, which the slot's value holds, and on m. So the answer to any copy, or
to the settling txn, says whether the write was applied: see `write_verdicts.py`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from etcd_aio import Key, op
from etcd_aio.base import when_constructed


class SlotState(Enum):
    """What may happen to a slot; see above."""

    NEW = "new"
    FREE = "free"
    BUSY = "busy"
    UNSETTLED = "unsettled"
    HISTORY = "history"
    GONE = "gone"

    __hash__ = object.__hash__  # that of an enum is a function in Python, and every write looks into the table


class Transition(Enum):
    """What changes the state of a slot."""

    CREATED = "the slot was created, or found, at a revision"
    TAKEN = "a write begins"
    APPLIED = "write n was applied at a revision"
    REFUSED = "write n was refused for good, and no copy of it travels"
    GIVEN_UP = "the caller does not know, and stops"
    DELETED = "the settling delete was applied: write n was not, and will not be"
    MISSING = "the slot is not there, or is not as this client left it"
    TOLD = "the history of the slot told what happened, or is compacted"
    LOST = "the lease of the slot is lost while nothing travels"

    __hash__ = object.__hash__


_NEXT: Final[Mapping[tuple[SlotState, Transition], SlotState]] = {
    (SlotState.NEW, Transition.CREATED): SlotState.FREE,
    (SlotState.NEW, Transition.LOST): SlotState.GONE,
    (SlotState.FREE, Transition.TAKEN): SlotState.BUSY,
    (SlotState.FREE, Transition.LOST): SlotState.GONE,
    (SlotState.BUSY, Transition.APPLIED): SlotState.FREE,
    (SlotState.BUSY, Transition.REFUSED): SlotState.FREE,
    (SlotState.BUSY, Transition.GIVEN_UP): SlotState.UNSETTLED,
    (SlotState.BUSY, Transition.MISSING): SlotState.HISTORY,
    (SlotState.UNSETTLED, Transition.APPLIED): SlotState.FREE,
    (SlotState.UNSETTLED, Transition.DELETED): SlotState.GONE,
    (SlotState.UNSETTLED, Transition.MISSING): SlotState.HISTORY,
    (SlotState.HISTORY, Transition.TOLD): SlotState.GONE,
}


class Slot:
    """One slot; see above.

    Attributes:
        key: its key. A key is never used for two slots.
        lease: the id of the lease that it is attached to.
        state: what may happen to it.
        number: n, of the last write that was begun; the first is 1.
        revision: m, its mod_revision before that write; 0 before it is created.
        comparison: of its mod_revision with some number: what the condition of its txns is made of.
        look: what reads the slot.
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

    def move(self, transition: Transition, revision: int = 0) -> None:
        """Change the state.

        Args:
            transition: what happened.
            revision: the slot's mod_revision from now on, for `CREATED` and `APPLIED`.

        Raises:
            KeyError: a bug: this cannot happen in this state.
        """
        self.state = _NEXT[self.state, transition]
        if transition is Transition.TAKEN:
            self.number += 1
        elif revision:
            self.revision = revision
