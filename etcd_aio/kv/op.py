"""Op: the operations of a txn, spelt as their namesakes on the client: `op.put("k", "v")`.

Knows: how users spell an operation, and which of its options go together. Never knows: how it is sent.

Every function returns an immutable value and captures its arguments by value. What cannot be right is refused here,
before anything is sent, with the error class that etcd would answer with where there is one.
"""

from collections.abc import Iterable
from typing import Final, Literal, TypeVar, overload

from etcd_aio.errors import InvalidRequestError, LeaseProvidedError, ValueProvidedError
from etcd_aio.kv.compare import Compare
from etcd_aio.kv.operations import DeleteOp, GetOp, Op, PutOp, RangeOp, TxnOp, new_delete, new_get, new_put, new_range
from etcd_aio.types import (
    KeyLike,
    KeyRange,
    LeaseLike,
    SortBy,
    SortByLike,
    SortOrder,
    SortOrderLike,
    ValueLike,
    encode_key,
    flag,
    lease_id,
    parse_word,
    to_bytes,
    whole_number,
)

__all__ = ["Op", "delete", "get", "put", "range", "txn"]

_T = TypeVar("_T")
_OP_TYPES: Final = (PutOp, GetOp, RangeOp, DeleteOp, TxnOp)


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
    """Put a value under a key. See `KV.put` for the arguments and errors."""
    return checked_put(key, value, lease, prev_kv, ignore_value, ignore_lease)


def checked_put(
    key: KeyLike,
    value: ValueLike | None,
    lease: LeaseLike | None,
    prev_kv: bool,
    ignore_value: bool,
    ignore_lease: bool,
) -> PutOp:
    """What `put` and `KV.put` share behind their overloads."""
    encoded_key = encode_key(key)
    if flag(ignore_value, "ignore_value"):
        if value is not None:
            raise ValueProvidedError("ignore_value=True keeps the key's value: leave value out")
    elif value is None:
        raise InvalidRequestError("value is missing: give one, or ignore_value=True to keep the key's value")
    if flag(ignore_lease, "ignore_lease") and lease is not None:
        raise LeaseProvidedError("ignore_lease=True keeps the key's lease: leave lease= out")
    return new_put(
        encoded_key,
        b"" if value is None else to_bytes(value, "value"),
        0 if lease is None else lease_id(lease),
        flag(prev_kv, "prev_kv"),
        ignore_value,
        ignore_lease,
    )


def get(key: KeyLike, *, revision: int = 0, serializable: bool = False, keys_only: bool = False) -> GetOp:
    """Get one key. See `KV.get` for the arguments and errors."""
    return new_get(
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
    """Get the keys of a range. See `KV.range` for the arguments and errors."""
    keys = KeyRange.of(key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys)
    _check_bounds("mod_revision", min_mod_revision, max_mod_revision)
    _check_bounds("create_revision", min_create_revision, max_create_revision)
    return new_range(
        keys,
        whole_number(limit, "limit"),
        whole_number(revision, "revision"),
        parse_word(SortBy, sort_by, "sort_by"),
        parse_word(SortOrder, sort_order, "sort_order"),
        flag(serializable, "serializable"),
        flag(keys_only, "keys_only"),
        flag(count_only, "count_only"),
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
    """Delete the keys of a range. See `KV.delete` for the arguments and errors."""
    keys = KeyRange.of(key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys)
    if keys.is_all_keys and not all_keys:
        # A prefix computed by mistake as empty must not empty the store.
        raise InvalidRequestError("this deletes every key there is: if that is meant, write all_keys=True")
    return new_delete(keys, flag(prev_kv, "prev_kv"))


def txn(*, when: Iterable[Compare] = (), then: Iterable[Op] = (), otherwise: Iterable[Op] = ()) -> TxnOp:
    """A txn inside a txn: if all of `when` hold, `then` is carried out, else `otherwise`.

    Raises:
        TypeError: `when` holds something that is no comparison, or a branch something that is no operation.
    """
    return TxnOp(comparisons(when, "when"), operations(then, "then"), operations(otherwise, "otherwise"))


def comparisons(given: Iterable[Compare], where: str) -> tuple[Compare, ...]:
    """The comparisons given to `where`, captured and checked."""
    captured = _captured(given, where)
    for item in captured:
        if not isinstance(item, Compare):
            raise TypeError(f'{where} takes comparisons such as Key("k").version == 1, got {type(item).__name__}')
    return captured


def operations(given: Iterable[Op], where: str) -> tuple[Op, ...]:
    """The operations given to `where`, captured and checked."""
    captured = _captured(given, where)
    for item in captured:
        if not isinstance(item, _OP_TYPES):
            raise TypeError(f'{where} takes operations such as op.put("k", "v"), got {type(item).__name__}')
    return captured


def _captured(given: Iterable[_T], where: str) -> tuple[_T, ...]:
    if isinstance(given, (Compare, *_OP_TYPES)):
        raise TypeError(f"{where} takes several: write {where}=[...]")
    return tuple(given)


def _check_bounds(what: str, least: int, greatest: int) -> None:
    whole_number(least, f"min_{what}")
    whole_number(greatest, f"max_{what}")
    if greatest and least > greatest:
        raise InvalidRequestError(f"min_{what} must not exceed max_{what}, got {least} and {greatest}")
