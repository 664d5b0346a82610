"""Default observers: those of every client that is made from now on, for instrumentation of a whole process."""

from collections.abc import Iterable

from etcd_aio.observing.observer import Observer

_defaults: tuple[Observer, ...] = ()


def add_default(observer: Observer) -> None:
    """Add an observer to every client that is made from now on. Safe to repeat."""
    global _defaults
    if observer not in _defaults:
        _defaults = (*_defaults, observer)


def remove_default(observer: Observer) -> None:
    """Undo `add_default`, for clients that are made from now on. Safe to repeat."""
    global _defaults
    _defaults = tuple(known for known in _defaults if known is not observer)


def with_defaults(observers: Iterable[Observer]) -> tuple[Observer, ...]:
    """The observers of a client and the current default ones; each once, since one listed twice counts twice."""
    return tuple({id(observer): observer for observer in (*observers, *_defaults)}.values())
