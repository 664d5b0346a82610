"""Writer, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.calls.writer`: do not edit.
"""

from typing import Protocol

from etcd_aio.arguments import KeyLike, LeaseLike, ValueLike
from etcd_aio.base import UNSET, Timeout
from etcd_aio.sync.kv.txn import Txn
from etcd_aio.types import DeleteResult, PutResult


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

    def put(
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

    def delete(
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
