"""Guard: renews leases of a client from the thread of the process's own event loop, with a connection of its own.

Theory. While the loop of the application is blocked, or has too much to do, it renews no lease. The thread has a loop
that has nothing else to do, and in it a client with the same options, for all guarded leases of one client together.
The first of them starts it, and it ends with the last.

Each lease is a `GuardedState`, which both threads read and change. The deadline is moved by the thread alone, after
each renewal. That the lease is lost is decided under its lock, by the first thread that looks, and then it stays so.
The instants are those of the lease clock on `time.monotonic`, as the loops' clocks are, so the threads agree.

Watchdog. A process that hangs would hold its lease for ever. So a lease may be given a time in which the program must
feed it. If that passes, the thread lets the lease go: it renews it no more, and revokes it. As `is_lost` looks at the
same instant, it is True before the revocation is sent.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context
from functools import partial
from math import inf
from typing import Any, Final, Protocol

from etcd_aio.base.aio import start_background_task, start_timer
from etcd_aio.base.call_options import Timeout
from etcd_aio.base.unexpected import as_etcd_error
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import (
    ClientClosedError,
    ClientUsageError,
    EtcdError,
    ForkedError,
    LeaseExpiredError,
    LeaseLostError,
    LeaseNotFoundError,
)
from etcd_aio.lease.keeper import GuardClient, LeaseKeeper, MakeGuardClient
from etcd_aio.lease.kept_lease import KeptLease
from etcd_aio.portal import Call, Holder, hold

_SHORTEST: Final = 0.001  # seconds: a timer may fire a little early
_REVOKE_SECONDS: Final = 2.0  # as of a block that is left


class GuardedState:
    """One lease, for both threads.

    Args:
        watchdog: seconds within which it must be fed; None if it needs no feeding.
        now: returns the time of the lease clock, in any thread; an attribute, too.

    Attributes:
        id, ttl, deadline: of the lease, from `begin` on.
        fed_until: when the watchdog ends.
        error: why it was lost; None if it is not.
        is_starved: whether that is because it was not fed.
    """

    __slots__ = ("_lock", "_watchdog", "deadline", "error", "fed_until", "id", "is_starved", "now", "ttl")

    def __init__(self, watchdog: float | None, now: Callable[[], float]) -> None:
        self._watchdog = watchdog
        self.now = now
        self._lock = threading.Lock()
        self.id = self.ttl = 0
        self.deadline = 0.0
        self.fed_until = inf
        self.error: LeaseLostError | None = None
        self.is_starved = False

    def begin(self, id: int, ttl: int, deadline: float) -> None:
        """Take the lease that was granted."""
        self.id, self.ttl, self.deadline = id, ttl, deadline
        if self._watchdog is not None:
            self.fed_until = self.now() + self._watchdog

    @property
    def until(self) -> float:
        """The instant at which it is lost, unless it is renewed and fed before."""
        return min(self.deadline, self.fed_until) if self.error is None else -inf

    def feed(self) -> None:
        """Put the end of the watchdog off.

        Raises:
            LeaseLostError: the lease is lost.
        """
        with self._lock:
            error = self._look()
            if error is None and self._watchdog is not None:
                self.fed_until = self.now() + self._watchdog
        if error is not None:
            raise error.with_traceback(None)  # of an earlier call

    def look(self) -> LeaseLostError | None:
        """Decide whether it is lost by now; returns why."""
        with self._lock:
            return self._look()

    def lose(self, error: LeaseLostError) -> LeaseLostError:
        """Lose it, unless it is lost already; returns why it is."""
        with self._lock:
            if self.error is None and self.now() < self.fed_until:
                self.error = error
            found = self._look() or error
            if found.__cause__ is None:  # it was noticed by the clock alone
                found.__cause__ = error.__cause__
            return found

    def _look(self) -> LeaseLostError | None:
        now = self.now()
        if self.error is not None or now < min(self.deadline, self.fed_until):
            return self.error
        if now >= self.fed_until:
            self.is_starved = True
            text = f"lease 0x{self.id:x} was let go: the program has not fed it for {self._watchdog:g} s"
            self.error = LeaseLostError(text)
        else:
            self.error = LeaseExpiredError(f"lease 0x{self.id:x} has expired: no renewal was acknowledged in time")
        return self.error


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """The lease that is wanted: arguments of `KeptLease`.

    Attributes:
        ttl, id, timeout: as of `KeptLease`.
        adopts: whether it exists already.
    """

    ttl: int
    id: int | None
    adopts: bool
    timeout: Timeout


class Guarded(Protocol):
    """A lease, in the loop of the application."""

    def on_renewed(self, ttl: int, deadline: float) -> None:
        """Note a renewal."""

    def on_lost(self, error: LeaseLostError) -> None:
        """Note the loss."""

    def on_close(self, error: ClientClosedError) -> None:
        """Note that the client is closed, so nothing renews it."""


class GuardThread:
    """The client in the thread, from the first lease to the last. Public methods are for the loop of the application.

    Args:
        make: makes the client.
        text: names the client of the application, for the warning at an exit without a close.

    Attributes:
        opened: done when the client is there; its error is why it could not be made.
    """

    def __init__(self, make: MakeGuardClient, text: str) -> None:
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._holder = Holder(text)
        self._thread = hold(self._holder)
        self._client: GuardClient | None = None
        self._keeper: LeaseKeeper | None = None
        self._work: dict[asyncio.Task[Any] | None, None] = {}  # that was posted, and is under way
        self._beginning: dict[GuardedState, asyncio.Task[None]] = {}
        self._leases: dict[GuardedState, _ThreadLease] = {}
        self._is_closing = False
        self.opened = self._post(self._open)

    def check(self) -> None:
        """Check that this is the process in which it was made.

        Raises:
            ForkedError: it is a child.
        """
        if self._thread.is_forked:
            raise ForkedError

    async def begin(self, state: GuardedState, lease: Guarded, request: LeaseRequest) -> None:
        """Grant a lease, or renew the adopted one, and renew it from now on.

        Raises:
            EtcdError: as of `KeptLease.begin`.

        Cancellation: what was granted is revoked, in the thread.
        """
        beginning = self._post(self._begin, state, lease, request)
        try:
            await asyncio.wait([beginning])
        except BaseException:  # a cancellation
            beginning.cancel()  # so that no error of it is missed
            self._post(self._cancel, state)
            raise
        beginning.result()

    def drop(self, state: GuardedState) -> None:
        """Renew a lease no more; if it was not fed, revoke it."""
        with suppress(ForkedError):
            self._post(self._drop, state)

    def revoke(self, lease_id: int) -> "asyncio.Future[None]":
        """Revoke a lease, within 2 seconds. If that fails, it is logged."""
        return self._post(self._revoke, lease_id)

    def renewal_error(self, state: GuardedState) -> EtcdError | None:
        """Why a lease cannot be renewed at present. The thread has nothing else to do, so it answers at once."""
        lease = self._leases.get(state)
        if lease is None or self._thread.is_forked or self._thread.is_over:
            return None
        if threading.get_ident() == self._thread.ident:
            return lease.renewal_error
        with suppress(ClientClosedError):
            error: EtcdError | None = self._thread.call(lambda: lease.renewal_error)
            return error
        return None

    def close(self) -> "asyncio.Future[None]":
        """Close the client, and let the thread end if nothing else needs it."""
        return self._post(self._close)

    def _post(self, function: Callable[..., Awaitable[None]], *arguments: object) -> "asyncio.Future[None]":
        """Run a coroutine function in the thread. Its error is that of the future, and reported if nothing waits."""
        future: asyncio.Future[None] = self._loop.create_future()

        def settle(error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            elif isinstance(error, asyncio.CancelledError):
                future.cancel()
            else:
                future.set_exception(error)

        async def run() -> None:
            error: BaseException | None = None
            task = asyncio.current_task()
            self._work[task] = None
            try:
                await function(*arguments)
            except BaseException as raised:  # a cancellation at exit, too
                error = raised
            finally:
                del self._work[task]
            with suppress(RuntimeError):  # the loop of the application is closed
                self._loop.call_soon_threadsafe(settle, error)

        if self._thread.is_forked:  # a call that nothing waits for fails without a word
            raise ForkedError
        call: Call[None] = Context().run(Call, run, (), {}, self._thread)
        self._thread.submit(call)
        return future

    # In the thread.

    async def _open(self) -> None:
        self._client, self._keeper = self._make()
        await self._client.connect()

    async def _begin(self, state: GuardedState, lease: Guarded, request: LeaseRequest) -> None:
        if self._keeper is None or self._is_closing:
            raise ClientClosedError
        kept = _ThreadLease(self._keeper, state, lease, request, self._loop, self._abandon)

        async def begin() -> None:
            await kept.begin()
            self._leases[state] = kept

        self._beginning[state] = beginning = start_background_task(begin(), name="etcd_aio guarded lease")
        try:
            await asyncio.wait([beginning])
        finally:
            del self._beginning[state]
        beginning.result()

    async def _cancel(self, state: GuardedState) -> None:
        """Undo a beginning that is not waited for any more."""
        if (beginning := self._beginning.get(state)) is not None:
            beginning.cancel()
            await asyncio.wait([beginning])
        if (lease := self._leases.pop(state, None)) is not None:  # it was too late for that
            lease.orphan()
            if not lease.is_adopted:
                await self._revoke(state.id)

    async def _drop(self, state: GuardedState) -> None:
        lease = self._leases.pop(state, None)
        if lease is not None:
            lease.orphan()

    async def _revoke(self, lease_id: int) -> None:
        if self._keeper is not None:
            await _revoke(self._keeper, lease_id)

    async def _close(self) -> None:
        self._is_closing = True
        try:
            for lease in self._leases.values():
                lease.orphan()
            self._leases.clear()
            await self._settle()
            if self._client is not None:
                await self._client.aclose()
        finally:
            self._thread.release(self._holder)

    async def _settle(self) -> None:
        """Wait until what was begun before is undone and revoked, within 2 seconds."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + _REVOKE_SECONDS
        while self._keeper is not None and (left := ends - loop.time()) > 0:
            work = [task for task in self._work if task is not None and task is not asyncio.current_task()]
            waiting = [*work, *(future for future in self._keeper.unsettled if not future.done())]
            if not waiting:
                return
            await asyncio.wait(waiting, timeout=left)

    def _abandon(self) -> None:
        """The loop of the application is closed, so no lease in it has a holder any more."""
        if not self._is_closing:
            self._is_closing = True
            self._closing = start_background_task(self._close(), name="etcd_aio close of a guard")


