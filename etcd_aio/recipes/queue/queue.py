"""Queue: items in the order of their puts, each for one consumer. It is Go's `Queue` recipe, and works with it.

The key of an item is `<name>/<nanoseconds since 1970>`. A put is sent once, under the condition that its keys are
missing: a copy that came late, after an item was taken, would put it again. `taking.py` takes the items.
"""

from collections.abc import AsyncIterator, Iterable
from typing import ClassVar, Final

from etcd_aio import Key, KeyRange, op
from etcd_aio.arguments import encode_key, whole_number
from etcd_aio.base import UNSET, Timeout, check_timeout, when_constructed
from etcd_aio.calls import StoreCalls, Writer
from etcd_aio.recipes.calls import RecipeCalls
from etcd_aio.recipes.queue.numbers import next_number
from etcd_aio.recipes.queue.putting import encoded_values, put_once
from etcd_aio.recipes.queue.taking import Item, Taker, item_of
from etcd_aio.types import KeyLike, ValueLike, shown_key

MOST_ITEMS: Final = 120
"""Items of one `put_all`: etcd accepts 128 operations in a txn by default, and a writer may need some of them."""


class ItemQueue(AsyncIterator[Item]):
    """The common part of queues: items are taken, counted and shown."""

    _kind: ClassVar[str] = "queue"
    _looks_again: ClassVar[bool] = False  # any item may be put before those that are known

    def __init__(
        self, client: StoreCalls, name: KeyLike, *, writer: Writer | None = None, timeout: Timeout = UNSET
    ) -> None:
        encoded = encode_key(name, "name")
        self._what = f"{self._kind} {shown_key(encoded)[1:]}"
        self._prefix = encoded + b"/"
        self._calls = RecipeCalls(client, writer, timeout)
        # The keys of items go on with digits; those of queues below this name seldom do.
        self._keys = KeyRange(self._prefix + b"0", self._prefix + b":")
        self._taker = Taker(self._calls, self._keys, self._is_item, self._what, looks_again=self._looks_again)

    @when_constructed
    def __repr__(self) -> str:
        return f"<{type(self).__name__} {shown_key(self._prefix[:-1])[1:]}>"

    def _is_item(self, key: bytes) -> bool:
        raise NotImplementedError

    # Taking.

    async def get(self, *, timeout: float | None = None) -> Item:
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

        Cancellation loses no item: one that is just being taken is for the next `get` of this object, and so is an
        `ItemInDoubtError`, which is logged too.
        """
        check_timeout(timeout)
        return await self._taker.take(timeout)

    def __aiter__(self) -> "ItemQueue":
        return self

    async def __anext__(self) -> Item:
        return await self.get()

    # Looking.

    async def size(self, *, timeout: Timeout = UNSET) -> int:
        """Count the items. Keys of queues whose names begin with `<name>/` and a digit are counted too.

        Raises:
            EtcdError: as every read.
        """
        return (await self._calls.do(op.RangeOp(self._keys, count_only=True), self._calls.deadline(timeout))).count

    async def peek(self, limit: int = 1, *, timeout: Timeout = UNSET) -> tuple[Item, ...]:
        """Read the first items, at most `limit`, and leave them there.

        Raises:
            InvalidRequestError, TypeError: the limit is invalid.
            EtcdError: as every read.
        """
        most = whole_number(limit, "limit", minimum=1)
        deadline = self._calls.deadline(timeout)
        items: list[Item] = []
        keys = self._keys
        while True:  # keys that are no items must not hide those behind them
            found = await self._calls.do(op.RangeOp(keys, limit=most), deadline)
            items += [item_of(kv) for kv in found if self._is_item(kv.key)]
            if len(items) >= most or not found.more:
                return tuple(items[:most])
            keys = KeyRange(found[-1].key + b"\0", keys.range_end)


class Queue(ItemQueue):
    """A queue: `queue = Queue(client, "mail")`; `await queue.put(b"...")`; `async for item in queue:`.

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

    def _is_item(self, key: bytes) -> bool:
        return key[len(self._prefix) :].isdigit()

    async def put(self, value: ValueLike, *, timeout: Timeout = UNSET) -> bytes:
        """Put an item at the end.

        Returns:
            bytes: the key of the item.

        Raises:
            ItemInDoubtError: the answer was lost. It names the key; the item may be there, may have been taken, or may
                be put later.
            OutcomeUnknownError: the same of a `writer` of exactly-once writes, which can find out.
            EtcdError: as every txn; the item is not there.

        Cancellation: the item is put or not, as with every write.
        """
        return (await self.put_all([value], timeout=timeout))[0]

    async def put_all(self, values: Iterable[ValueLike], *, timeout: Timeout = UNSET) -> list[bytes]:
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

        Cancellation: the items are put or not, as with every write.
        """
        encoded = encoded_values(values, MOST_ITEMS)
        if not encoded:
            return []
        deadline = self._calls.deadline(timeout)
        while True:
            keys = [self._prefix + b"%d" % next_number() for _ in encoded]
            puts = [op.put(key, value) for key, value in zip(keys, encoded, strict=True)]
            txn = op.txn(when=[Key(key).missing for key in keys], then=puts)
            if (await put_once(self._calls, self._what, keys, txn, deadline)).succeeded:
                return keys
