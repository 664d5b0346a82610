"""Remembers: an observer that keeps all that it is told, in order."""

from collections.abc import Sequence

from etcd_aio.observing import (
    AttemptEnded,
    CallObserver,
    CallOutcome,
    CallStarted,
    EndpointChange,
    LeaseChange,
    LoginEnded,
    ObservedClient,
    Observer,
    StreamChange,
    WatchAdvance,
)


class RememberedCall(CallObserver):
    """One call: what it began with, and all that followed."""

    def __init__(self, started: CallStarted, events: list[str]) -> None:
        self._events = events
        self.started = started
        self.begun: list[str] = []
        self.attempts: list[AttemptEnded] = []
        self.outcomes: list[CallOutcome] = []

    def attempt_started(self, endpoint: str) -> None:
        self._events.append("attempt")
        self.begun.append(endpoint[:2])

    def attempt_ended(self, attempt: AttemptEnded) -> None:
        assert not self.outcomes
        self._events.append(attempt.status.name)
        self.attempts.append(attempt)

    def ended(self, outcome: CallOutcome) -> None:
        assert len(self.attempts) == len(self.begun) == outcome.attempts
        self._events.append("ended")
        self.outcomes.append(outcome)


class Remembers(Observer):
    """Attributes: `calls`, the others by kind, and `events`, a word for each in order."""

    def __init__(self, metadata: Sequence[tuple[str, str]] = ()) -> None:
        self._metadata = tuple(metadata)
        self.clients: list[ObservedClient] = []
        self.closed: list[ObservedClient] = []
        self.calls: list[RememberedCall] = []
        self.endpoints: list[EndpointChange] = []
        self.streams: list[StreamChange] = []
        self.advances: list[WatchAdvance] = []
        self.leases: list[LeaseChange] = []
        self.logins: list[LoginEnded] = []
        self.events: list[str] = []

    @property
    def call(self) -> RememberedCall:
        """The last call."""
        return self.calls[-1]

    @property
    def outcome(self) -> CallOutcome:
        """How the last call ended: told once."""
        (outcome,) = self.call.outcomes
        return outcome

    def client_started(self, client: ObservedClient) -> None:
        self.clients.append(client)

    def client_closed(self, client: ObservedClient) -> None:
        self.closed.append(client)

    def call_started(self, call: CallStarted) -> CallObserver | None:
        self.events.append("call")
        remembered = RememberedCall(call, self.events)
        remembered.metadata = self._metadata
        self.calls.append(remembered)
        return remembered

    def endpoint_changed(self, change: EndpointChange) -> None:
        self.endpoints.append(change)

    def stream_changed(self, change: StreamChange) -> None:
        self.events.append(change.event)
        self.streams.append(change)

    def watch_advanced(self, advance: WatchAdvance) -> None:
        self.advances.append(advance)

    def lease_changed(self, change: LeaseChange) -> None:
        self.leases.append(change)

    def login_ended(self, login: LoginEnded) -> None:
        self.events.append("login")
        self.logins.append(login)
