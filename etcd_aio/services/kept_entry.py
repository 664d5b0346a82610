"""KeptEntry: a key that is there for as long as its process runs, whatever happens in between.

Theory. The entry is attached to a lease, so it ends soon after its process. When the lease is lost, in an outage that
is longer than its TTL, another one is granted and the entry is put again, for ever. Nothing of this is the caller's.

Each put holds only if the key is as this process saw it last (`mod_revision`; 0 if it is missing), so that a late copy
of an old entry never replaces a newer one. If it does not hold, the key says why: it has a lease of this process, so an
earlier copy was applied; it is missing; or it is the entry of another process. A copy that creates the key late is
refused, since the lease in it is revoked by then.
"""

import asyncio
import logging
from contextlib import suppress
from math import inf
from types import TracebackType
from typing import ClassVar, Final, Literal, Self, TypeAlias, get_args

from etcd_aio import EtcdError, Key, KeyValue, op
from etcd_aio.arguments import finite_seconds, one_of, whole_number
from etcd_aio.base import (
    ATTEMPT_SECONDS,
    PATIENT,
    NotAwaitable,
    Pauses,
    Timeout,
    Waiters,
    as_etcd_error,
    deadline_after,
    log_for,
    resolve,
    start_background_task,
    start_task,
    when_constructed,
)
from etcd_aio.calls import StoreCalls, check_store
from etcd_aio.errors import (
    ClientClosedError,
    ClientUsageError,
    CompactedError,
    EtcdTimeoutError,
    FutureRevisionError,
    LeaseExpiredError,
    LeaseNotFoundError,
    MemberConflictError,
    ServiceConflictError,
    StoreRolledBackError,
)
from etcd_aio.lease import KeptLease
from etcd_aio.types import shown_keys

DEFAULT_TTL: Final = 10
"""Seconds: as of locks. It outlasts a leader election several times."""

_LASTED: Final = 1.0
"""Seconds after which a registration that is lost is made again at once: until then, losing it is a failure too."""

OnConflict: TypeAlias = Literal["keep", "replace"]
"""The treatment of an entry of another process at the key: `"keep"` leaves it alone until it is gone."""