class _ThreadLease(KeptLease):
    """One lease in the thread.

    Args:
        keeper: renews it.
        state: what both threads know.
        lease: is told in the loop of the application.
        request: the lease that is wanted.
        loop: that loop.
        on_abandoned: called if that loop is closed.
    """

    __slots__ = ("_application", "_lease", "_on_abandoned", "_state", "_timer", "is_adopted")

    def __init__(
        self,
        keeper: LeaseKeeper,
        state: GuardedState,
        lease: Guarded,
        request: LeaseRequest,
        loop: asyncio.AbstractEventLoop,
        on_abandoned: Callable[[], None],
    ) -> None:
        super().__init__(keeper, request.ttl, id=request.id, adopt=request.adopts, timeout=request.timeout)
        self._state = state
        self._lease = lease
        self._application = loop
        self._on_abandoned = on_abandoned
        self._timer: asyncio.TimerHandle | None = None
        self.is_adopted = request.adopts

    def _hold(self) -> None:
        super()._hold()
        self._state.begin(self._id, self.ttl, self._deadline)
        self._look()

    def _on_renewed(self, ttl: int, deadline: float) -> None:
        super()._on_renewed(ttl, deadline)
        self._state.ttl, self._state.deadline = ttl, deadline
        self._call(self._lease.on_renewed, ttl, deadline)

    def _on_lost(self, error: LeaseLostError) -> None:
        super()._on_lost(error)
        self._end_watchdog()
        self._call(self._lease.on_lost, self._state.lose(error))

    def orphan(self) -> int:
        """Renew it no more; if it was not fed, revoke it."""
        self._end_watchdog()
        if self._state.is_starved and not self._is_orphan:
            self._keeper.run(_revoke(self._keeper, self._id), f"let lease 0x{self._id:x} go")
        return super().orphan()

    def _look(self) -> None:
        """Look whether it was fed, now and whenever it might not be."""
        state = self._state
        error = state.look() if state.fed_until < inf else None
        if error is None and state.fed_until < inf:
            self._timer = start_timer(max(state.fed_until - state.now(), _SHORTEST), self._look)
        elif error is not None and state.is_starved:
            self.orphan()
            self._call(self._lease.on_lost, error)

    def _end_watchdog(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        """Call a function in the loop of the application."""
        try:
            self._application.call_soon_threadsafe(partial(function, *arguments), context=Context())
        except RuntimeError:  # it is closed
            self._on_abandoned()


async def _revoke(keeper: LeaseKeeper, lease_id: int) -> None:
    """Revoke a lease. Closing the client waits for it a little."""

    async def revoke() -> None:
        try:
            await keeper.revoke(lease_id, _REVOKE_SECONDS)
        except LeaseNotFoundError:
            return  # as intended
        except Exception as raised:  # of any kind: the lease ends by its TTL, which is logged
            shown = as_etcd_error(raised)
            keeper.leftovers.add(f"lease 0x{lease_id:x} could not be revoked; it expires after its TTL: {shown}")

    await asyncio.wait([keeper.end(revoke(), f"revoke lease 0x{lease_id:x}")])


class Guard:
    """The guarded leases of one client.

    Args:
        guard_client: see `LeaseKeeper`.
        name: of the client; empty if it has none.
    """

    def __init__(self, guard_client: Callable[[], MakeGuardClient] | None, name: str) -> None:
        self._guard_client = guard_client
        self._text = f"client {name!r} with guarded leases" if name else "client with guarded leases"
        self._thread: GuardThread | None = None
        self._leases: dict[Guarded, None] = {}
        self._closings: set[asyncio.Future[None]] = set()

    async def enter(self, lease: Guarded) -> GuardThread:
        """Start the thread, unless it is there; it stays until this lease leaves, or longer.

        Raises:
            EtcdError: the thread cannot have a client.
        """
        if self._thread is None:
            if self._guard_client is None:
                raise ClientUsageError("leases of this client cannot be guarded by a thread")
            self._thread = GuardThread(self._guard_client(), self._text)
        thread = self._thread
        self._leases[lease] = None
        await asyncio.wait([thread.opened])
        thread.opened.result()
        return thread

    def leave(self, lease: Guarded) -> None:
        """A lease has ended. After the last one the thread ends."""
        if self._leases.pop(lease, 0) is None and not self._leases and self._thread is not None:
            thread, self._thread = self._thread, None
            with suppress(ForkedError):
                closing = thread.close()
                self._closings.add(closing)
                closing.add_done_callback(self._closed)

    def _closed(self, closing: "asyncio.Future[None]") -> None:
        self._closings.discard(closing)

    async def settled(self, seconds: float) -> None:
        """Wait until threads that were left have closed their clients."""
        if self._closings:
            await asyncio.wait(self._closings, timeout=seconds)

    def close(self) -> "list[asyncio.Future[None]]":
        """The client is closed: lose every lease."""
        for lease in tuple(self._leases):
            lease.on_close(ClientClosedError())
        return list(self._closings)
