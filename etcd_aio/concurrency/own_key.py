"""OwnKey: a key of one holder, under a lease that it borrows: created until that is answered, and deleted for certain.

Every copy of the requests that may still travel is harmless. A late copy of that which deletes the key compares a
revision that never comes back. A late copy of that which creates it attaches the key to the lease: if one may be on its
way, the key is in doubt, and the lease is revoked afterwards, after which etcd refuses every copy.

    end           for                               the key                             the lease
    leave         a holder that leaves, or has      deleted by its revision             returned
                  failed to enter
                  - that is cancelled               the same, in the background         returned
                  - and the key is in doubt, or     goes with the lease                 revoked, in the background
                    the lease is lost
                  - and etcd does not answer        goes with the lease                 revoked, in the background
    leave_lost    a holder that is told of a loss   goes with the lease                 revoked, in the background
    abandon       another process that goes on      stays                               stays, and is not renewed

An orphaned session's lease is abandoned in every case.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from anyio import CancelScope

from etcd_aio import Key, KeyValue, TxnResult, op
from etcd_aio.base import CANCELLED_SECONDS, SOON, Pauses, as_etcd_error, log_for
from etcd_aio.concurrency.held import Held
from etcd_aio.concurrency.interruption import Interruption
from etcd_aio.concurrency.options import HoldOptions
from etcd_aio.concurrency.place import lease_key
from etcd_aio.errors import (
    CompactedError,
    EtcdError,
    LeaseLostError,
    LeaseNotFoundError,
    NotHeldError,
    StoreRolledBackError,
)
from etcd_aio.lease import Loan

E = TypeVar("E", bound=EtcdError)
R = TypeVar("R")

logger: Final = logging.getLogger("etcd_aio.locks")

_LEAVE_SECONDS: Final = 2.0  # that leaving waits for an answer: twice etcd's default election timeout
_NOT_RELEASED: Final = (
    "%s could not be released yet; this goes on in the background, until its lease 0x%x ends at the latest: %s"
)
_REPEATED: Final = (CompactedError, StoreRolledBackError)  # a watch that ends with one of them starts over


class _Creation:
    """The txn that creates a key, and parts of that which deletes it. The next acquisition mostly has the same."""

    __slots__ = ("created", "deletion", "key", "lease", "own", "txn", "value")

    def __init__(self, key: bytes, value: bytes, lease: int, listed: op.RangeOp | None) -> None:
        self.key = key
        self.value = value
        self.lease = lease
        self.own = op.get(key)
        put = op.put(key, value, lease=lease)
        more = [] if listed is None else [listed]
        self.txn = op.txn(when=[Key(key).missing], then=[put, *more], otherwise=[self.own, *more])
        self.created = Key(key).create_revision
        self.deletion = op.delete(key)


class OwnKey(Generic[E]):
    """A key of one holder, `<prefix><lease>`, for one acquisition after the other.

        own = OwnKey(options, b"name/")
        async with own.waiting(timeout):    borrows a lease, and creates the key; left if it fails
            await own.create(b"value")
        held = own.hold()                   guards the block
        ...
        await own.leave()

    Args:
        options: how it is held.
        prefix: of the key.

    Attributes:
        loan: the lease while it is borrowed.
        key: the key.
        revision: its `create_revision`; 0 if there is no key to delete.
        present: the key as it was before `create`: of an earlier request of this acquisition, or of an earlier process
            with the same lease; None if it was missing.
        is_dirty: the key is in doubt: a request that creates it may still travel.
    """

    def __init__(self, options: HoldOptions[E], prefix: bytes) -> None:
        self._options = options
        self._store = options.store
        self._source = options.source
        self._subject = options.subject
        self._prefix = prefix
        self._creation: _Creation | None = None  # of the last acquisition
        self._interruption: Interruption | None = None  # of the present wait
        self._trouble: EtcdError | None = None  # the last error that was survived
        self.loan: Loan | None = None
        self.key = b""
        self.revision = 0
        self.present: KeyValue | None = None
        self.is_dirty = False

    # Entering.

    def waiting(self, timeout: float | None, *, abandons: bool = False) -> Interruption:
        """A block that waits for what the key is for. After an error or a cancellation the key is left.

        Args:
            timeout: seconds; None for no limit.
            abandons: the key and the lease are abandoned instead.

        Leaving raises:
            LockTimeoutError: or what `subject.late` is: the time is over.
            LockLostError: or what `subject.lost` is: the lease is lost.
        """
        self._trouble = None
        leave = self._abandon_early if abandons else self._leave_early
        self._interruption = Interruption(timeout, self._late, leave)
        if self.loan is not None:
            self.loan.on_loss(self._on_loss)
        return self._interruption

    def _on_loss(self, error: LeaseLostError) -> None:
        if self._interruption is not None:
            self._interruption.interrupt(self.lost(error.message, error))

    async def create(self, value: bytes, listed: op.RangeOp | None = None, *, waits: bool = True) -> TxnResult | None:
        """Borrow a lease and create the key, until that is answered.

        Args:
            value: of the key.
            listed: what else the txn reads, the same each time; the answer has it.
            waits: for other tasks of a session that use the prefix.

        Returns:
            The answer; None if no lease is lent, without a wait.

        Raises:
            LockLostError: or what `subject.lost` is: the lease is lost.
            EtcdError: no lease was granted, or the key could not be created.

        Cancellation: `leave` undoes what was done.
        """
        self.is_dirty = False
        while True:
            try:
                loan = await self._source.borrow(self._options.ttl, self._prefix, waits=waits)
            except LeaseLostError as error:
                raise self.lost(error.message, error) from error
            if loan is None:
                return None
            self._use(loan)
            try:
                return await self._create(loan, value, listed)
            except LeaseNotFoundError as error:
                # A lease that ended while it was idle: nothing was written, and nothing can be any more. There may be
                # several, as after a restore of the store; the pool comes to the end of them.
                if not loan.was_idle or loan.is_lost:
                    raise self.lost("its lease is gone", error) from error
                loan.on_loss(None)
                self.loan, self.is_dirty = None, False
                await loan.revoke()

    def _use(self, loan: Loan) -> None:
        """The key is to be under this lease."""
        self.loan, self.key, self.revision = loan, lease_key(self._prefix, loan.id), 0
        loan.on_loss(self._on_loss)
        if self._interruption is not None:
            self._interruption.check()

    async def _create(self, loan: Loan, value: bytes, listed: op.RangeOp | None) -> TxnResult:
        creation = self._creation
        if creation is None or creation.lease != loan.id or creation.value != value:
            self._creation = creation = _Creation(self.key, value, loan.id, listed)
        pauses = Pauses(SOON)
        self.is_dirty = True  # until it is answered, also if the call is cancelled
        while True:
            try:
                result = await self._store.do(creation.txn, retry="safe")
            except EtcdError as error:
                # The key is this holder's alone, so it can be created again; an unanswered copy leaves doubt.
                if not (error.maybe_applied and error.retryable):
                    raise
                self._trouble = error
                await pauses.wait()
            else:
                self.is_dirty = pauses.failures > 0
                self.present = kv = None if result.succeeded else result[creation.own]
                self.revision = result.revision if kv is None else kv.create_revision
                return result

    async def persist(self, step: Callable[[], Awaitable[R]]) -> R:
        """Repeat a step for as long as the lease lives, if the cluster is in trouble."""
        pauses = Pauses(SOON)
        while True:
            try:
                return await step()
            except EtcdError as error:
                if not (error.retryable or isinstance(error, _REPEATED)):
                    raise
                self._trouble = error
            await pauses.wait()

    def hold(self, *, watch_after: float | None = None) -> Held[E]:
        """Guard a block while the key is held. Called in the task that a loss cancels; see `Held`."""
        if self.loan is None or not self.revision:
            raise NotHeldError(f"{self._subject.what} is not held")
        return Held(self._options, self.loan, self.key, self.revision, watch_after=watch_after)

    # Leaving; see the table above.

    async def leave(self, *, is_cancelled: bool = False) -> None:
        """Delete the key and return the lease. It raises no `EtcdError`; whatever it raises, the lease ends.

        Args:
            is_cancelled: the caller is cancelled and waits for at most half a second, but even in a cancelled scope.
        """
        loan = self._taken()
        if loan is None:
            return
        is_dirty = self.is_dirty or loan.is_lost
        if is_dirty or is_cancelled:
            await self._clear_in_background(loan, is_dirty=is_dirty)
            return
        try:
            await self._clear(loan, is_dirty=False)
        except asyncio.CancelledError:
            await self._clear_in_background(loan, is_dirty=True)
            raise

    def leave_lost(self) -> None:
        """Leave what is lost, in the background."""
        loan = self._taken()
        if loan is not None:
            self._source.run(loan.revoke(), f"end of {self._subject.what}")

    def abandon(self) -> None:
        """Leave the lease and the key as they are: another process has made them, or will take them over."""
        loan = self._taken()
        if loan is not None:
            loan.abandon()

    async def _leave_early(self, is_cancelled: bool) -> None:
        await self.leave(is_cancelled=is_cancelled)

    async def _abandon_early(self, is_cancelled: bool) -> None:
        self.abandon()

    def _taken(self) -> Loan | None:
        """The lease, which this ends; None if there is none, or it is abandoned."""
        loan, self.loan = self.loan, None
        if loan is not None:
            loan.on_loss(None)
            if loan.is_orphan:
                loan.abandon()
                return None
        return loan

    async def _clear_in_background(self, loan: Loan, *, is_dirty: bool) -> None:
        work = self._source.run(self._clear(loan, is_dirty=is_dirty), f"release of {self._subject.what}")
        # Scopes of anyio wait for this. A cancellation by asyncio ends the wait, and the task goes on by itself.
        with CancelScope(shield=True):
            await asyncio.wait([work], timeout=CANCELLED_SECONDS)

    async def _clear(self, loan: Loan, *, is_dirty: bool) -> None:
        if is_dirty:
            await loan.revoke()
            return
        try:
            if self.revision:
                await self._delete()
        except Exception as error:  # also of the application's backend: the lease must not be kept
            shown = as_etcd_error(error)
            log_for(logger, self._store).warning(_NOT_RELEASED, self._subject.what, loan.id, shown)
            self._source.run(self._revoke_later(loan), f"release of {self._subject.what}")
            if not isinstance(error, EtcdError):
                raise  # of the application's backend, which the caller must see
        else:
            loan.give_back()

    async def _revoke_later(self, loan: Loan) -> None:
        if await loan.revoke():
            log_for(logger, self._store).info("%s is released now", self._subject.what)

    async def _delete(self, *more: op.TxnOp) -> None:
        """Delete the key if it has its revision, and carry out more in the same txn."""
        creation = self._creation
        if creation is None or creation.key != self.key:  # it was adopted
            creation = _Creation(self.key, b"", 0, None)
        txn = op.txn(when=[creation.created == self.revision], then=[creation.deletion, *more])
        await self._store.do(txn, timeout=_LEAVE_SECONDS, retry="always")

    # Errors.

    def lost(self, reason: str, cause: BaseException | None = None) -> E:
        """The error of a loss while waiting."""
        error = self._subject.lost(f"{self._subject.what} is lost while waiting for it: {reason}")
        error.__cause__ = cause
        return error

    def _late(self) -> EtcdError:
        text = f"{self._subject.what} was not {self._subject.reached} in time: {self._reason_of_delay()}"
        error = self._subject.late(text)
        error.__cause__ = self._trouble
        return error

    def _reason_of_delay(self) -> str:
        return "etcd has not answered in time"
