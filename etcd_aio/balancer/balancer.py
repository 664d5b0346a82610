"""The balancer: one sub-connection per endpoint, and the pickers that spread attempts over the READY ones.

Whenever a sub-connection changes, the balancer decides which endpoints are to be connected, and publishes a new
generation: a picker over the healthy READY sub-connections, or over all READY ones, or none. `pick` never waits. A call
that finds no picker waits for the next generation until its deadline, and then fails with the last real error of every
endpoint; or at once, if a dial was refused for a mistake of the program. There is no lock: shared state is read and
written without an `await` in between.
"""

import asyncio
import random as random_module
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from etcd_aio.balancer.cluster_id import ClusterIdentity
from etcd_aio.balancer.dialler import Dialling
from etcd_aio.balancer.endpoint import Endpoint, ProxyFor
from etcd_aio.balancer.endpoint_reporter import EndpointReporter
from etcd_aio.balancer.generation import Generation
from etcd_aio.balancer.health_monitor import HealthMonitor
from etcd_aio.balancer.leader_monitor import LeaderMonitor
from etcd_aio.balancer.picker import Choice, PolicyName
from etcd_aio.balancer.pool import EndpointPool, by_name
from etcd_aio.balancer.redialler import Redialler
from etcd_aio.balancer.serving_monitor import ServingMonitor
from etcd_aio.balancer.store_doubts import StoreDoubts
from etcd_aio.balancer.sub_connection import SubConnection
from etcd_aio.base.aio import Waiters
from etcd_aio.base.closing import TwoPartClose, Unwinding, close_all
from etcd_aio.errors import NoAvailableEndpointsError, UnknownEndpointError
from etcd_aio.observing import EndpointChange
from etcd_aio.transport import CertificateRenewal, Engine, RequestMetadata, Target, TLSContext
from etcd_aio.types import ConnectivityState, EndpointStatistics

if TYPE_CHECKING:
    from etcd_aio.balancer.renewer import Renewer

_DEMAND_INTERVAL: Final = 10.0  # seconds between the demands of a waiting call; well within `DEMAND_SECONDS`


