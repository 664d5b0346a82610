"""ObserverGroup: tells the observers of a client, each apart from the others: one that raises harms nothing.

Each kind of event has a function, or None if no observer overrides the method: the lower layers make no record then.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterable
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar

from etcd_aio.errors import Attempt, Delivery, EtcdError, StatusCode
from etcd_aio.logs import Log, log_of
from etcd_aio.observing.observer import CallObserver, Headers, Observer
from etcd_aio.observing.records import (
    AttemptEnded,
    CallOutcome,
    CallStarted,
    EndpointChange,
    LeaseChange,
    LoginEnded,
    StreamChange,
    WatchAdvance,
)

if TYPE_CHECKING:
    from etcd_aio.client import Client

T = TypeVar("T")
R = TypeVar("R")

logger: Final = logging.getLogger("etcd_aio.observing")

_LOG_PAUSE: Final = 60.0  # seconds between two lines about one observer: it may raise for every call
_NAME: Final = re.compile(r"(?!grpc-)[a-z0-9_.-]+")
_VALUE: Final = re.compile(r"[!-~]([ -~]*[!-~])?")  # HTTP trims spaces
_RESERVED: Final = frozenset(
    {"te", "content-type", "user-agent", "client-api-version", "token", "authorization", "hasleader"}
)


class _Guard:
    """Calls the methods of one observer, and logs what they raise."""

    __slots__ = ("_log", "_name", "_silent_until")

    def __init__(self, observer: Observer, log: Log) -> None:
        self._log = log
        self._name = type(observer).__name__
        self._silent_until = -inf

    def call(self, method: Callable[[T], R], argument: T) -> R | None:
        """Call a method; None if it has raised."""
        try:
            return method(argument)
        except Exception:  # an observer cannot change a call
            now = time.monotonic()
            if now >= self._silent_until:
                self._silent_until = now + _LOG_PAUSE
                self._log.exception("observer %s failed; the client continues", self._name)
            return None


class ObservedCall:
    """One call, as it is told to those that observe it.

    Args:
        observers: with the guard of each.
        clock: that of the loop. The call may end when no loop runs any more.
        is_mutation: whether the call changes the store.

    Attributes:
        metadata: headers of each attempt.
    """

    __slots__ = ("_attempts", "_began", "_clock", "_endpoint", "_is_mutation", "_observers", "_under_way", "metadata")

    def __init__(
        self, observers: list[tuple[_Guard, CallObserver]], clock: Callable[[], float], *, is_mutation: bool
    ) -> None:
        self._observers = observers
        self._clock = clock
        self._is_mutation = is_mutation
        self._began = clock()
        self._attempts = 0
        self._endpoint = ""
        self._under_way: list[tuple[str, float]] = []  # attempts: endpoints, and when they began
        found = [guard.call(_checked_headers, observer) for guard, observer in observers]
        self.metadata: Headers = tuple(pair for headers in found if headers for pair in headers)

    def attempt_started(self, endpoint: str) -> None:
        """An attempt begins."""
        self._attempts += 1
        self._endpoint = endpoint
        self._under_way.append((endpoint, self._clock()))
        for guard, observer in self._observers:
            guard.call(observer.attempt_started, endpoint)

    def attempt_succeeded(self, endpoint: str) -> None:
        """An attempt has brought the reply."""
        self._attempt_ended(endpoint, StatusCode.OK, Delivery.ANSWERED)

    def attempt_failed(self, attempt: Attempt) -> None:
        """An attempt has failed."""
        self._attempt_ended(attempt.endpoint, attempt.code, attempt.delivery, attempt.message)

    def ended(self, error: BaseException | None) -> None:
        """The call has ended; so have the attempts that are still under way."""
        for endpoint, _ in tuple(self._under_way):
            self._attempt_ended(endpoint, StatusCode.CANCELLED, Delivery.UNKNOWN)
        is_cancelled = isinstance(error, asyncio.CancelledError | GeneratorExit)
        status, maybe_applied = StatusCode.OK, False
        if isinstance(error, EtcdError):
            status = StatusCode.UNKNOWN if error.code is None else error.code
            maybe_applied = error.maybe_applied
        elif error is not None:
            status = StatusCode.CANCELLED if is_cancelled else StatusCode.UNKNOWN
            maybe_applied = self._is_mutation and self._attempts > 0
        seconds = self._clock() - self._began
        outcome = CallOutcome(status, error, self._attempts, self._endpoint, seconds, is_cancelled, maybe_applied)
        for guard, observer in self._observers:
            guard.call(observer.ended, outcome)

    def _attempt_ended(self, endpoint: str, status: StatusCode, delivery: Delivery, message: str = "") -> None:
        begun = next((one for one in self._under_way if one[0] == endpoint), None)
        if begun is None:  # it ended with its call: a hedge may notice its cancellation later
            return
        self._under_way.remove(begun)
        attempt = AttemptEnded(endpoint, status, delivery, self._clock() - begun[1], message)
        for guard, observer in self._observers:
            guard.call(observer.attempt_ended, attempt)


class ObserverGroup:
    """The observers of one client, in the order in which they are told.

    Args:
        observers: all of them.
        client: name of the client, for logs; empty if it has none.

    Attributes:
        client_started, client_closed, endpoint_changed, stream_changed, watch_advanced, lease_changed, login_ended:
            tell all observers; None if there is none that overrides the method.
        sees_calls: whether an observer overrides `call_started`.
    """

    def __init__(self, observers: Iterable[Observer] = (), client: str = "") -> None:
        log = log_of(logger, client)
        self._observers = [(_Guard(observer, log), observer) for observer in observers]
        self._on_call = self._overriding("call_started")
        self.sees_calls = bool(self._on_call)
        self.client_started: Callable[[Client], None] | None = self._teller("client_started")
        self.client_closed: Callable[[Client], None] | None = self._teller("client_closed")
        self.endpoint_changed: Callable[[EndpointChange], None] | None = self._teller("endpoint_changed")
        self.stream_changed: Callable[[StreamChange], None] | None = self._teller("stream_changed")
        self.watch_advanced: Callable[[WatchAdvance], None] | None = self._teller("watch_advanced")
        self.lease_changed: Callable[[LeaseChange], None] | None = self._teller("lease_changed")
        self.login_ended: Callable[[LoginEnded], None] | None = self._teller("login_ended")

    def call_started(
        self, started: CallStarted, clock: Callable[[], float], *, is_mutation: bool
    ) -> ObservedCall | None:
        """A call begins. Returns what tells the rest of it; None if it is of no interest."""
        found = [(guard, observer) for guard, method in self._on_call if (observer := guard.call(method, started))]
        return ObservedCall(found, clock, is_mutation=is_mutation) if found else None

    def _overriding(self, name: str) -> list[tuple[_Guard, Callable[[Any], Any]]]:
        plain = getattr(Observer, name)
        return [
            (guard, getattr(observer, name))
            for guard, observer in self._observers
            if getattr(type(observer), name) is not plain
        ]

    def _teller(self, name: str) -> Callable[[Any], None] | None:
        methods = self._overriding(name)
        if not methods:
            return None

        def tell(record: object) -> None:
            for guard, method in methods:
                guard.call(method, record)

        return tell


def _checked_headers(observer: CallObserver) -> Headers:
    headers = tuple(observer.metadata)
    for name, value in headers:
        if name in _RESERVED or _NAME.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
            raise ValueError(f"{name!r} is no header that an observer may send, or its value is not printable ASCII")
    return headers
