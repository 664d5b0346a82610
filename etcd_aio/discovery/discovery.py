"""Discovery: which endpoints the client uses, as the cluster and DNS go on to change.

Knows: the resolver, the member list, the balancer, when to ask whom. Never knows: DNS, RPCs, which URLs are believed.

Theory of operation. A client begins with what its resolver says: the endpoints that were named, or those of DNS records
(`discovery_srv`). `sync` replaces them by what members advertise. It makes before it breaks: if none of the new ones is
connected, the old ones stay beside them until one is; if none can be, everything is as before. One task, for clients
with `auto_sync` or `discovery_srv`, repeats that on a schedule. If nothing is connected for a while it goes back to the
resolver: to DNS, which may know better by now, and to the endpoints that were named, whose host names may lead to a
cluster that has moved. Whatever fails leaves the endpoints alone, is logged once, and is tried again.

What the user sets wins: an answer to a question that was asked before is dropped when it comes (`_generation`).
"""

import asyncio
import logging
import random as random_module
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from math import inf
from typing import Final, TypeAlias

from etcd_aio.aio import start_background_task
from etcd_aio.backoff import Backoff, jittered
from etcd_aio.balancer import Balancer, ConnectivityState, Endpoint
from etcd_aio.call_options import Timeout
from etcd_aio.closing import TwoPartClose, Unwinding
from etcd_aio.discovery.member_urls import advertised_endpoints
from etcd_aio.discovery.resolver import Resolver
from etcd_aio.errors import ClientClosedError, ConfigError, DiscoveryError, NoAvailableEndpointsError
from etcd_aio.types import MemberListResult

logger = logging.getLogger("etcd_aio.discovery")

OUTAGE_BACKOFF: Final = Backoff(initial=1.0, multiplier=2.0, maximum=15.0, jitter=0.2)
"""Waits between questions to the resolver while nothing is connected. The first gives dialling its time."""

RETRY_BACKOFF: Final = Backoff(initial=0.5, multiplier=2.0, maximum=30.0, jitter=0.2)
"""Waits after a refresh that failed, never longer than the schedule itself."""

_SYNC_TIMEOUT: Final = 5.0  # as etcd's Go client gives each sync of its own
_RESOLVE_TIMEOUT: Final = 10.0  # a dead name server, the first of several, takes the resolver some seconds
_SHORTEST_TTL: Final = 5.0  # records that hold for less, or not at all, must not make name servers busy
_LONGEST_TTL: Final = 3600.0
_JITTER: Final = 0.1  # of the schedule, so that clients that started together part

ListMembers: TypeAlias = Callable[[Timeout], Awaitable[MemberListResult]]
"""Lists the members within some seconds."""


