"""The trace of a run: a line for each call, request on a stream, fault, and word of a client."""

import asyncio
from hashlib import sha256
from typing import Final

_SHOWN: Final = 100  # characters of a line


class Trace:
    """Collects lines.

    Args:
        keeps: whether the lines are kept; else there is their hash alone.
    """

    def __init__(self, *, keeps: bool = False) -> None:
        self._hash = sha256()
        self._keeps = keeps
        self.lines: list[str] = []

    def add(self, what: str, content: bytes = b"") -> None:
        """Add a line.

        Args:
            what: what happens now.
            content: bytes that belong to it, which are not shown.
        """
        line = f"{asyncio.get_running_loop().time()!r} {what}"
        self._hash.update(line.encode() + b"\n" + content + b"\n")
        if self._keeps:
            self.lines.append(line[:_SHOWN])

    @property
    def digest(self) -> str:
        """The hash of all lines."""
        return self._hash.hexdigest()
