"""Compiler: makes functions of written source, and links them to those they call.

Knows: functions by name, and which need which. Never knows: what is written in them.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, TypeAlias

from etcd_aio.codec.source import Source

Function: TypeAlias = Callable[..., Any]
"""What was made by exec has no type but this."""


class Unit(Protocol):
    """One function that can be compiled."""

    @property
    def name(self) -> str:
        """The function's name, which no other unit has."""
        ...

    def source(self) -> Source:
        """Its source, which defines it."""
        ...

    def namespace(self) -> dict[str, object]:
        """What its source refers to, other functions left out."""
        ...

    def needs(self) -> "Iterable[Unit]":
        """The functions that it calls; it may be among them, directly or through others."""
        ...


# One is here only if all that it calls is too, so that no thread ever meets half of them. Two threads may compile the
# same one at a time; then either serves.
_functions: Final[dict[str, Function]] = {}


def function(unit: Unit) -> Function:
    """The function of a unit, compiled with all that it needs if it is asked for the first time."""
    found = _functions.get(unit.name)
    if found is None:
        fresh: dict[str, Function] = {}
        found = _compiled(unit, fresh)
        _functions.update(fresh)
    return found


def _compiled(unit: Unit, fresh: dict[str, Function]) -> Function:
    found = _functions.get(unit.name) or fresh.get(unit.name)
    if found is not None:
        return found
    namespace = unit.namespace()
    unit.source().compile(unit.name, namespace)
    made: Any = namespace[unit.name]
    fresh[unit.name] = made  # before what it needs, which may need it
    for inner in unit.needs():
        namespace[inner.name] = _compiled(inner, fresh)
    return made  # type: ignore[no-any-return] # see Function