class Balancer(TwoPartClose):
    """Chooses the sub-connection of every attempt, and keeps those connected that the policy needs.

    Args:
        endpoints: where to connect.
        engine: opens connections.
        metadata: of the requests that ask which member leads.
        tls_for: returns the TLS context of an endpoint, or its source; None for plaintext.
        proxy_for: chooses the proxy of an endpoint; None for none.
        policy: how attempts are spread.
        verify_all: check the cluster id of every new connection before it is used, not only after a rejection:
            credentials are for one cluster alone.
        connect_timeout: seconds for the question to which cluster a new peer belongs.
        fail_fast: do not let attempts wait for a connection once every endpoint has refused one.
        random: returns a number in [0, 1).
        on_change: called when the state or the health of an endpoint has changed; None if that is not observed.
        client: name of the client, for logs, statistics and observers; empty if it has none.
        certificates: the source of TLS contexts whose connections are renewed with their certificates; None if none is.

    Attributes:
        identity: the cluster that every answer must come from.
        doubts: the listeners that are called when the store of that cluster may be another one than before.
        unresolved: for each source of endpoints that failed, its error; shown by `NoAvailableEndpointsError`.
        readiness: woken when other sub-connections are READY than before, and when the endpoints were replaced.
    """

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        engine: Engine,
        *,
        metadata: RequestMetadata,
        tls_for: Callable[[Endpoint], TLSContext | None],
        proxy_for: ProxyFor | None = None,
        policy: PolicyName | Choice = "round_robin",
        verify_all: bool = False,
        connect_timeout: float = 2.0,
        fail_fast: bool = False,
        random: Callable[[], float] = random_module.random,
        on_change: Callable[[EndpointChange], None] | None = None,
        client: str = "",
        certificates: CertificateRenewal | None = None,
    ) -> None:
        self.identity = ClusterIdentity(self.look_for_leader, connect_timeout, is_patient=not fail_fast, random=random)
        self.doubts = StoreDoubts()
        self._was_connected = False
        self.unresolved: Mapping[str, BaseException] = {}
        self._is_resolving = False
        self._fail_fast = fail_fast
        self._generation = generation = Generation(policy, random)
        self._changes = Waiters()
        self.readiness: Final = Waiters()
        self._redialler = Redialler(self.identity.check, self.look_for_leader, random)
        self._health = HealthMonitor(lambda: generation.ready, self._publish, self._redialler.consider, random)
        self._serving = ServingMonitor(random)
        self._leader = LeaderMonitor(lambda: generation.ready, metadata, self._set_leader, random)
        self._proxy_for = proxy_for
        dialling = Dialling(engine, self.identity.verify, verify_all, random, client, certificates, proxy_for)
        self._pool = EndpointPool(endpoints, dialling, tls_for, generation.needs.keep, self._health, self._publish)
        self._renewer = None if certificates is None else self._make_renewer(certificates, random)
        self._reporter = None if on_change is None else EndpointReporter(on_change, client)
        self._is_publishing = self._is_stale = False
        self._is_started = False
        self._is_closed = False

    def start(self) -> None:
        """Begin to connect to the endpoints. Safe to repeat. Must run in the client's loop."""
        if self._is_started or self._is_closed:
            return
        self._is_started = True
        self.set_endpoints(self.endpoints)
        if self._renewer is not None:
            self._renewer.start()

    def _make_renewer(self, certificates: CertificateRenewal, random: Callable[[], float]) -> "Renewer":
        from etcd_aio.balancer.renewer import Renewer  # for `TLS(reconnect=True)` alone

        return Renewer(certificates, lambda: tuple(self._pool.current.values()), self.look_for_leader, random)

    def close(self) -> Unwinding:
        """Close every sub-connection now; calls that wait for one fail at once."""
        self._is_closed = True
        self._generation.renew(())
        self._changes.close()
        self.readiness.close()
        if self._reporter is not None:
            self._reporter.report(())
        renewer = () if self._renewer is None else (self._renewer,)
        return close_all((self._health, self._serving, self._leader, self._redialler, *renewer, self._pool))

    # Picking.

    is_part: Final = False  # it has every endpoint
    may_move: Final = True  # a call that fails on one may go to another

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The endpoints in use, in the order given."""
        return tuple(self._pool.endpoints.values())

    @property
    def ready_count(self) -> int:
        """The number of READY sub-connections."""
        return len(self._generation.ready)

    @property
    def ready(self) -> frozenset[str]:
        """The names of the endpoints with READY sub-connections."""
        return frozenset(one.endpoint_name for one in self._generation.ready)

    @property
    def dialled(self) -> frozenset[str]:
        """The names of the endpoints that the policy keeps connected, or tries to."""
        return frozenset(self._pool.current)

    @property
    def p99_latency(self) -> float:
        """The 99th percentile of recent latencies, in seconds; 0 before the first answer."""
        return self._health.p99_latency

    def pick(self, avoid: Collection[SubConnection] = (), needs_leader: bool = True) -> SubConnection | None:
        """A READY sub-connection, one that is not in `avoid` if there is any other; None if none is READY.

        Unhealthy ones are used last; `needs_leader` says which of their two services counts.
        """
        picker = self._generation.quorum if needs_leader else self._generation.local
        return None if picker is None else picker.pick(avoid)

    def has_other(self, avoid: Collection[SubConnection]) -> bool:
        """Whether a sub-connection is READY that is not in `avoid`."""
        return any(sub_connection not in avoid for sub_connection in self._generation.ready)

    async def wait_for_pick(
        self,
        deadline: float,
        avoid: Collection[SubConnection] = (),
        needs_leader: bool = True,
        *,
        is_patient: bool = False,
    ) -> SubConnection:
        """Do what `pick` does, or wait until `deadline` for a READY sub-connection; `is_patient` overrules `fail_fast`.

        Raises:
            NoAvailableEndpointsError: none was READY in time, or every endpoint has refused and `fail_fast` is set.
            ClientUsageError: the balancer was closed meanwhile, or the program uses the engine in a wrong way.
        """
        while True:
            chosen = self.pick(avoid, needs_leader)
            if chosen is not None:
                return chosen
            self.check_use()
            if (not is_patient and self.fails_fast()) or not await self.changed(deadline):
                raise self.no_available_endpoints()

    def fails_fast(self, only: str | None = None) -> bool:
        """Whether a call that finds no READY sub-connection fails at once: `fail_fast` is set, and all have refused.

        An endpoint that is not known, since DNS has failed, counts as one that has refused.

        Args:
            only: the one endpoint that counts; None for all.
        """
        if not self._fail_fast or self._is_closed or (only is None and self._is_resolving):
            return False
        is_unknown = only is None and not self._pool.endpoints and bool(self.unresolved)
        return is_unknown or self._pool.has_refused(only)

    def check_use(self, only: str | None = None) -> None:
        """Check that no dial was refused for a mistake of the program, for which a call need not wait.

        Args:
            only: the one endpoint that counts; None for all.

        Raises:
            ClientUsageError: the mistake, as the engine tells it.
        """
        misuse = self._pool.misuse(only)
        if misuse is not None and not self._is_closed:
            raise misuse

    async def changed(self, deadline: float) -> bool:
        """Wait for the next generation; False if `deadline` came first.

        Raises:
            ClientClosedError: the balancer is closed, or was closed meanwhile.
        """
        return await self._changes.wait(deadline)

    def set_unresolved(self, errors: Mapping[str, BaseException], *, is_resolving: bool) -> None:
        """Note why endpoints are not known.

        Args:
            errors: for each source of endpoints without an answer, its error.
            is_resolving: whether one of them may still answer for the first time.
        """
        self.unresolved, self._is_resolving = errors, is_resolving
        if self._fail_fast:
            self._changes.wake()

    def no_available_endpoints(self, only: str | None = None) -> NoAvailableEndpointsError:
        """The error with the last real error of every endpoint, or of one."""
        errors = {} if only is not None else dict(self.unresolved)
        return NoAvailableEndpointsError(errors=errors | self._pool.errors(only))

    # One endpoint.

    def only(self, endpoint: str) -> "SingleEndpointView":
        """The view of the balancer that is restricted to one endpoint.

        Args:
            endpoint: its name, in any spelling; the scheme may be left out.

        Raises:
            UnknownEndpointError: it is none of the endpoints in use.
        """
        return SingleEndpointView(self, self._pool.find(endpoint))

    def sub_connection(self, name: str) -> SubConnection | None:
        """The sub-connection of an endpoint; None if there is none now."""
        return self._pool.current.get(name)

    def demand(self, name: str) -> SubConnection | None:
        """The sub-connection of an endpoint in use, connecting it if the policy does not; None if it is not in use."""
        is_usable = name in self._pool.endpoints and self._is_started and not self._is_closed
        if is_usable and self._pool.demand(name):
            self._publish()
        return self._pool.current.get(name)

    def target(self, name: str) -> Target:
        """Return the transport's target for an endpoint in use.

        Raises:
            UnknownEndpointError: it is not in use.
            EtcdError: its TLS configuration cannot be used.
        """
        endpoint = self._pool.find(name)
        return endpoint.target(self._pool.tls_for(endpoint), self._proxy_for)

    # Which endpoints are connected.

    def set_endpoints(self, endpoints: Iterable[Endpoint]) -> None:
        """Replace the endpoints: those that stay keep their connections, removed ones drain, new ones are dialled."""
        before, self._pool.endpoints = self._pool.endpoints, by_name(endpoints)
        if not self._is_started or self._is_closed:
            return
        try:
            self._publish()
        except BaseException:  # a new sub-connection could not be made
            self._pool.endpoints = before
            raise
        if before.keys() - self._pool.endpoints.keys():
            self._changes.wake()  # a call may wait for one that is gone
        self.readiness.wake()

    def look_for_leader(self) -> None:
        """Find out which member leads, if the policy needs to know."""
        if self._generation.needs.leader and self._is_started and not self._is_closed:
            self._leader.search()

    def statistics(self) -> tuple[EndpointStatistics, ...]:
        """One record for each endpoint, in the order given; empty before the first use."""
        return self._pool.statistics() if self._is_started else ()

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
                removed = self._pool.update()
                self._renew_generation()  # first, so that no picker chooses what drains
                for sub_connection in removed:
                    sub_connection.drain()
                if self._fail_fast or (not self._generation.ready and self._pool.misuse() is not None):
                    self._changes.wake()  # an endpoint may have refused
                if self._reporter is not None:
                    self._reporter.report(self._pool.statistics())
                if self._renewer is not None:
                    self._renewer.nudge()
        finally:
            self._is_publishing = False

    def _renew_generation(self) -> None:
        was_out = self._was_connected and not self._generation.ready
        has_changed = self._generation.renew(self._pool.current.values())
        self._serving.follow(self._generation.ready)
        if self._generation.ready:
            self._pool.forget_refusals()
        if has_changed:
            if self._generation.ready:
                self._was_connected = True
                if was_out:  # every connection was lost, and the members may have been restored meanwhile
                    self.doubts.tell()
            self.look_for_leader()
            self.readiness.wake()
            if self._generation.ready:
                self._changes.wake()

    def _set_leader(self, leader: SubConnection | None) -> None:
        for sub_connection in self._pool.current.values():
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

    __slots__ = ("_balancer", "_name", "endpoints", "is_part")

    may_move: Final = False
    p99_latency = 0.0  # there is no other endpoint to compare with

    def __init__(self, balancer: Balancer, endpoint: Endpoint) -> None:
        self._balancer = balancer
        self._name = endpoint.name
        self.endpoints = (endpoint,)
        self.is_part = len(balancer.endpoints) > 1

    @property
    def ready_count(self) -> int:
        """The number of READY sub-connections: one or none."""
        return 0 if _if_ready(self._balancer.sub_connection(self._name)) is None else 1

    def pick(self, avoid: Collection[SubConnection] = (), needs_leader: bool = True) -> SubConnection | None:
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
            ClientUsageError: the balancer was closed meanwhile, or the program uses the engine in a wrong way.
        """
        clock = asyncio.get_running_loop().time
        while True:
            chosen = self.pick(avoid, needs_leader)
            if chosen is not None:
                return chosen
            if self._balancer.sub_connection(self._name) is None:
                raise UnknownEndpointError(f"endpoint {self._name} was removed from this client")
            self._balancer.check_use(self._name)
            if self._balancer.fails_fast(self._name):
                raise self._balancer.no_available_endpoints(self._name)
            # The demand is renewed while the call waits: without one the endpoint is not dialled.
            has_changed = await self._balancer.changed(min(deadline, clock() + _DEMAND_INTERVAL))
            if not has_changed and clock() >= deadline:
                raise self._balancer.no_available_endpoints(self._name)


def _if_ready(sub_connection: SubConnection | None) -> SubConnection | None:
    is_ready = sub_connection is not None and sub_connection.state is ConnectivityState.READY
    return sub_connection if is_ready else None
