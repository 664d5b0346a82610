"""Keeps the endpoints of a client current, as the cluster and DNS change.

A client starts with its sources: endpoints and DNS names that were named, or the records of `discovery_srv`. `sync`
replaces their endpoints by what members advertise. If none of the new endpoints is connected yet, the old ones stay
beside them until one is; if none can be connected, the old ones stay.

One task asks each resolver on a schedule of its own, and syncs, for clients with `auto_sync`. While none of the
endpoints of a resolver can be connected, it asks again soon: DNS may have changed. It asks at most one resolver in a
second, and does not wait for the answer, since a silent name server must not hold up the other names. With `auto_sync`,
the sources are tried too while no member is connected: the host names that were named may lead to a cluster that has
moved. A failure changes nothing; it is logged once and tried again.

`set_endpoints` wins: the answer to a request that was sent before it is dropped, unless it is about a name that stays.
"""

import asyncio
import logging
import random as random_module
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING, Final, TypeAlias

from etcd_aio.balancer import Balancer, Endpoint, Security
from etcd_aio.base.aio import start_background_task
from etcd_aio.base.backoff import jittered
from etcd_aio.base.call_options import Timeout
from etcd_aio.base.closing import TwoPartClose, Unwinding
from etcd_aio.base.logs import log_of
from etcd_aio.discovery.schedule import Schedule, before_ttl
from etcd_aio.discovery.tracked import Tracked
from etcd_aio.errors import ClientClosedError, ConfigError, DiscoveryError, NoAvailableEndpointsError

if TYPE_CHECKING:
    from etcd_aio.discovery.resolver import Resolver
    from etcd_aio.types import MemberListResult

logger = logging.getLogger("etcd_aio.discovery")

_SYNC_TIMEOUT: Final = 5.0  # as in etcd's Go client
_RESOLVE_TIMEOUT: Final = 10.0  # seconds; a dead name server, the first of several, takes some of them
_SHORTEST_TTL: Final = 5.0  # seconds; shorter TTLs must not make the name servers busy
_LONGEST_TTL: Final = 3600.0
_QUESTION_INTERVAL: Final = 1.0  # seconds from one question of a client to its next, whatever happens
_JITTER: Final = 0.1  # fraction of `auto_sync`, so that clients that started together do not act in step

ListMembers: TypeAlias = "Callable[[Timeout], Awaitable[MemberListResult]]"
"""Lists the members, within a timeout in seconds."""


