"""Operations: one request of the key-value API as an immutable value, checked and encoded.

Knows: what a put, get, range, delete or txn consists of. Never knows: how users spell it (`op.py`), its message
(`requests.py`), or whether it travels alone or inside a txn.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from etcd_aio.kv.compare import Compare
from etcd_aio.types import (
    DeleteResult,
    KeyRange,
    KeyValue,
    Operation,
    PutResult,
    RangeResult,
    SortBy,
    SortOrder,
    TxnResult,
    constructor,
    shown_key,
    shown_lease,
)


@dataclass(frozen=True, slots=True, repr=False)
class PutOp(Operation[PutResult]):
    """Put one key; the attributes are the arguments of `client.put()`."""

    key: bytes
    value: bytes = b""
    lease: int = 0
    prev_kv: bool = False
    ignore_value: bool = False
    ignore_lease: bool = False

    def __repr__(self) -> str:
        # The value is a secret.
        return f"PutOp(key={shown_key(self.key)}, value=<{len(self.value)} bytes>, lease={shown_lease(self.lease)})"


@dataclass(frozen=True, slots=True)
class GetOp(Operation[KeyValue | None]):
    """Get one key; the attributes are the arguments of `client.get()`."""

    key: bytes
    revision: int = 0
    serializable: bool = False
    keys_only: bool = False


@dataclass(frozen=True, slots=True)
class RangeOp(Operation[RangeResult]):
    """Get the keys of a range; the attributes are the arguments of `client.range()`."""

    keys: KeyRange
    limit: int = 0
    revision: int = 0
    sort_by: SortBy = SortBy.KEY
    sort_order: SortOrder = SortOrder.ASCEND
    serializable: bool = False
    keys_only: bool = False
    count_only: bool = False
    min_mod_revision: int = 0
    max_mod_revision: int = 0
    min_create_revision: int = 0
    max_create_revision: int = 0


@dataclass(frozen=True, slots=True)
class DeleteOp(Operation[DeleteResult]):
    """Delete the keys of a range; the attributes are the arguments of `client.delete()`."""

    keys: KeyRange
    prev_kv: bool = False


@dataclass(frozen=True, slots=True)
class TxnOp(Operation[TxnResult]):
    """A whole txn; the attributes are the arguments of `op.txn()`."""

    when: tuple[Compare, ...] = ()
    then: "tuple[Op, ...]" = ()
    otherwise: "tuple[Op, ...]" = ()


new_put: Final = constructor(PutOp)
new_get: Final = constructor(GetOp)
new_range: Final = constructor(RangeOp)
new_delete: Final = constructor(DeleteOp)

Op: TypeAlias = PutOp | GetOp | RangeOp | DeleteOp | TxnOp
"""One operation of a txn."""


def is_read_only(operation: Op) -> bool:
    """Whether it changes nothing, whichever branches run; then it may be repeated freely."""
    match operation:
        case GetOp() | RangeOp():
            return True
        case TxnOp(then=then, otherwise=otherwise):
            return all(map(is_read_only, then)) and all(map(is_read_only, otherwise))
        case _:
            return False


def is_serializable(operation: Op) -> bool:
    """Whether it is content with what one member knows, be it stale: that member then needs no leader.

    A txn is if it has operations and all of them are. etcd itself also takes a txn without any operation for one;
    `requests.txn_request` sees to that.
    """
    match operation:
        case GetOp() | RangeOp():
            return operation.serializable
        case TxnOp(then=then, otherwise=otherwise):
            # etcd carries a nested txn through raft, so it never counts as serializable.
            branches = then + otherwise
            return bool(branches) and all(not isinstance(inner, TxnOp) and is_serializable(inner) for inner in branches)
        case _:
            return False
