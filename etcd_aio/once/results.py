"""Results of exactly-once writes: the outcome of a write that was not answered in time, and counters."""

from typing import TypeAlias

from etcd_aio import DeleteResult, PutResult, TxnResult
from etcd_aio.dataclass import dataclass

WriteResult: TypeAlias = PutResult | DeleteResult | TxnResult
"""The result of an exactly-once write."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a write that raised `OutcomeUnknownError`. It does not change any more.

    Attributes:
        applied: whether the write was applied. If not, no copy of it will ever be.
        revision: at which revision; 0 if it was not applied.
        result: what the call would have returned; None if it was not applied, or if the history is compacted.
    """

    applied: bool
    revision: int = 0
    result: WriteResult | None = None


@dataclass(frozen=True, slots=True)
class OnceStatistics:
    """Counters of an `ExactlyOnce`.

    Attributes:
        slots: keys that it uses on the server now.
        in_use: of these, those with a write under way.
        unsettled: of these, those whose write was given up, and whose outcome is not known yet.
        replays: writes whose result was computed, since their own answer was lost.
        settled_applied: writes that were given up, and found applied.
        settled_not_applied: writes that were given up, and found not applied.
        lease_losses: how often the lease of all slots was lost.
    """

    slots: int
    in_use: int
    unsettled: int
    replays: int
    settled_applied: int
    settled_not_applied: int
    lease_losses: int
