"""Writer: what recipes write through, and which writer goes with a store."""

from typing import Protocol

from etcd_aio.base.blocking import check_asyncio
from etcd_aio.base.call_options import UNSET, Timeout
from etcd_aio.base.key_space import key_space_of
from etcd_aio.errors import InvalidRequestError
from etcd_aio.kv import Txn
from etcd_aio.types import DeleteResult, KeyLike, LeaseLike, PutResult, ValueLike


class Writer(Protocol):
    """An object that writes: a client, the fenced writer of a lock, or exactly-once writes.

    The arguments, results and errors are those of the client's methods with the same names.

    Of two attributes a writer may have none: all of this library have them, and one that forwards to another writer may
    forward them too.

    - `key_space`: recipes refuse a writer with another one than that of their store. A writer without it is taken to
      name the keys as the store does.
    - `is_exact`: True promises that answers are true of every copy of a write, as those of exactly-once writes are: a
      refusal then says that no copy was applied. A writer without it makes no such promise.
    """

    async def put(
        self,
        key: KeyLike,
        value: ValueLike,
        *,
        lease: LeaseLike | None = None,
        prev_kv: bool = False,
        timeout: Timeout = UNSET,
    ) -> PutResult:
        """Put a value under a key."""
        ...

    async def delete(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        prev_kv: bool = False,
        timeout: Timeout = UNSET,
    ) -> DeleteResult:
        """Delete a key or a range."""
        ...

    def txn(self) -> Txn:
        """Build a txn."""
        ...


def is_exact(writer: Writer) -> bool:
    """Whether the answers of a writer are true of every copy of a write."""
    return getattr(writer, "is_exact", False) is True


def writer_for(store: Writer, writer: Writer | None) -> Writer:
    """The writer of what reads through a store: the store itself, if none is given.

    Raises:
        InvalidRequestError: the writer names other keys than the store: it is of another namespace or client.
        TypeError: it is no writer of asyncio.
    """
    if writer is None:
        return store
    check_asyncio(writer, "writer")
    if not callable(getattr(writer, "txn", None)):
        raise TypeError(f"writer must have put, delete and txn; {type(writer).__name__} has no txn")
    read, written = key_space_of(store), key_space_of(writer)
    if read is None or written is None or read == written:
        return writer
    if read.client is not written.client:
        reason = "the writer is of another client than the one that reads"
    else:
        reason = f"the writer is of another namespace: it writes to {written}; this reads from {read}"
    raise InvalidRequestError(f"{reason}: make it of the same store, as in `tenant.exactly_once()`")
