"""Operations of a txn or of `client.do()`, spelt as their namesakes on the client: `op.put("k", "v")`.

Each function returns an immutable value and copies its arguments. Arguments that cannot be right are refused here, with
the error class that etcd would answer with where there is one.
"""

from collections.abc import Iterable
from typing import Literal, overload

from etcd_aio.arguments import encode_key, flag, parse_word, whole_number
from etcd_aio.errors import InvalidRequestError
from etcd_aio.kv.compare import Compare
from etcd_aio.kv.operations import (
    DeleteOp,
    GetOp,
    Op,
    PutOp,
    RangeOp,
    TxnOp,
    checked_compares,
    checked_operations,
    checked_put,
)
from etcd_aio.types import (
    KeyLike,
    KeyRange,
    LeaseLike,
    SortBy,
    SortByLike,
    SortOrder,
    SortOrderLike,
    ValueLike,
)

__all__ = ["DeleteOp", "GetOp", "Op", "PutOp", "RangeOp", "TxnOp", "delete", "get", "put", "range", "txn"]


@overload
def put(
    key: KeyLike,
    value: ValueLike,
    *,
    lease: LeaseLike | None = None,
    prev_kv: bool = False,
    ignore_value: Literal[False] = False,
    ignore_lease: bool = False,
) -> PutOp: ...


@overload
def put(
    key: KeyLike,
    value: None = None,
    *,
    lease: LeaseLike | None = None,
    prev_kv: bool = False,
    ignore_value: Literal[True],
    ignore_lease: bool = False,
) -> PutOp: ...


def put(
    key: KeyLike,
    value: ValueLike | None = None,
    *,
    lease: LeaseLike | None = None,
    prev_kv: bool = False,
    ignore_value: bool = False,
    ignore_lease: bool = False,
) -> PutOp:
    """Put a value under a key. See `Store.put` for the arguments and errors."""
    return checked_put(key, value, lease, prev_kv, ignore_value, ignore_lease)


def get(key: KeyLike, *, revision: int = 0, serializable: bool = False, keys_only: bool = False) -> GetOp:
    """Get one key. See `Store.get` for the arguments and errors."""
    return GetOp(
        encode_key(key),
        whole_number(revision, "revision"),
        flag(serializable, "serializable"),
        flag(keys_only, "keys_only"),
    )


def range(  # noqa: A001 - etcd's own word
    key: KeyLike | None = None,
    *,
    range_end: KeyLike | None = None,
    prefix: KeyLike | None = None,
    from_key: KeyLike | None = None,
    all_keys: bool = False,
    limit: int = 0,
    revision: int = 0,
    sort_by: SortByLike = SortBy.KEY,
    sort_order: SortOrderLike = SortOrder.ASCEND,
    serializable: bool = False,
    keys_only: bool = False,
    count_only: bool = False,
    min_mod_revision: int = 0,
    max_mod_revision: int = 0,
    min_create_revision: int = 0,
    max_create_revision: int = 0,
) -> RangeOp:
    """Get the keys of a range. See `Store.range` for the arguments and errors."""
    return RangeOp(
        KeyRange.of(key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys),
        limit,
        revision,
        parse_word(SortBy, sort_by, "sort_by"),
        parse_word(SortOrder, sort_order, "sort_order"),
        serializable,
        keys_only,
        count_only,
        min_mod_revision,
        max_mod_revision,
        min_create_revision,
        max_create_revision,
    )


def delete(
    key: KeyLike | None = None,
    *,
    range_end: KeyLike | None = None,
    prefix: KeyLike | None = None,
    from_key: KeyLike | None = None,
    all_keys: bool = False,
    prev_kv: bool = False,
) -> DeleteOp:
    """Delete the keys of a range. See `Store.delete` for the arguments and errors."""
    keys = KeyRange.of(key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys)
    if keys.is_all_keys and not all_keys:
        # A computed prefix that happens to be empty must not empty the store.
        raise InvalidRequestError("this deletes every key: if that is intended, write all_keys=True")
    return DeleteOp(keys, prev_kv)


def txn(*, when: Iterable[Compare] = (), then: Iterable[Op] = (), otherwise: Iterable[Op] = ()) -> TxnOp:
    """A txn inside a txn: if every comparison of `when` holds, run `then`, else run `otherwise`.

    Raises:
        TypeError: `when` has an item that is not a comparison, or a branch has one that is not an operation.
    """
    return TxnOp(
        checked_compares(when, "when"), checked_operations(then, "then"), checked_operations(otherwise, "otherwise")
    )
