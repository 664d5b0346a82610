"""Keeps the endpoints of a client current, as the cluster and DNS change.

A client starts with the answer of its resolver: the endpoints that were named, or those of DNS records
(`discovery_srv`). `sync` replaces them by what members advertise. If none of the new endpoints is connected yet, the
old ones stay beside them until one is; if none can be connected, the old ones stay. For clients with `auto_sync` or
`discovery_srv`, one task repeats this on a schedule. During an outage it asks the resolver again: DNS may have changed,
and the host names that were named may lead to a cluster that has moved. A failure changes nothing; it is logged once
and tried again.

`set_endpoints` wins: the answer to a request that was sent before it is dropped (`_generation`).
"""

import asyncio
import logging
import random as random_module
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from math import inf
from typing import TYPE_CHECKING, Final, TypeAlias

from etcd_aio.balancer import Balancer, Endpoint
from etcd_aio.base.aio import start_background_task
from etcd_aio.base.backoff import Backoff, jittered
from etcd_aio.base.call_options import Timeout
from etcd_aio.base.closing import TwoPartClose, Unwinding
from etcd_aio.base.logs import log_of
from etcd_aio.errors import ClientClosedError, ConfigError, DiscoveryError, NoAvailableEndpointsError
from etcd_aio.types import ConnectivityState

if TYPE_CHECKING:
    from etcd_aio.discovery.resolver import Resolver
    from etcd_aio.types import MemberListResult

logger = logging.getLogger("etcd_aio.discovery")

OUTAGE_BACKOFF: Final = Backoff(initial=1.0, multiplier=2.0, maximum=15.0, jitter=0.2)
"""Waits between requests to the resolver during an outage. The first wait leaves time for dialling."""

RETRY_BACKOFF: Final = Backoff(initial=0.5, multiplier=2.0, maximum=30.0, jitter=0.2)
"""Waits after a failed refresh; never longer than the schedule itself."""

_SYNC_TIMEOUT: Final = 5.0  # as in etcd's Go client
_RESOLVE_TIMEOUT: Final = 10.0  # seconds; a dead name server, the first of several, takes some of them
_SHORTEST_TTL: Final = 5.0  # seconds; shorter TTLs must not make the name servers busy
_LONGEST_TTL: Final = 3600.0
_JITTER: Final = 0.1  # fraction of the schedule, so that clients that started together do not act in step

ListMembers: TypeAlias = "Callable[[Timeout], Awaitable[MemberListResult]]"
"""Lists the members, within a timeout in seconds."""


