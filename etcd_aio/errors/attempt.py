"""One failed attempt: its gRPC status, how far the request got, and what may follow."""

from enum import Enum, IntEnum
from typing import Final, Self

from etcd_aio.dataclass import dataclass

MAX_MESSAGE_BYTES: Final = 4096
"""Longest server text that an error keeps, in UTF-8 bytes. gRPC sets no limit; the longest in the table has 74."""

_CUT: Final = "... (cut)"


class StatusCode(IntEnum):
    """A gRPC status code, with gRPC's own name and number."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16

    @classmethod
    def from_number(cls, number: int) -> Self:
        """The code of `number`. Numbers that gRPC does not define are UNKNOWN, as its specification asks."""
        try:
            return cls(number)
        except ValueError:
            return cls(cls.UNKNOWN)


class Delivery(Enum):
    """How far a failed attempt got. Only the transport can tell, and it never concludes this from an error's text."""

    UNSENT = "unsent"
    """The request did not leave this machine completely, so the server cannot have run it."""

    UNPROCESSED = "unprocessed"
    """The server promises that it did not process the request: GOAWAY with a lower stream id, or REFUSED_STREAM."""

    UNKNOWN = "unknown"
    """The request was sent and no answer came: the server may have executed it, or may still do so."""

    ANSWERED = "answered"
    """The server answered with a gRPC status."""

    @property
    def is_definite(self) -> bool:
        """Whether this alone proves that the server did not execute the request."""
        return self is Delivery.UNSENT or self is Delivery.UNPROCESSED

    @property
    def words(self) -> str:
        """The text for error messages."""
        return _DELIVERY_WORDS[self]


_DELIVERY_WORDS: Final = {
    Delivery.UNSENT: "not sent",
    Delivery.UNPROCESSED: "not processed",
    Delivery.UNKNOWN: "no answer",
    Delivery.ANSWERED: "answered",
}


class RetryHint(Enum):
    """The meaning of a server's error for another attempt. The error handler decides, by attempts and time too."""

    RAISE = "raise"
    """Another attempt would fail in the same way: raise the error."""

    REFRESH_TOKEN = "refresh-token"  # noqa: S105 - not a token
    """Rejected because of its token before it could run: get a new token and retry, mutations too."""

    RETRY_ELSEWHERE = "retry-elsewhere"
    """Rejected before it could run, for a temporary reason or one of this member's: retry, mutations too."""

    RETRY_IF_REPEATABLE = "retry-if-repeatable"
    """The request may have run: retry what is safe to repeat, raise the rest with `maybe_applied`."""


class LocalReason(Enum):
    """Why the client itself ended an attempt."""

    DEADLINE = "deadline"
    """The attempt's deadline passed."""

    REPLY_TOO_LARGE = "reply-too-large"
    """The reply exceeds the client's limit; another attempt would get the same one."""

    MALFORMED = "malformed"
    """The message is complete and cannot be read. The next stream would begin with the same one."""

    GIVEN_UP = "given-up"
    """The member is silent while others answer, and the call can move to one of them: see `Connection.give_up`."""


class AttemptFailure(Exception):  # noqa: N818 - users never see it: the error handler translates it
    """Raised by the transport when an attempt ends without a reply.

    The error handler retries the attempt or translates the failure into an `EtcdError`.

    Attributes:
        code: gRPC status, the server's own or the one gRPC prescribes for a local failure.
        message: the server's text, or the transport's for a local failure.
        delivery: how far the attempt got.
        pushback: seconds the server asks the client to wait (`grpc-retry-pushback-ms`); negative means "do not retry".
        reason: why the client ended the attempt; None if it did not.
        beginning: the first bytes of a stream's message that was too large. They may hold secrets, so the handler of
            the failure removes them with `take_beginning`.
    """

    def __init__(
        self,
        code: StatusCode,
        message: str,
        delivery: Delivery,
        *,
        pushback: float | None = None,
        reason: LocalReason | None = None,
    ) -> None:
        text = sanitize(message)  # the peer's text goes into tracebacks and notes
        super().__init__(text)
        self.code = code
        self.message = text
        self.delivery = delivery
        self.pushback = pushback
        self.reason = reason
        self.beginning = b""

    def take_beginning(self) -> bytes:
        """Return `beginning` and clear it."""
        beginning, self.beginning = self.beginning, b""
        return beginning

    def __str__(self) -> str:
        return f"{self.delivery.words}: {self.message} ({self.code.name})"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One failed attempt of a call, as `EtcdError.attempts` lists it.

    Attributes:
        endpoint: the endpoint that was tried; empty if no connection was available.
        code: gRPC status it ended with.
        delivery: how far it got.
        seconds: how long it took.
        message: text of the server or of the transport.
    """

    endpoint: str
    code: StatusCode
    delivery: Delivery
    seconds: float
    message: str

    def __str__(self) -> str:
        where = self.endpoint or "no endpoint"
        return f"{where}: {self.delivery.words} after {shown_seconds(self.seconds)}: {self.message} ({self.code.name})"


def printable(text: str) -> str:
    """A text as one line: what is no printable character, such as one that controls a terminal, is escaped.

    All that comes from the network goes through this before it gets into an error, a log line or the output of a
    command.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def sanitize(text: str) -> str:
    """A peer's text for errors and logs: printable, and at most `MAX_MESSAGE_BYTES`."""
    head = printable(text[: MAX_MESSAGE_BYTES + 1])  # no character is shorter than a byte: the rest would be cut anyway
    raw = head.encode()
    if len(raw) <= MAX_MESSAGE_BYTES:
        return head
    return raw[: MAX_MESSAGE_BYTES - len(_CUT)].decode(errors="ignore") + _CUT


def shown_seconds(seconds: float) -> str:
    """A duration for error messages: `3 ms`, `0.25 s`, `2 s`."""
    if seconds < 0.1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.2g} s"
    return f"{seconds:.0f} s"
