"""Default observers: those of every client that is made from now on, for instrumentation of a whole process."""

from etcd_aio.observing.observer import Observer

_defaults: tuple[Observer, ...] = ()


def add_default(observer: Observer) -> None:
    """Let an observer be told by every client that is made from now on. Safe to repeat."""
    global _defaults
    if observer not in _defaults:
        _defaults = (*_defaults, observer)


def remove_default(observer: Observer) -> None:
    """Undo `add_default`, for clients that are made from now on. Safe to repeat."""
    global _defaults
    _defaults = tuple(one for one in _defaults if one is not observer)


def default_observers() -> tuple[Observer, ...]:
    """The default observers of now."""
    return _defaults