class Discovery(TwoPartClose):
    """Owner of the task that keeps the endpoints current.

    Args:
        balancer: connects to the endpoints.
        resolver: finds the endpoints to start with; None if they were named.
        list_members: lists the members of the cluster.
        check: raises ConfigError if the client must not use these endpoints.
        has_tls: whether the client has a TLS configuration.
        auto_sync: seconds from one sync to the next; None for no sync.
        connect_timeout: seconds to wait for the first connection to a new endpoint.
        random: returns a number in [0, 1).
        client: name of the client; empty if it has none.
    """

    def __init__(
        self,
        balancer: Balancer,
        resolver: "Resolver | None",
        list_members: ListMembers,
        *,
        check: Callable[[Iterable[Endpoint]], None] | None = None,
        has_tls: bool,
        auto_sync: float | None,
        connect_timeout: float,
        random: Callable[[], float] = random_module.random,
        client: str = "",
    ) -> None:
        self._log = log_of(logger, client)
        self._balancer = balancer
        self._resolver = resolver
        self._list_members = list_members
        self._check = check
        self._has_tls = has_tls
        self._auto_sync = auto_sync
        self._connect_timeout = connect_timeout
        self._random = random
        self._resolved = balancer.endpoints
        self._ttl = inf
        self._generation = 0  # counts the calls of `set_endpoints`
        self._failing: dict[str, BaseException] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def start(self) -> None:
        """Start the task, if there is anything to keep current. Safe to repeat."""
        if self._task is None and (self._auto_sync is not None or self._resolver is not None):
            if self._resolver is not None:
                self._balancer.unresolved = {self._resolver.name: DiscoveryError("DNS has not answered yet")}
            self._task = start_background_task(self._keep_current(), name="etcd_aio discovery")

    def close(self) -> Unwinding:
        """End the task."""
        if self._task is None:
            return ()
        if not self._is_closed:
            self._is_closed = True
            self._task.cancel()
        return (self._task,)

    def set_endpoints(self, endpoints: tuple[Endpoint, ...]) -> None:
        """Use the endpoints that the user has named from now on."""
        self._balancer.set_endpoints(endpoints)
        self._resolved = endpoints
        self._generation += 1

    async def sync(self, timeout: Timeout) -> tuple[str, ...]:
        """Use the endpoints that the members advertise, as described at `Client.sync`."""
        generation = self._generation
        listing = await self._list_members(timeout)
        if generation != self._generation:
            return _names(self._balancer.endpoints)
        before = self._balancer.endpoints
        urls = [url for member in listing if member.is_started and not member.is_learner for url in member.client_urls]
        from etcd_aio.discovery.member_urls import advertised_endpoints

        advertised = advertised_endpoints(urls, configured=self._resolved, in_use=before, has_tls=self._has_tls)
        if not advertised.endpoints:
            reasons = "; ".join(advertised.refused) or "no voting member advertises a URL"
            raise DiscoveryError(f"no member advertises an endpoint that this client can use: {reasons}")
        self._check_allowed(advertised.endpoints)
        if advertised.refused:
            self._log.debug("advertised, but not used: %s", "; ".join(advertised.refused))
        await self._replace_endpoints(before, advertised.endpoints)
        return _names(self._balancer.endpoints)

    async def _replace_endpoints(self, before: tuple[Endpoint, ...], after: tuple[Endpoint, ...]) -> None:
        """Switch to the new endpoints only once one of them is connected."""
        wanted = set(_names(after))
        if wanted != set(_names(before)):
            if not self._is_any_ready(wanted):
                generation = self._generation
                both = (*after, *(endpoint for endpoint in before if endpoint.name not in wanted))
                self._balancer.set_endpoints(both)
                try:
                    await self._wait_for_any(wanted)
                except BaseException:  # also a cancellation: the old endpoints have worked, the new ones have not
                    if self._balancer.endpoints == both:
                        self._balancer.set_endpoints(before)
                    raise
                if generation != self._generation:
                    return
            self._log.info("endpoints: %s", ", ".join(_names(after)))
            self._balancer.set_endpoints(after)

    async def _wait_for_any(self, names: set[str]) -> None:
        deadline = asyncio.get_running_loop().time() + self._connect_timeout
        generation = self._generation
        while not self._is_any_ready(names) and generation == self._generation:
            if not await self._balancer.changed(deadline):
                errors = {
                    record.endpoint: record.last_error or TimeoutError("connecting was not finished in time")
                    for record in self._balancer.statistics()
                    if record.endpoint in names
                }
                raise DiscoveryError(
                    "none of the endpoints that members advertise could be connected; the old ones stay"
                ) from NoAvailableEndpointsError(errors=errors)

    def _is_any_ready(self, names: set[str]) -> bool:
        return any(
            record.endpoint in names
            for record in self._balancer.statistics()
            if record.state is ConnectivityState.READY
        )

    def _check_allowed(self, endpoints: tuple[Endpoint, ...]) -> None:
        """Discovered endpoints must pass the same checks as configured ones."""
        if self._check is not None:
            try:
                self._check(endpoints)
            except ConfigError as error:
                raise DiscoveryError(f"discovered endpoints must not be used: {error.message}") from error

    # The task.

    async def _keep_current(self) -> None:
        loop = asyncio.get_running_loop()
        failures = requests = 0  # failed refreshes in a row, requests to the resolver in this outage
        due = loop.time() + (self._schedule() if self._resolver is None else 0.0)
        while True:
            if loop.time() >= due:
                failures = 0 if await self._refresh() else failures + 1
                wait = self._schedule()
                if failures:
                    wait = min(wait, RETRY_BACKOFF.wait(failures - 1, self._random))
                due = loop.time() + wait
            elif await self._balancer.outage(due):
                until = loop.time() + OUTAGE_BACKOFF.wait(requests, self._random)
                await self._balancer.changed(min(due, until))
                if self._balancer.ready_count:
                    requests = 0
                elif loop.time() >= until:
                    requests += 1
                    await self._resolve()

    async def _refresh(self) -> bool:
        """Refresh as scheduled; returns whether all of it succeeded."""
        is_current = self._resolver is None or await self._resolve()
        if self._auto_sync is not None and self._balancer.ready_count:
            return await self._try("auto_sync", self.sync(_SYNC_TIMEOUT)) and is_current
        return is_current

    async def _resolve(self) -> bool:
        """Ask the resolver, and use its answer unless the member list is better; returns whether there is an answer."""
        what = "returning to the configured endpoints" if self._resolver is None else self._resolver.name
        return await self._try(what, self._use_resolver())

    async def _use_resolver(self) -> None:
        before = set(_names(self._resolved))
        if self._resolver is not None:
            generation = self._generation
            resolution = await self._resolver.resolve(_RESOLVE_TIMEOUT)
            self._ttl = resolution.ttl
            if generation != self._generation:
                return
            self._check_allowed(resolution.endpoints)
            self._resolved = resolution.endpoints
        is_out = not self._balancer.ready_count
        if self._auto_sync is not None and not is_out:
            return  # the member list is better, and the next sync asks for it
        if is_out or set(_names(self._resolved)) != before:
            # With `auto_sync`, the endpoints that members advertised last may come back just as well.
            self._use((*self._resolved, *(() if self._auto_sync is None else self._balancer.endpoints)))

    async def _try(self, what: str, work: Coroutine[None, None, object]) -> bool:
        """Run `work`; returns whether it succeeded. A failure is logged once, and errors show it until a success."""
        try:
            await work
        except ClientClosedError:
            raise
        except Exception as error:  # any: the client keeps its endpoints, and the next try may succeed
            level = logging.DEBUG if what in self._failing else logging.WARNING  # one warning per outage
            self._failing[what] = error
            self._log.log(level, "%s failed, the endpoints are unchanged: %s: %s", what, type(error).__name__, error)
        else:
            if self._failing.pop(what, None) is not None:
                self._log.info("%s works again", what)
        self._balancer.unresolved = dict(self._failing)
        return what not in self._failing

    def _use(self, endpoints: Iterable[Endpoint]) -> None:
        wanted = tuple({endpoint.name: endpoint for endpoint in endpoints}.values())
        if set(_names(wanted)) != set(_names(self._balancer.endpoints)):
            self._log.info("endpoints: %s", ", ".join(_names(wanted)))
            self._balancer.set_endpoints(wanted)

    def _schedule(self) -> float:
        """Seconds to the next refresh."""
        seconds = min(max(self._ttl, _SHORTEST_TTL), _LONGEST_TTL) if self._auto_sync is None else self._auto_sync
        return jittered(seconds, _JITTER, self._random)


def _names(endpoints: Iterable[Endpoint]) -> tuple[str, ...]:
    return tuple(endpoint.name for endpoint in endpoints)
