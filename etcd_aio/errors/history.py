"""History: what became of the call that an error ends, filled in once, just before it is raised.

Knows: the attempts of a call, and how they are noted. Never knows: why the call ended.
"""

from itertools import groupby
from typing import Final, TypeVar

from etcd_aio.errors.attempt import Attempt
from etcd_aio.errors.base import EtcdError
from etcd_aio.errors.text import shown_seconds

_MAX_NOTES: Final = 10  # a traceback with more lines than this hides its own first line

E = TypeVar("E", bound=EtcdError)


def with_history(error: E, attempts: tuple[Attempt, ...], *, maybe_applied: bool, seconds: float = 0.0) -> E:
    """The same error, with the history of its call, which is also noted on it.

    Args:
        error: what the call ends with.
        attempts: those that failed, oldest first.
        maybe_applied: whether the server may have carried out the call, now or later.
        seconds: how long the call took.
    """
    error.attempts = attempts
    error.maybe_applied = maybe_applied
    error.seconds = seconds
    if attempts:
        error.endpoint = attempts[-1].endpoint
    notes = _notes(attempts)
    skipped = len(notes) - _MAX_NOTES
    if skipped > 0:
        error.add_note(f"({skipped} earlier lines left out)")
    for note in notes[-_MAX_NOTES:]:
        error.add_note(note)
    return error


def _notes(attempts: tuple[Attempt, ...]) -> list[str]:
    """One line for each attempt; attempts in a row that ended alike share one."""
    notes = []
    first = 1
    for _, group in groupby(attempts, key=lambda one: (one.code, one.delivery, one.message)):
        alike = tuple(group)
        notes.append(_note(first, alike))
        first += len(alike)
    return notes


def _note(first: int, alike: tuple[Attempt, ...]) -> str:
    one = alike[0]
    if len(alike) == 1:
        return f"attempt {first} on {one}"
    *others, last = sorted({each.endpoint or "no endpoint" for each in alike})
    where = f"{', '.join(others)} and {last}" if others else last
    shortest, longest = (shown_seconds(pick(each.seconds for each in alike)) for pick in (min, max))
    took = longest if shortest == longest else f"{shortest} to {longest}"
    return (
        f"attempts {first} to {first + len(alike) - 1} on {where}: "
        f"{one.delivery.words} after {took}: {one.message} ({one.code.name})"
    )