class Discovery(TwoPartClose):
    """Owner of the task that keeps the endpoints current, and of one for each question.

    Args:
        balancer: connects to the endpoints.
        sources: what was named: endpoints, and resolvers of DNS names.
        list_members: lists the members of the cluster.
        records: the resolver of `discovery_srv`, if nothing was named.
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
        sources: "Sequence[Endpoint | Resolver]",
        list_members: ListMembers,
        *,
        records: "Resolver | None" = None,
        check: Callable[[Iterable[Endpoint]], None] | None = None,
        has_tls: bool,
        auto_sync: float | None,
        connect_timeout: float,
        random: Callable[[], float] = random_module.random,
        client: str = "",
    ) -> None:
        self._log = log_of(logger, client)
        self._balancer = balancer
        self._list_members = list_members
        self._check = check
        self._has_tls = has_tls
        self._auto_sync = auto_sync
        self._connect_timeout = connect_timeout
        self._random = random
        self._is_started = False
        self._records = None if records is None else Tracked(records, random)
        self._sources: tuple[Endpoint | Tracked, ...] = () if self._records is None else (self._records,)
        self._sources += self._tracking(sources)
        self._sync_schedule = Schedule(inf, random)
        self._return_schedule = Schedule(inf, random)  # of the return to the sources, with `auto_sync`
        self._asked_at = -inf  # when a resolver was asked last
        self._awaited: tuple[Endpoint, ...] = ()  # new endpoints, while the old ones stay beside them
        self._has_synced = False  # since the sources were last in use
        self._generation = 0  # counts the calls of `set_endpoints`
        self._failing: dict[str, BaseException] = {}
        self._task: asyncio.Task[None] | None = None
        self._asking: dict[Resolver, asyncio.Task[None]] = {}
        self._is_closed = False

    def start(self) -> None:
        """Start the task, if there is anything to keep current. Safe to repeat."""
        self._is_started = True
        if self._task is None and not self._is_closed and (self._auto_sync is not None or self._tracked()):
            self._tell_errors()
            self._task = start_background_task(self._keep_current(), name="etcd_aio discovery")

    def close(self) -> Unwinding:
        """End the tasks."""
        was_closed, self._is_closed = self._is_closed, True
        if self._task is None:
            return ()
        tasks = (self._task, *self._asking.values())
        if not was_closed:
            for task in tasks:
                task.cancel()
        return tasks

    # The sources.

    @property
    def names(self) -> tuple[str, ...]:
        """The endpoints to start another client with: as the user has named them, if there are DNS names."""
        if not self._tracked():
            return _names(self._balancer.endpoints)
        return tuple(one.resolver.name if isinstance(one, Tracked) else one.name for one in self._sources)

    def set_endpoints(self, sources: "Sequence[Endpoint | Resolver]") -> None:
        """Use what the user has named from now on. A DNS name that stays keeps its addresses and their connections."""
        tracking = self._tracking(sources)
        self._balancer.set_endpoints(_resolved(tracking))
        self._sources = tracking
        if self._records is not None:
            self._records = self._records.renewed()
        self._awaited = ()
        self._has_synced = False
        self._generation += 1
        self._tell_errors()
        if self._is_started:
            self.start()

    def _tracking(self, sources: "Sequence[Endpoint | Resolver]") -> tuple[Endpoint | Tracked, ...]:
        known = {one.resolver.name: one for one in self._tracked()}
        # Not before those that wait already, however often a program replaces its endpoints.
        due = asyncio.get_running_loop().time() if self._is_started else -inf
        return tuple(
            one if isinstance(one, Endpoint) else known.get(one.name) or Tracked(one, self._random, due)
            for one in sources
        )

    def _tracked(self) -> list[Tracked]:
        """Every resolver. That of `discovery_srv` stays if the user has set endpoints: its next answer is used."""
        named = [one for one in self._sources if isinstance(one, Tracked)]
        return named if self._records is None or self._records in named else [*named, self._records]

    # Sync.

    async def sync(self, timeout: Timeout) -> tuple[str, ...]:
        """Use the endpoints that the members advertise, as described at `Client.sync`."""
        generation = self._generation
        listing = await self._list_members(timeout)
        if generation != self._generation:
            return _names(self._balancer.endpoints)
        before = self._balancer.endpoints
        urls = [url for member in listing if member.is_started and not member.is_learner for url in member.client_urls]
        from etcd_aio.discovery.member_urls import advertised_endpoints

        configured = _resolved(self._sources)
        requires_tls = (
            self._has_tls
            or any(endpoint.security is Security.TLS for endpoint in configured)
            or any(one.resolver.is_tls for one in self._tracked())
        )
        advertised = advertised_endpoints(
            urls, configured=configured, in_use=before, has_tls=self._has_tls, requires_tls=requires_tls
        )
        if not advertised.endpoints:
            reasons = "; ".join(advertised.refused) or "no voting member advertises a URL"
            raise DiscoveryError(f"no member advertises an endpoint that this client can use: {reasons}")
        self._check_allowed(advertised.endpoints)
        if advertised.refused:
            self._log.debug("advertised, but not used: %s", "; ".join(advertised.refused))
        await self._replace_endpoints(before, advertised.endpoints)
        self._has_synced = self._has_synced or generation == self._generation
        return _names(self._balancer.endpoints)

    async def _replace_endpoints(self, before: tuple[Endpoint, ...], after: tuple[Endpoint, ...]) -> None:
        """Switch to the new endpoints only once one of them is connected."""
        self._awaited = ()
        wanted = set(_names(after))
        if wanted != set(_names(before)):
            if not self._is_any_ready(wanted):
                generation = self._generation
                both = (*after, *(endpoint for endpoint in before if endpoint.name not in wanted))
                self._balancer.set_endpoints(both)
                self._demand(after)
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

    def _demand(self, endpoints: Iterable[Endpoint]) -> None:
        """Have these connected beside the old ones, which a policy of a single connection does not do by itself."""
        for endpoint in endpoints:
            self._balancer.demand(endpoint.name)

    def _is_any_ready(self, names: set[str]) -> bool:
        return not names.isdisjoint(self._balancer.ready)

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
        if self._auto_sync is not None:
            self._sync_schedule.answered(loop.time(), self._interval(inf))
        while True:
            now = loop.time()
            self._note_connections(now)
            tracked = min((one for one in self._tracked() if one.resolver not in self._asking), key=_due, default=None)
            ask_at = inf if tracked is None else max(_due(tracked), self._asked_at + _QUESTION_INTERVAL)
            if tracked is not None and ask_at <= now:
                self._asked_at = now
                name = f"etcd_aio look up {tracked.resolver.name}"
                self._asking[tracked.resolver] = start_background_task(self._ask(tracked), name=name)
            elif self._return_schedule.due <= now:
                self._return_schedule.answered(now, inf)
                self._use_sources()
            elif self._sync_schedule.due <= now:
                is_synced = not self._balancer.ready_count or await self._try("auto_sync", self.sync(_SYNC_TIMEOUT))
                note = self._sync_schedule.answered if is_synced else self._sync_schedule.failed
                note(loop.time(), self._interval(inf))
            else:
                await self._balancer.readiness.wait(min(ask_at, self._return_schedule.due, self._sync_schedule.due))

    def _note_connections(self, now: float) -> None:
        """Ask soon where nothing is connected, and give up old endpoints once a new one is."""
        ready, dialled = self._balancer.ready, self._balancer.dialled
        for tracked in self._tracked():
            tracked.note_connections(ready, dialled, now)
        if self._auto_sync is not None and self._has_synced:
            if ready:
                self._return_schedule.note_connected()
            else:
                self._return_schedule.note_outage(now)
        if self._is_any_ready(set(_names(self._awaited))):
            self._replace(self._awaited)
        self._demand(self._awaited)

    async def _ask(self, tracked: Tracked) -> None:
        try:
            if not await self._try(tracked.resolver.name, self._resolve(tracked)):
                tracked.schedule.failed(asyncio.get_running_loop().time(), self._interval(tracked.ttl))
        finally:
            del self._asking[tracked.resolver]
            self._balancer.readiness.wake()  # the other task waits for it, to see when to ask next

    async def _resolve(self, tracked: Tracked) -> None:
        resolution = await tracked.resolver.resolve(_RESOLVE_TIMEOUT)
        self._check_allowed(resolution.endpoints)
        tracked.was_answered = True
        tracked.ttl = resolution.ttl
        tracked.schedule.answered(asyncio.get_running_loop().time(), self._interval(resolution.ttl))
        if tracked in self._tracked():
            self._use_answer(tracked, resolution.endpoints)

    def _use_answer(self, tracked: Tracked, endpoints: tuple[Endpoint, ...]) -> None:
        """Use an answer, unless the member list is better."""
        before = set(_names(_resolved(self._sources)))
        tracked.endpoints = endpoints
        if tracked not in self._sources:  # the user has set endpoints, which are used until this answer
            self._sources = (tracked,)
        is_out = not self._balancer.ready_count
        if self._auto_sync is not None and self._has_synced and not is_out:
            return  # the next sync asks for it
        if is_out or set(_names(_resolved(self._sources))) != before:
            self._use_sources()

    def _use_sources(self) -> None:
        """Use the last answers. While none of their endpoints is connected, those that are connected stay."""
        # With `auto_sync`, the endpoints that members advertised last may come back just as well.
        has_synced = self._auto_sync is not None and self._has_synced
        found = (*_resolved(self._sources), *(self._balancer.endpoints if has_synced else ()))
        wanted = {endpoint.name: endpoint for endpoint in found}
        ready = self._balancer.ready
        is_taking_over = bool(wanted) and not ready & wanted.keys()
        staying = [one for one in self._balancer.endpoints if one.name in ready] if is_taking_over else []
        self._replace((*wanted.values(), *staying))
        self._awaited = tuple(wanted.values()) if staying else ()

    def _replace(self, endpoints: tuple[Endpoint, ...]) -> None:
        self._awaited = ()
        if set(_names(endpoints)) != set(_names(self._balancer.endpoints)):
            self._log.info("endpoints: %s", ", ".join(_names(endpoints)))
            self._balancer.set_endpoints(endpoints)

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
        is_failing = what in self._failing
        self._tell_errors()
        return not is_failing

    def _tell_errors(self) -> None:
        tracked = {one.resolver.name: one for one in self._tracked()}
        self._failing = {what: error for what, error in self._failing.items() if what in tracked or what == "auto_sync"}
        waiting = [name for name, one in tracked.items() if not one.was_answered and name not in self._failing]
        unasked = {name: DiscoveryError("DNS has not answered yet") for name in waiting}
        self._balancer.set_unresolved({**unasked, **self._failing}, is_resolving=bool(waiting))

    def _interval(self, ttl: float) -> float:
        """Seconds to the next question, or to the next sync."""
        if self._auto_sync is not None:
            return jittered(self._auto_sync, _JITTER, self._random)
        return before_ttl(ttl, _SHORTEST_TTL, _LONGEST_TTL, self._random)


def _due(tracked: Tracked) -> float:
    return tracked.schedule.due


def _resolved(sources: Iterable[Endpoint | Tracked]) -> tuple[Endpoint, ...]:
    """The endpoints of the sources, as far as they are known."""
    found = (one.endpoints if isinstance(one, Tracked) else (one,) for one in sources)
    return tuple(endpoint for endpoints in found for endpoint in endpoints)


def _names(endpoints: Iterable[Endpoint]) -> tuple[str, ...]:
    return tuple(endpoint.name for endpoint in endpoints)
