"""Delivery: what is known about a failed attempt.

Knows: four facts. Never knows: who is asking, or whether to retry. Only the engine can tell them apart, so it says
which one holds, and the value rises with the failure. No string comparison ever stands in for it.
"""

from enum import Enum
from typing import Final


class Delivery(Enum):
    """How far a failed attempt got."""

    UNSENT = "unsent"
    """The request never left this machine whole, so no handler can have run."""

    UNPROCESSED = "unprocessed"
    """The server promises that it did nothing: GOAWAY below our stream, or REFUSED_STREAM."""

    UNKNOWN = "unknown"
    """It was sent and no answer came: the server may have carried it out, or may still do so."""

    ANSWERED = "answered"
    """A gRPC status came back."""

    @property
    def is_definite(self) -> bool:
        """Whether this fact alone proves that the server did nothing."""
        return self is Delivery.UNSENT or self is Delivery.UNPROCESSED

    @property
    def words(self) -> str:
        """The same for people, as an error's notes say it."""
        return _WORDS[self]


_WORDS: Final = {
    Delivery.UNSENT: "not sent",
    Delivery.UNPROCESSED: "not processed",
    Delivery.UNKNOWN: "no answer",
    Delivery.ANSWERED: "answered",
}
