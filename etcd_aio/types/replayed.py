"""Results of writes whose own answer was lost: computed from the history of the store."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar, Final, TypeVar

from etcd_aio.types.kv import DeleteResult, Header, PutResult, TxnResult

_R = TypeVar("_R", PutResult, DeleteResult, TxnResult)


class ReplayedPutResult(PutResult):
    """The result of a put whose own answer was lost: computed from the history of the store."""

    __slots__ = ()
    is_replayed: ClassVar[bool] = True


class ReplayedDeleteResult(DeleteResult):
    """The result of a delete whose own answer was lost: computed from the history of the store."""

    __slots__ = ()
    is_replayed: ClassVar[bool] = True


class ReplayedTxnResult(TxnResult):
    """The result of a txn whose own answer was lost: computed from the history of the store."""

    __slots__ = ()
    is_replayed: ClassVar[bool] = True


_REPLAYED: Final[Mapping[type, Any]] = {
    PutResult: ReplayedPutResult,
    DeleteResult: ReplayedDeleteResult,
    TxnResult: ReplayedTxnResult,
}


def result_within(header: Header, part: _R, *, is_replayed: bool) -> _R:
    """The result of a part of a txn, as that of a call.

    Args:
        header: of the whole txn.
        part: the result of the part, whose header has only a revision.
        is_replayed: whether the answer to the txn was lost.
    """
    result = replace(part, header=header)
    if not is_replayed:
        return result
    replayed: _R = _REPLAYED.get(type(part), type(part))(*(getattr(result, field.name) for field in fields(result)))
    return replayed
