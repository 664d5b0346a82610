"""Queue, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.recipes.queue.queue`: do not edit.
"""

from collections.abc import Iterable
from typing import ClassVar

from etcd_aio.arguments import KeyLike, ValueLike
from etcd_aio.base import UNSET, Timeout
from etcd_aio.portal import BlockingIterator
from etcd_aio.recipes import Item
from etcd_aio.recipes import Queue as AsyncQueue
from etcd_aio.sync.calls.store_calls import StoreCalls
from etcd_aio.sync.calls.writer import Writer


class Queue(BlockingIterator[Item]):
    """A queue: `queue = Queue(client, "mail")`; `queue.put(b"...")`; `for item in queue:`.

    Each item is taken by one consumer. Taking deletes it, so a consumer that crashes afterwards has lost it: for work
    that must be done there is `WorkQueue`. The order is that of the producers' clocks; the items of one process keep
    their order. One object for each queue and process is best: its consumers share a watch, and are served together.

    The keys are those of Go's `Queue`, so producers and consumers of both take part in one queue. It is for hundreds or
    thousands of items, not for millions: etcd is no message broker.

    Args:
        client: the client, or a store that wraps one.
        name: its name.
        writer: makes the puts and the txns that take, such as `client.exactly_once()`, with which no answer that is
            lost leaves an item in doubt. Default: the client.
        timeout: seconds for a call that has no `timeout` of its own, and for one attempt to take; None for no limit.
            Default: that of the client.

    Raises:
        InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
    """

    _survives_fork: ClassVar[bool] = True

    def __init__(
        self, client: StoreCalls, name: KeyLike, *, writer: Writer | None = None, timeout: Timeout = UNSET
    ) -> None:
        self._construct(AsyncQueue, client, name, writer=writer, timeout=timeout)

    def put(self, value: ValueLike, *, timeout: Timeout = UNSET) -> bytes:
        """Put an item at the end.

        Returns:
            bytes: the key of the item.

        Raises:
            ItemInDoubtError: the answer was lost. It names the key; the item may be there, may have been taken, or may
                be put later.
            OutcomeUnknownError: the same of a `writer` of exactly-once writes, which can find out.
            EtcdError: as every txn; the item is not there.

        Ctrl-C: the item is put or not, as with every write.
        """
        return self._run(self._aio.put, value, timeout=timeout)

    def put_all(self, values: Iterable[ValueLike], *, timeout: Timeout = UNSET) -> list[bytes]:
        """Put items at the end, in one txn: all of them or none.

        Args:
            values: of the items, in their order: at most 120, and together below etcd's limit for a request, 1.5 MiB by
                default.
            timeout: seconds for the whole call; None for no limit.

        Returns:
            list[bytes]: the keys of the items.

        Raises:
            InvalidRequestError: there are too many values.
            ItemInDoubtError: the answer was lost, as of `put`.
            EtcdError: as every txn; no item is there.

        Ctrl-C: the items are put or not, as with every write.
        """
        return self._run(self._aio.put_all, values, timeout=timeout)

    def get(self, *, timeout: float | None = None) -> Item:
        """Take the first item; wait for one if there is none.

        Calls of one object are served in their order. If consumers of several processes compete, each may get one of
        the first items in place of the very first.

        Args:
            timeout: seconds for the whole wait. Default: None, no limit.

        Raises:
            QueueTimeoutError: there was no item in time.
            ItemInDoubtError: the answer was lost, so items that were about to be taken may be lost: it names their
                keys. With a `writer` of exactly-once writes, only if their values are compacted too.
            OutcomeUnknownError: the same of a `writer` of exactly-once writes, which can find out; a note names the
                keys.
            EtcdError: as every read, watch and txn; nothing was taken.

        Ctrl-C loses no item: one that is just being taken is for the next `get` of this object, and so is an
        `ItemInDoubtError`, which is logged too.
        """
        return self._run(self._aio.get, timeout=timeout)

    def size(self, *, timeout: Timeout = UNSET) -> int:
        """Count the items. Keys of queues whose names begin with `<name>/` and a digit are counted too.

        Raises:
            EtcdError: as every read.
        """
        return self._run(self._aio.size, timeout=timeout)

    def peek(self, limit: int = 1, *, timeout: Timeout = UNSET) -> tuple[Item, ...]:
        """Read the first items, at most `limit`, and leave them there.

        Raises:
            InvalidRequestError, TypeError: the limit is invalid.
            EtcdError: as every read.
        """
        return self._run(self._aio.peek, limit, timeout=timeout)
