"""Derived and DerivedChanges, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.cache.derived`: do not edit.
"""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

from etcd_aio.base import UNSET, Timeout
from etcd_aio.errors import EtcdError
from etcd_aio.portal import Block, BlockingIterator, own_thread
from etcd_aio.sync.cache.cache import Cache

V = TypeVar("V")
C = TypeVar("C")


class Derived(Block, Generic[V, C]):
    """A value of type `V`, made of the keys of a range, whose changes are told as `C`. Used within its block.

    In an outage the last value stays, however long it is, and `age` grows. If the user may not read the keys any more,
    it stays too, `error` says why, and reading is tried again until the block is left or the client is closed.

    Any number of threads may use one object.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def close(self) -> None:
        """End the watch. Leaving does this. Safe to repeat."""
        self._end(self._aio.aclose)

    @property
    def cache(self) -> Cache[Any]:
        """The cache of the keys. It is another one after an `error`."""
        return self._wrap(self._aio.cache)

    @property
    def revision(self) -> int:
        """The revision of etcd at which the keys were as they are here."""
        return self._aio.revision

    @property
    def age(self) -> float:
        """Seconds: every change that was made longer ago is seen. It grows in an outage. See `Cache.age`."""
        return self._aio.age

    @property
    def error(self) -> EtcdError | None:
        """Why the keys cannot be read now, though a member can be reached; or that the client is closed."""
        return self._aio.error

    @property
    def has_ended(self) -> bool:
        """Whether the block was left, or the client is closed: the value never changes again."""
        return self._aio.has_ended

    @property
    def is_stale(self) -> bool:
        """Whether the value may not be the newest: after the end, with an `error`, or without a connection to etcd.

        An outage counts from its tenth second on, as for `client.cache()`: shorter ones happen at each election.
        """
        return self._aio.is_stale

    def wait_current(self, *, timeout: Timeout = UNSET) -> None:
        """Wait until every change is seen that was finished before this call.

        Args:
            timeout: seconds. Default: that of the client.

        Raises:
            CacheTimeoutError: it was not seen in time.
            CacheError: the block was left, or the keys cannot be read; see `error`.
            ClientUsageError: the block was not entered.

        Ctrl-C leaves nothing behind.
        """
        self._run(self._aio.wait_current, timeout=timeout)

    def wait_revision(self, revision: int, *, timeout: Timeout = UNSET) -> None:
        """Wait until the value is as new as a revision, such as that of a put.

        Args:
            revision: the revision.
            timeout: seconds. Default: that of the client; None for no limit.

        Raises:
            CacheTimeoutError: the time was over before.
            ClientUsageError: the block was not entered, or was left.

        Ctrl-C leaves nothing behind.
        """
        self._run(self._aio.wait_revision, revision, timeout=timeout)

    def changes(self) -> "DerivedChanges[C]":
        """Follow the changes: `for ... in ...changes():`. Each caller has an iteration of its own.

        The present value comes at once, then one after each change. Only a consumer that is slower than the changes
        misses some in between; the newest one always comes. It ends with the block, or with the client.

        Raises:
            ClientUsageError: the block was not entered.
        """
        return self._made("changes")

    def wait_change(self, *, timeout: float | None = None) -> bool:
        """Wait for the next change, the next `error`, or the end.

        Args:
            timeout: seconds. Default: None, no limit.

        Returns:
            False if the time was over before.

        Raises:
            ClientUsageError: the block was not entered.
        """
        return self._run(self._aio.wait_change, timeout=timeout)

    def subscribe(self, listener: Callable[[C], None]) -> Callable[[], object]:
        """Call a function after each change, in a thread of its own, until the subscription is ended.

        Args:
            listener: the function. It must return at once.

        Returns:
            A function that ends the subscription. Safe to repeat.
        """
        unsubscribe = self._run(self._aio.subscribe, own_thread(listener, "etcd_aio.subscribe"))
        return lambda: self._run(unsubscribe)


class DerivedChanges(BlockingIterator[C]):
    """The changes of a value that is made of a cache; made by its `changes`. Ctrl-C in a step loses nothing."""

    def close(self) -> None:
        """End the iteration. Safe to repeat."""
        self._end(self._aio.aclose)
