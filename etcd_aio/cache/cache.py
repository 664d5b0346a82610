"""Cache: `client.cache()`, the keys of a range in memory, exact at one revision, and read without a round trip."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import ClassVar, Final, Self, TypeVar
from weakref import WeakSet

from etcd_aio import KeyRange
from etcd_aio.arguments import finite_seconds, flag, whole_number
from etcd_aio.base import (
    NEVER,
    UNSET,
    NotAwaitable,
    Timeout,
    TwoPartClose,
    Unwinding,
    deadline_after,
    now,
    start_background_task,
    time_left,
    when_constructed,
)
from etcd_aio.cache.changes import CacheBatches, CacheChanges, Follower, KeySetChanges
from etcd_aio.cache.decoder import Decoder
from etcd_aio.cache.freshness import Freshness
from etcd_aio.cache.local import NOT_ENTERED, LocalReads
from etcd_aio.cache.replicator import Replicator
from etcd_aio.cache.results import CacheStatistics
from etcd_aio.cache.state import CacheState, Replica
from etcd_aio.cache.steps import ContentStep
from etcd_aio.calls import StoreCalls, check_store
from etcd_aio.errors import (
    CacheError,
    CacheTimeoutError,
    ClientUsageError,
    EtcdError,
    InvalidRequestError,
    WrongLoopError,
)
from etcd_aio.types import KeyLike

T = TypeVar("T")
F = TypeVar("F", bound=Follower)

DEFAULT_MAX_OUTAGE: Final = 10.0
"""Seconds: it outlasts a leader election several times."""

DEFAULT_MAX_PENDING: Final = 16 * 2**20
"""Bytes, as of `client.watch()`."""

_FALL_BACK_AFTER: Final = 3.0  # seconds, as Kubernetes' watch cache; or half of the timeout, if that is less


class Cache(LocalReads[T], TwoPartClose, NotAwaitable):
    """The keys of a range in memory: `async with client.cache(prefix="cfg/") as cache:`.

    Entering reads all keys; from then on a watch keeps them like the store. The content is always what a range at one
    revision would return, and between two awaits of the caller it does not change. There are three kinds of reads:

    - `get()`, `[]`, `in`, `range()` and `kv()` are plain functions, and read the content as it is. It may be behind the
      store; `age` says how far at most.
    - `await wait_current()` brings the content up to date. What is read before the next await of the caller is
      linearizable: it has every write that was finished when `wait_current()` was called. `read(key)` is both in one.
    - `await wait_current(max_staleness=0.5)` does that only if `age` is above half a second.

    Any number of tasks may use one cache; callers that wait at the same time share their round trips.

    It survives lost connections, failed members, compactions, and stores that are replaced by a backup; `state` and
    `statistics()` show it. It ends when it is left, when its client is closed, or if the user may not read the whole
    range any more, as far as it asks: by `wait_current`, by `keep_current`, or for a new watch. From then on every read
    raises `CacheError`, or the client's own error.

    The type of the values is that of `decode`'s results; without `decode` they are `KeyValue`s.
    """

    usage: ClassVar[str] = NOT_ENTERED

    __slots__ = (
        "__weakref__",
        "_decoder",
        "_fallback",
        "_fallbacks",
        "_followers",
        "_freshness",
        "_keep_current",
        "_replicator",
        "_store",
        "_tasks",
        "_timeout",
    )

    def __init__(
        self,
        store: StoreCalls,
        keys: KeyRange,
        *,
        decode: Callable[[bytes], T] | None = None,
        on_error: Callable[[bytes, Exception], None] | None = None,
        keep_current: float | None = None,
        fallback: bool = True,
        max_outage: float = DEFAULT_MAX_OUTAGE,
        timeout: Timeout = UNSET,
    ) -> None:
        check_store(store)
        if keys.range_end > b"\0" and keys.range_end <= keys.key:
            raise InvalidRequestError("the range is empty: range_end must be greater than key")
        for function, what in ((decode, "decode"), (on_error, "on_error")):
            if function is not None and not callable(function):
                raise TypeError(f"{what} must be a function, got {type(function).__name__}")
        super().__init__(keys, Replica(is_decoded=decode is not None))
        self._store = store
        self._timeout = store.backend.shared.seconds(timeout)
        self._fallback = flag(fallback, "fallback")
        self._keep_current = None if keep_current is None else finite_seconds(keep_current, "keep_current")
        if self._keep_current == 0:
            raise InvalidRequestError("keep_current must be more than 0 seconds")
        self._decoder = None if decode is None else Decoder(decode, on_error, self._shown(), store)
        self._replicator = Replicator(
            store,
            keys,
            self._replica,
            self._decoder,
            clock=now,
            max_outage=finite_seconds(max_outage, "max_outage"),
            on_step=self._on_step,
            on_moved=lambda: self._freshness.moved(),
            on_replaced=lambda: self._freshness.waiters.restart(),
        )
        self._freshness = Freshness(
            store, keys, self._replica, self._replicator, timeout=self._timeout, on_denied=self._end_by
        )
        self._followers: WeakSet[Follower] = WeakSet()
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._fallbacks = 0

    @when_constructed
    def __repr__(self) -> str:
        replica = self._replica
        shown = self._shown().replace("cache", "Cache", 1)
        return f"<{shown} {replica.state.value} {len(replica.tree)} keys at revision {replica.revision}>"

    # Lifetime.

    async def __aenter__(self) -> Self:
        """Read the keys.

        Raises:
            EtcdError: as entering a watch, and as every step of a scan.
            ClientUsageError: it was entered before, or the client is closed, or belongs to another loop or process.

        Cancellation leaves nothing behind.
        """
        if self._tasks or self._reason is not None:
            raise ClientUsageError("a cache can only be entered once: ask the client for another one")
        self._tasks = (start_background_task(self._feed(), name=f"etcd_aio {self._shown()}"),)
        try:
            await self._freshness.waiters.wait(0, NEVER)
        except BaseException:  # a cancellation too
            await self.aclose()
            raise
        if self._keep_current is not None:
            keeping = start_background_task(self._freshness.keep(self._keep_current), name="etcd_aio cache age")
            self._tasks += (keeping,)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def close(self) -> Unwinding:
        """End the cache without waiting: its watch, its tasks, its followers. Safe to repeat."""
        return self._end(CacheError("the cache is closed: its block has ended"), None)

    def _end(self, reason: Exception, error: Exception | None) -> list["asyncio.Future[None]"]:
        """End; followers raise the error, if there is one."""
        if self._reason is None:
            self._reason = reason
            self._replica.close()
            for follower in tuple(self._followers):
                follower.end(error)
        tasks = [task for task in self._tasks if not task.done()]
        for task in tasks:
            task.cancel()
        current = asyncio.current_task()  # a function of the application may close the cache in one of these tasks
        return [*(task for task in tasks if task is not current), *self._freshness.close(self._reason)]

    def _end_by(self, error: Exception) -> None:
        """The cache has ended by an error."""
        if self._replica.state is CacheState.LOADING or isinstance(error, ClientUsageError):
            reason = error
        else:
            kind = "" if isinstance(error, EtcdError) else f"{type(error).__name__}: "
            reason = CacheError(f"the {self._shown()} has ended: {kind}{error}")
            reason.__cause__ = error
        self._end(reason, reason)

    # Current reads.

    async def wait_current(self, *, max_staleness: float = 0.0, timeout: Timeout = UNSET) -> None:
        """Wait until the content has every write that was finished before this call.

        What the caller reads from then on, before its next await, is linearizable, of all keys together.

        Args:
            max_staleness: seconds: writes may be missing that were finished so long ago, or less. The call returns at
                once if `age` is not above it. Default: 0, none may be missing.
            timeout: seconds for the whole call. Default: that of the client.

        Raises:
            CacheTimeoutError: the time was over before.
            PermissionDeniedError: the user may not read the range any more: the cache has ended.
            CacheError: the cache was left, or has ended.
            EtcdError: as every read.

        Cancellation leaves nothing behind.
        """
        self._check_readable_or_loading()
        if finite_seconds(max_staleness, "max_staleness") and self.age <= max_staleness:
            return
        await self._freshness.wait_current(self._deadline(timeout))

    async def wait_revision(self, revision: int, *, timeout: Timeout = UNSET) -> None:
        """Wait until the content is at least as new as a revision, such as that of a put, or one that was passed on.

        Args:
            revision: the revision.
            timeout: seconds for the whole call. Default: that of the client.

        Raises:
            CacheTimeoutError: the time was over before.
            CacheError: the cache was left, or has ended.
            WrongLoopError: called in another loop than the cache's.

        Cancellation leaves nothing behind.
        """
        self._check_readable_or_loading()
        whole_number(revision, "revision")
        await self._freshness.wait_revision(revision, self._deadline(timeout))

    async def read(self, key: KeyLike, *, max_staleness: float = 0.0, timeout: Timeout = UNSET) -> T | None:
        """`wait_current` and `get` in one: a linearizable read of one key.

        If the cache is not current in time, the key is read from the server, with `fallback=True`: after 3 seconds, or
        half of the timeout. A later `get` may return an older value then.

        Args:
            key: the key.
            max_staleness: seconds; see `wait_current`.
            timeout: seconds for the whole call. Default: that of the client.

        Raises:
            CacheRangeError: the key is outside of the range of the cache.
            CacheTimeoutError: the time was over, without `fallback`.
            EtcdError: as `wait_current`, and as every read.

        Cancellation leaves nothing behind.
        """
        self._check_readable_or_loading()
        encoded = self._within(key)
        if finite_seconds(max_staleness, "max_staleness") and self.age <= max_staleness:
            return self.get(encoded)
        deadline = self._deadline(timeout)
        if not self._fallback:
            await self._freshness.wait_current(deadline)
            return self.get(encoded)
        loop_time = asyncio.get_running_loop().time()
        patience = min(_FALL_BACK_AFTER, time_left(deadline, loop_time) / 2)
        try:
            await self._freshness.wait_current(loop_time + patience)
        except CacheTimeoutError:
            return await self._read_directly(encoded, deadline)
        return self.get(encoded)

    async def _read_directly(self, key: bytes, deadline: float) -> T | None:
        self._fallbacks += 1
        left = None if deadline == NEVER else time_left(deadline, asyncio.get_running_loop().time())
        kv = await self._store.get(key, timeout=left)
        if kv is None:
            return None
        if self._decoder is None:
            return kv  # type: ignore[return-value] # T is KeyValue
        decoded = await self._decoder.decode_all((kv,))
        if key in decoded:
            return decoded[key]
        here = self._replica.kv(key)
        is_same_life = here is not None and here.create_revision == kv.create_revision
        return self._replica.values.get(key) if is_same_life else None

    def _deadline(self, timeout: Timeout) -> float:
        seconds = self._timeout if timeout is UNSET else timeout
        return deadline_after(seconds, asyncio.get_running_loop().time())

    def _check_readable_or_loading(self) -> None:
        """Tasks may wait while the cache is being entered."""
        if self._reason is not None or not self._tasks:
            self._check_readable()
        self._loop()

    def _loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop of the cache: waiting needs it, and the reads from memory need none.

        Raises:
            WrongLoopError: the caller runs in another one.
        """
        own = self._tasks[0].get_loop()
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:  # none runs
            return own
        if running is not own:
            raise WrongLoopError
        return own

    # State.

    @property
    def keys(self) -> KeyRange:
        """The range."""
        return self._keys

    @property
    def revision(self) -> int:
        """The revision of the content. It never goes back unless the store was replaced by an older one."""
        return self._replica.revision

    @property
    def content_version(self) -> int:
        """A number that grows with each change of the content, also when the store was replaced by another one.

        What was computed from the content is good as long as the number is the same. The `revision` is no such number:
        it moves with writes to other keys, and a store that was replaced may have any.
        """
        return self._replica.steps

    @property
    def age(self) -> float:
        """Seconds: the content has every write that was finished longer ago.

        It is counted from the newest linearizable read that the content has caught up with: that of loading, of a
        `wait_current` of any task, or of `keep_current`. So it grows between them, and while the cluster is out of
        reach. It is infinite before the keys are loaded.
        """
        return self._replica.age(now())

    @property
    def state(self) -> CacheState:
        """The state."""
        return self._replica.state

    def statistics(self) -> CacheStatistics:
        """A snapshot of the counters."""
        replica, replicator = self._replica, self._replicator
        return CacheStatistics(
            state=replica.state,
            keys=len(replica.tree),
            revision=replica.revision,
            age=self.age,
            followers=len(self._followers),
            waiting=len(self._freshness.waiters),
            events=replicator.events,
            loads=replicator.loads,
            probes=self._freshness.probe.reads,
            validations=self._freshness.catch_up.validations,
            fallbacks=self._fallbacks,
            decode_errors=0 if self._decoder is None else self._decoder.errors,
        )

    # Followers.

    def changes(self) -> CacheChanges:
        """Follow the changes, conflated: `async for revision, changed in cache.changes():`.

        `changed` maps each key that is different from what it was at the step before to its `KeyValue`; None is a key
        that is gone. The first step is about the content that is read in the same turn of the loop in which this is
        called: no change is missed. The content may be read in the same turn as each step; it is at `revision` then. If
        the store was replaced, a step is the difference between the two, and `revision` may go back.

        Raises:
            CacheError: the cache was left, or has ended; iterating raises it too, except after the cache was left.
            WrongLoopError: called in another loop than the cache's.
        """
        self._check_readable()
        return self._followed_by(CacheChanges(self._followers.discard, self._loop()))

    def batches(self, *, max_pending: int = DEFAULT_MAX_PENDING) -> CacheBatches:
        """Follow the changes batch by batch: `async for batch in cache.batches():`, as of a watch.

        It begins as `changes()` does. A difference that is no history is one batch of events with `is_resync`: after
        a compaction, if the store was replaced, or if the consumer was too slow. A key that came and went while a
        current read was waited for may be told although the cache never had it; its put and its delete are one batch.

        Args:
            max_pending: bytes of memory, estimated, that batches may take before they become one difference. Default:
                16 MiB, as of `client.watch()`.

        Raises:
            CacheError: as `changes`.
            InvalidRequestError, TypeError: `max_pending` is not a number of bytes.
        """
        self._check_readable()
        most = whole_number(max_pending, "max_pending", minimum=1)
        return self._followed_by(CacheBatches(self._followers.discard, self._loop(), most))

    def key_set_changes(self, counts: Callable[[bytes], bool]) -> KeySetChanges:
        """Follow which keys there are: `async for revision in cache.key_set_changes(counts):`, conflated.

        The `revision` of what this returns is the newest one at which a key came or went, as far as it is known: that
        of the event, or of the content, if that was read anew, or no such event has come since this call. It moves in
        the same turn of the loop as the content, and never goes back unless the store was replaced by an older one. Of
        two caches of a range that have had the same event of this kind as their last one, it is the same.

        Args:
            counts: says of a key whether it is one of those to follow.

        Raises:
            CacheError, WrongLoopError: as `changes`.
        """
        self._check_readable()
        revision = self._replica.revision
        return self._followed_by(KeySetChanges(self._followers.discard, self._loop(), counts, revision))

    def _followed_by(self, follower: F) -> F:
        self._followers.add(follower)
        return follower

    # Calls of the replicator.

    async def _feed(self) -> None:
        try:
            await self._replicator.run()
        except Exception as error:  # also a bug, which the users of the cache must see
            self._end_by(error)
        except asyncio.CancelledError:
            if self._reason is None:  # by the application, as one of all its tasks
                self._end_by(CacheError("the task that follows the store was cancelled"))
            raise

    def _on_step(self, step: ContentStep) -> None:
        for follower in tuple(self._followers):
            follower.add(step)
        self._freshness.moved()
