"""Reprs of objects that may be shown before they are complete.

If a constructor refuses its arguments, the object is a local variable of a frame of the error. Reporters of errors show
these, and one that fails would hide the error.
"""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

S = TypeVar("S")


def when_constructed(method: Callable[[S], str]) -> Callable[[S], str]:
    """Decorate a `__repr__`: it says so if attributes that it reads are not set yet."""

    @wraps(method)
    def shown(self: S) -> str:
        try:
            return method(self)
        except AttributeError:
            return f"<{type(self).__name__} not constructed>"

    return shown
