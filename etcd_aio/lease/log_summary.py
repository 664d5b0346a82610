"""Log summary: one line for many events of one kind, such as the loss of a thousand leases.

Knows: how often a line may be written. Never knows: what happened.
"""

import asyncio
import logging
from typing import Final

_PAUSE: Final = 1.0  # seconds between two lines: leases that were renewed one by one are lost one by one, too


class LogSummary:
    """Warnings of one kind. Those of one turn of the loop are one line, and lines are a second apart.

    Args:
        logger: where they go.
        several: what is said of more than one: takes their number, and the text of the first.
    """

    __slots__ = ("_count", "_first", "_logger", "_quiet_until", "_several")

    def __init__(self, logger: logging.Logger, several: str) -> None:
        self._logger = logger
        self._several = several
        self._count = 0
        self._first = ""
        self._quiet_until = 0.0

    def add(self, text: str) -> None:
        """It has happened: `text` is the line if it does not happen again soon."""
        self._count += 1
        if self._count > 1:
            return
        self._first = text
        loop = asyncio.get_running_loop()
        loop.call_at(max(loop.time(), self._quiet_until), self._say)

    def _say(self) -> None:
        if self._count == 1:
            self._logger.warning("%s", self._first)
        else:
            self._logger.warning(self._several, self._count, self._first)
        self._count = 0
        self._quiet_until = asyncio.get_running_loop().time() + _PAUSE
