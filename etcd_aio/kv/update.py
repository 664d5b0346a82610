"""Update: read a key, compute its next value, put it if the key is unchanged; again after a conflict."""

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from etcd_aio.arguments import encode_key, lease_id
from etcd_aio.base.call_options import RetryMode, Timeout
from etcd_aio.base.contention import Contention
from etcd_aio.base.deadline import time_left
from etcd_aio.errors import EtcdTimeoutError
from etcd_aio.kv.compare import Key
from etcd_aio.kv.op import checked_put
from etcd_aio.kv.operations import GetOp, PutOp, TxnOp
from etcd_aio.types import KeyLike, KeyValue, LeaseLike, Operation, ValueLike, shown_keys

_R = TypeVar("_R")


class Does(Protocol):
    """Sends operations: a client."""

    def do(self, operation: Operation[_R], *, timeout: Timeout, retry: RetryMode | None) -> Awaitable[_R]:
        """Send the operation."""
        ...


class Update:
    """One call of `Store.update`, which has its arguments.

    Raises:
        InvalidRequestError, TypeError: an argument cannot be right.
    """

    def __init__(
        self, store: Does, key: KeyLike, function: Callable[[bytes | None], ValueLike], lease: LeaseLike | None
    ) -> None:
        if not callable(function):
            raise TypeError(f"update() takes a function of the value, got {type(function).__name__}")
        self._store = store
        self._key = encode_key(key)
        self._function = function
        self._lease = None if lease is None else lease_id(lease)

    async def run(self, deadline: float, clock: Callable[[], float]) -> KeyValue:
        """Update the key; see `Store.update`."""
        began = clock()
        # Each attempt reads, so none knows more than the others: all of them wait.
        contention, conflicts = Contention(8.0), 0
        while True:
            found = await self._store.do(GetOp(self._key), timeout=time_left(deadline, clock()), retry=None)
            put = self._next(found)
            unchanged = Key(self._key).mod_revision == (0 if found is None else found.mod_revision)
            # Not "always", even if that is the client's mode: a repeated copy would take the first one for a conflict.
            sent = clock()
            result = await self._store.do(TxnOp((unchanged,), (put,)), timeout=time_left(deadline, sent), retry="safe")
            if result:
                return _written(put, found, result.revision)
            contention.measured(clock() - sent)
            conflicts += 1
            wait = contention.after_conflict(conflicts + 1, random.random)
            if clock() + wait >= deadline:
                raise self._timeout_error(conflicts, clock() - began)
            await asyncio.sleep(wait)

    def _next(self, found: KeyValue | None) -> PutOp:
        value = self._function(None if found is None else found.value)
        if inspect.iscoroutine(value):
            value.close()  # else Python warns that it is never awaited
            raise TypeError(
                "an async function was passed to update(): its function returns the value, and awaits nothing"
            )
        if value is None:
            raise TypeError("the function of update() returned None, not a value")
        keeps_lease = found is not None and found.lease != 0 and self._lease is None
        return checked_put(self._key, value, self._lease, False, False, keeps_lease)

    def _timeout_error(self, conflicts: int, seconds: float) -> EtcdTimeoutError:
        attempts = "the only attempt" if conflicts == 1 else f"each of {conflicts} attempts"
        error = EtcdTimeoutError(f"another writer was faster in {attempts}")
        error.call = f"update {shown_keys(self._key)}"
        error.seconds = seconds
        return error


def _written(put: PutOp, before: KeyValue | None, revision: int) -> KeyValue:
    """The key after the put."""
    if before is None:
        return KeyValue(put.key, put.value, revision, revision, 1, put.lease)
    lease = before.lease if put.ignore_lease else put.lease
    return KeyValue(put.key, put.value, before.create_revision, revision, before.version + 1, lease)
