"""Cache, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.cache.cache`: do not edit.
"""

from collections.abc import Callable, Iterator
from typing import Generic, Self, TypeVar, overload

from etcd_aio.arguments import KeyLike
from etcd_aio.base import UNSET, Timeout
from etcd_aio.cache import DEFAULT_MAX_OUTAGE, DEFAULT_MAX_PENDING, CacheState, CacheStatistics
from etcd_aio.cache import Cache as AsyncCache
from etcd_aio.portal import Block, own_thread
from etcd_aio.sync.cache.changes import CacheBatches, CacheChanges, KeySetChanges
from etcd_aio.sync.calls.store_calls import StoreCalls
from etcd_aio.types import KeyRange, KeyValue

T = TypeVar("T")
D = TypeVar("D")


class Cache(Block, Generic[T]):
    """The keys of a range in memory: `with client.cache(prefix="cfg/") as cache:`.

    Entering reads all keys; from then on a watch keeps them like the store. Each read is of the store at one revision;
    between two reads the content may change. There are three kinds of reads:

    - `get()`, `[]`, `in`, `range()` and `kv()` are plain functions, and read the content as it is. It may be behind the
      store; `age` says how far at most.
    - `wait_current()` brings the content up to date. What is read from then on is linearizable: it has every write that
      was finished when `wait_current()` was called. `read(key)` is both in one.
    - `wait_current(max_staleness=0.5)` does that only if `age` is above half a second.

    Any number of threads may use one cache; callers that wait at the same time share their round trips.

    It survives lost connections, failed members, compactions, and stores that are replaced by a backup; `state` and
    `statistics()` show it. It ends when it is left, when its client is closed, or if the user may not read the whole
    range any more, as far as it asks: by `wait_current`, by `keep_current`, or for a new watch. From then on every read
    raises `CacheError`, or the client's own error.

    The type of the values is that of `decode`'s results; without `decode` they are `KeyValue`s.
    """

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
        self._construct(
            AsyncCache,
            store,
            keys,
            decode=decode,
            on_error=None if on_error is None else own_thread(on_error, "etcd_aio.cache.on_error"),
            keep_current=keep_current,
            fallback=fallback,
            max_outage=max_outage,
            timeout=timeout,
        )

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def wait_current(self, *, max_staleness: float = 0.0, timeout: Timeout = UNSET) -> None:
        """Wait until the content has every write that was finished before this call.

        What the caller reads from then on is linearizable.

        Args:
            max_staleness: seconds: writes may be missing that were finished so long ago, or less. The call returns at
                once if `age` is not above it. Default: 0, none may be missing.
            timeout: seconds for the whole call. Default: that of the client.

        Raises:
            CacheTimeoutError: the time was over before.
            PermissionDeniedError: the user may not read the range any more: the cache has ended.
            CacheError: the cache was left, or has ended.
            EtcdError: as every read.

        Ctrl-C leaves nothing behind.
        """
        self._run(self._aio.wait_current, max_staleness=max_staleness, timeout=timeout)

    def wait_revision(self, revision: int, *, timeout: Timeout = UNSET) -> None:
        """Wait until the content is at least as new as a revision, such as that of a put, or one that was passed on.

        Args:
            revision: the revision.
            timeout: seconds for the whole call. Default: that of the client.

        Raises:
            CacheTimeoutError: the time was over before.
            CacheError: the cache was left, or has ended.

        Ctrl-C leaves nothing behind.
        """
        self._run(self._aio.wait_revision, revision, timeout=timeout)

    def read(self, key: KeyLike, *, max_staleness: float = 0.0, timeout: Timeout = UNSET) -> T | None:
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

        Ctrl-C leaves nothing behind.
        """
        return self._run(self._aio.read, key, max_staleness=max_staleness, timeout=timeout)

    @property
    def keys(self) -> KeyRange:
        """The range."""
        return self._aio.keys

    @property
    def revision(self) -> int:
        """The revision of the content. It never goes back unless the store was replaced by an older one."""
        return self._aio.revision

    @property
    def content_version(self) -> int:
        """A number that grows with each change of the content, also when the store was replaced by another one.

        What was computed from the content is good as long as the number is the same. The `revision` is no such number:
        it moves with writes to other keys, and a store that was replaced may have any.
        """
        return self._aio.content_version

    @property
    def age(self) -> float:
        """Seconds: the content has every write that was finished longer ago.

        It is counted from the newest linearizable read that the content has caught up with: that of loading, of a
        `wait_current` of any thread, or of `keep_current`. So it grows between them, and while the cluster is out of
        reach. It is infinite before the keys are loaded.
        """
        return self._aio.age

    @property
    def state(self) -> CacheState:
        """The state."""
        return self._aio.state

    def statistics(self) -> CacheStatistics:
        """A snapshot of the counters."""
        return self._run(self._aio.statistics)

    def changes(self) -> CacheChanges:
        """Follow the changes, conflated: `for revision, changed in cache.changes():`.

        `changed` maps each key that is different from what it was at the step before to its `KeyValue`; None is a key
        that is gone. The first step is about the content after this call: no change is missed. The content may be newer
        than a step. If the store was replaced, a step is the difference between the two, and `revision` may go back.

        Raises:
            CacheError: the cache was left, or has ended; iterating raises it too, except after the cache was left.
        """
        return self._made("changes")

    def batches(self, *, max_pending: int = DEFAULT_MAX_PENDING) -> CacheBatches:
        """Follow the changes batch by batch: `for batch in cache.batches():`, as of a watch.

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
        return self._made("batches", max_pending=max_pending)

    def key_set_changes(self, counts: Callable[[bytes], bool]) -> KeySetChanges:
        """Follow which keys there are: `for revision in cache.key_set_changes(counts):`, conflated.

        The `revision` of what this returns is the newest one at which a key came or went, as far as it is known: that
        of the event, or of the content, if that was read anew, or no such event has come since this call. It moves with
        the content, and never goes back unless the store was replaced by an older one. Of two caches of a range that
        have had the same event of this kind as their last one, it is the same.

        Args:
            counts: says of a key whether it is one of those to follow.

        Raises:
            CacheError: as `changes`.
        """
        return self._made("key_set_changes", counts)

    @overload
    def get(self, key: KeyLike) -> T | None: ...

    @overload
    def get(self, key: KeyLike, default: D) -> T | D: ...

    def get(self, key: KeyLike, default: object = None) -> object:
        """The value of a key, as it is here; `default` if there is no such key, or its value was never decodable.

        Raises:
            CacheRangeError: the key is outside of the range of the cache.
            CacheError: the cache was left, or has ended.
        """
        return self._aio.get(key, default)

    def __getitem__(self, key: KeyLike) -> T:
        """The value of a key, as it is here.

        Raises:
            KeyError: there is no such key.
            CacheRangeError, CacheError: as `get`.
        """
        return self._aio[key]

    def __contains__(self, key: KeyLike) -> bool:
        return key in self._aio

    def __len__(self) -> int:
        return len(self._aio)

    def __iter__(self) -> Iterator[bytes]:
        """The keys, sorted, as they are now: changes while they are iterated over are not seen."""
        return iter(self._run(list, self._aio))

    def __bool__(self) -> bool:
        return bool(self._aio)

    def range(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
    ) -> dict[bytes, T]:
        """The values of a range by key, in key order, as they are here. Without arguments: of the whole cache.

        Args:
            key: this key alone; with `range_end`, the first key of an interval.
            range_end: the key before which the interval ends.
            prefix: every key that begins with this.
            from_key: every key from this one on.
            all_keys: every key.

        Returns:
            A new dict.

        Raises:
            CacheRangeError: the range is not wholly within that of the cache.
            CacheError: the cache was left, or has ended.
            InvalidRequestError, EmptyKeyError, TypeError: the keys are not given in exactly one form.
        """
        return self._run(self._aio.range, key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys)

    def kv(self, key: KeyLike) -> KeyValue | None:
        """A key with its raw value and its revisions, as it is here; None if there is no such key.

        Raises:
            CacheRangeError, CacheError: as `get`.
        """
        return self._aio.kv(key)

    def close(self) -> None:
        """End everything, and wait for it, bounded in time. Everything ends even if Ctrl-C ends the wait."""
        self._end(self._aio.aclose)
