"""IdAllocator, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.recipes.counter.ids`: do not edit.
"""

from etcd_aio.arguments import KeyLike
from etcd_aio.base import UNSET, Timeout
from etcd_aio.portal import Facade
from etcd_aio.recipes import DEFAULT_BLOCK
from etcd_aio.recipes import IdAllocator as AsyncIdAllocator
from etcd_aio.sync.calls.store_calls import StoreCalls
from etcd_aio.sync.calls.writer import Writer


class IdAllocator(Facade):
    """Ids: `ids = IdAllocator(client, "ids/order")`; `ids.next()` returns a number that is given only once.

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
        self._construct(AsyncIdAllocator, client, name, block=block, writer=writer, timeout=timeout)

    @property
    def left(self) -> int:
        """How many ids are left of the block in use: so many calls send nothing."""
        return self._aio.left

    def next(self, *, timeout: Timeout = UNSET) -> int:
        """Take an id; the first one is 1.

        Raises:
            CounterError: the value of the key is not a number; or it was deleted or set back, so that ids would be
                given again. Only a process that has had larger ids can notice that.
            EtcdError: as every txn.

        Ctrl-C: no id is given to two callers; some may be given to none.
        """
        return self._run(self._aio.next, timeout=timeout)
