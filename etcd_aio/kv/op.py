"""Operations of a txn or of `client.do()`, spelt as their namesakes on the client: `op.put("k", "v")`.

Each function returns an immutable value and copies its arguments. Arguments that cannot be right are refused here, with
the error class that etcd would answer with where there is one.
"""

from collections.abc import Iterable
from typing import Literal, TypeVar, overload

from etcd_aio.arguments import encode_key, flag, lease_id, parse_word, to_bytes, whole_number
from etcd_aio.errors import InvalidRequestError, LeaseProvidedError, ValueProvidedError
from etcd_aio.kv.compare import Compare
from etcd_aio.kv.operations import DeleteOp, GetOp, Op, PutOp, RangeOp, TxnOp
from etcd_aio.types import KeyLike, KeyRange, LeaseLike, SortBy, SortByLike, SortOrder, SortOrderLike, ValueLike

_T = TypeVar("_T")

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


def checked_put(
    key: KeyLike,
    value: ValueLike | None,
    lease: LeaseLike | None,
    prev_kv: bool,
    ignore_value: bool,
    ignore_lease: bool,
) -> PutOp:
    """Make a put of the arguments of `Store.put`.

    Raises:
        InvalidRequestError, TypeError: as `Store.put` does before it sends anything.
    """
    encoded = encode_key(key)
    # Most puts have no flags, and then there is nothing to check.
    if ignore_value is not False or ignore_lease is not False or prev_kv is not False:
        _check_put_flags(value, lease, prev_kv, ignore_value, ignore_lease)
    if value is not None:
        content = to_bytes(value, "value")
    elif ignore_value:
        content = b""
    else:
        raise InvalidRequestError("value is missing: give one, or ignore_value=True to keep the key's value")
    return PutOp(encoded, content, 0 if lease is None else lease_id(lease), prev_kv, ignore_value, ignore_lease)


def _check_put_flags(
    value: ValueLike | None, lease: LeaseLike | None, prev_kv: bool, ignore_value: bool, ignore_lease: bool
) -> None:
    flag(prev_kv, "prev_kv")
    if flag(ignore_value, "ignore_value") and value is not None:
        raise ValueProvidedError("ignore_value=True keeps the key's value: leave value out")
    if flag(ignore_lease, "ignore_lease") and lease is not None:
        raise LeaseProvidedError("ignore_lease=True keeps the key's lease: leave lease= out")


def get(key: KeyLike, *, revision: int = 0, serializable: bool = False, keys_only: bool = False) -> GetOp:
    """Get one key. See `Store.get` for the arguments and errors."""
    encoded, number = encode_key(key), whole_number(revision, "revision")
    return GetOp(encoded, number, flag(serializable, "serializable"), flag(keys_only, "keys_only"))


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


def checked_compares(compares: Iterable[Compare], where: str) -> tuple[Compare, ...]:
    """Copy and check the comparisons given to `where`."""
    copied = _copied(compares, where)
    for item in copied:
        if not isinstance(item, Compare):
            raise TypeError(f'{where} takes comparisons such as Key("k").version == 1, got {type(item).__name__}')
    return copied


def checked_operations(operations: Iterable[Op], where: str) -> tuple[Op, ...]:
    """Copy and check the operations given to `where`."""
    copied = _copied(operations, where)
    for item in copied:
        if not isinstance(item, Op):
            raise TypeError(f'{where} takes operations such as op.put("k", "v"), got {type(item).__name__}')
    return copied


def _copied(items: Iterable[_T], where: str) -> tuple[_T, ...]:
    if isinstance(items, Compare | Op):
        raise TypeError(f"{where} takes several: write {where}=[...]")
    return tuple(items)
