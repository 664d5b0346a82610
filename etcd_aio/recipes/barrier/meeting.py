"""Meetings: what a participant of a double barrier does next, by the keys that are there. Pure.

Each participant has a key; the order of their `create_revision` is that of their arrival. The one that completes the
number puts `ready`, with its own `create_revision` as the value, and each one enters whose key is older than `ready`,
and not newer than that. So an older `ready`, of an earlier meeting, lets no one in, and neither does it let in a key
that was created while it was on its way. The `ready` of Go's recipe has no value: all enter that are older.

Leaving: all but the oldest delete their keys at once. The oldest waits until it is the last one, and all others wait
for the oldest. If it dies, its key goes with its lease, and the next one is the oldest.
"""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TypeAlias

from etcd_aio.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Participant:
    """The key of a participant.

    Attributes:
        key: the key.
        revision: its `create_revision`.
    """

    key: bytes
    revision: int


class MeetingStep(Enum):
    """The next step of a participant."""

    TOO_MANY = "delete its key: there is no place for it"
    WAIT = "wait for `ready`"
    ENTER = "go in: `ready` is newer than its key"
    GONE = "its key is not there any more"
    LAST = "delete its key and `ready`, and go"
    LEFT = "go: no key of the meeting is there any more"


@dataclass(frozen=True, slots=True)
class Open:
    """Put `ready`, if all these keys are still there: the number is complete.

    Attributes:
        members: the participants of the meeting, in the order of their arrival.
    """

    members: tuple[Participant, ...]


@dataclass(frozen=True, slots=True)
class Await:
    """Wait until a key is deleted, then look again.

    Attributes:
        other: whose key.
        deletes_own: whether the own key is deleted before.
    """

    other: Participant
    deletes_own: bool


Entering: TypeAlias = MeetingStep | Open
Leaving: TypeAlias = MeetingStep | Await


def entering(
    own: Participant,
    listed: Iterable[Participant],
    ready: int,
    count: int,
    *,
    last: int | None = None,
    is_overdue: bool = False,
) -> Entering:
    """The next step of a participant that is entering.

    Args:
        own: its key.
        listed: all keys of participants.
        ready: the `mod_revision` of `ready`; 0 if it is missing.
        count: how many enter together.
        last: the `create_revision` of the key of the last participant of its meeting. None if `ready` does not say it:
            then all participate whose keys are older than `ready`.
        is_overdue: whether it has waited for long. If the number is complete then, `ready` was deleted, as by an
            operator, before this participant saw it.
    """
    known = sorted(listed, key=_revision)
    if own not in known:
        return MeetingStep.GONE
    if ready > own.revision:
        return MeetingStep.ENTER if last is None or own.revision <= last else MeetingStep.TOO_MANY
    before = [member for member in known if member.revision < own.revision]
    if len(before) >= count:
        return MeetingStep.TOO_MANY
    others = tuple(member for member in before if member.revision > ready)
    if len(others) == count - 1:
        return Open((*others, own))
    first = tuple(member for member in known if member.revision > ready)[:count]
    return Open(first) if is_overdue and own in first and len(first) == count else MeetingStep.WAIT


def leaving(own: Participant, listed: Iterable[Participant], last: int) -> Leaving:
    """The next step of a participant that is leaving.

    Args:
        own: its key, which may be deleted already.
        listed: all keys of participants.
        last: the `create_revision` of the key of the last participant, or the `mod_revision` of the `ready` that it
            entered by.
    """
    known: Sequence[Participant] = sorted((member for member in listed if member.revision <= last), key=_revision)
    if not known:
        return MeetingStep.LEFT
    if known[0] != own:
        return Await(known[0], deletes_own=own in known)
    return MeetingStep.LAST if len(known) == 1 else Await(known[-1], deletes_own=False)


def _revision(member: Participant) -> int:
    return member.revision
