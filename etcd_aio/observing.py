"""Observing: records of what happens to calls, streams and logins, and the type of a function that gets them.

An observer is called directly, in the client's event loop. It must return without waiting, and it cannot change a call:
an exception that it raises is logged, and the call continues.

Records hold no keys and no values, except that the text of an error may name keys. They never hold passwords or tokens.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from etcd_aio.errors import Attempt, EtcdError

logger = logging.getLogger("etcd_aio.observing")


@dataclass(frozen=True, slots=True, eq=False)
class CallStarted:
    """A call began. For a reply that the server streams, each message that is read counts as a call.

    The later records of a call refer to this object.

    Attributes:
        method: name of the RPC.
        endpoints: where the call may go.
        timeout: seconds that the call may take with all its attempts; infinity for no limit.
    """

    method: str
    endpoints: tuple[str, ...]
    timeout: float


@dataclass(frozen=True, slots=True, eq=False)
class AttemptFailed:
    """An attempt of a call failed; another attempt or the end of the call follows."""

    call: CallStarted
    attempt: Attempt


@dataclass(frozen=True, slots=True, eq=False)
class CallEnded:
    """A call returned, raised, or was cancelled. Exactly one such record follows each `CallStarted`.

    Attributes:
        call: the call.
        seconds: how long it took, with all attempts.
        error: the exception; None if the call returned. For a cancellation it is an `asyncio.CancelledError`.
    """

    call: CallStarted
    seconds: float
    error: BaseException | None


@dataclass(frozen=True, slots=True, eq=False)
class StreamOpened:
    """A stream that all watches, or all leases, of a client share is open at an endpoint."""

    method: str
    endpoint: str


@dataclass(frozen=True, slots=True, eq=False)
class StreamMoved:
    """Such a stream was lost or abandoned at an endpoint, or could not be opened there. The client tries again.

    Attributes:
        method: name of the RPC.
        endpoint: where the stream was, or should have been opened.
        error: the reason.
    """

    method: str
    endpoint: str
    error: EtcdError


@dataclass(frozen=True, slots=True, eq=False)
class StreamEnded:
    """Such a stream is over, until it is needed again.

    Attributes:
        method: name of the RPC.
        error: why there will be no further stream; None if the stream is not needed any more.
    """

    method: str
    error: EtcdError | None


@dataclass(frozen=True, slots=True, eq=False)
class LoginEnded:
    """The client has a new token, or could not get one.

    Attributes:
        seconds: how long it took.
        error: the reason if there is no token; else None.
    """

    seconds: float
    error: EtcdError | None


Record: TypeAlias = CallStarted | AttemptFailed | CallEnded | StreamOpened | StreamMoved | StreamEnded | LoginEnded


class Observer(Protocol):
    """A function that gets the records."""

    def __call__(self, record: Record, /) -> None:
        """Take note of a record."""


def notify(observer: Observer | None, record: Record) -> None:
    """Give an observer a record; an exception is logged."""
    if observer is None:
        return
    try:
        observer(record)
    except Exception:
        logger.exception("observer failed on %s; the client goes on", type(record).__name__)


class ObservedCall:
    """One call, as it is reported to an observer.

    Args:
        observer: the observer.
        started: the call.
        clock: the clock of the loop. The call may end when no loop runs any more.
    """

    __slots__ = ("_began", "_clock", "_observer", "_started")

    def __init__(self, observer: Observer, started: CallStarted, clock: Callable[[], float]) -> None:
        self._observer = observer
        self._started = started
        self._clock = clock
        self._began = clock()
        notify(observer, started)

    def attempt_failed(self, attempt: Attempt) -> None:
        """Report a failed attempt."""
        notify(self._observer, AttemptFailed(self._started, attempt))

    def ended(self, error: BaseException | None) -> None:
        """Report the end of the call."""
        notify(self._observer, CallEnded(self._started, self._clock() - self._began, error))
