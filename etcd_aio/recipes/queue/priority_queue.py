"""PriorityQueue: items in the order of their priorities. It is Go's recipe of that name, and works with it.

The key of an item is `<name>/<priority, 5 digits>/<number, 16 digits>`. `sequence.py` gives the numbers, and
`taking.py` takes the items.
"""

import re
from collections.abc import Iterable
from typing import Final

from etcd_aio.base import UNSET, Timeout
from etcd_aio.calls import StoreCalls, Writer
from etcd_aio.recipes.queue.putting import DEFAULT_PRIORITY, checked_priority, encoded_values
from etcd_aio.recipes.queue.queue import ItemQueue
from etcd_aio.recipes.queue.sequence import MOST_ITEMS, Sequence
from etcd_aio.types import KeyLike, ValueLike

_ITEM: Final = re.compile(rb"\d{5}/\d{16}")


class PriorityQueue(ItemQueue):
    """A queue with priorities: `await PriorityQueue(client, "mail").put(b"...", priority=10)`; lower ones come first.

    Items of the same priority keep the order of their puts. For the rest it is as `Queue`.

    The keys are those of Go's `PriorityQueue`, so producers and consumers of both take part in one queue. A key
    `__<name>/<priority>` for each priority stays.

    Args:
        client: the client, or a store that wraps one.
        name: its name.
        writer: makes the puts and the txns that take, as of `Queue`.
        timeout: seconds for a call that has no `timeout` of its own, and for one attempt to take; None for no limit.
            Default: that of the client.

    Raises:
        InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
    """

    _kind = "priority queue"
    _looks_again = True

    def __init__(
        self, client: StoreCalls, name: KeyLike, *, writer: Writer | None = None, timeout: Timeout = UNSET
    ) -> None:
        super().__init__(client, name, writer=writer, timeout=timeout)
        self._sequences: dict[int, Sequence] = {}

    def _is_item(self, key: bytes) -> bool:
        return _ITEM.fullmatch(key, len(self._prefix)) is not None

    async def put(self, value: ValueLike, priority: int = DEFAULT_PRIORITY, *, timeout: Timeout = UNSET) -> bytes:
        """Put an item behind those of its priority, from 0 to 65535: lower ones are taken first. Default: 100.

        Calls of one object that wait at the same time are one txn.

        Returns:
            bytes: the key of the item.

        Raises:
            InvalidRequestError, TypeError: an argument is invalid.
            ItemInDoubtError: the answer was lost. It names the key; the item may be there, may have been taken, or may
                be put later.
            EtcdError: as every txn; the item is not there.

        Cancellation: as with every write, if it was sent already; otherwise it is not put.
        """
        return (await self.put_all([value], priority, timeout=timeout))[0]

    async def put_all(
        self, values: Iterable[ValueLike], priority: int = DEFAULT_PRIORITY, *, timeout: Timeout = UNSET
    ) -> list[bytes]:
        """Put items behind those of their priority, in one txn: all of them or none.

        Args:
            values: of the items, in their order: at most 60, and together below etcd's limit for a request, 1.5 MiB by
                default.
            priority: of all of them.
            timeout: seconds for the whole call; None for no limit.

        Returns:
            list[bytes]: the keys of the items.

        Raises:
            InvalidRequestError, ItemInDoubtError, EtcdError: as of `put`.

        Cancellation: as of `put`.
        """
        encoded = encoded_values(values, MOST_ITEMS)
        checked_priority(priority)
        deadline = self._calls.deadline(timeout)
        if not encoded:
            return []
        sequence = self._sequences.get(priority)
        if sequence is None:
            prefix = self._prefix + b"%05d" % priority
            sequence = self._sequences[priority] = Sequence(self._calls, prefix, self._what)
        return await sequence.put(encoded, deadline)
