"""Source: Python text that is written, compiled, and shown in tracebacks like any other.

Knows: indentation, and where Python looks for source. Never knows: what is written.
"""

import builtins
import keyword
import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

_TAKEN: Final = frozenset(dir(builtins)) | frozenset(keyword.kwlist)


class Source:
    """Lines of Python, being written."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def line(self, text: str) -> None:
        """Add one line."""
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, text: str) -> Iterator[None]:
        """Add a line that ends in a colon; what is added inside of the `with` stands under it."""
        self.line(text)
        self._depth += 1
        yield
        self._depth -= 1

    def __str__(self) -> str:
        return "\n".join(self._lines) + "\n"

    def compile(self, title: str, namespace: dict[str, Any]) -> None:
        """Run it in `namespace`. Tracebacks and debuggers show its lines under <etcd_aio `title`>."""
        text = str(self)
        filename = f"<etcd_aio {title}>"
        exec(compile(text, filename, "exec"), namespace)  # noqa: S102 - written by this package from its own classes
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)


def local_name(field: str, reserved: frozenset[str]) -> str:
    """The variable for a field: its own name, unless that is taken."""
    return f"{field}_" if field in reserved or field in _TAKEN else field
