"""Outcome of a write: what an answer, an error, or the history of the slot says about it. Pure.

    of a copy of write n, or of the settling txn      meaning
    the slot has number n                              an earlier copy was applied, at the slot's mod_revision
    the slot is missing, or has another number         no copy will ever be applied; history tells whether one was
    an error that is definite                          not applied, and never will be
    any other error                                    not known

An answer to a copy that was applied itself needs no judgement, nor does a settling delete that was applied.
"""

from enum import Enum
from typing import Final

from etcd_aio import Event, KeyValue
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import EtcdError, LeaseNotFoundError


class Branch(Enum):
    """Which operations of a write ran; the slot's value holds it."""

    THEN = b"T"
    OTHERWISE = b"F"
    DUPLICATE = b"I"  # none: the id of the write was used before


_BRANCHES: Final = {branch.value: branch for branch in Branch}
CREATED: Final = b"0:-"
"""The value of a slot before its first write."""


@dataclass(frozen=True, slots=True)
class Applied:
    """A write was applied.

    Attributes:
        revision: at which revision.
        branch: which of its operations ran.
    """

    revision: int
    branch: Branch


class Fate(Enum):
    """The knowledge about a write with no sign of being applied."""

    NOT_APPLIED = "not applied, and never will be"
    IN_HISTORY = "no copy will be applied from now on"
    UNKNOWN = "copies may still be applied, or it cannot be known any more"


class WriteRefusal(Enum):
    """The meaning of an error for the write that it ends."""

    DEFINITE = "not applied, and never will be"
    LEASE = "the same, since a lease does not exist: the write's own, or that of the slot"
    OPEN = "it may have been applied"


def slot_value(number: int, branch: Branch) -> bytes:
    """The value that write `number` gives its slot."""
    return b"%d:%b" % (number, branch._value_)  # `.value` is a function call


def judge(number: int, found: KeyValue | None) -> Applied | Fate:
    """Judge write `number` by the slot as it is now: `IN_HISTORY` if the write is not the slot's last."""
    return _applied(number, found) or Fate.IN_HISTORY


def judge_history(number: int, first: Event) -> Applied | Fate:
    """Judge write `number` by the first change of the slot after revision m.

    A copy needs the slot's mod_revision to be m, so the first change is by a copy, or no copy was applied.
    """
    return (_applied(number, first.kv) if first.is_put else None) or Fate.NOT_APPLIED


def judge_error(error: EtcdError) -> WriteRefusal:
    """Judge a write by an error of its own call."""
    if error.maybe_applied:
        return WriteRefusal.OPEN
    return WriteRefusal.LEASE if isinstance(error, LeaseNotFoundError) else WriteRefusal.DEFINITE


def _applied(number: int, kv: KeyValue | None) -> Applied | None:
    if kv is None:
        return None
    found, _, branch = kv.value.partition(b":")
    if found != b"%d" % number or branch not in _BRANCHES:
        return None
    return Applied(kv.mod_revision, _BRANCHES[branch])
