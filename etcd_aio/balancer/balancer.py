"""Balancer: one sub-connection per endpoint, and the picker that spreads every attempt over those that are READY.

Knows: the endpoints, their sub-connections, who waits. Never knows: RPCs, retries, why a connection was lost.

Theory of operation. Whenever a sub-connection changes, the balancer asks the policy which endpoints are to be
connected, and publishes a new generation: a picker over the READY ones that look good, or over all, or none. `pick`
never waits. Whoever finds no picker waits for the next generation (`wait_for_pick`) until its deadline, and then learns
every endpoint's last real error. There is no lock: between reading and writing what is shared, nothing awaits.
"""

import asyncio
import random as random_module
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from etcd_aio.aio import resolve, wait_until
from etcd_aio.balancer.cluster_id import ClusterIdentity
from etcd_aio.balancer.connection_set import Keeper, Standing
from etcd_aio.balancer.connectivity import ConnectivityState
from etcd_aio.balancer.endpoint import Endpoint, Security, parse_endpoint
from etcd_aio.balancer.health import Health, Service
from etcd_aio.balancer.health_monitor import HealthMonitor
from etcd_aio.balancer.leader_monitor import LeaderMonitor
from etcd_aio.balancer.only import OnlyEndpoint
from etcd_aio.balancer.picker import Choice, Picker, Policy, PolicyName
from etcd_aio.balancer.statistics import EndpointStatistics, unused
from etcd_aio.balancer.sub_connection import DIAL_BACKOFF, SubConnection
from etcd_aio.closing import TwoPartClose, Unwinding, close_all
from etcd_aio.deadline import NEVER
from etcd_aio.errors import (
    ClientClosedError,
    ConfigError,
    ConnectError,
    NoAvailableEndpointsError,
    UnknownEndpointError,
)
from etcd_aio.transport import Engine, RequestMetadata, Target, TLSContext

DEMAND_HOLDS: Final = 30.0  # seconds for which an endpoint that a call named is kept after it, whatever the policy
_DEMAND_LOOK: Final = 5.0  # seconds between two looks at whether such calls are under way still