class KeptEntry(NotAwaitable):
    """A key with a lease, within a block; the base of a `Registration` of a service and a `Membership` of a group.

    Entering puts the entry, leaving deletes it. In between it is kept alive, and put again whenever its lease was lost,
    after an outage of any length. The block is not cancelled by a loss.

    A subclass has an `update`, which takes what the value is made of.

    Args:
        store: the client.
        key: of the entry.
        value: of the entry.
        ttl: seconds of its leases.
        on_conflict: see `OnConflict`.
        timeout: seconds of the calls of entering.
        drain: seconds that leaving waits after the deletion.

    Attributes:
        key: the key of the entry.
    """

    _conflict: ClassVar[type[ServiceConflictError] | type[MemberConflictError]]
    """The error that says that the key has the entry of another process."""
    _logger: ClassVar[logging.Logger]
    _watches: ClassVar[bool] = False
    """Whether it notices that another client has changed or deleted the entry; this takes a watch."""

    def __init__(
        self,
        store: StoreCalls,
        key: bytes,
        value: bytes,
        *,
        ttl: int,
        on_conflict: OnConflict,
        timeout: Timeout,
        drain: float = 0.0,
    ) -> None:
        check_store(store)
        one_of(get_args(OnConflict), on_conflict, "on_conflict")
        self._store = store
        self._log = log_for(self._logger, store)
        self._value = value
        self.key = key
        self._what = shown_keys(self.key)
        self._noun = type(self).__name__.lower()
        self._ttl = whole_number(ttl, "ttl", minimum=1)
        self._replaces = on_conflict == "replace"
        self._was_replaced = False  # by another process, which is not replaced in turn
        self._drain = finite_seconds(drain, "drain")
        self._timeout = timeout
        self._revision = 0  # of the entry, as this process saw it last
        self._leases: set[int] = set()  # that an entry of this process may have
        self._putting = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._lease: KeptLease | None = None  # of the entry that is there
        self._error: EtcdError | None = None  # why it is not there
        self._reported: EtcdError | None = None  # of the errors since it was there
        self._moved = Waiters()  # for the entry to come or go, and for the end
        self._is_left = False
        self._is_doubtful = False  # the store may be another one since the entry was put
        self._looking: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    @when_constructed
    def __repr__(self) -> str:
        if self._task is None:
            state = "not entered"
        elif self._is_left:
            state = "left"
        else:
            state = "registered" if self.is_registered else "not registered"
        return f"<{type(self).__name__} {self._what} {state}>"

    # The block.

    async def __aenter__(self) -> Self:
        """Grant a lease and put the entry.

        If the entry of another process is there, and `on_conflict="keep"`, the block is entered without an entry, which
        is logged; the entry is put when the other one is gone.

        Raises:
            EtcdError: no lease was granted, or the entry could not be put; `ClientClosedError` if it was closed.

        Cancellation: the entry is deleted, in the background if need be.
        """
        if self._task is not None:
            raise ClientUsageError(f"a {self._noun} can only be entered once: make another one")
        entered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._store.end_with_client(self)
        self._task = task = start_background_task(self._live(entered), name=f"etcd_aio {self._noun} of {self._what}")
        try:
            await asyncio.wait([entered, task], return_when=asyncio.FIRST_COMPLETED)
            if not entered.done() and task.cancelled():  # by `aclose`, as of the client, and not the task that enters
                raise ClientClosedError(f"{self._what} was closed while it was being entered")
            if not entered.done():
                task.result()
            entered.result()
        except BaseException:  # a cancellation too
            self._is_left = True
            entered.cancel()
            task.cancel()
            raise
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        was_left = self._is_left
        await self._leave(is_hurried=isinstance(exc, asyncio.CancelledError))
        if self._drain and not was_left:
            await asyncio.sleep(self._drain)

    async def aclose(self) -> None:
        """Delete the entry, within two seconds, and end the block. Leaving does this. Safe to repeat.

        If etcd does not answer in that time, the entry ends with its TTL. Closing the client does this too, within half
        a second.

        Cancellation: the entry is deleted in the background.
        """
        await self._leave(is_hurried=False)

    async def _leave(self, *, is_hurried: bool) -> None:
        self._is_left = True
        self._moved.wake()
        if self._task is None:
            return
        if self._lease is not None and not is_hurried:
            self._ending = start_background_task(self._lease.close(), name=f"etcd_aio {self._noun} end")
        elif self._ending is None:
            self._task.cancel()  # this revokes the lease, with less patience
        await asyncio.wait([self._task] if self._ending is None else [self._task, self._ending])

    # State.

    @property
    def is_registered(self) -> bool:
        """Whether the entry is there, as far as this process can know. Thread-safe.

        It looks at the clock, so it is right at once when the event loop, the process or the machine was stopped, and
        it turns False before etcd deletes the key. A membership also notices when another client deletes or replaces
        the key; a registration does not.
        """
        lease = self._lease
        return lease is not None and not lease.is_lost

    @property
    def error(self) -> EtcdError | None:
        """Why the entry is not there now: `LeaseLostError`, the error of a conflict, or what etcd has answered last."""
        lease = self._lease
        if lease is None or self._error is not None:
            return self._error
        # If the loop was stopped for long, the clock says so before the lease does.
        return LeaseExpiredError(f"the lease of {self._what} has expired") if lease.is_lost else None

    @property
    def revision(self) -> int:
        """The revision of the last put of the entry; 0 if there was none."""
        return self._revision

    async def lost(self, *, timeout: float | None = None) -> EtcdError | None:
        """Wait until the entry is lost. It is put again without any help; this is for those who want to know.

        Args:
            timeout: seconds to wait; 0 looks once. Default: None, no limit.

        Returns:
            Why it was lost, or why it is not there; None if the block was left.

        Raises:
            EtcdTimeoutError: it was not lost in time.
            ClientUsageError: the block was not entered.

        Cancelling the wait changes nothing.
        """
        if self._task is None:
            raise self._not_entered()
        deadline = deadline_after(timeout, asyncio.get_running_loop().time())
        lease = self._lease
        while lease is not None and self._lease is lease and not lease.is_lost:
            if not await self._moved.wait(deadline) and not lease.is_lost:
                raise EtcdTimeoutError(f"the {self._noun} {self._what} was not lost in time")
        return None if self._is_left else self.error

    async def wait_registered(self, *, timeout: float | None = None) -> None:
        """Wait until the entry is there.

        Args:
            timeout: seconds to wait. Default: None, no limit.

        Raises:
            EtcdTimeoutError: it was not there in time.
            ClientUsageError: the block was not entered, or was left.

        Cancelling the wait changes nothing.
        """
        if self._task is None:
            raise self._not_entered()
        deadline = deadline_after(timeout, asyncio.get_running_loop().time())
        while not self.is_registered:
            if self._is_left:
                raise ClientUsageError(f"the block of the {self._noun} has ended")
            if not await self._moved.wait(deadline):
                raise EtcdTimeoutError(f"the {self._noun} {self._what} was not there in time")

    # The entry.

    async def _update(self, value: bytes, timeout: Timeout) -> None:
        """Change the value of the entry, as the `update` of a subclass says."""
        if self._task is None or self._is_left:
            raise self._not_entered()
        self._value = value
        lease = self._lease
        if lease is None or lease.is_lost:
            return
        try:
            await self._put(lease, timeout)
        except (LeaseNotFoundError, self._conflict) as error:
            await self._start_over(lease, error)
            if isinstance(error, self._conflict):
                raise

    async def _start_over(self, lease: KeptLease, error: EtcdError) -> None:
        """Give the lease back, since the entry is not this one's any more: it is put again with another one."""
        self._error = error
        await lease.close()

    def _may_replace(self, kv: KeyValue, value: bytes) -> bool:
        """Whether an entry that is there with a lease of another process may be replaced by this value."""
        return self._replaces and not (self._was_replaced and kv.lease)

    async def _put(self, lease: KeptLease, timeout: Timeout) -> bytes:
        """Put the entry.

        Returns:
            The value that was put.

        Raises:
            ServiceConflictError, MemberConflictError: the entry of another process is there.
            EtcdError: as every write.
        """
        look = op.get(self.key)
        async with self._putting:
            is_first = lease.id not in self._leases
            self._leases.add(lease.id)
            while True:
                value = self._value
                txn = op.txn(
                    when=[Key(self.key).mod_revision == self._revision],
                    then=[op.put(self.key, value, lease=lease.id)],
                    otherwise=[look],
                )
                result = await self._store.do(txn, timeout=timeout, retry="always")
                if result.succeeded:
                    self._revision, self._leases = result.revision, {lease.id}
                    return value
                kv = result[look]
                if kv is None:
                    self._revision = 0
                elif kv.lease in self._leases or self._may_replace(kv, value):
                    self._revision = kv.mod_revision
                    if kv.lease == lease.id and kv.value == value:  # an earlier copy of this put was applied
                        self._leases = {lease.id}
                        return value
                else:
                    if is_first:  # nothing was put with it, and it will be revoked: a conflict may last for ever
                        self._leases.discard(lease.id)
                    text = f"{self._what} has an entry of another process, which was not replaced"
                    raise self._conflict(text, lease=kv.lease)

    async def _live(self, entered: "asyncio.Future[None]") -> None:
        """Keep the entry there until the block is left."""
        loop = asyncio.get_running_loop()
        timeout = self._timeout  # until the block is entered
        pauses = Pauses(PATIENT)
        while True:
            since = inf
            try:
                lease = self._store.lease(self._ttl, timeout=timeout, on_lost="signal")
                lease.on_doubt = self._on_doubt
                async with lease:
                    while await self._put(lease, timeout) != self._value:
                        pass  # an update came meanwhile, and has returned, since the entry was not there
                    since = loop.time()
                    if self._reported is not None:
                        self._log.info("%s is registered again", self._what)
                    resolve(entered, None)
                    await self._stay(lease)
            except Exception as error:  # also of the application's policy, which may be right the next time
                if not entered.done() and not isinstance(error, self._conflict):
                    entered.set_exception(error)
                    return
                self._report(error)
                if isinstance(error, ClientUsageError):
                    self._is_left = True
                    self._moved.wake()
            if self._is_left:
                return
            resolve(entered, None)
            timeout = ATTEMPT_SECONDS  # there are other attempts
            if loop.time() - since >= _LASTED:
                pauses.reset()
            else:
                await pauses.wait()

    async def _stay(self, lease: KeptLease) -> None:
        """The entry is there: wait until its lease is gone, or another client has changed or deleted it."""
        watching = None
        if self._watches:
            watching = start_task(self._notice(lease), name=f"etcd_aio watch of {self._what}")
        self._lease, self._error, self._reported = lease, None, None
        self._moved.wake()
        if self._is_doubtful:
            self._on_doubt()
        error: EtcdError | None = None
        try:
            error = await lease.lost()
        finally:
            if watching is not None:
                watching.cancel()
            if self._looking is not None:
                self._looking.cancel()
            self._lease = None
            self._error = error or self._error
            self._moved.wake()

    def _on_doubt(self) -> None:
        """The store may be another one, which has the lease, and an older entry or none."""
        lease = self._lease
        self._is_doubtful = lease is None  # it is being put: look afterwards
        if lease is not None:
            if self._looking is not None:
                self._looking.cancel()
            self._looking = start_background_task(self._look(lease), name=f"etcd_aio look at {self._what}")

    async def _look(self, lease: KeptLease) -> None:
        """Put the entry again if the store is another one, which lacks it or has an older one of this process."""
        pauses = Pauses(PATIENT)
        while True:
            try:
                if await self._is_of_another_store():
                    await self._put(lease, ATTEMPT_SECONDS)
            except (LeaseNotFoundError, self._conflict) as error:
                await self._start_over(lease, error)
            except Exception as error:  # also of the application's backend, which may be right the next time
                if not isinstance(error, EtcdError) or error.retryable:
                    await pauses.wait()
                    continue
            return

    async def _is_of_another_store(self) -> bool:
        """Whether the entry was not put in this store; an entry that another client has deleted or replaced was.

        In the same store it has no older version. Only a later one, or none, takes a look into the past.
        """
        revision = self._revision
        try:
            kv = await self._store.get(self.key)
            if kv is None or kv.mod_revision > revision:
                kv = await self._store.get(self.key, revision=revision)
        except FutureRevisionError:
            kv = None
        except CompactedError:
            return False  # which cannot be found out
        is_here = kv is not None and kv.mod_revision == revision and kv.lease in self._leases
        return revision == self._revision and not is_here

    async def _notice(self, lease: KeptLease) -> None:
        """If the entry is not this one's any more, give its lease back: so it starts over."""
        revision, pauses = self._revision + 1, Pauses(PATIENT)
        lost: EtcdError | None = None
        while lost is None:
            try:
                async with self._store.watch(self.key, start_revision=revision, timeout=None) as watcher:
                    while lost is None:
                        event = await anext(watcher)
                        lost = self._lost_by(event.kv if event.is_put else None)
            except (CompactedError, StoreRolledBackError):
                with suppress(Exception):
                    found = await self._store.range(self.key)  # with its lease, which keys_only may leave out
                    revision = found.revision + 1
                    lost = self._lost_by(found[0] if found else None)
            except Exception as error:  # also of the application's backend, which may be right the next time
                if isinstance(error, EtcdError) and not error.retryable:
                    return  # it is put again when its lease is lost, as without this
            if lost is None:
                await pauses.wait()
        with suppress(Exception):  # the entry goes with its lease, too
            if (await self._store.leases.time_to_live(lease.id)).is_expired:
                lost = LeaseExpiredError(f"the lease of {self._what} has expired")
        await self._start_over(lease, lost)

    def _lost_by(self, kv: KeyValue | None) -> EtcdError | None:
        """Why the entry is not this one's any more; None if it is."""
        if kv is None:
            return self._conflict(f"{self._what} was deleted by another client")
        if kv.lease in self._leases:
            return None
        self._was_replaced = True
        return self._conflict(f"{self._what} was replaced by another process", lease=kv.lease)

    def _report(self, raised: Exception) -> None:
        """Log why the entry is not there, unless that was so before."""
        error = as_etcd_error(raised)
        if type(error) is not type(self._reported):
            self._log.warning("%s is not registered; this is tried again: %s", self._what, error)
        self._error = self._reported = error

    def _not_entered(self) -> ClientUsageError:
        return ClientUsageError(f"not entered: {self.usage.partition(': ')[2]}")
