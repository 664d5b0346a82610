"""Isolation levels: which state a transaction reads, and what must be unchanged when it commits. Pure.

    level                   reads                                     commits if unchanged
    serializable_snapshot   the first is linearizable, and fixes a    every key that was read or is written
                            revision; the others are of that revision
    serializable            the same                                  every key that was read
    repeatable_reads        the newest state, each key once           every key that was read
    read_committed          the newest state                          always

A key is unchanged if its `mod_revision` is the one that was read; 0 stands for a missing key. A range is unchanged if
each of its keys is, and no key in it has been changed since: new keys have a greater `mod_revision`, deleted keys are
among those that were read. Only the serializable levels guard against new keys in a range.
"""

from typing import Final, Literal, TypeAlias, get_args

from etcd_aio.arguments import one_of
from etcd_aio.dataclass import dataclass

Isolation: TypeAlias = Literal["serializable_snapshot", "serializable", "repeatable_reads", "read_committed"]
"""The isolation level of a transaction."""


@dataclass(frozen=True, slots=True)
class Level:
    """The demands of an isolation level.

    Attributes:
        is_pinned: all reads are of one revision.
        caches: each key is read once.
        guards_reads: keys that were read must be unchanged.
        guards_ranges: ranges that were read must have no new keys.
        guards_writes: keys that are written must be unchanged since the first read.
    """

    is_pinned: bool
    caches: bool
    guards_reads: bool
    guards_ranges: bool
    guards_writes: bool


_LEVELS: Final[dict[str, Level]] = {
    "serializable_snapshot": Level(True, True, True, True, True),
    "serializable": Level(True, True, True, True, False),
    "repeatable_reads": Level(False, True, True, False, False),
    "read_committed": Level(False, False, False, False, False),
}


def level_of(isolation: Isolation) -> Level:
    """The demands of this level.

    Raises:
        InvalidRequestError: there is no such level.
    """
    return _LEVELS[one_of(get_args(Isolation), isolation, "isolation")]
