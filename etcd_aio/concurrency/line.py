"""Line: puts the key of a lock or a candidate, waits for its turn, and deletes it. See `place.py` for the theory.

The calls, for a lock:

    enter    When the own key is missing, put it with the lease, and list a few keys; else get it, and list the same.
             If these are all, and no older one is named like a contender's, it holds: one round trip, without a sort
             and without values where etcd applies writes.
    look     List the keys that are not younger than the own one, youngest first, with values: without them, etcd 3.7
             leaves the leases out, which tell contenders from data.
    wait     Watch the next key from now, then get it: a deletion between the two is not missed, and no old revision is
             named, so compaction cannot end the wait.
    leave    When the own key has its revision, delete it.

Every copy of these requests that may still travel is harmless. A late `leave` compares a revision that never comes
back. A late `enter` attaches the key to the lease: if one is unanswered, the lease is discarded afterwards.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Final, Generic, TypeVar

from anyio import CancelScope

from etcd_aio import Key, KeyValue, RangeResult, op
from etcd_aio.base import SOON, Pauses, log_for
from etcd_aio.calls import StoreCalls
from etcd_aio.concurrency.held import Held, Subject, later_event
from etcd_aio.concurrency.interruption import Interruption
from etcd_aio.concurrency.place import ENTRY_LIMIT, LineKeys, Listed, Place, State, Step
from etcd_aio.errors import (
    CompactedError,
    EtcdError,
    LeaseLostError,
    LeaseNotFoundError,
    NotHeldError,
    StoreRolledBackError,
)
from etcd_aio.lease import LeaseSource, Loan

E = TypeVar("E", bound=EtcdError)

logger: Final = logging.getLogger("etcd_aio.locks")

CANCELLED_SECONDS: Final = 0.5
"""Seconds that a cancelled caller waits for its key to be deleted; the deletion goes on in the background."""

_LEAVE_SECONDS: Final = 2.0  # that leaving waits for an answer: twice etcd's default election timeout
_REPEATED: Final = (CompactedError, StoreRolledBackError)  # a watch that ends with one of them starts over


class Entry:
    """The txn that creates a key, and parts of that which deletes it. The next acquisition mostly has the same."""

    __slots__ = ("created", "deletion", "found", "key", "lease", "own", "txn", "value")

    def __init__(self, key: bytes, value: bytes, lease: int, found: op.RangeOp) -> None:
        self.key = key
        self.value = value
        self.lease = lease
        self.found = found
        self.own = op.get(key)
        put = op.put(key, value, lease=lease)
        self.txn = op.txn(when=[Key(key).missing], then=[put, found], otherwise=[self.own, found])
        self.created = Key(key).create_revision
        self.deletion = op.delete(key)


class Line(Generic[E]):
    """Acquisitions, one after the other: each is `stand` or `try_stand`, then `leave`.

    Args:
        store: carries out the calls.
        source: lends the leases.
        ttl: of a lease, in seconds.
        keys: where the keys of the line are.
        value: the value of the own key.
        subject: what is waited for.

    Attributes:
        value: the same, for the next acquisition.
        present: the own key, if it was there already: of an earlier request of this acquisition, or of an earlier
            process with the same lease.
        place: the place in the line, from `stand` on.
    """

    def __init__(
        self, store: StoreCalls, source: LeaseSource, ttl: int, keys: LineKeys, value: bytes, subject: Subject[E]
    ) -> None:
        self._store = store
        self._source = source
        self._ttl = ttl
        self._keys = keys
        self.value = value
        self._subject = subject
        self._entry: Entry | None = None  # of the last acquisition
        self._is_dirty = False  # a request that creates the key may still travel
        self._trouble: EtcdError | None = None  # the last error that was survived
        self._loan: Loan | None = None
        self.place = Place(keys, 0)
        self.present: KeyValue | None = None

    # Standing in line.

    async def stand(self, timeout: float | None) -> None:
        """Enter the line, and wait until this place holds.

        Args:
            timeout: seconds; None for no limit.

        Raises:
            LockTimeoutError: or what `subject.late` is: it did not come to hold in time.
            LockLostError: or what `subject.lost` is: its lease or its key was lost while it waited.
            EtcdError: no lease was granted, or the key could not be created.

        After an error or a cancellation the line is left.
        """
        interruption = Interruption(timeout, self._late)
        try:
            await self._enter(interruption, self._source.borrow)
            while self.place.state is not State.HELD:
                await self._advance()
            interruption.check()
        except BaseException as raised:  # a cancellation too: the key must not stay in the line
            await self._leave_early(interruption, raised)
            raise
        interruption.stop()

    async def resume(self, lease: int, revision: int) -> None:
        """Take the place of an earlier process with the same lease, whose key is there and holds.

        Args:
            lease: the id of the lease.
            revision: the `create_revision` of that key.

        Raises:
            LockLostError: or what `subject.lost` is: the lease or the key is gone, or it does not hold.
            EtcdError: it could not be found out.

        After an error or a cancellation, the lease and the key are as they were.
        """
        own = await self._store.get(self._keys.key(lease))
        if own is None or (own.create_revision, own.lease) != (revision, lease):
            raise self.lost("its key is gone")
        interruption = Interruption(None, self._late)
        try:
            try:
                self._loan = loan = await self._source.adopt(lease)
            except LeaseNotFoundError as error:
                raise self.lost("its lease is gone", error) from error
            self.place = place = Place(self._keys, loan.id)
            loan.on_loss(lambda error: interruption.interrupt(self.lost(error.message, error)))
            place.move(Step.BEGUN)
            place.created(revision, (), limit=0)  # nothing was listed yet
            while place.state is State.LOOKING:
                await self._advance()
            if place.state is not State.HELD:
                raise self.lost("another one is before it")
            interruption.check()
        except BaseException as raised:  # a cancellation too: the lease and the key go on by themselves
            interruption.stop()
            self._abandon()
            interruption.leave_with(raised)
            raise
        interruption.stop()

    async def try_stand(self) -> bool:
        """Enter the line if it is empty, and stay if this place holds at once. If it is not empty, write nothing."""
        if await self._is_taken():
            return False
        interruption = Interruption(None, self._late)
        try:
            is_in_line = await self._enter(interruption, self._source.try_borrow)
            while is_in_line and self.place.state is State.LOOKING:
                await self._advance()
            interruption.check()
        except BaseException as raised:  # a cancellation too: the key must not stay in the line
            await self._leave_early(interruption, raised)
            raise
        interruption.stop()
        if is_in_line and self.place.state is State.HELD:
            return True
        await self.leave()
        return False

    async def _leave_early(self, interruption: Interruption, raised: BaseException) -> None:
        interruption.stop()
        try:
            await self.leave(is_cancelled=isinstance(raised, asyncio.CancelledError))
        except asyncio.CancelledError as cancelled:
            interruption.leave_with(cancelled)
            raise
        interruption.leave_with(raised)

    async def _is_taken(self) -> bool:
        limit = 1
        keys = self._keys
        while True:
            result = await self._store.range(prefix=keys.before, limit=limit)
            if any(keys.has(kv) for kv in result.kvs):
                return True
            if len(result.kvs) < limit:
                return False
            limit *= 2

    async def _enter(
        self, interruption: Interruption, borrow: Callable[[int, bytes], Coroutine[object, object, Loan | None]]
    ) -> bool:
        """Borrow a lease and create the own key. Returns False if none is lent."""
        self._is_dirty, self._trouble = False, None
        while True:
            try:
                self._loan = loan = await borrow(self._ttl, self._keys.own)
            except LeaseLostError as error:
                raise self.lost(error.message, error) from error
            if loan is None:
                return False
            self.place = place = Place(self._keys, loan.id)
            loan.on_loss(lambda error: interruption.interrupt(self.lost(error.message, error)))
            place.move(Step.BEGUN)
            interruption.check()
            try:
                await self._create(place, loan)
            except LeaseNotFoundError as error:
                # A lease that ended while it was idle: nothing was written, and nothing can be any more. There may be
                # several, as after a restore of the store; the pool comes to the end of them.
                if not loan.was_idle or interruption.error is not None:
                    raise self.lost("its lease is gone", error) from error
                loan.on_loss(None)
                self._loan = None
                self._is_dirty = False
                await loan.discard()
            else:
                return True

    async def _create(self, place: Place, loan: Loan) -> None:
        entry = self._entry
        if entry is None or entry.lease != loan.id or entry.value != self.value:
            self._entry = entry = Entry(place.key, self.value, loan.id, self._entry_range())
        pauses = Pauses(SOON)
        self._is_dirty = True  # until it is answered, also if the call is cancelled
        while True:
            try:
                result = await self._store.do(entry.txn, retry="safe")
            except EtcdError as error:
                # The key is this acquisition's alone, so it can be created again; an unanswered copy leaves doubt.
                if not (error.maybe_applied and error.retryable):
                    raise
                self._trouble = error
                await pauses.wait()
            else:
                self._is_dirty = pauses.failures > 0
                self.present = kv = None if result.succeeded else result[entry.own]
                self._created(result.revision if kv is None else kv.create_revision, result[entry.found])
                return

    def _entry_range(self) -> op.RangeOp:
        """What is listed in the txn that creates the key."""
        return op.range(prefix=self._keys.before, limit=ENTRY_LIMIT, keys_only=True)

    def _created(self, revision: int, found: RangeResult) -> None:
        """The key is there: find out whether it holds already."""
        self.place.created(revision, found.kvs)

    async def _advance(self) -> None:
        """One look or one wait, repeated for as long as the lease lives if the cluster is in trouble."""
        pauses = Pauses(SOON)
        while True:
            try:
                ahead = self.place.ahead
                if ahead is None:
                    await self._look()
                else:
                    await self._wait(ahead)
            except EtcdError as error:
                if not (error.retryable or isinstance(error, _REPEATED)):
                    raise
                self._trouble = error
            else:
                break
            await pauses.wait()
        if self.place.state is State.LOST:
            lease = f"its lease 0x{self._loan.id:x}" if self._loan is not None else "its lease"
            raise self.lost(f"its key is gone: it was deleted, or {lease} was revoked")

    async def _look(self) -> None:
        place, keys = self.place, self._keys
        before = op.range(
            prefix=keys.before,
            max_create_revision=place.revision,
            sort_by="create_revision",
            sort_order="descend",
            limit=place.limit,
        )
        if keys.lists_own:
            kvs = (await self._store.do(before)).kvs
            place.looked(kvs, kvs[0] if kvs else None)
        else:
            get = op.get(place.key)
            result = await self._store.do(op.txn(then=[get, before]))
            place.looked(result[before].kvs, result[get])

    async def _wait(self, ahead: Listed) -> None:
        place = self.place
        async with self._store.watch(ahead.key, timeout=None) as watcher:
            place.checked(await self._store.get(ahead.key))
            while place.state is State.WAITING:
                event = await later_event(watcher, ahead.create_revision)
                place.checked(event.kv if event.is_put else None)

    # Holding and leaving.

    def hold(self, *, margin: float, cancels: bool, watch_after: float | None = None) -> Held[E]:
        """Guard what is held now; called in the task that a loss cancels. See `Held`."""
        if self._loan is None or self.place.state is not State.HELD:
            raise NotHeldError(f"{self._subject.what} is not held")
        key, revision = self.place.key, self.place.revision
        return Held(
            self._store,
            self._loan,
            key,
            revision,
            margin=margin,
            cancels=cancels,
            subject=self._subject,
            watch_after=watch_after,
        )

    async def leave(self, *, is_cancelled: bool = False) -> None:
        """Leave the line: delete the key and give the lease back, or discard the lease if something is in doubt.

        It raises no `EtcdError`: what cannot be done now is done in the background, or by etcd when the lease ends.

        Args:
            is_cancelled: the caller is cancelled and waits for at most half a second, but even in a cancelled scope.
        """
        if self._loan is not None and self._loan.is_orphan:
            self._abandon()
        loan, self._loan = self._loan, None
        if loan is None:
            return
        loan.on_loss(None)
        place = self.place
        is_dirty = self._is_dirty or place.state is State.LOST or (place.state is not State.HELD and loan.is_lost)
        if place.state is not State.LOST:
            place.move(Step.GIVEN_UP)
        if not is_dirty and not is_cancelled:
            try:
                await self._delete(place)
            except asyncio.CancelledError:
                await self._in_background(loan, place, is_dirty=True)
                raise
            except EtcdError as error:
                self._warn(loan, error)
                self._source.run(self._release_later(loan), f"release of {self._subject.what}")
            else:
                loan.give_back()
        else:
            await self._in_background(loan, place, is_dirty=is_dirty)
        place.move(Step.LEFT)

    def leave_lost(self) -> None:
        """Leave the line in the background: what was held is lost."""
        if self._loan is not None and self._loan.is_orphan:
            self._abandon()
        loan, self._loan = self._loan, None
        if loan is not None:
            loan.on_loss(None)
            self.place.move(Step.GONE)
            self._source.run(loan.discard(), f"end of {self._subject.what}")
            self.place.move(Step.LEFT)

    def _abandon(self) -> None:
        """Leave the lease and the key as they are: another process has made them, or will take them over."""
        loan, self._loan = self._loan, None
        if loan is not None:
            loan.on_loss(None)
            loan.abandon()

    async def _in_background(self, loan: Loan, place: Place, *, is_dirty: bool) -> None:
        work = self._source.run(self._clear(loan, place, is_dirty), f"release of {self._subject.what}")
        # Scopes of anyio wait for this. A cancellation by asyncio ends the wait, and the task goes on by itself.
        with CancelScope(shield=True):
            await asyncio.wait([work], timeout=CANCELLED_SECONDS)

    async def _clear(self, loan: Loan, place: Place, is_dirty: bool) -> None:
        if not is_dirty:
            try:
                await self._delete(place)
            except EtcdError as error:
                self._warn(loan, error)
                await self._release_later(loan)
            else:
                loan.give_back()
        else:
            await loan.discard()

    def _warn(self, loan: Loan, error: EtcdError) -> None:
        text = (
            "%s could not be released yet; this goes on in the background, until its lease 0x%x ends at the latest: %s"
        )
        log_for(logger, self._store).warning(text, self._subject.what, loan.id, error)

    async def _release_later(self, loan: Loan) -> None:
        """Have the key deleted with patience, after an attempt to delete it has failed."""
        if await loan.discard():
            log_for(logger, self._store).info("%s is released now", self._subject.what)

    async def _delete(self, place: Place) -> None:
        entry = self._entry
        if entry is None or entry.key != place.key:  # another lease has had its turn since
            entry = Entry(place.key, b"", 0, self._entry_range())
        txn = op.txn(when=[entry.created == place.revision], then=[entry.deletion])
        await self._store.do(txn, timeout=_LEAVE_SECONDS, retry="always")

    # Errors.

    def lost(self, reason: str, cause: BaseException | None = None) -> E:
        """The error of a loss while waiting."""
        error = self._subject.lost(f"{self._subject.what} is lost while waiting for it: {reason}")
        error.__cause__ = cause
        return error

    def _late(self) -> EtcdError:
        ahead = self.place.ahead
        if ahead is not None:
            reason = f"the contender {ahead.key!r} is still before this one"
        else:
            reason = "etcd has not answered in time"
        error = self._subject.late(f"{self._subject.what} was not {self._subject.reached} in time: {reason}")
        error.__cause__ = self._trouble
        return error
