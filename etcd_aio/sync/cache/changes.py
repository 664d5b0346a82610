"""CacheChanges, KeySetChanges and CacheBatches, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.cache.changes`: do not edit.
"""

from etcd_aio.portal import BlockingIterator
from etcd_aio.types import KeyValue, WatchBatch


class CacheChanges(BlockingIterator[tuple[int, dict[bytes, KeyValue | None]]]):
    """The changes of a cache, conflated: made by `Cache.changes`, and iterated over by one thread.

    However slow that thread is, a step takes no more memory than the keys it is about. Ctrl-C in a step loses nothing.
    """

    def close(self) -> None:
        """End the iteration. Safe to repeat."""
        self._end(self._aio.aclose)


class KeySetChanges(BlockingIterator[int]):
    """The revisions at which keys came or went, conflated: made by `Cache.key_set_changes`.

    A key that comes and goes between two steps, or whose deletion is known only now, counts too: the events do, and not
    the difference between two contents.

    Ctrl-C in a step loses nothing.
    """

    @property
    def revision(self) -> int:
        """The newest of them.

        If the content was read anew, that of the read: what came and went before is not known then.
        """
        return self._aio.revision

    def close(self) -> None:
        """End the iteration. Safe to repeat."""
        self._end(self._aio.aclose)


class CacheBatches(BlockingIterator[WatchBatch]):
    """The changes of a cache, batch by batch: made by `Cache.batches`, and iterated over by one thread.

    Ctrl-C in a step loses nothing.
    """

    def close(self) -> None:
        """End the iteration. Safe to repeat."""
        self._end(self._aio.aclose)
