"""The balancer: one sub-connection per endpoint, and the pickers that spread attempts over the READY ones.

Whenever a sub-connection changes, the balancer decides which endpoints are to be connected, and publishes a new
generation: a picker over the healthy READY sub-connections, or over all READY ones, or none. `pick` never waits. A call
that finds no picker waits for the next generation until its deadline, and then fails with the last real error of every
endpoint. There is no lock: shared state is read and written without an `await` in between.
"""

import asyncio
import random as random_module
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from etcd_aio.balancer.cluster_id import ClusterIdentity
from etcd_aio.balancer.connection_set import ConnectionSet, EndpointState
from etcd_aio.balancer.connectivity import ConnectivityState
from etcd_aio.balancer.dialler import DIAL_BACKOFF
from etcd_aio.balancer.endpoint import Endpoint, Security, parse_endpoint
from etcd_aio.balancer.health import Health, ServiceHealth
from etcd_aio.balancer.health_monitor import HealthMonitor
from etcd_aio.balancer.leader_monitor import LeaderMonitor
from etcd_aio.balancer.picker import Choice, Picker, Policy, PolicyName
from etcd_aio.balancer.statistics import EndpointStatistics, unused
from etcd_aio.balancer.sub_connection import SubConnection
from etcd_aio.balancer.waiters import Waiters
from etcd_aio.closing import TwoPartClose, Unwinding, close_all
from etcd_aio.deadline import NEVER
from etcd_aio.errors import ConfigError, ConnectError, NoAvailableEndpointsError, UnknownEndpointError
from etcd_aio.transport import Engine, RequestMetadata, Target, TLSContext

_DEMAND_INTERVAL: Final = 10.0  # seconds between the demands of a waiting call; well within `DEMAND_SECONDS`