class Balancer(TwoPartClose):
    """Owner of every sub-connection.

    Args:
        endpoints: where to connect; at least one.
        engine: opens connections.
        metadata: of the requests that ask which member leads.
        tls_for: the TLS context of an endpoint, or what gives it, None for plaintext.
        policy: how attempts are spread.
        verify_all: ask the peer of every connection before it is used: what is sent on it is for one cluster alone.
        fail_fast: do not let attempts wait for a connection once every endpoint has refused one.
        random: returns a number in [0, 1).

    Attributes:
        identity: the cluster that every answer must come from.
        unresolved: why the endpoints are not known, or not anew, by what was asked; errors show it.
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
        # With turns of its own: calls of both kinds that alternate would go to one member each.
        self._local_policy: Policy[SubConnection] = Policy(policy, random)
        self._keeper = Keeper(self._policy.needs.keep, DIAL_BACKOFF, random)
        self._picker: Picker[SubConnection] | None = None
        self._local_picker: Picker[SubConnection] | None = None  # for what members serve alone
        self._ready: tuple[SubConnection, ...] = ()
        self._generation: tuple[tuple[SubConnection, ...], ...] = ()  # what the pickers choose from
        self._health = HealthMonitor(lambda: self._ready, self._publish, random)
        self._leader = LeaderMonitor(lambda: self._ready, metadata, self._set_leader, random)
        self._errors: dict[str, BaseException] = {}  # the last ones of endpoints that are not kept now
        self._refused: set[str] = set()  # endpoints that are not kept now, and refused since any was READY
        self._demanded: dict[str, float] = {}
        self._again: asyncio.TimerHandle | None = None
        self._is_publishing = self._is_stale = False
        self._endpoints: dict[str, Endpoint] = {endpoint.name: endpoint for endpoint in endpoints}
        self._current: dict[str, SubConnection] = {}
        self._draining: set[SubConnection] = set()
        self._waiters: set[asyncio.Future[bool]] = set()
        self._outage_waiters: set[asyncio.Future[bool]] = set()
        self._is_started = False
        self._is_closed = False

    # Who takes the next attempt.

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The endpoints in use, in the order given."""
        return tuple(self._endpoints.values())

    @property
    def ready_count(self) -> int:
        """How many sub-connections are READY."""
        return len(self._ready)

    def start(self) -> None:
        """Begin to connect to every endpoint; harmless if it has begun. Must run in the client's loop."""
        if self._is_started or self._is_closed:
            return
        self._is_started = True
        self.set_endpoints(self._endpoints.values())

    @property
    def slow(self) -> float:
        """The 99th percentile of what recent answers took, in seconds; 0 before the first."""
        return self._health.slow

    def pick(
        self,
        avoid: Collection[SubConnection] = (),
        needs_leader: bool = True,
    ) -> SubConnection | None:
        """A READY sub-connection, one that is not in `avoid` if there is any other; None if none is READY.

        Those that look bad come last, for what `needs_leader` or for what members serve alone.
        """
        picker = self._picker if needs_leader else self._local_picker
        return None if picker is None else picker.pick(avoid)

    def has_other(self, avoid: Collection[SubConnection]) -> bool:
        """Whether a sub-connection is READY that is not in `avoid`."""
        return any(one not in avoid for one in self._ready)

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
            is_patient: wait whatever `fail_fast` says.

        Raises:
            NoAvailableEndpointsError: none was READY by then, or need not be waited for.
            ClientClosedError: the balancer was closed meanwhile.
        """
        while True:
            chosen = self.pick(avoid, needs_leader)
            if chosen is not None:
                return chosen
            if (not is_patient and self.fails_fast()) or not await self.changed(deadline):
                raise self.no_available_endpoints()

    def fails_fast(self, only: str | None = None) -> bool:
        """Whether an attempt that finds nothing READY fails at once: every endpoint, or this one, has refused.

        A policy that keeps few connections has had them all tried in turn.
        """
        if not self._fail_fast or not self._current or self._is_closed:
            return False
        if only is not None:
            return only in self._current and self._current[only].has_refused
        if not all(one.has_refused for one in self._current.values()):
            return False
        return self._endpoints.keys() <= self._refused | self._current.keys()

    async def changed(self, deadline: float) -> bool:
        """Wait for the next generation; False if `deadline` came first.

        Raises:
            ClientClosedError: the balancer is closed, or was closed meanwhile.
        """
        return await self._wait(self._waiters, deadline)

    async def outage(self, deadline: float) -> bool:
        """Wait until nothing is READY, which may be so already; False if `deadline` came first.

        Raises:
            ClientClosedError: the balancer is closed, or was closed meanwhile.
        """
        if not self._ready and not self._is_closed:
            return True
        return await self._wait(self._outage_waiters, deadline)

    async def _wait(self, waiters: "set[asyncio.Future[bool]]", deadline: float) -> bool:
        if self._is_closed:
            raise ClientClosedError
        loop = asyncio.get_running_loop()
        if loop.time() >= deadline:
            return False
        waiter: asyncio.Future[bool] = loop.create_future()
        waiters.add(waiter)
        try:
            has_come = await wait_until(waiter, deadline, False)
        finally:
            waiters.discard(waiter)
        if self._is_closed:
            raise ClientClosedError
        return has_come

    def no_available_endpoints(self, only: str | None = None) -> NoAvailableEndpointsError:
        """The error that names every endpoint's last real error, or that of one."""
        errors: dict[str, BaseException] = {} if only is not None else dict(self.unresolved)
        for name in self._endpoints:
            if only is None or name == only:
                sub_connection = self._current.get(name)
                found = sub_connection.last_error if sub_connection is not None else None
                found = found or self._errors.get(name)
                errors[name] = found or ConnectError("connecting was not finished in time")
        return NoAvailableEndpointsError(errors=errors)

    # One endpoint.

    def only(self, endpoint: str) -> OnlyEndpoint:
        """What a call sees of the balancer that must go to `endpoint`, in any spelling; its scheme may be left out.

        Raises:
            UnknownEndpointError: it is none of the endpoints in use.
        """
        return OnlyEndpoint(self, self._found(endpoint))

    def sub_connection(self, name: str) -> SubConnection | None:
        """The sub-connection of an endpoint, whatever its state; None if there is none.

        There is one if the endpoint is in use: one that the policy would not keep is connected for the while, which is
        as long as something is under way there, and `DEMAND_HOLDS` more.
        """
        found = self._current.get(name)
        if name in self._endpoints and self._is_started and not self._is_closed:
            if name in self._demanded or found is None:
                self._demanded[name] = asyncio.get_running_loop().time() + DEMAND_HOLDS
            if found is None:
                self._publish()
                found = self._current.get(name)
        return found

    def target(self, name: str) -> Target:
        """What is dialled for an endpoint in use.

        Raises:
            UnknownEndpointError: it is not in use.
            EtcdError: its TLS configuration cannot be made.
        """
        endpoint = self._found(name)
        return endpoint.target(self._tls_for(endpoint))

    def _found(self, text: str) -> Endpoint:
        try:
            wanted = parse_endpoint(text)
        except ConfigError as error:
            reason = error.message
        else:
            if wanted.name in self._endpoints:
                return self._endpoints[wanted.name]
            # Who names a scheme means it: nothing is sent in the clear that was meant for TLS.
            place = (wanted.host, wanted.port, wanted.path) if wanted.security is Security.OPTIONAL else None
            for one in self._endpoints.values():
                if (one.host, one.port, one.path) == place:
                    return one
            reason = f"endpoint {wanted.name} is none of this client's: {', '.join(self._endpoints)}"
        raise UnknownEndpointError(reason)

    # Which endpoints there are.

    def set_endpoints(self, endpoints: Iterable[Endpoint]) -> None:
        """Replace the endpoints: those that stay keep their connections, removed ones drain, new ones are dialled."""
        wanted = {endpoint.name: endpoint for endpoint in endpoints}
        if not self._is_started or self._is_closed:
            self._endpoints = wanted
            return
        before, self._endpoints = self._endpoints, wanted
        try:
            self._publish()
        except BaseException:  # one of them cannot be made
            self._endpoints = before
            raise
        if before.keys() - wanted.keys():
            self._wake(self._waiters)  # whoever waits for one of them waits in vain

    def look_for_leader(self) -> None:
        """The leader may be another one, if anybody wants to know."""
        if self._policy.needs.leader and self._is_started and not self._is_closed:
            self._leader.search()

    def statistics(self) -> tuple[EndpointStatistics, ...]:
        """One record for each endpoint, in the order given; empty before the first use."""
        if not self._is_started:
            return ()
        found = ((name, self._current.get(name)) for name in self._endpoints)
        return tuple(unused(name, self._errors.get(name)) if one is None else one.statistics() for name, one in found)

    def close(self) -> Unwinding:
        """Close every sub-connection now; calls that wait for one fail at once."""
        self._is_closed = True
        self._picker = self._local_picker = None
        self._ready = ()
        self._wake(self._waiters | self._outage_waiters)
        if self._again is not None:
            self._again.cancel()
        return close_all((self._health, self._leader, *self._current.values(), *self._draining))

    # Inside.

    def _new(self, endpoint: Endpoint) -> SubConnection:
        return SubConnection(
            endpoint,
            endpoint.target(self._tls_for(endpoint)),
            self._engine,
            verify=self.identity.verify,
            verify_all=self._verify_all,
            random=self._random,
            on_change=self._publish,
            on_busy=self._health.arm,
            on_health=self._health.on_changed,
            slow=lambda: self._health.slow,
            failures=self._keeper.in_vain,
        )

    def _publish(self) -> None:
        """Make the pickers of this generation, and wake whoever waits for them.

        What it does to sub-connections changes them, which has this done once more, at the end.
        """
        self._is_stale = True
        if self._is_publishing:
            return
        self._is_publishing = True
        try:
            while self._is_stale and not self._is_closed:
                self._is_stale = False
                removed = self._keep()
                self._make_pickers()  # first, so that nobody picks what drains
                for sub_connection in removed:
                    sub_connection.drain()
                self._draining = {one for one in self._draining if not one.is_over}
                if self._fail_fast:
                    self._wake(self._waiters)  # they find out whether what they wait for has refused
        finally:
            self._is_publishing = False

    def _keep(self) -> list[SubConnection]:
        """Connect what the policy wants connected; returns what it does not want any more."""
        if not self._is_started:
            return []
        now = asyncio.get_running_loop().time()
        ask_again = self._expire_demands(now)
        standings = {name: _standing(self._current.get(name)) for name in self._endpoints}
        wanted = {*self._keeper.wanted(standings, now), *self._demanded}
        self._ask_again(min(self._keeper.ask_again, ask_again))
        old = self._current
        self._current = {
            name: old.get(name) or self._new(endpoint) for name, endpoint in self._endpoints.items() if name in wanted
        }
        for sub_connection in self._current.values():
            sub_connection.start()
        removed = [one for name, one in old.items() if name not in self._current]
        self._draining.update(removed)
        self._refused.update(one.endpoint_name for one in removed if one.has_refused)
        self._errors.update({one.endpoint_name: one.last_error for one in removed if one.last_error is not None})
        return removed

    def _expire_demands(self, now: float) -> float:
        """Forget the endpoints that no call needs any more; returns when to look at the others."""
        busy = {name for name in self._demanded if name in self._current and self._current[name].is_busy}
        self._demanded.update(dict.fromkeys(busy, now + DEMAND_HOLDS))
        self._demanded = {name: until for name, until in self._demanded.items() if until > now}
        return min(*self._demanded.values(), now + _DEMAND_LOOK if busy else NEVER, NEVER)

    def _ask_again(self, when: float) -> None:
        if self._again is not None:
            self._again.cancel()
            self._again = None
        if when != NEVER:
            self._again = asyncio.get_running_loop().call_at(when, self._publish)

    def _make_pickers(self) -> None:
        ready = tuple(one for one in self._current.values() if one.state is ConnectivityState.READY)
        quorum = _preferred(ready, lambda one: one.quorum)
        local = _preferred(ready, lambda one: one.local)
        generation = (ready, quorum, local, tuple(one for one in ready if one.is_leader))
        if generation == self._generation:
            return
        is_news = ready != self._ready
        self._ready, self._generation = ready, generation
        if ready:
            self._refused.clear()
        self._picker = self._policy.picker(quorum, ready) if ready else None
        self._local_picker = self._local_policy.picker(local, ready) if ready else None
        if is_news:
            self.look_for_leader()
            self._wake(self._waiters if ready else self._outage_waiters)

    def _set_leader(self, leader: SubConnection | None) -> None:
        for one in self._current.values():
            one.is_leader = one is leader
        self._publish()

    def _wake(self, waiters: "set[asyncio.Future[bool]]") -> None:
        for waiter in tuple(waiters):
            resolve(waiter, True)


def _preferred(
    ready: tuple[SubConnection, ...], service: Callable[[SubConnection], Service]
) -> tuple[SubConnection, ...]:
    """Those that do not look bad; all, if all do: bad health is an opinion, and somebody has to serve."""
    return tuple(one for one in ready if service(one).health is Health.HEALTHY) or ready


def _standing(sub_connection: SubConnection | None) -> Standing:
    if sub_connection is None:
        return Standing.UNUSED
    if sub_connection.state is ConnectivityState.READY:
        return Standing.GOOD if sub_connection.quorum.health is Health.HEALTHY else Standing.BAD
    return Standing.FAILED if sub_connection.has_failed else Standing.TRYING
