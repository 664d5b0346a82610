"""Imports the compiled accelerators, which are optional and change only the speed.

Each does what the Python beside it does in the usual case, and leaves every other case to that. None is used if
`ETCD_AIO_PURE_PYTHON` is set to anything but 0, if the installed package has none (PyPy, free-threaded builds,
machines without a compiler), or if a check at import shows that it does not fit.
"""

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import TypeVar

_A = TypeVar("_A")


class UnusableError(Exception):
    """An accelerator is not used; the text says why. Not seen by users."""


def load(name: str, check: Callable[[ModuleType], _A], environ: Mapping[str, str] = os.environ) -> _A:
    """Import the accelerator of a package, such as "codec", and return what `check` makes of it.

    Raises:
        UnusableError: it is turned off, not there, or does not fit.
    """
    if environ.get("ETCD_AIO_PURE_PYTHON", "0") not in {"", "0"}:
        raise UnusableError("ETCD_AIO_PURE_PYTHON is set")
    if "t" in getattr(sys, "abiflags", ""):  # importing it would turn the interpreter's lock on
        raise UnusableError("this Python is free-threaded")
    try:
        module = import_module(f"etcd_aio.{name}._speedups")
    except ImportError as error:
        is_missing = isinstance(error, ModuleNotFoundError)
        raise UnusableError("not installed" if is_missing else f"it cannot be loaded: {error}") from None
    try:
        return check(module)
    except (AttributeError, TypeError, ValueError) as error:
        raise UnusableError(f"it does not fit: {error}") from None


def load_if_usable(name: str, check: Callable[[ModuleType], _A]) -> tuple[_A | None, str]:
    """Return what `check` makes of an accelerator, or None; and "accelerated", or "pure Python" with the reason."""
    try:
        return load(name, check), "accelerated"
    except UnusableError as error:
        return None, f"pure Python ({error})"
