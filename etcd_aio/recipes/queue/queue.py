"""Queue: items in the order of their puts, each for one consumer. It is Go's `Queue` recipe, and works with it.

The key of an item is `<name>/<nanoseconds since 1970>`. A put is sent once, under the condition that its keys are
missing: a copy that came late, after an item was taken, would put it again. `taking.py` takes the items.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final

from etcd_aio import Key, KeyRange, OutcomeUnknownError, TxnResult, op
from etcd_aio.arguments import encode_key, to_bytes, whole_number
from etcd_aio.base import NEVER, UNSET, Timeout, check_timeout, deadline_after, time_left, when_constructed
from etcd_aio.calls import StoreCalls, Writer, is_exact, writer_for
from etcd_aio.errors import EtcdError, InvalidRequestError, ItemInDoubtError, ResultLostError
from etcd_aio.recipes.queue.numbers import next_number
from etcd_aio.recipes.queue.taking import Item, Taker, item_of
from etcd_aio.types import KeyLike, ValueLike, shown_key

MOST_ITEMS: Final = 120
"""Items of one `put_all`: etcd accepts 128 operations in a txn by default, and a writer may need some of them."""


class ItemQueue(AsyncIterator[Item]):
    """What queues have in common: items are taken, counted and shown."""

    def __init__(
        self,
        client: StoreCalls,
        name: KeyLike,
        writer: Writer | None,
        timeout: Timeout,
        *,
        kind: str,
        looks_again: bool,
    ) -> None:
        self._store = client
        self._name = encode_key(name, "name")
        self._prefix = self._name + b"/"
        self._writer = writer_for(client, writer)
        self._is_exact = is_exact(self._writer)
        self._timeout = client.backend.shared.seconds(timeout)
        self._kind = kind
        # The keys of items go on with digits; those of queues below this name seldom do.
        self._keys = KeyRange(self._prefix + b"0", self._prefix + b":")
        self._taker = Taker(
            self._store,
            self._writer,
            self._keys,
            self._is_item,
            f"{kind} {shown_key(self._name)[1:]}",
            self._timeout,
            looks_again=looks_again,
        )

    @when_constructed
    def __repr__(self) -> str:
        return f"<{type(self).__name__} {shown_key(self._name)[1:]}>"

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

        Args:
            timeout: seconds for the whole call; None for no limit.

        Raises:
            EtcdError: as every read.
        """
        found = await self._store.range(
            self._keys.key, range_end=self._keys.range_end, count_only=True, timeout=self._limit(timeout)
        )
        return found.count

    async def peek(self, limit: int = 1, *, timeout: Timeout = UNSET) -> tuple[Item, ...]:
        """Read the first items, and leave them there.

        Args:
            limit: how many at most.
            timeout: seconds for the whole call; None for no limit.

        Raises:
            InvalidRequestError, TypeError: the limit is invalid.
            EtcdError: as every read.
        """
        most = whole_number(limit, "limit", minimum=1)
        deadline = deadline_after(self._limit(timeout), asyncio.get_running_loop().time())
        items: list[Item] = []
        first = self._keys.key
        while True:  # keys that are no items must not hide those behind them
            left = None if deadline == NEVER else time_left(deadline, asyncio.get_running_loop().time())
            found = await self._store.range(first, range_end=self._keys.range_end, limit=most, timeout=left)
            items += [item_of(kv) for kv in found if self._is_item(kv.key)]
            if len(items) >= most or not found.more:
                return tuple(items[:most])
            first = found[-1].key + b"\0"

    def _limit(self, timeout: Timeout) -> float | None:
        return self._timeout if timeout is UNSET else timeout


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
            Default: 5, as of `Client`.

    Raises:
        InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
    """

    def __init__(
        self,
        client: StoreCalls,
        name: KeyLike,
        *,
        writer: Writer | None = None,
        timeout: Timeout = UNSET,
    ) -> None:
        super().__init__(client, name, writer, timeout, kind="queue", looks_again=False)

    def _is_item(self, key: bytes) -> bool:
        return key[len(self._prefix) :].isdigit()

    async def put(self, value: ValueLike, *, timeout: Timeout = UNSET) -> bytes:
        """Put an item at the end.

        Args:
            value: of the item.
            timeout: seconds for the whole call; None for no limit.

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
        deadline = deadline_after(self._limit(timeout), asyncio.get_running_loop().time())
        while True:
            keys = [self._prefix + b"%d" % next_number() for _ in encoded]
            puts = [op.put(key, value) for key, value in zip(keys, encoded, strict=True)]
            result = await self._put(keys, op.txn(when=[Key(key).missing for key in keys], then=puts), deadline)
            if result.succeeded:
                return keys

    async def _put(self, keys: list[bytes], put: op.TxnOp, deadline: float) -> TxnResult:
        txn = self._writer.txn().when(*put.when).then(*put.then)
        left = None if deadline == NEVER else time_left(deadline, asyncio.get_running_loop().time())
        try:
            return await txn.commit(timeout=left, retry=None if self._is_exact else "safe")
        except (OutcomeUnknownError, ResultLostError):
            raise  # the writer can settle the first, and knows of the second what was applied
        except EtcdError as error:
            if not error.maybe_applied:
                raise
            raise put_in_doubt(f"queue {shown_key(self._name)[1:]}", keys) from error


def encoded_values(values: Iterable[ValueLike], most: int) -> list[bytes]:
    """The values of items as bytes.

    Raises:
        InvalidRequestError: there are more than `most`.
        TypeError: it is one value, or one of them is neither text nor bytes.
    """
    if isinstance(values, str | bytes | bytearray | memoryview):
        raise TypeError(f"put_all() takes several values, got one {type(values).__name__}")
    encoded = [to_bytes(value, "value") for value in values]
    if len(encoded) > most:
        raise InvalidRequestError(f"put_all() takes at most {most} values, got {len(encoded)}")
    return encoded


def put_in_doubt(what: str, keys: Iterable[bytes]) -> ItemInDoubtError:
    """The error of a put whose answer is lost."""
    named = tuple(keys)
    text = f"{what}: the answer was lost, and {', '.join(map(shown_key, named))} may have been put"
    return ItemInDoubtError(text, keys=named)
