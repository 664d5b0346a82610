"""DoubleBarrier: a block that several processes enter together, and leave together.

The decisions are those of `meeting.py`; this carries them out. Every copy of its requests that may still travel is
harmless: see `OwnKey` for those of the own key. `ready` is put only while the key is there, and once for each meeting.
Deletions compare revisions.

Every wait opens its watch from now, and looks afterwards: no change falls in between, and no old revision is named.
"""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import ClassVar, Final, Self

from etcd_aio import Key, KeyValue, op
from etcd_aio.arguments import whole_number
from etcd_aio.base import check_timeout, when_constructed
from etcd_aio.calls import StoreCalls, check_store
from etcd_aio.concurrency import Holding, HoldOptions, OnLost, OwnKey
from etcd_aio.errors import BarrierTimeoutError, ClientUsageError, LockLostError, TooManyParticipantsError
from etcd_aio.recipes.barrier.meeting import Await, Entering, MeetingStep, Open, Participant, entering, leaving
from etcd_aio.types import KeyLike

_MOST_CONDITIONS: Final = 120  # other participants that `ready` depends on; etcd accepts 128 comparisons
_MOST_DIGITS: Final = 19  # of a revision
_CHECK_SECONDS: Final = 10.0  # between looks at the own key, while `ready` is waited for


class DoubleBarrier(Holding[LockLostError]):
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
        check_store(client)
        check_timeout(timeout)
        options = HoldOptions.checked(
            client,
            client.leases.pool,
            name,
            ttl,
            margin,
            on_lost,
            kind="double barrier",
            lost=LockLostError,
            late=BarrierTimeoutError,
            reached="complete",
        )
        super().__init__(options)
        self._count = whole_number(count, "count", minimum=1)
        self._timeout = timeout
        self._participation: _Participation | None = None

    @when_constructed
    def __repr__(self) -> str:
        return f"<DoubleBarrier {self._subject.what} {'entered' if self._guard is not None else 'not entered'}>"

    async def __aenter__(self) -> Self:
        if self._participation is not None:
            raise ClientUsageError("this double barrier is in use: make an object for each task")
        self._participation = participation = _Participation(self._options, self._count)
        try:
            await participation.enter(self._timeout)
        except BaseException:  # a cancellation too
            self._participation = None
            raise
        if self._begin(participation).is_late:  # the wait took until the end of the lease
            await self.__aexit__(None, None, None)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        participation, held = self._participation, self._guard
        self._participation = self._guard = None
        if participation is None or held is None:
            return
        held.stop()
        if exc is None and held.error is None:
            await participation.leave_together(self._timeout)
        else:
            await self._end(participation, held, exc)


class _Participation(OwnKey[LockLostError]):
    """One participation, from entering to leaving."""

    def __init__(self, options: HoldOptions[LockLostError], count: int) -> None:
        super().__init__(options, options.name + b"/waiters/")
        self._ready = options.name + b"/ready"
        self._count = count
        self._own = Participant(b"", 0)
        self._opened = 0  # `mod_revision` of the `ready` that this has entered by
        self._last = 0  # `create_revision` of the last key of this meeting
        self._seen: tuple[int, int | None] | None = None  # a `ready` that lets this in: its revision, and its content
        self._is_overdue = False  # `ready` was waited for, for long

    # Entering.

    async def enter(self, timeout: float | None) -> None:
        async with self.waiting(timeout):
            await self.create(b"")
            self._own = Participant(self.key, self.revision)
            while not await self.persist(self._enter_once):
                pass

    async def _enter_once(self) -> bool:
        """Look, and do what is next. Returns whether this has entered."""
        match await self._next_step():
            case MeetingStep.ENTER:
                return True
            case Open(members):
                await self._open(members)
                return False
            case MeetingStep.WAIT:
                await self._wait_ready()
                return False
            case MeetingStep.TOO_MANY:
                text = f"{self._subject.what} has all its {self._count} participants"
                raise TooManyParticipantsError(text)
            case _:
                raise self.lost("its key is gone: it was deleted, or its lease was revoked")

    async def _next_step(self) -> Entering:
        listed, ready, last = await self._look()
        if self._seen is not None and self._seen[0] > ready:  # it is deleted already
            ready, last = self._seen
        self._opened, self._last = ready, ready if last is None else last
        return entering(self._own, listed, ready, self._count, last=last, is_overdue=self._is_overdue)

    async def _look(self) -> tuple[list[Participant], int, int | None]:
        """The participants, the `mod_revision` of `ready`, and the last participant that it names, at one revision."""
        listing, look = op.range(prefix=self._prefix, keys_only=True), op.get(self._ready)
        result = await self._store.do(op.txn(then=[listing, look]))
        ready = result[look]
        listed = [Participant(kv.key, kv.create_revision) for kv in result[listing]]
        if ready is None:
            return listed, 0, None
        return listed, ready.mod_revision, _number_in(ready)

    async def _open(self, members: tuple[Participant, ...]) -> None:
        """Put `ready`, unless a participant has gone meanwhile, or it is there already."""
        there = [Key(member.key).create_revision == member.revision for member in members[-_MOST_CONDITIONS:]]
        last = members[-1].revision
        fresh = Key(self._ready).mod_revision < last
        await self._store.do(op.txn(when=[*there, fresh], then=[op.put(self._ready, f"{last}")]), retry="always")

    async def _wait_ready(self) -> None:
        """Wait until `ready` is put, or the own key is deleted, or there is reason to look again."""
        async with self._store.watch(self._ready, filters=("no_delete",), timeout=None) as watcher:
            while True:
                if await self._next_step() is not MeetingStep.WAIT:
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

    async def leave_together(self, timeout: float | None) -> None:
        async with self.waiting(timeout):
            while not await self.persist(self._leave_once):
                pass
        self.revision = 0  # the key is deleted
        await self.leave()

    async def _leave_once(self) -> bool:
        listed, _, _ = await self._look()
        step = leaving(self._own, listed, self._last)
        match step:
            case MeetingStep.LEFT:
                return True
            case Await(other, deletes_own):
                if deletes_own:
                    await self._delete()
                await self._wait_deleted(other)
                return False
            case _:
                await self._delete_last()
                return True

    async def _delete_last(self) -> None:
        """Delete the own key, and `ready` if it is that of this meeting."""
        is_same = Key(self._ready).mod_revision == self._opened
        await self._delete(op.txn(when=[is_same], then=[op.delete(self._ready)]))

    async def _wait_deleted(self, other: Participant) -> None:
        async with self._store.watch(other.key, filters=("no_put",), timeout=None) as watcher:
            kv: KeyValue | None = await self._store.get(other.key, keys_only=True)
            if kv is not None and kv.create_revision == other.revision:
                async for event in watcher:
                    if event.revision > other.revision:
                        return

    def _reason_of_delay(self) -> str:
        return "the others have not come, or have not left"


def _number_in(ready: KeyValue) -> int | None:
    """The revision that `ready` has as its value; None if it has none, as that of Go."""
    return int(ready.value) if ready.value.isdigit() and len(ready.value) <= _MOST_DIGITS else None