class Discovery(TwoPartClose):
    """See the theory above.

    Args:
        balancer: uses the endpoints.
        resolver: finds those to begin with.
        list_members: asks the cluster.
        check: raises ConfigError if endpoints must not be used, as `Client` would have refused them.
        has_tls: whether the client has a TLS configuration.
        auto_sync: seconds from one sync to the next; None for none.
        connect_timeout: seconds for a first connection to a new endpoint.
        random: returns a number in [0, 1).
    """

    def __init__(
        self,
        balancer: Balancer,
        resolver: Resolver,
        list_members: ListMembers,
        *,
        check: Callable[[Iterable[Endpoint]], None] | None = None,
        has_tls: bool,
        auto_sync: float | None,
        connect_timeout: float,
        random: Callable[[], float] = random_module.random,
    ) -> None:
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
        self._generation = 0  # counts what the user sets
        self._failing: dict[str, BaseException] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def start(self) -> None:
        """Begin to keep the endpoints current, if there is anything to do; harmless if it has begun."""
        if self._task is None and (self._auto_sync is not None or self._resolver.name):
            if self._resolver.name:
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
        """Use these from now on: the user has named them."""
        self._balancer.set_endpoints(endpoints)
        self._resolved = endpoints
        self._generation += 1

    async def sync(self, timeout: Timeout) -> tuple[str, ...]:
        """Use what the members advertise. See `Client.sync`."""
        generation = self._generation
        listing = await self._list_members(timeout)
        if generation != self._generation:
            return _names(self._balancer.endpoints)
        before = self._balancer.endpoints
        urls = [url for member in listing if member.is_started and not member.is_learner for url in member.client_urls]
        found = advertised_endpoints(urls, configured=self._resolved, in_use=before, has_tls=self._has_tls)
        if not found.endpoints:
            reasons = "; ".join(found.refused) or "no member that has a vote advertises a URL"
            raise DiscoveryError(f"the member list has no endpoint that this client could use: {reasons}")
        self._refuse_unfit(found.endpoints)
        if found.refused:
            logger.debug("advertised, but not used: %s", "; ".join(found.refused))
        await self._switch(before, found.endpoints)
        return _names(self._balancer.endpoints)

    async def _switch(self, before: tuple[Endpoint, ...], after: tuple[Endpoint, ...]) -> None:
        """Replace the endpoints, but not the last connection by none."""
        wanted = set(_names(after))
        if wanted != set(_names(before)):
            if not self._is_any_ready(wanted):
                generation = self._generation
                both = (*after, *(one for one in before if one.name not in wanted))
                self._balancer.set_endpoints(both)
                try:
                    await self._wait_for_any(wanted)
                except BaseException:  # a cancellation too: the old ones have worked, the new ones have not
                    if self._balancer.endpoints == both:
                        self._balancer.set_endpoints(before)
                    raise
                if generation != self._generation:
                    return
            logger.info("endpoints: %s", ", ".join(_names(after)))
            self._balancer.set_endpoints(after)

    async def _wait_for_any(self, names: set[str]) -> None:
        deadline = asyncio.get_running_loop().time() + self._connect_timeout
        generation = self._generation
        while not self._is_any_ready(names) and generation == self._generation:
            if not await self._balancer.changed(deadline):
                errors = {
                    one.endpoint: one.last_error or TimeoutError("connecting was not finished in time")
                    for one in self._balancer.statistics()
                    if one.endpoint in names
                }
                raise DiscoveryError(
                    "none of the endpoints that members advertise can be connected to; the old ones stay"
                ) from NoAvailableEndpointsError(errors=errors)

    def _is_any_ready(self, names: set[str]) -> bool:
        ready = (one.endpoint for one in self._balancer.statistics() if one.state is ConnectivityState.READY)
        return any(name in names for name in ready)

    def _refuse_unfit(self, endpoints: tuple[Endpoint, ...]) -> None:
        """What is learnt gets no more than what is named: no credentials go to it in the clear."""
        if self._check is not None:
            try:
                self._check(endpoints)
            except ConfigError as error:
                raise DiscoveryError(f"what was learnt must not be used: {error.message}") from error

    # The one task.

    async def _keep_current(self) -> None:
        loop = asyncio.get_running_loop()
        failures = questions = 0  # in a row: failed refreshes, questions to the resolver in this outage
        due = loop.time() + (0.0 if self._resolver.name else self._schedule())
        while True:
            if loop.time() >= due:
                failures = 0 if await self._refresh() else failures + 1
                wait = self._schedule()
                if failures:
                    wait = min(wait, RETRY_BACKOFF.wait(failures - 1, self._random))
                due = loop.time() + wait
            elif await self._balancer.outage(due):
                until = loop.time() + OUTAGE_BACKOFF.wait(questions, self._random)
                await self._balancer.changed(min(due, until))
                if self._balancer.ready_count:
                    questions = 0
                elif loop.time() >= until:
                    questions += 1
                    await self._resolve()

    async def _refresh(self) -> bool:
        """What is due on the schedule; whether all of it has succeeded."""
        is_current = not self._resolver.name or await self._resolve()
        if self._auto_sync is not None and self._balancer.ready_count:
            return await self._try("auto_sync", self.sync(_SYNC_TIMEOUT)) and is_current
        return is_current

    async def _resolve(self) -> bool:
        """Ask the resolver, and use its answer unless the members have a better one; whether there is an answer."""
        return await self._try(
            self._resolver.name or "going back to the endpoints that were named", self._resolved_anew()
        )

    async def _resolved_anew(self) -> None:
        before = set(_names(self._resolved))
        if self._resolver.name:
            generation = self._generation
            resolution = await self._resolver.resolve(_RESOLVE_TIMEOUT)
            self._ttl = resolution.ttl
            if generation != self._generation:
                return
            self._refuse_unfit(resolution.endpoints)
            self._resolved = resolution.endpoints
        is_out = not self._balancer.ready_count
        if self._auto_sync is not None and not is_out:
            return  # members know best who they are, and the next sync asks them
        if is_out or set(_names(self._resolved)) != before:
            # Where members are asked, those that they have named last may come back just as well.
            self._use((*self._resolved, *(() if self._auto_sync is None else self._balancer.endpoints)))

    async def _try(self, what: str, work: Coroutine[None, None, object]) -> bool:
        """Whether it succeeded; what fails is logged once until it succeeds, and shown by errors meanwhile."""
        try:
            await work
        except ClientClosedError:
            raise
        except Exception as error:  # whatever it is, the client goes on with what it has, and the next try may succeed
            level = logging.DEBUG if what in self._failing else logging.WARNING  # repetitions in an outage are noise
            self._failing[what] = error
            logger.log(level, "%s failed, the endpoints stay as they are: %s: %s", what, type(error).__name__, error)
        else:
            if self._failing.pop(what, None) is not None:
                logger.info("%s works again", what)
        self._balancer.unresolved = dict(self._failing)
        return what not in self._failing

    def _use(self, endpoints: Iterable[Endpoint]) -> None:
        wanted = tuple({one.name: one for one in endpoints}.values())
        if set(_names(wanted)) != set(_names(self._balancer.endpoints)):
            logger.info("endpoints: %s", ", ".join(_names(wanted)))
            self._balancer.set_endpoints(wanted)

    def _schedule(self) -> float:
        """Seconds to the next refresh."""
        seconds = min(max(self._ttl, _SHORTEST_TTL), _LONGEST_TTL) if self._auto_sync is None else self._auto_sync
        return jittered(seconds, _JITTER, self._random)


def _names(endpoints: Iterable[Endpoint]) -> tuple[str, ...]:
    return tuple(one.name for one in endpoints)