class Balancer(TwoPartClose):
    """Owner of every sub-connection.

    Args:
        endpoints: where to connect.
        engine: opens connections.
        metadata: of the requests that ask which member leads.
        tls_for: returns the TLS context of an endpoint, or its source; None for plaintext.
        policy: how attempts are spread.
        verify_all: check the cluster id of every new connection before it is used, not only after a rejection:
            credentials are for one cluster alone.
        fail_fast: do not let attempts wait for a connection once every endpoint has refused one.
        random: returns a number in [0, 1).

    Attributes:
        identity: the cluster that every answer must come from.
        unresolved: for each source of endpoints that failed, its error; shown by `NoAvailableEndpointsError`.
    """

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        engine: Engine,
        *,
        metadata: RequestMetadata,
        tls_for: Callable[[Endpoint], TLSContext | None],
        policy: PolicyName | Choice = "round_robin",
        verify_all: bool = False,
        fail_fast: bool = False,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self.identity = ClusterIdentity(self.look_for_leader)
        self.unresolved: Mapping[str, BaseException] = {}
        self._engine = engine
        self._tls_for = tls_for
        self._verify_all = verify_all
        self._fail_fast = fail_fast
        self._random = random
        self._policy: Policy[SubConnection] = Policy(policy, random)
        # Serializable reads have turns of their own: alternating calls of both kinds would each stick to one member.
        self._local_policy: Policy[SubConnection] = Policy(policy, random)
        self._picker: Picker[SubConnection] | None = None
        self._local_picker: Picker[SubConnection] | None = None
        self._ready: tuple[SubConnection, ...] = ()
        self._generation: tuple[tuple[SubConnection, ...], ...] = ()  # what the pickers choose from
        self._changes = Waiters()
        self._outages = Waiters()
        self._health = HealthMonitor(lambda: self._ready, self._publish, random)
        self._leader = LeaderMonitor(lambda: self._ready, metadata, self._set_leader, random)
        self._endpoints: dict[str, Endpoint] = {endpoint.name: endpoint for endpoint in endpoints}
        self._connection_set = ConnectionSet(self._policy.needs.keep, DIAL_BACKOFF, random)
        self._choose_again: asyncio.TimerHandle | None = None
        self._current: dict[str, SubConnection] = {}
        self._draining: set[SubConnection] = set()
        self._errors: dict[str, BaseException] = {}  # the last errors of endpoints that are not connected now
        self._refused: set[str] = set()  # endpoints that are not connected now, and refused since any was READY
        self._is_publishing = self._is_stale = False
        self._is_started = False
        self._is_closed = False

    def start(self) -> None:
        """Begin to connect to the endpoints. Safe to repeat. Must run in the client's loop."""
        if self._is_started or self._is_closed:
            return
        self._is_started = True
        self.set_endpoints(self._endpoints.values())

    def close(self) -> Unwinding:
        """Close every sub-connection now; calls that wait for one fail at once."""
        self._is_closed = True
        self._picker = self._local_picker = None
        self._ready = ()
        self._changes.close()
        self._outages.close()
        if self._choose_again is not None:
            self._choose_again.cancel()
        return close_all((self._health, self._leader, *self._current.values(), *self._draining))

    # Picking.

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The endpoints in use, in the order given."""
        return tuple(self._endpoints.values())

    @property
    def ready_count(self) -> int:
        """The number of READY sub-connections."""
        return len(self._ready)

    @property
    def p99_latency(self) -> float:
        """The 99th percentile of recent latencies, in seconds; 0 before the first answer."""
        return self._health.p99_latency

    def pick(
        self,
        avoid: Collection[SubConnection] = (),
        needs_leader: bool = True,
    ) -> SubConnection | None:
        """A READY sub-connection, one that is not in `avoid` if there is any other; None if none is READY.

        Unhealthy ones are used last; `needs_leader` says which of their two services counts.
        """
        picker = self._picker if needs_leader else self._local_picker
        return None if picker is None else picker.pick(avoid)

    def has_other(self, avoid: Collection[SubConnection]) -> bool:
        """Whether a sub-connection is READY that is not in `avoid`."""
        return any(sub_connection not in avoid for sub_connection in self._ready)

    async def wait_for_pick(
        self,
        deadline: float,
        avoid: Collection[SubConnection] = (),
        needs_leader: bool = True,
        *,
        is_patient: bool = False,
    ) -> SubConnection:
        """A READY sub-connection, waiting for one until `deadline`.

        Args:
            deadline: when to give up.
            avoid: see `pick`.
            needs_leader: see `pick`.
            is_patient: wait even with `fail_fast`.

        Raises:
            NoAvailableEndpointsError: none was READY in time, or every endpoint has refused and `fail_fast` is set.
            ClientClosedError: the balancer was closed meanwhile.
        """
        while True:
            chosen = self.pick(avoid, needs_leader)
            if chosen is not None:
                return chosen
            if (not is_patient and self.fails_fast()) or not await self.changed(deadline):
                raise self.no_available_endpoints()

    def fails_fast(self, only: str | None = None) -> bool:
        """Whether a call that finds no READY sub-connection fails at once: `fail_fast` is set, and all have refused.

        A policy that keeps one connection has tried every endpoint in turn by then.

        Args:
            only: the one endpoint that counts; None for all.
        """
        if not self._fail_fast or not self._current or self._is_closed:
            return False
        if only is not None:
            return only in self._current and self._current[only].has_refused
        if not all(sub_connection.has_refused for sub_connection in self._current.values()):
            return False
        return self._endpoints.keys() <= self._refused | self._current.keys()

    async def changed(self, deadline: float) -> bool:
        """Wait for the next generation; False if `deadline` came first.

        Raises:
            ClientClosedError: the balancer is closed, or was closed meanwhile.
        """
        return await self._changes.wait(deadline)

    async def outage(self, deadline: float) -> bool:
        """Wait until no sub-connection is READY, which may be so already; False if `deadline` came first.

        Raises:
            ClientClosedError: the balancer is closed, or was closed meanwhile.
        """
        if not self._ready and not self._is_closed:
            return True
        return await self._outages.wait(deadline)

    def no_available_endpoints(self, only: str | None = None) -> NoAvailableEndpointsError:
        """The error with the last real error of every endpoint, or of one."""
        errors: dict[str, BaseException] = {} if only is not None else dict(self.unresolved)
        for name in self._endpoints if only is None else self._endpoints.keys() & {only}:
            current = self._current.get(name)
            error = current.last_error if current is not None else None
            errors[name] = error or self._errors.get(name) or ConnectError("connecting was not finished in time")
        return NoAvailableEndpointsError(errors=errors)

    # One endpoint.

    def only(self, endpoint: str) -> "SingleEndpointView":
        """The view of the balancer that is restricted to one endpoint.

        Args:
            endpoint: its name, in any spelling; the scheme may be left out.

        Raises:
            UnknownEndpointError: it is none of the endpoints in use.
        """
        return SingleEndpointView(self, self._find(endpoint))

    def sub_connection(self, name: str) -> SubConnection | None:
        """The sub-connection of an endpoint; None if there is none now."""
        return self._current.get(name)

    def demand(self, name: str) -> SubConnection | None:
        """The sub-connection of an endpoint in use, connecting it if the policy does not; None if it is not in use.

        It stays connected for as long as anything is under way there, and `DEMAND_SECONDS` more.
        """
        if name not in self._endpoints or not self._is_started or self._is_closed:
            return self._current.get(name)
        is_kept = name in self._current
        if not is_kept or self._connection_set.is_demanded(name):
            self._connection_set.demand(name, asyncio.get_running_loop().time())
        if not is_kept:
            self._publish()
        return self._current.get(name)

    def target(self, name: str) -> Target:
        """What the transport dials for an endpoint in use.

        Raises:
            UnknownEndpointError: it is not in use.
            EtcdError: its TLS configuration cannot be used.
        """
        endpoint = self._find(name)
        return endpoint.target(self._tls_for(endpoint))

    def _find(self, text: str) -> Endpoint:
        try:
            wanted = parse_endpoint(text)
        except ConfigError as error:
            reason = error.message
        else:
            if wanted.name in self._endpoints:
                return self._endpoints[wanted.name]
            # A scheme must match: nothing may go in plain text that the caller meant for TLS.
            place = (wanted.host, wanted.port, wanted.path) if wanted.security is Security.OPTIONAL else None
            for endpoint in self._endpoints.values():
                if (endpoint.host, endpoint.port, endpoint.path) == place:
                    return endpoint
            reason = f"{wanted.name} is not an endpoint of this client; it has {', '.join(self._endpoints)}"
        raise UnknownEndpointError(reason)

    # Which endpoints are connected.

    def set_endpoints(self, endpoints: Iterable[Endpoint]) -> None:
        """Replace the endpoints: those that stay keep their connections, removed ones drain, new ones are dialled."""
        wanted = {endpoint.name: endpoint for endpoint in endpoints}
        if not self._is_started or self._is_closed:
            self._endpoints = wanted
            return
        before, self._endpoints = self._endpoints, wanted
        try:
            self._publish()
        except BaseException:  # a new sub-connection could not be made
            self._endpoints = before
            raise
        if before.keys() - wanted.keys():
            self._changes.wake()  # a call may wait for one that is gone

    def look_for_leader(self) -> None:
        """Find out which member leads, if the policy needs to know."""
        if self._policy.needs.leader and self._is_started and not self._is_closed:
            self._leader.search()

    def statistics(self) -> tuple[EndpointStatistics, ...]:
        """One record for each endpoint, in the order given; empty before the first use."""
        if not self._is_started:
            return ()
        current = self._current
        return tuple(
            current[name].statistics() if name in current else unused(name, self._errors.get(name))
            for name in self._endpoints
        )

    # Generations.

    def _publish(self) -> None:
        """Connect and disconnect endpoints, make the pickers of a new generation, and wake waiting calls.

        Connecting and draining change sub-connections, which calls this again; such a call only has the loop run once
        more.
        """
        self._is_stale = True
        if self._is_publishing:
            return
        self._is_publishing = True
        try:
            while self._is_stale and not self._is_closed:
                self._is_stale = False
                removed = self._update_connections()
                self._make_pickers()  # first, so that no picker chooses what drains
                for sub_connection in removed:
                    sub_connection.drain()
                self._draining = {sub_connection for sub_connection in self._draining if not sub_connection.is_over}
                if self._fail_fast:
                    self._changes.wake()  # an endpoint may have refused
        finally:
            self._is_publishing = False

    def _update_connections(self) -> list[SubConnection]:
        """Connect what should be connected; returns the sub-connections that should not exist any more."""
        if not self._is_started:
            return []
        wanted = self._choose_connections()
        old = self._current
        self._current = {
            name: old.get(name) or self._new(endpoint) for name, endpoint in self._endpoints.items() if name in wanted
        }
        for sub_connection in self._current.values():
            sub_connection.start()
        removed = [sub_connection for name, sub_connection in old.items() if name not in self._current]
        self._draining.update(removed)
        self._refused.update(one.endpoint_name for one in removed if one.has_refused)
        self._errors.update({one.endpoint_name: one.last_error for one in removed if one.last_error is not None})
        return removed

    def _choose_connections(self) -> Collection[str]:
        loop = asyncio.get_running_loop()
        states = {name: _state_of(self._current.get(name)) for name in self._endpoints}
        busy = [name for name, one in self._current.items() if self._connection_set.is_demanded(name) and one.is_busy]
        wanted = self._connection_set.choose(states, busy, loop.time())
        if self._choose_again is not None:
            self._choose_again.cancel()
            self._choose_again = None
        if self._connection_set.choose_again_at != NEVER:
            self._choose_again = loop.call_at(self._connection_set.choose_again_at, self._publish)
        return wanted

    def _new(self, endpoint: Endpoint) -> SubConnection:
        return SubConnection(
            endpoint,
            self._tls_for(endpoint),
            self._engine,
            self._health,
            verify=self.identity.verify,
            verify_all=self._verify_all,
            failures=self._connection_set.failed_changes,
            random=self._random,
            on_change=self._publish,
        )

    def _make_pickers(self) -> None:
        current = self._current.values()
        ready = tuple(sub for sub in current if sub.state is ConnectivityState.READY)
        quorum = _healthy(ready, lambda sub: sub.quorum_health)
        local = _healthy(ready, lambda sub: sub.local_health)
        generation = (ready, quorum, local, tuple(sub for sub in ready if sub.is_leader))
        if generation == self._generation:
            return
        has_changed = ready != self._ready
        self._ready, self._generation = ready, generation
        if ready:
            self._refused.clear()
        self._picker = self._policy.picker(quorum, ready) if ready else None
        self._local_picker = self._local_policy.picker(local, ready) if ready else None
        if has_changed:
            self.look_for_leader()
            (self._changes if ready else self._outages).wake()

    def _set_leader(self, leader: SubConnection | None) -> None:
        for sub_connection in self._current.values():
            sub_connection.is_leader = sub_connection is leader
        self._publish()


class SingleEndpointView:
    """A view of the balancer that is restricted to one endpoint.

    It has the methods that a call uses, so that a call to one endpoint is a call like every other: it waits until the
    endpoint is READY, and retries go to the same endpoint.

    Args:
        balancer: the whole.
        endpoint: the one endpoint.
    """

    __slots__ = ("_balancer", "_name", "endpoints")

    p99_latency = 0.0  # there is no other endpoint to compare with

    def __init__(self, balancer: Balancer, endpoint: Endpoint) -> None:
        self._balancer = balancer
        self._name = endpoint.name
        self.endpoints = (endpoint,)

    @property
    def ready_count(self) -> int:
        """The number of READY sub-connections: one or none."""
        return 0 if _if_ready(self._balancer.sub_connection(self._name)) is None else 1

    def pick(
        self,
        avoid: Collection[SubConnection] = (),
        needs_leader: bool = True,
    ) -> SubConnection | None:
        """The sub-connection if it is READY, even if it is in `avoid` or unhealthy: there is no other.

        If the policy does not keep the endpoint connected, it is connected for the time of the call.
        """
        del avoid, needs_leader
        return _if_ready(self._balancer.demand(self._name))

    def has_other(self, avoid: Collection[SubConnection]) -> bool:
        """Whether the sub-connection is READY and not in `avoid`."""
        found = _if_ready(self._balancer.sub_connection(self._name))
        return found is not None and found not in avoid

    async def wait_for_pick(
        self,
        deadline: float,
        avoid: Collection[SubConnection] = (),
        needs_leader: bool = True,
    ) -> SubConnection:
        """The sub-connection, once it is READY.

        Raises:
            NoAvailableEndpointsError: it was not READY by `deadline`, or has refused and `fail_fast` is set.
            UnknownEndpointError: the endpoint was taken from the client meanwhile.
            ClientClosedError: the balancer was closed meanwhile.
        """
        clock = asyncio.get_running_loop().time
        while True:
            chosen = self.pick(avoid, needs_leader)
            if chosen is not None:
                return chosen
            if self._balancer.sub_connection(self._name) is None:
                raise UnknownEndpointError(f"endpoint {self._name} was removed from this client")
            if self._balancer.fails_fast(self._name):
                raise self._balancer.no_available_endpoints(self._name)
            # The demand is renewed while the call waits: without one the endpoint is not dialled.
            has_changed = await self._balancer.changed(min(deadline, clock() + _DEMAND_INTERVAL))
            if not has_changed and clock() >= deadline:
                raise self._balancer.no_available_endpoints(self._name)


def _healthy(
    ready: tuple[SubConnection, ...], service: Callable[[SubConnection], ServiceHealth]
) -> tuple[SubConnection, ...]:
    """Those that are healthy; all if none is: health is an estimate, and some member has to serve."""
    return tuple(sub for sub in ready if service(sub).health is Health.HEALTHY) or ready


def _if_ready(sub_connection: SubConnection | None) -> SubConnection | None:
    is_ready = sub_connection is not None and sub_connection.state is ConnectivityState.READY
    return sub_connection if is_ready else None


def _state_of(sub_connection: SubConnection | None) -> EndpointState:
    if sub_connection is None:
        return EndpointState.UNUSED
    if sub_connection.state is ConnectivityState.READY:
        is_healthy = sub_connection.quorum_health.health is Health.HEALTHY
        return EndpointState.HEALTHY if is_healthy else EndpointState.UNHEALTHY
    return EndpointState.FAILED if sub_connection.has_failed else EndpointState.CONNECTING
