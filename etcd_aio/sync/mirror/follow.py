"""Follow and follow(), for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.mirror.follow`: do not edit.
"""

from collections.abc import Collection
from typing import Self

from etcd_aio.arguments import KeyLike
from etcd_aio.base import UNSET, Timeout
from etcd_aio.mirror import MirrorBatch
from etcd_aio.mirror import follow as async_follow
from etcd_aio.portal import Block, BlockingIterator
from etcd_aio.sync.calls.store_calls import StoreCalls


class Follow(Block, BlockingIterator[MirrorBatch]):
    """The keys of a prefix and all their changes: see `follow`.

    It is entered and iterated over once, by one thread at a time. Ctrl-C in a step of the iteration loses nothing: the
    next step returns the same batch. So does a step after an error that is `retryable`.

    Iterating raises:

    - `CompactedError`: the changes after `since` are compacted, or the base took longer than a compaction, and `known`
      is not given.
    - `StoreRolledBackError`: the store is behind `since`, or went back meanwhile, and `known` is not given; or it is
      behind what a `client.ordered()` that is followed has seen.
    - `EtcdError`: as every scan and watch.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def close(self) -> None:
        """End it, and close its scan and its watch at once. Safe to repeat."""
        self._end(self._aio.aclose)

    @property
    def revision(self) -> int:
        """The `revision` of the last batch; at first `since`."""
        return self._aio.revision

    @property
    def pending(self) -> int:
        """How many changes were received and not taken yet: if it is not 0, the next step does not wait."""
        return self._aio.pending

    @property
    def is_connected(self) -> bool:
        """Whether changes arrive: its watch is on a server now. False during the base."""
        return self._aio.is_connected


def follow(
    store: StoreCalls,
    prefix: KeyLike,
    *,
    since: int = 0,
    known: Collection[KeyLike] | None = None,
    timeout: Timeout = UNSET,
) -> Follow:
    """Read all keys of a prefix, and then every change of them.

        with follow(client, "svc/") as batches:
            for batch in batches:
                for event in batch.changes: ...
                save(batch.revision)

    Args:
        store: a client, or what serves as one.
        prefix: of the keys; empty is every key.
        since: the `revision` of the last batch that was applied, to continue after it. 0 begins with the base: all keys
            at one revision, page by page.
        known: the keys that the receiver has. If the history after `since` is compacted, or the store went back, the
            iteration continues with a base that has the difference: the keys that were put since, or are not known, and
            deletes of the known ones that are gone. It is read when it is needed, so give the dict or set that the
            batches are applied to. Default: None, that is an error.
        timeout: seconds for each request; the client's default if it is not given.

    Returns:
        Follow: nothing is sent before it is entered and iterated over.

    Raises:
        InvalidRequestError, TypeError: an argument is invalid.
    """
    made = Follow.__new__(Follow)
    made._construct(async_follow, store, prefix, since=since, known=known, timeout=timeout)
    return made
