"""ObserverGroup: notifies the observers of a client. One that raises disturbs neither the others nor the client.

Each kind of event has a function, or None if no observer overrides the method: the lower layers make no record then.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from typing import Any, Final

from etcd_aio.base.logs import Log, log_of
from etcd_aio.errors import Attempt, Delivery, EtcdError, StatusCode
from etcd_aio.observing.observer import CallObserver, Headers, ObservedClient, Observer
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

logger: Final = logging.getLogger("etcd_aio.observing")

_LOG_PAUSE: Final = 60.0  # seconds between two lines about one observer: it may raise for every call
_KINDS: Final = 64  # classes of call observers that are remembered: a mock has a class of its own
_NAME: Final = re.compile(r"(?!grpc-)[a-z0-9_.-]+")
_VALUE: Final = re.compile(r"[!-~]([ -~]*[!-~])?")  # HTTP trims spaces
_RESERVED: Final = frozenset(
    {"te", "content-type", "user-agent", "client-api-version", "token", "authorization", "hasleader"}
)


class _Guard:
    """Logs what the methods of one observer raise."""

    __slots__ = ("_log", "_name", "_silent_until")

    def __init__(self, observer: Observer, log: Log) -> None:
        self._log = log
        self._name = type(observer).__name__
        self._silent_until = -inf

    def has_raised(self) -> None:
        """Log the exception that is being handled, unless one was logged a short time ago."""
        now = time.monotonic()
        if now >= self._silent_until:
            self._silent_until = now + _LOG_PAUSE
            self._log.exception("observer %s failed; the client continues", self._name)


def _notify(tellers: Iterable[tuple[_Guard, Callable[[Any], object]]], record: object) -> None:
    """Call a method of each observer; none of them can change a call."""
    for guard, tell in tellers:
        try:
            tell(record)
        except Exception:  # of the application
            guard.has_raised()


def _overrides_of(kind: type[CallObserver]) -> frozenset[str]:
    """The methods that a class of call observers overrides. Nothing is made for the others, since calls are many."""
    names = ("attempt_started", "attempt_ended", "ended")
    return frozenset(name for name in names if getattr(kind, name, None) is not getattr(CallObserver, name))


class ObservedCall:
    """One call, and the observers that are notified of it.

    Args:
        observers: with the guard of each, and what it overrides.
        clock: that of the loop. The call may end when no loop runs any more.
        is_mutation: whether the call changes the store.

    Attributes:
        metadata: headers of each attempt.
    """

    __slots__ = (
        "_attempts",
        "_began",
        "_clock",
        "_endpoint",
        "_is_mutation",
        "_on_attempt_ended",
        "_on_attempt_started",
        "_on_ended",
        "_under_way",
        "metadata",
    )

    def __init__(
        self,
        observers: Iterable[tuple[_Guard, CallObserver, frozenset[str]]],
        clock: Callable[[], float],
        *,
        is_mutation: bool,
    ) -> None:
        self._clock = clock
        self._is_mutation = is_mutation
        self._began = clock()
        self._attempts = 0
        self._endpoint = ""
        self._under_way: list[tuple[str, float]] = []  # attempts: endpoints, and when they began
        self._on_attempt_started: tuple[tuple[_Guard, Callable[[str], None]], ...] = ()
        self._on_attempt_ended: tuple[tuple[_Guard, Callable[[AttemptEnded], None]], ...] = ()
        self._on_ended: tuple[tuple[_Guard, Callable[[CallOutcome], None]], ...] = ()
        self.metadata: Headers = ()
        for guard, observer, overrides in observers:
            try:
                if "attempt_started" in overrides:
                    self._on_attempt_started += ((guard, observer.attempt_started),)
                if "attempt_ended" in overrides:
                    self._on_attempt_ended += ((guard, observer.attempt_ended),)
                if "ended" in overrides:
                    self._on_ended += ((guard, observer.ended),)
                if observer.metadata:
                    self.metadata += _checked_headers(observer)
            except Exception:  # as in `_notify`; it may be no observer of calls at all
                guard.has_raised()

    def attempt_started(self, endpoint: str) -> None:
        """An attempt begins."""
        self._attempts += 1
        self._endpoint = endpoint
        self._under_way.append((endpoint, self._clock()))
        _notify(self._on_attempt_started, endpoint)

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
        if not self._on_ended:
            return
        is_cancelled, status, maybe_applied = False, StatusCode.OK, False
        if isinstance(error, EtcdError):
            status = StatusCode.UNKNOWN if error.code is None else error.code
            maybe_applied = error.maybe_applied
        elif error is not None:
            is_cancelled = isinstance(error, asyncio.CancelledError | GeneratorExit)
            status = StatusCode.CANCELLED if is_cancelled else StatusCode.UNKNOWN
            maybe_applied = self._is_mutation and self._attempts > 0
        seconds = self._clock() - self._began
        outcome = CallOutcome(status, error, self._attempts, self._endpoint, seconds, is_cancelled, maybe_applied)
        _notify(self._on_ended, outcome)

    def _attempt_ended(self, endpoint: str, status: StatusCode, delivery: Delivery, message: str = "") -> None:
        for number, (name, _) in enumerate(self._under_way):
            if name == endpoint:
                began = self._under_way.pop(number)[1]
                break
        else:  # it ended with its call: a hedge may notice its cancellation later
            return
        if not self._on_attempt_ended:
            return
        attempt = AttemptEnded(endpoint, status, delivery, self._clock() - began, message)
        _notify(self._on_attempt_ended, attempt)


class ObserverGroup:
    """The observers of one client, in the order in which they are notified.

    Args:
        observers: all of them.
        client: name of the client, for logs; empty if it has none.

    Attributes:
        client_started, client_closed, endpoint_changed, stream_changed, watch_advanced, lease_changed, login_ended:
            notify all observers; None if none overrides the method.
        sees_calls: whether an observer overrides `call_started`.
    """

    def __init__(self, observers: Iterable[Observer] = (), client: str = "") -> None:
        log = log_of(logger, client)
        self._observers = [(_Guard(observer, log), observer) for observer in observers]
        self._on_call = self._overriding("call_started")
        self._overrides: dict[type[CallObserver], frozenset[str]] = {}
        self.sees_calls = bool(self._on_call)
        self.client_started: Callable[[ObservedClient], None] | None = self._teller("client_started")
        self.client_closed: Callable[[ObservedClient], None] | None = self._teller("client_closed")
        self.endpoint_changed: Callable[[EndpointChange], None] | None = self._teller("endpoint_changed")
        self.stream_changed: Callable[[StreamChange], None] | None = self._teller("stream_changed")
        self.watch_advanced: Callable[[WatchAdvance], None] | None = self._teller("watch_advanced")
        self.lease_changed: Callable[[LeaseChange], None] | None = self._teller("lease_changed")
        self.login_ended: Callable[[LoginEnded], None] | None = self._teller("login_ended")

    def call_started(
        self, started: CallStarted, clock: Callable[[], float], *, is_mutation: bool
    ) -> ObservedCall | None:
        """A call begins. Returns what notifies its observers; None if there are none."""
        found: list[tuple[_Guard, CallObserver, frozenset[str]]] = []
        for guard, method in self._on_call:
            try:
                observer = method(started)
                if observer and (kind := type(observer)) is not CallObserver:
                    if kind not in self._overrides:
                        if len(self._overrides) >= _KINDS:
                            self._overrides.clear()
                        self._overrides[kind] = _overrides_of(kind)
                    found.append((guard, observer, self._overrides[kind]))
            except Exception:  # as in `_notify`
                guard.has_raised()
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
        return partial(_notify, methods) if methods else None


def _checked_headers(observer: CallObserver) -> Headers:
    headers = tuple(observer.metadata)
    for name, value in headers:
        if name in _RESERVED or _NAME.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
            raise ValueError(f"{name!r} is not a header that an observer may send, or its value is not printable ASCII")
    return headers
