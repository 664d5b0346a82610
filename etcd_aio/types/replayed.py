"""Results of writes whose own answer was lost: computed from the history of the store."""

from typing import ClassVar

from etcd_aio.types.kv import DeleteResult, Header, Operation, OpResult, PutResult, TxnResult


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


def put_within(header: Header, put: PutResult, *, is_replayed: bool) -> PutResult:
    """The result of a put that was an operation of a txn, as that of a call.

    Args:
        header: of the whole txn.
        put: the result of the operation, whose header has only a revision.
        is_replayed: whether the answer to the txn was lost.
    """
    kind = ReplayedPutResult if is_replayed else PutResult
    return kind(header, put.prev_kv)


def delete_within(header: Header, delete: DeleteResult, *, is_replayed: bool) -> DeleteResult:
    """The result of a delete that was an operation of a txn, as that of a call; see `put_within`."""
    kind = ReplayedDeleteResult if is_replayed else DeleteResult
    return kind(header, delete.deleted, delete.prev_kvs)


def txn_within(
    succeeded: bool,
    header: Header,
    responses: tuple[OpResult, ...],
    operations: tuple[Operation[OpResult], ...],
    *,
    is_replayed: bool,
) -> TxnResult:
    """The result of a txn that was a part of another one, as that of a call; see `put_within`."""
    kind = ReplayedTxnResult if is_replayed else TxnResult
    return kind(succeeded, header, responses, operations)
