"""One failed attempt: as the transport raises it, and as an error remembers it.

Knows: status, delivery and where. Never knows: calls, retries or etcd's messages.
"""

from dataclasses import dataclass
from enum import Enum

from etcd_aio.errors.delivery import Delivery
from etcd_aio.errors.status import StatusCode
from etcd_aio.errors.text import sanitize, shown_seconds


class LocalReason(Enum):
    """Why the client itself ended an attempt."""

    DEADLINE = "deadline"
    """The attempt's deadline passed."""

    REPLY_TOO_LARGE = "reply-too-large"
    """The reply exceeds the client's limit; another attempt would get the same one."""

    GIVEN_UP = "given-up"
    """The member is silent while others answer, and the call can move to one of them: see `Connection.give_up`."""


class AttemptFailure(Exception):  # noqa: N818 - not an error of the user's: the error handler judges it first
    """What the transport raises when one attempt ends without a reply.

    It never reaches a user: the error handler retries it or translates it into an `EtcdError`.

    Attributes:
        code: gRPC status, the server's own or the one gRPC prescribes for a local failure.
        message: the server's text, or ours for a local failure.
        delivery: how far the attempt got.
        pushback: seconds the server asks us to wait (`grpc-retry-pushback-ms`); negative means "do not retry".
        reason: why the client ended the attempt; None if it did not.
        beginning: the first bytes of a stream's message that was too large, as far as they had come. They may hold
            secrets, so whoever handles the failure takes them by `take_beginning`.
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
        text = sanitize(message)  # it goes into tracebacks and notes, and may be any peer's
        super().__init__(text)
        self.code = code
        self.message = text
        self.delivery = delivery
        self.pushback = pushback
        self.reason = reason
        self.beginning = b""

    def take_beginning(self) -> bytes:
        """The beginning, which the failure keeps no longer."""
        beginning, self.beginning = self.beginning, b""
        return beginning

    def __str__(self) -> str:
        return f"{self.delivery.words}: {self.message} ({self.code.name})"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One failed attempt of a call, kept on the error for whoever reads it.

    Attributes:
        endpoint: the endpoint it was made on; empty if no sub-connection was available.
        code: gRPC status it ended with.
        delivery: how far it got.
        seconds: how long it took.
        message: what the server or the transport said.
    """

    endpoint: str
    code: StatusCode
    delivery: Delivery
    seconds: float
    message: str

    def __str__(self) -> str:
        where = self.endpoint or "no endpoint"
        return f"{where}: {self.delivery.words} after {shown_seconds(self.seconds)}: {self.message} ({self.code.name})"
