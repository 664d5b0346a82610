"""The signals of a command: layers of handlers, of which the youngest counts."""

import asyncio
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final


def _of(*names: str) -> tuple[signal.Signals, ...]:
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))  # Windows has few


INTERRUPTS: Final = _of("SIGINT", "SIGTERM", "SIGHUP")
"""Signals that end a command, which leaves its blocks then."""

UNHEEDED: Final = _of("SIGUSR1", "SIGUSR2", "SIGALRM")
"""Signals that do nothing, as in programs in Go, of which etcdctl is one; a command under a lock gets them."""

_Handler = Callable[[signal.Signals], object]
_layers: Final[list[tuple[frozenset[signal.Signals], _Handler]]] = []


def wanted(numbers: Iterable[signal.Signals]) -> tuple[signal.Signals, ...]:
    """Select the signals that this process handles: `nohup` and `trap ''` make a program ignore some.

    A shell without job control lets its background commands ignore SIGINT; `kill -INT` ends them all the same, as it
    ends etcdctl.
    """
    ignorable = (*_of("SIGHUP", "SIGQUIT", "SIGTSTP"), *UNHEEDED)
    return tuple(one for one in numbers if one not in ignorable or signal.getsignal(one) is not signal.SIG_IGN)


@contextmanager
def handled(numbers: Iterable[signal.Signals], handler: _Handler) -> Iterator[None]:
    """Within the block a handler gets these signals, in the loop; after it they do what they did before."""
    loop = asyncio.get_running_loop()
    layer = frozenset(wanted(numbers)), handler
    _layers.append(layer)
    for one in layer[0]:
        loop.add_signal_handler(one, handler, one)
    try:
        yield
    finally:
        _layers.remove(layer)
        for one in layer[0]:
            below = next((handler for numbers, handler in reversed(_layers) if one in numbers), None)
            if below is None:
                loop.remove_signal_handler(one)
            else:
                loop.add_signal_handler(one, below, one)
