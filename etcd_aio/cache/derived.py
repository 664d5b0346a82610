"""Derived: a value that is made of the keys of a cache and kept like them, such as endpoints, members or settings.

The value is made anew when the content of the cache is another one: when it is read next, or by the task that follows
the cache, whichever comes first. So many changes at once cost one making, and a value that was read in the same turn
of the loop as the content fits it.

If the cache ends although the client is open, as when the user may not read the keys any more, the value stays, and
another cache is tried for ever.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from functools import partial
from threading import get_ident
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar

from etcd_aio import EtcdError, KeyRange
from etcd_aio.arguments import whole_number
from etcd_aio.base import (
    NEVER,
    PATIENT,
    UNSET,
    NotAwaitable,
    Pauses,
    Timeout,
    Waiters,
    as_etcd_error,
    check_loop,
    deadline_after,
    log_for,
    resolve,
    start_background_task,
    time_left,
    when_constructed,
)
from etcd_aio.cache.cache import Cache
from etcd_aio.cache.state import CacheState
from etcd_aio.calls import StoreCalls
from etcd_aio.errors import CacheError, CacheTimeoutError, ClientUsageError

V = TypeVar("V")
C = TypeVar("C")


class Derived(NotAwaitable, Generic[V, C]):
    """A value of type `V`, made of the keys of a range, whose changes are told as `C`. Used within its block.

    In an outage the last value stays, however long it is, and `age` grows. If the user may not read the keys any more,
    it stays too, `error` says why, and reading is tried again until the block is left or the client is closed.

    A subclass has `_make`, and what its users read. Any number of tasks may use one object.

    Args:
        store: the client, or a store that wraps one.
        keys: the range.
        what: the value in words, in the plural, for logs and errors.
        logger: gets the outages that are not of the cluster.
        decode: turns values into what `_make` reads from the cache; see `Cache`.
        keep_current: see `Cache`.
        timeout: seconds for a read. Default: that of the client.
    """

    _noun: ClassVar[str]
    """The object in words, for errors."""
    _stays: ClassVar[bool] = True
    """Whether the last value can be read after the end."""

    def __init__(
        self,
        store: StoreCalls,
        keys: KeyRange,
        *,
        what: str,
        logger: logging.Logger,
        decode: Callable[[bytes], Any] | None = None,
        keep_current: float | None = None,
        timeout: Timeout = UNSET,
    ) -> None:
        new_cache = partial(Cache[Any], store, keys, decode=decode, keep_current=keep_current, timeout=timeout)
        self._new_cache: Callable[[], Cache[Any]] = new_cache
        self._cache = new_cache()
        self._what = what
        self._log = log_for(logger, store)
        self._value: V | None = None
        self._made_of: object = None  # the version of the content that the value was made of
        self._error: Any = None  # an `EtcdError`; a subclass may have others
        self._listeners: dict[object, Callable[[C], None]] = {}
        self._moved = Waiters()  # for anything that is told above
        self._task: asyncio.Task[None] | None = None
        self._thread = 0
        self._is_following = False
        self._has_ended = False

    @when_constructed
    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._cache!r}>"

    # The block.

    async def __aenter__(self) -> Self:
        """Read the keys.

        Raises:
            EtcdError: they could not be read.
            ClientUsageError: it was entered before, or the client is closed.

        Cancellation leaves nothing behind.
        """
        if self._task is not None:
            raise ClientUsageError(f"{self._noun} can only be entered once: make another one")
        first: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self._thread = get_ident()
        self._task = task = start_background_task(self._follow(first), name=f"etcd_aio {self._what}")
        task.add_done_callback(lambda _: self._end())
        try:
            await self._wait_first(first, task)
        except BaseException:  # a cancellation too
            await self.aclose()
            raise
        return self

    async def _wait_first(self, first: "asyncio.Future[Exception | None]", task: "asyncio.Task[None]") -> None:
        """Wait until the keys were read, or raise why they could not be."""
        both: tuple[asyncio.Future[Any], ...] = first, task
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not first.done():
            task.result()  # it was cancelled by the application
        error = first.result()
        if error is not None:
            raise error

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the watch. Leaving does this. Safe to repeat."""
        self._end()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    def _end(self) -> None:
        self._has_ended = True
        self._moved.wake()

    # State.

    @property
    def cache(self) -> Cache[Any]:
        """The cache of the keys. It is another one after an `error`."""
        return self._cache

    @property
    def revision(self) -> int:
        """The revision of etcd at which the keys were as they are here."""
        return self._cache.revision

    @property
    def age(self) -> float:
        """Seconds: every change that was made longer ago is seen. It grows in an outage. See `Cache.age`."""
        return self._cache.age

    @property
    def error(self) -> EtcdError | None:
        """Why the keys cannot be read now, though a member can be reached; or that the client is closed."""
        error: EtcdError | None = self._error
        return error

    @property
    def has_ended(self) -> bool:
        """Whether the block was left, or the client is closed: the value never changes again."""
        return self._has_ended

    @property
    def is_stale(self) -> bool:
        """Whether the value may not be the newest: after the end, with an `error`, or without a connection to etcd.

        An outage counts from its tenth second on, as for `client.cache()`: shorter ones happen at each election.
        """
        return self._error is not None or self._cache.state is not CacheState.READY

    async def wait_current(self, *, timeout: Timeout = UNSET) -> None:
        """Wait until every change is seen that was finished before this call.

        Args:
            timeout: seconds. Default: that of the client.

        Raises:
            CacheTimeoutError: it was not seen in time.
            CacheError: the block was left, or the keys cannot be read; see `error`.
            ClientUsageError: the block was not entered.

        Cancellation leaves nothing behind.
        """
        self._read()
        await self._cache.wait_current(timeout=timeout)
        self._refresh()

    async def wait_revision(self, revision: int, *, timeout: Timeout = UNSET) -> None:
        """Wait until the value is as new as a revision, such as that of a put.

        Args:
            revision: the revision.
            timeout: seconds. Default: that of the client; None for no limit.

        Raises:
            CacheTimeoutError: the time was over before.
            ClientUsageError: the block was not entered, or was left.

        Cancellation leaves nothing behind.
        """
        self._read()
        whole_number(revision, "revision")
        loop, deadline = asyncio.get_running_loop(), self._cache._deadline(timeout)
        while not self._has_ended:
            left = None if deadline == NEVER else time_left(deadline, loop.time())
            try:
                await self._cache.wait_revision(revision, timeout=left)
            except CacheTimeoutError:
                raise
            except CacheError:  # it has ended, and another one is tried
                if not await self._moved.wait(deadline):
                    raise CacheTimeoutError(f"the {self._what} did not come to revision {revision} in time") from None
            else:
                self._refresh()
                return
        raise ClientUsageError(f"{self._noun} cannot be waited for: its block has ended")

    # Followers.

    def changes(self) -> "DerivedChanges[C]":
        """Follow the changes: `async for ... in ...changes():`. Each caller has an iteration of its own.

        The present value comes at once, then one after each change. Only a consumer that is slower than the changes
        misses some in between; the newest one always comes. It ends with the block, or with the client.

        Raises:
            ClientUsageError: the block was not entered.
        """
        self._read()
        return DerivedChanges(self)

    async def wait_change(self, *, timeout: float | None = None) -> bool:
        """Wait for the next change, the next `error`, or the end.

        Args:
            timeout: seconds. Default: None, no limit.

        Returns:
            False if the time was over before.

        Raises:
            ClientUsageError: the block was not entered.
        """
        self._read()
        return self._has_ended or await self._moved.wait(deadline_after(timeout, asyncio.get_running_loop().time()))

    def subscribe(self, listener: Callable[[C], None]) -> Callable[[], object]:
        """Call a function right after each change, in the event loop, until the subscription is ended.

        Args:
            listener: the function. It must return at once.

        Returns:
            A function that ends the subscription. Safe to repeat.
        """
        subscription = object()
        self._listeners[subscription] = listener
        return partial(self._listeners.pop, subscription, None)

    # The value. A subclass has `_make`, and may have its own of the others.

    def _make(self) -> V:
        """Make the value of the content of the cache."""
        raise NotImplementedError  # in each subclass

    def _change(self, before: V | None, value: V) -> C | None:
        """Return what tells of a change; None if nothing is told. `before` is None if nothing was told yet."""
        told: Any = value
        return told  # type: ignore[no-any-return] # in a subclass without a method of its own `C` is `V`

    def _version(self) -> object:
        """The version of the content, which says whether the value must be made anew."""
        return self._cache.content_version

    def _follower(self) -> AsyncIterator[object]:
        """Return the iteration that has a step whenever the value may be another one."""
        return self._cache.changes()

    async def _prepare(self) -> None:
        """Called when a cache was entered, before the value is made of it."""

    def _renew(self) -> None:
        """The content is another one."""
        self._take(self._make())

    def _why_not(self) -> Exception | None:
        """Return the error that iterations raise now, when they have told of all changes."""
        return None

    def _read(self) -> V:
        """Return the value.

        Raises:
            ClientUsageError: the block was not entered.
            CacheError: it has ended, and the last value does not stay.
        """
        self._refresh()
        if self._value is None:
            raise ClientUsageError(f"not entered: {self.usage.partition(': ')[2]}")
        if self._has_ended and not self._stays:
            raise CacheError(f"{self._noun} cannot be read: its block was left, or the client is closed")
        return self._value

    def _refresh(self) -> None:
        """Make the value anew, unless it was made of the present content."""
        if not self._is_following or get_ident() != self._thread or self._cache.state is CacheState.CLOSED:
            return
        version = self._version()
        if version != self._made_of:
            self._made_of = version
            self._renew()

    def _take(self, value: V) -> None:
        """Let this be the value, and tell of it."""
        before = self._value
        if value == before:
            return
        self._value = value
        self._moved.wake()
        change = self._change(before, value) if self._listeners else None
        if change is None:
            return
        for listener in tuple(self._listeners.values()):
            try:
                listener(change)
            except Exception:  # of the application; the other functions are called
                self._log.exception("a function that is called for changes of the %s has failed", self._what)

    # The task.

    async def _follow(self, first: "asyncio.Future[Exception | None]") -> None:
        """Follow the keys until the block is left, or the client is closed."""
        pauses = Pauses(PATIENT)
        cache = self._cache
        while True:
            error: Exception | None = None
            try:
                async with cache:
                    self._cache, self._made_of = cache, None
                    follower = self._follower()
                    await self._prepare()
                    self._is_following = True
                    pauses.reset()
                    if self._error is not None:
                        self._log.info("the %s are read from etcd again", self._what)
                        self._error = None
                    self._refresh()
                    self._moved.wake()
                    resolve(first, None)
                    async for _ in follower:
                        self._refresh()
            except Exception as raised:  # also of the application's policy, which may be right the next time
                error = raised
            finally:
                self._is_following = False
            if error is not None:
                self._fail(error, is_told=not first.done())
                resolve(first, error)
                if isinstance(error, ClientUsageError):
                    return
            await pauses.wait()
            cache = self._new_cache()

    def _fail(self, raised: Exception, *, is_told: bool) -> None:
        """The keys cannot be read. It is logged unless that was so before, or the caller is told."""
        error = as_etcd_error(raised)
        if isinstance(error, CacheError) and isinstance(error.__cause__, EtcdError):
            error = error.__cause__  # why the cache has ended
        if not is_told and type(error) is not type(self._error) and not isinstance(error, ClientUsageError):
            text = "the %s cannot be read from etcd; the last ones stay, and this is tried again: %s"
            self._log.warning(text, self._what, error)
        self._error = error
        self._moved.wake()


class DerivedChanges(AsyncIterator[C]):
    """The changes of a value that is made of a cache; made by its `changes`. Cancelling a step loses nothing."""

    def __init__(self, owner: Derived[Any, C], told: object = None) -> None:
        self._owner = owner
        self._told: Any = told
        self._is_closed = False

    async def __anext__(self) -> C:
        owner = self._owner
        if owner._task is not None:
            check_loop(owner._task)
        while not self._is_closed:
            owner._refresh()
            told, self._told = self._told, owner._value
            change = None if self._told is told else owner._change(told, self._told)
            if change is not None:
                return change
            error = owner._why_not()
            if error is not None:
                self._is_closed = True
                raise error.with_traceback(None)
            if owner.has_ended:
                break
            await owner._moved.wait(NEVER)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the iteration. Safe to repeat."""
        self._is_closed = True
        self._owner._moved.wake()
