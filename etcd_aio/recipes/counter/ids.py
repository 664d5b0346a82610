"""IdAllocator: numbers that are given once: taken from etcd in blocks, and handed out without a call."""

import asyncio
from typing import Final

from etcd_aio import EtcdTimeoutError
from etcd_aio.arguments import encode_key, whole_number
from etcd_aio.base import NEVER, SOON, UNSET, Pauses, Timeout, when_constructed
from etcd_aio.calls import StoreCalls, Writer
from etcd_aio.errors import CounterError, EtcdError
from etcd_aio.recipes.calls import seconds_left
from etcd_aio.recipes.counter.counter import Counter
from etcd_aio.types import KeyLike, shown_key

DEFAULT_BLOCK: Final = 1000
"""Ids in a block: one round trip for so many; a process that ends wastes the rest of its block."""


class IdAllocator:
    """Ids: `ids = IdAllocator(client, "ids/order")`; `await ids.next()` returns a number that is given only once.

    The key is a counter: the last number of the last block, of all processes. Each process has blocks of its own, so
    its ids grow, and those of different processes do not follow each other in time. For numbers that grow in the whole
    cluster use the revision of a put.

    If the answer to a request for a block is lost, that block is left out: its ids may be missing, and are given to no
    caller.

    Args:
        client: the client, or a store that wraps one.
        name: the key.
        block: ids that are taken at a time. Processes may differ in it.
        writer: makes the txns, such as `client.exactly_once()`, with which no block is left out. Default: the client.
        timeout: seconds for a call that has no `timeout` of its own; None for no limit.
            Default: that of the client.

    Raises:
        InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
    """

    def __init__(
        self,
        client: StoreCalls,
        name: KeyLike,
        *,
        block: int = DEFAULT_BLOCK,
        writer: Writer | None = None,
        timeout: Timeout = UNSET,
    ) -> None:
        self._key = encode_key(name, "name")
        self._counter = Counter(client, name, writer=writer, timeout=timeout)
        self._block = whole_number(block, "block", minimum=1)
        self._next = 1
        self._last = 0
        self._taking = asyncio.Lock()

    @when_constructed
    def __repr__(self) -> str:
        return f"<IdAllocator {self._counter!r} left={self.left}>"

    @property
    def left(self) -> int:
        """How many ids are left of the block in use: so many calls send nothing."""
        return self._last - self._next + 1

    async def next(self, *, timeout: Timeout = UNSET) -> int:
        """Take an id; the first one is 1.

        Raises:
            CounterError: the value of the key is not a number; or it was deleted or set back, so that ids would be
                given again. Only a process that has had larger ids can notice that.
            EtcdError: as every txn.

        Cancellation: no id is given to two callers; some may be given to none.
        """
        if self._next > self._last:
            deadline = self._counter._calls.deadline(timeout)
            scope = asyncio.timeout_at(None if deadline == NEVER else deadline)
            try:
                async with scope, self._taking:
                    pauses = Pauses(SOON)
                    while self._next > self._last:
                        await self._take(deadline, pauses)
                    return self._hand_out()
            except TimeoutError as error:
                if isinstance(error, EtcdError) or not scope.expired():
                    raise
                raise EtcdTimeoutError(f"no block of ids of {shown_key(self._key)} was taken in time") from None
        return self._hand_out()

    def _hand_out(self) -> int:
        number = self._next
        self._next += 1
        return number

    async def _take(self, deadline: float, pauses: Pauses) -> None:
        """Take a block; return without one if it is not known whether it was taken."""
        left = seconds_left(deadline)
        try:
            last = await self._counter.add(self._block, timeout=left)
        except EtcdError as error:
            if not (error.maybe_applied and error.retryable) or left == 0:
                raise
            await pauses.wait()  # each attempt may leave out a block
        else:
            first = last - self._block + 1
            if first <= self._last:
                text = f"the counter of the ids was set back: {first} was given before. Set it above {self._last}"
                raise CounterError(text)
            self._next, self._last = first, last
