"""The endpoints of a client, and the sub-connections to those that are to be connected."""

import asyncio
import copy
from collections.abc import Callable, Collection, Iterable, Mapping

from etcd_aio.balancer.connection_set import ConnectionSet, EndpointState, Keep
from etcd_aio.balancer.dialler import DIAL_BACKOFF, Dialling
from etcd_aio.balancer.endpoint import Endpoint, Security, parse_endpoint
from etcd_aio.balancer.statistics import unused
from etcd_aio.balancer.sub_connection import HealthListener, SubConnection
from etcd_aio.base.aio import start_timer_at
from etcd_aio.base.closing import Unwinding, close_all
from etcd_aio.base.deadline import NEVER
from etcd_aio.errors import ClientUsageError, ConfigError, ConnectError, UnknownEndpointError
from etcd_aio.transport import TLSContext
from etcd_aio.types import ConnectivityState, EndpointStatistics, Health


class EndpointPool:
    """Owner of every sub-connection.

    Args:
        endpoints: where to connect.
        dialling: how to connect.
        tls_for: see `Balancer`.
        keep: the policy's choice of the endpoints that stay connected.
        monitor: gets the traffic and the health of each member.
        on_change: called when a sub-connection has changed, and when it is time for another `update`.

    Attributes:
        endpoints: the endpoints in use by their names, in the order given.
        tls_for: see above.
        current: their sub-connections, by the same names.
    """

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        dialling: Dialling,
        tls_for: Callable[[Endpoint], TLSContext | None],
        keep: Keep,
        monitor: HealthListener,
        on_change: Callable[[], None],
    ) -> None:
        self.endpoints: Mapping[str, Endpoint] = by_name(endpoints)
        self.current: Mapping[str, SubConnection] = {}
        self._dialling = dialling
        self.tls_for = tls_for
        self._monitor = monitor
        self._on_change = on_change
        self._connection_set = ConnectionSet(keep, DIAL_BACKOFF, dialling.random)
        self._choose_again: asyncio.TimerHandle | None = None
        self._draining: list[SubConnection] = []
        self._errors: dict[str, BaseException] = {}  # the last errors of endpoints that are not connected now
        self._refused: set[str] = set()  # endpoints that are not connected now, and refused since any was READY

    def close(self) -> Unwinding:
        """Close every sub-connection now."""
        self._stop_timer()
        return close_all((*self.current.values(), *self._draining))

    # Which endpoints are connected.

    def update(self) -> list[SubConnection]:
        """Connect what is to be connected; returns the sub-connections that are to be drained."""
        wanted = self._choose()
        old = self.current
        self.current = {
            name: old.get(name) or self._new(endpoint) for name, endpoint in self.endpoints.items() if name in wanted
        }
        for sub_connection in self.current.values():
            sub_connection.start()
        removed = [sub_connection for name, sub_connection in old.items() if name not in self.current]
        self._draining = [draining for draining in (*self._draining, *removed) if not draining.is_over]
        self._refused.update(gone.endpoint_name for gone in removed if gone.has_refused)
        self._errors.update({gone.endpoint_name: gone.last_error for gone in removed if gone.last_error is not None})
        return removed

    def demand(self, name: str) -> bool:
        """Have an endpoint in use connected for a call that names it; returns whether that takes an `update`.

        It stays connected for as long as anything is under way there, and `DEMAND_SECONDS` more.
        """
        is_kept = name in self.current
        if not is_kept or self._connection_set.is_demanded(name):
            self._connection_set.demand(name, asyncio.get_running_loop().time())
        return not is_kept

    def _choose(self) -> Collection[str]:
        loop = asyncio.get_running_loop()
        demands = self._connection_set
        states = {name: _state_of(self.current.get(name)) for name in self.endpoints}
        busy = [name for name, current in self.current.items() if demands.is_demanded(name) and current.is_busy]
        wanted = demands.choose(states, busy, loop.time())
        self._stop_timer()
        if demands.choose_again_at != NEVER:
            self._choose_again = start_timer_at(demands.choose_again_at, self._on_change)
        return wanted

    def _stop_timer(self) -> None:
        if self._choose_again is not None:
            self._choose_again.cancel()
            self._choose_again = None

    def _new(self, endpoint: Endpoint) -> SubConnection:
        return SubConnection(
            endpoint,
            self.tls_for(endpoint),
            self._dialling,
            self._monitor,
            failures=self._connection_set.failed_changes,
            on_change=self._on_change,
        )

    # One endpoint.

    def find(self, text: str) -> Endpoint:
        """The endpoint in use with this name, in any spelling; the scheme may be left out.

        Raises:
            UnknownEndpointError: it is none of the endpoints in use.
        """
        try:
            wanted = parse_endpoint(text)
        except ConfigError as error:
            reason = error.message
        else:
            if wanted.name in self.endpoints:
                return self.endpoints[wanted.name]
            # A scheme must match: nothing may go in plain text that the caller meant for TLS.
            place = _place(wanted) if wanted.security is Security.OPTIONAL else None
            for endpoint in self.endpoints.values():
                if _place(endpoint) == place:
                    return endpoint
            reason = f"{wanted.name} is not an endpoint of this client; it has {', '.join(self.endpoints)}"
        raise UnknownEndpointError(reason)

    # Why endpoints are not connected.

    def has_refused(self, only: str | None = None) -> bool:
        """Whether every endpoint has refused a connection, or this one. False before the first dial.

        A policy that keeps one connection has tried every endpoint in turn by then.
        """
        if only is not None:
            return only in self.current and self.current[only].has_refused
        if not self.current or not all(current.has_refused for current in self.current.values()):
            return False
        return self.endpoints.keys() <= self._refused | self.current.keys()

    def forget_refusals(self) -> None:
        """Forget which endpoints refused before: another one is READY."""
        self._refused.clear()

    def misuse(self, only: str | None = None) -> ClientUsageError | None:
        """The mistake of the program for which a dial was refused: a copy to be raised; None if there is none.

        No wait mends it, unlike whatever else keeps an endpoint from being connected.

        Args:
            only: the one endpoint that counts; None for all.
        """
        for name, error in self.errors(only).items():
            if isinstance(error, ClientUsageError):
                current = self.current.get(name)
                if name in self._refused or (current is not None and current.has_refused):
                    return copy.copy(error)
        return None

    def errors(self, only: str | None = None) -> dict[str, BaseException]:
        """The last real error of every endpoint, or of one."""
        errors: dict[str, BaseException] = {}
        for name in self.endpoints if only is None else self.endpoints.keys() & {only}:
            current = self.current.get(name)
            error = current.last_error if current is not None else None
            errors[name] = error or self._errors.get(name) or ConnectError("connecting was not finished in time")
        return errors

    def statistics(self) -> tuple[EndpointStatistics, ...]:
        """One record for each endpoint, in the order given."""
        current = self.current
        return tuple(
            current[name].statistics()
            if name in current
            else unused(name, self._errors.get(name), self._dialling.client)
            for name in self.endpoints
        )


def _place(endpoint: Endpoint) -> tuple[str, int, str, str]:
    return endpoint.host, endpoint.port, endpoint.path, endpoint.address


def by_name(endpoints: Iterable[Endpoint]) -> dict[str, Endpoint]:
    """The endpoints by their names."""
    return {endpoint.name: endpoint for endpoint in endpoints}


def _state_of(sub_connection: SubConnection | None) -> EndpointState:
    if sub_connection is None:
        return EndpointState.UNUSED
    if sub_connection.state is ConnectivityState.READY:
        service = sub_connection.quorum_health
        if service.is_doubted:
            return EndpointState.DOUBTED
        return EndpointState.HEALTHY if service.health is Health.HEALTHY else EndpointState.UNHEALTHY
    return EndpointState.FAILED if sub_connection.has_failed else EndpointState.CONNECTING
