"""DoubleBarrier: a block that several processes enter together, and leave together.

The decisions are those of `meeting.py`; this carries them out. Every copy of its requests that may still travel is
harmless. A late copy of that which creates the key attaches it to the lease: if one is unanswered, the lease is
discarded. `ready` is put only while the key is there, and once for each meeting. Deletions compare revisions.

Every wait opens its watch from now, and looks afterwards: no change falls in between, and no old revision is named.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import ClassVar, Final, Self, TypeVar

from anyio import CancelScope

from etcd_aio import Key, KeyValue, op
from etcd_aio.arguments import encode_key, whole_number
from etcd_aio.base import SOON, NotAwaitable, Pauses, when_constructed
from etcd_aio.calls import StoreCalls
from etcd_aio.concurrency import (
    CANCELLED_SECONDS,
    Held,
    Interruption,
    OnLost,
    Subject,
    check_timeout,
    checked_margin,
)
from etcd_aio.errors import (
    BarrierTimeoutError,
    ClientUsageError,
    CompactedError,
    EtcdError,
    InvalidRequestError,
    LeaseLostError,
    LeaseNotFoundError,
    LockLostError,
    StoreRolledBackError,
    TooManyParticipantsError,
)
from etcd_aio.lease import Loan
from etcd_aio.recipes.barrier.meeting import Await, Open, Participant, Step, entering, leaving
from etcd_aio.types import KeyLike, shown_key

R = TypeVar("R")

_REPEATED: Final = (CompactedError, StoreRolledBackError)  # a watch that ends with one of them starts over
_MOST_CONDITIONS: Final = 120  # other participants that `ready` depends on; etcd accepts 128 comparisons
_MOST_DIGITS: Final = 19  # of a revision
_CHECK_SECONDS: Final = 10.0  # between looks at the own key, while `ready` is waited for
_LEAVE_SECONDS: Final = 2.0  # that deleting the key waits for an answer: twice etcd's default election timeout


class DoubleBarrier(NotAwaitable):
    """A double barrier: `async with DoubleBarrier(client, "phase-1", count=5):`.

    Entering waits until `count` participants are there, leaving until all of them leave. A participant that dies, or
    whose lease is lost, counts as gone. If the block ends by an exception, it is left without waiting for the others,
    which do not wait for it. If the lease is lost within the block, its task is cancelled, and leaving raises
    `LockLostError`.

    The keys are `<name>/waiters/<lease>` and `<name>/ready`, as of Go's `DoubleBarrier`, so participants of both take
    part in one barrier. An object may be entered again after it was left.

    Args:
        client: the client, or a store that wraps one.
        name: its name.
        count: how many participants enter and leave together; all must name the same number.
        ttl: seconds until a participant counts as gone after a crash of its process, or in an outage. Default: 10, as
            of locks. etcd raises values below its minimum, 2 by default.
        timeout: seconds to wait on entering, and again on leaving. Default: None, no limit.
        margin: seconds before the end of the lease at which the block is cancelled, as of locks.
        on_lost: `"cancel"` or `"signal"`, as of locks.

    Raises:
        InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
    """

    usage: ClassVar[str] = "a double barrier cannot be awaited: write `async with DoubleBarrier(...):`"

    def __init__(
        self,
        client: StoreCalls,
        name: KeyLike,
        *,
        count: int,
        ttl: int = 10,
        timeout: float | None = None,
        margin: float | None = None,
        on_lost: OnLost = "cancel",
    ) -> None:
        if on_lost not in ("cancel", "signal"):
            raise InvalidRequestError(f"on_lost must be 'cancel' or 'signal'; got {on_lost!r}")
        check_timeout(timeout)
        self._store: StoreCalls = client
        encoded = encode_key(name, "name")
        self._waiters = encoded + b"/waiters/"
        self._ready = encoded + b"/ready"
        self._count = whole_number(count, "count", minimum=1)
        self._timeout = timeout
        self._margin = checked_margin(margin, whole_number(ttl, "ttl", minimum=1))
        self._cancels = on_lost == "cancel"
        self._ttl = ttl
        what = f"double barrier {shown_key(encoded)[1:]}"
        self._subject = Subject(what, LockLostError, BarrierTimeoutError, reached="complete")
        self._visit: _Visit | None = None
        self._held: Held[LockLostError] | None = None

    @when_constructed
    def __repr__(self) -> str:
        return f"<DoubleBarrier {self._subject.what} {'entered' if self._held is not None else 'not entered'}>"

    async def __aenter__(self) -> Self:
        if self._visit is not None:
            raise ClientUsageError("this double barrier is in use: make an object for each task")
        self._visit = visit = _Visit(self._store, self._ttl, self._waiters, self._ready, self._count, self._subject)
        try:
            await visit.enter(self._timeout)
        except BaseException:  # a cancellation too
            self._visit = None
            raise
        self._held = visit.hold(margin=self._margin, cancels=self._cancels)
        if self._held.is_late:  # the wait took until the end of the lease
            await self.__aexit__(None, None, None)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        visit, held = self._visit, self._held
        self._visit = self._held = None
        if visit is None or held is None:
            return
        held.stop()
        if held.error is not None:
            visit.abandon()
            held.leave_with(exc)
        elif exc is not None:
            await visit.go(is_cancelled=isinstance(exc, asyncio.CancelledError))
        else:
            await visit.leave(self._timeout)

    @property
    def is_lost(self) -> bool:
        """Whether the lease was lost within the block. Thread-safe."""
        return self._held is not None and self._held.is_lost


class _Visit:
    """One participation, from entering to leaving."""

    def __init__(
        self,
        store: StoreCalls,
        ttl: int,
        waiters: bytes,
        ready: bytes,
        count: int,
        subject: Subject[LockLostError],
    ) -> None:
        self._store = store
        self._pool = store.leases.pool
        self._ttl = ttl
        self._waiters = waiters
        self._ready = ready
        self._count = count
        self._subject = subject
        self._loan: Loan | None = None
        self._own = Participant(b"", 0)
        self._opened = 0  # `mod_revision` of the `ready` that this has entered by
        self._last = 0  # `create_revision` of the last key of this meeting
        self._seen: tuple[int, int | None] | None = None  # a `ready` that lets this in: its revision, what it says
        self._is_overdue = False  # `ready` was waited for, for long
        self._is_dirty = False  # a request that creates the key may still travel
        self._trouble: EtcdError | None = None  # the last error that was survived

    def hold(self, *, margin: float, cancels: bool) -> Held[LockLostError]:
        """Guard the block; called in the task that a loss cancels."""
        assert self._loan is not None  # noqa: S101 - it has entered
        return Held(
            self._store,
            self._loan,
            self._own.key,
            self._own.revision,
            margin=margin,
            cancels=cancels,
            subject=self._subject,
        )

    # Entering.

    async def enter(self, timeout: float | None) -> None:
        interruption = Interruption(timeout, self._late)
        try:
            await self._create(interruption)
            while not await self._repeat(self._enter_once):
                pass
            interruption.check()
        except BaseException as raised:  # a cancellation too: the key must not stay
            await self._go_early(interruption, raised)
            raise
        interruption.stop()

    async def _create(self, interruption: Interruption) -> None:
        """Borrow a lease, and create the own key."""
        while True:
            try:
                self._loan = loan = await self._pool.borrow(self._ttl)
            except LeaseLostError as error:
                raise self._lost(error.message, error) from error
            loan.on_loss(lambda error: interruption.interrupt(self._lost(error.message, error)))
            interruption.check()
            key = self._waiters + f"{loan.id:x}".encode()
            put, look = op.put(key, b"", lease=loan.id), op.get(key)
            txn = op.txn(when=[Key(key).missing], then=[put], otherwise=[look])
            pauses = Pauses(SOON)
            self._is_dirty = True  # until it is answered, also if the call is cancelled
            while True:
                try:
                    result = await self._store.do(txn, retry="safe")
                except LeaseNotFoundError as error:
                    if not loan.was_idle:
                        raise self._lost("its lease is gone", error) from error
                    loan.on_loss(None)  # it ended while it was idle
                    self._loan, self._is_dirty = None, False
                    await loan.discard()
                    break
                except EtcdError as error:
                    # The key is this participant's alone, so it can be created again; this leaves doubt.
                    if not (error.maybe_applied and error.retryable):
                        raise
                    self._trouble = error
                    await pauses.wait()
                else:
                    self._is_dirty = pauses.failures > 0
                    found = None if result.succeeded else result[look]
                    self._own = Participant(key, result.revision if found is None else found.create_revision)
                    return

    async def _enter_once(self) -> bool:
        """Look, and do what is next. Returns whether this has entered."""
        listed, ready, last = await self._look()
        if self._seen is not None and self._seen[0] > ready:  # it is deleted already
            ready, last = self._seen
        step = entering(self._own, listed, ready, self._count, last=last, is_overdue=self._is_overdue)
        match step:
            case Step.ENTER:
                self._opened, self._last = ready, ready if last is None else last
                return True
            case Open(members):
                await self._open(members)
                return False
            case Step.WAIT:
                await self._wait_ready()
                return False
            case Step.TOO_MANY:
                text = f"{self._subject.what} has all its {self._count} participants"
                raise TooManyParticipantsError(text)
            case _:
                raise self._lost("its key is gone: it was deleted, or its lease was revoked")

    async def _look(self) -> tuple[list[Participant], int, int | None]:
        """All participants, the `mod_revision` of `ready`, and what it says of its last one, at one revision."""
        listing, look = op.range(prefix=self._waiters, keys_only=True), op.get(self._ready)
        result = await self._store.do(op.txn(then=[listing, look]))
        ready = result[look]
        listed = [Participant(kv.key, kv.create_revision) for kv in result[listing]]
        if ready is None:
            return listed, 0, None
        return listed, ready.mod_revision, _number_in(ready)

    async def _open(self, members: tuple[Participant, ...]) -> None:
        """Put `ready`, unless a participant has gone meanwhile, or it is there already."""
        there = [Key(one.key).create_revision == one.revision for one in members[-_MOST_CONDITIONS:]]
        last = members[-1].revision
        fresh = Key(self._ready).mod_revision < last
        await self._store.do(op.txn(when=[*there, fresh], then=[op.put(self._ready, f"{last}")]), retry="always")

    async def _wait_ready(self) -> None:
        """Wait until `ready` is put, or the own key is deleted, or there is reason to look again."""
        async with self._store.watch(self._ready, filters=("no_delete",), timeout=None) as watcher:
            while True:
                listed, ready, last = await self._look()
                step = entering(self._own, listed, ready, self._count, last=last, is_overdue=self._is_overdue)
                if step is not Step.WAIT:
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CHECK_SECONDS):
                        async for event in watcher:
                            last = _number_in(event.kv)
                            if event.revision > self._own.revision:
                                if last is None or self._own.revision <= last:
                                    self._seen = event.revision, last
                                return
                self._is_overdue = True

    # Leaving.

    async def leave(self, timeout: float | None) -> None:
        """Leave together with the others."""
        interruption = Interruption(timeout, self._late)
        loan = self._loan
        assert loan is not None  # noqa: S101 - it has entered
        loan.on_loss(lambda error: interruption.interrupt(self._lost(error.message, error)))
        try:
            while not await self._repeat(self._leave_once):
                pass
            interruption.check()
        except BaseException as raised:  # a cancellation too: the others must not wait for this one
            await self._go_early(interruption, raised)
            raise
        interruption.stop()
        self._loan = None
        loan.on_loss(None)
        if self._is_dirty:
            self._pool.run(loan.discard(), f"end of {self._subject.what}")
        else:
            loan.give_back()

    async def _leave_once(self) -> bool:
        listed, _, _ = await self._look()
        step = leaving(self._own, listed, self._last)
        match step:
            case Step.LEFT:
                return True
            case Await(other, deletes_own):
                if deletes_own:
                    await self._delete()
                await self._wait_deleted(other)
                return False
            case _:
                await self._delete_last()
                return True

    async def _delete(self) -> None:
        own = self._own
        txn = op.txn(when=[Key(own.key).create_revision == own.revision], then=[op.delete(own.key)])
        await self._store.do(txn, timeout=_LEAVE_SECONDS, retry="always")

    async def _delete_last(self) -> None:
        """Delete the own key, and `ready` if it is that of this meeting."""
        own = self._own
        is_same = Key(self._ready).mod_revision == self._opened
        end = op.txn(when=[is_same], then=[op.delete(self._ready)])
        txn = op.txn(when=[Key(own.key).create_revision == own.revision], then=[op.delete(own.key), end])
        await self._store.do(txn, timeout=_LEAVE_SECONDS, retry="always")

    async def _wait_deleted(self, other: Participant) -> None:
        async with self._store.watch(other.key, filters=("no_put",), timeout=None) as watcher:
            kv: KeyValue | None = await self._store.get(other.key, keys_only=True)
            if kv is not None and kv.create_revision == other.revision:
                async for event in watcher:
                    if event.revision > other.revision:
                        return

    # Going without the others.

    async def _go_early(self, interruption: Interruption, raised: BaseException) -> None:
        interruption.stop()
        try:
            await self.go(is_cancelled=isinstance(raised, asyncio.CancelledError))
        except asyncio.CancelledError as cancelled:
            interruption.leave_with(cancelled)
            raise
        interruption.leave_with(raised)

    async def go(self, *, is_cancelled: bool) -> None:
        """Delete the key, without waiting for the others; in the background if it takes longer than half a second."""
        loan, self._loan = self._loan, None
        if loan is None:
            return
        loan.on_loss(None)
        work = self._pool.run(self._clear(loan), f"end of {self._subject.what}")
        seconds = CANCELLED_SECONDS if is_cancelled else _LEAVE_SECONDS
        with CancelScope(shield=True):
            await asyncio.wait([work], timeout=seconds)

    def abandon(self) -> None:
        """The lease is lost: what is left of it ends in the background."""
        loan, self._loan = self._loan, None
        if loan is not None:
            loan.on_loss(None)
            self._pool.run(loan.discard(), f"end of {self._subject.what}")

    async def _clear(self, loan: Loan) -> None:
        if not self._is_dirty and not loan.is_lost:
            try:
                if self._own.revision:
                    await self._delete()
            except EtcdError:
                await loan.discard()
            else:
                loan.give_back()
        else:
            await loan.discard()

    # What both share.

    async def _repeat(self, step: Callable[[], Awaitable[R]]) -> R:
        """One step, repeated for as long as the lease lives if the cluster is in trouble."""
        pauses = Pauses(SOON)
        while True:
            try:
                return await step()
            except EtcdError as error:
                if isinstance(error, TooManyParticipantsError | LockLostError):
                    raise
                if not (error.retryable or isinstance(error, _REPEATED)):
                    raise
                self._trouble = error
            await pauses.wait()

    def _lost(self, reason: str, cause: BaseException | None = None) -> LockLostError:
        error = self._subject.lost(f"{self._subject.what} is lost: {reason}")
        error.__cause__ = cause
        return error

    def _late(self) -> EtcdError:
        error = self._subject.late(f"{self._subject.what} was not {self._subject.reached} in time")
        error.__cause__ = self._trouble
        return error


def _number_in(ready: KeyValue) -> int | None:
    """The revision that `ready` says; None if it says none, as that of Go."""
    return int(ready.value) if ready.value.isdigit() and len(ready.value) <= _MOST_DIGITS else None
