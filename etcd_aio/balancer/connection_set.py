"""The endpoints that stay connected: those that the policy keeps, and those that calls have named. Pure.

Most policies keep a connection to every endpoint, so that a failure costs nothing but the next pick. Two keep a single
connection, as the official client did before etcd 3.4, to spare the members' connections; both switch when it fails.
An unhealthy member stays connected until another one is healthy: it may be the only one left, and still serves
serializable reads. A silent member that is alone cannot be compared with another one, only be doubted. Then another one
is connected beside it, and as soon as one of the two answers, it is clear which one stays: the old one if it answers.

The first dial to an endpoint has no wait before it, so switching has a backoff of its own, which begins once every
endpoint was tried. Only a success that lasts ends the backoff, since every connection begins healthy: without a quorum
the members would be dialled in a busy loop.

A call that names an endpoint demands a connection to it, whatever the policy. The demand ends some time after the last
attempt or stream there.
"""

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from math import inf
from typing import Final, TypeAlias

from etcd_aio.base.backoff import Backoff

DEMAND_SECONDS: Final = 30.0  # for which an endpoint that a call named stays connected after the call
_LASTING: Final = 1.0  # seconds for which an endpoint is healthy until that counts as a success
_BUSY_INTERVAL: Final = 5.0  # seconds between two checks whether calls on demanded endpoints are still under way


class EndpointState(Enum):
    """The state of an endpoint, as far as it matters for the choice."""

    UNUSED = "not connected, and not meant to be"
    CONNECTING = "being connected"
    HEALTHY = "connected and healthy"
    DOUBTED = "connected, and asked in vain, as is every other one that is connected"
    UNHEALTHY = "connected and unhealthy"
    FAILED = "the dial failed or the connection was lost; it is dialled again"


Keep: TypeAlias = Callable[[Mapping[str, EndpointState], Callable[[], float]], tuple[str, ...]]
"""Given the state of every endpoint, in the order given, and a source of random numbers: the endpoints to keep."""


def keep_all(states: Mapping[str, EndpointState], random: Callable[[], float]) -> tuple[str, ...]:
    """Every endpoint."""
    del random
    return tuple(states)


def keep_first(states: Mapping[str, EndpointState], random: Callable[[], float]) -> tuple[str, ...]:
    """The first that is healthy; every endpoint until one is, and again once it fails; if it is doubted, one more.

    The official client with gRPC 1.7 (etcd 3.2 and 3.3).
    """
    del random
    if EndpointState.DOUBTED in states.values():
        return _one(states, lambda: 0.0)
    return _in_state(states, EndpointState.HEALTHY)[:1] or tuple(states)


def keep_random(states: Mapping[str, EndpointState], random: Callable[[], float]) -> tuple[str, ...]:
    """One drawn at random; another one once it fails, or is doubted. The official client with gRPC 1.0 (etcd 3.1)."""
    return _one(states, random)


def _one(states: Mapping[str, EndpointState], random: Callable[[], float]) -> tuple[str, ...]:
    """One endpoint, and those connected ones that it has not replaced yet."""
    healthy, doubted = _in_state(states, EndpointState.HEALTHY), _in_state(states, EndpointState.DOUBTED)
    if healthy:
        return (healthy[0], *doubted)
    connected = (*doubted, *_in_state(states, EndpointState.UNHEALTHY))
    connecting = _in_state(states, EndpointState.CONNECTING)
    if connecting:
        return (connecting[0], *connected)
    others = _in_state(states, EndpointState.UNUSED) or _in_state(states, EndpointState.FAILED)
    drawn = (others[int(random() * len(others))],) if others else ()
    return (*drawn, *connected)


def _in_state(states: Mapping[str, EndpointState], wanted: EndpointState) -> tuple[str, ...]:
    return tuple(name for name, state in states.items() if state is wanted)


class ConnectionSet:
    """The endpoints that stay connected; their choice changes no more often than the backoff allows.

    Args:
        keep: the policy's choice.
        backoff: waits between two choices, once every endpoint was tried without success.
        random: returns a number in [0, 1).

    Attributes:
        choose_again_at: the instant at which to choose again even if nothing changes.
    """

    def __init__(self, keep: Keep, backoff: Backoff, random: Callable[[], float]) -> None:
        self._keep = keep
        self._backoff = backoff
        self._random = random
        self._endpoints: tuple[str, ...] = ()
        self._kept: tuple[str, ...] = ()
        self._settled = ""  # the endpoint that was last kept alone
        self._changes = 0  # in a row, without success
        self._not_before = -inf
        self._healthy_since = inf  # when an endpoint became healthy; infinity while none is
        self._demanded_until: dict[str, float] = {}
        self.choose_again_at = inf

    @property
    def failed_changes(self) -> int:
        """Changes in a row, beyond one for each endpoint, that brought no connection."""
        return max(self._changes - len(self._endpoints), 0)

    def demand(self, endpoint: str, now: float) -> None:
        """Note that a call needs a connection to this endpoint."""
        self._demanded_until[endpoint] = now + DEMAND_SECONDS

    def is_demanded(self, endpoint: str) -> bool:
        """Whether a call has named this endpoint not long ago."""
        return endpoint in self._demanded_until

    def choose(self, states: Mapping[str, EndpointState], busy: Collection[str], now: float) -> frozenset[str]:
        """The endpoints to be connected now.

        Args:
            states: the state of every endpoint in use, in the order given.
            busy: the endpoints with attempts or streams under way.
            now: the instant.
        """
        self.choose_again_at = inf
        kept = self._choose_kept(states, now)
        self._expire_demands(busy, now)
        return frozenset((*kept, *self._demanded_until))

    def _choose_kept(self, states: Mapping[str, EndpointState], now: float) -> tuple[str, ...]:
        endpoints = tuple(states)
        is_healthy = EndpointState.HEALTHY in states.values()
        if is_healthy:
            self._healthy_since = min(self._healthy_since, now)
        if now - self._healthy_since >= _LASTING or endpoints != self._endpoints:
            self._endpoints, self._changes, self._not_before = endpoints, 0, -inf
        if not is_healthy:
            self._healthy_since = inf
        if now < self._not_before and not is_healthy:
            self.choose_again_at = self._not_before
            return self._kept
        if self._settled in states:  # first, so that it stays if others are as good
            states = {self._settled: states[self._settled], **states}
        kept = self._keep(states, self._random)
        if len(kept) == 1:
            self._settled = kept[0]
        if kept != self._kept:
            self._kept = kept
            self._changes += 1
            if self._changes >= len(endpoints):
                self._not_before = now + self._backoff.wait(self.failed_changes, self._random)
        return kept

    def _expire_demands(self, busy: Collection[str], now: float) -> None:
        if not self._demanded_until:
            return
        still_busy = self._demanded_until.keys() & busy
        self._demanded_until.update(dict.fromkeys(still_busy, now + DEMAND_SECONDS))
        self._demanded_until = {name: until for name, until in self._demanded_until.items() if until > now}
        check_at = now + _BUSY_INTERVAL if still_busy else inf
        self.choose_again_at = min(*self._demanded_until.values(), check_at, self.choose_again_at, inf)
