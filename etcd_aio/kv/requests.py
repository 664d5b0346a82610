"""Requests: the message of each operation, as bytes.

Knows: etcd's request messages and their numbers. Never knows: how users spell an operation, or what comes back.

Operations were checked when they were made, so their fields are written as they stand.
"""

from collections.abc import Mapping
from typing import Final

from etcd_aio import pb
from etcd_aio.codec import MAX_DEPTH, writers
from etcd_aio.errors import InvalidRequestError
from etcd_aio.kv.compare import Compare, CompareOperator, CompareTarget
from etcd_aio.kv.operations import DeleteOp, GetOp, Op, PutOp, RangeOp, TxnOp
from etcd_aio.types import KeyRange, SortBy, SortOrder

_SORT_TARGETS: Final[Mapping[SortBy, pb.RangeRequestSortTarget]] = {
    SortBy.KEY: pb.RangeRequestSortTarget.KEY,
    SortBy.VERSION: pb.RangeRequestSortTarget.VERSION,
    SortBy.CREATE_REVISION: pb.RangeRequestSortTarget.CREATE,
    SortBy.MOD_REVISION: pb.RangeRequestSortTarget.MOD,
    SortBy.VALUE: pb.RangeRequestSortTarget.VALUE,
}
_SORT_ORDERS: Final[Mapping[SortOrder, pb.RangeRequestSortOrder]] = {
    SortOrder.ASCEND: pb.RangeRequestSortOrder.ASCEND,
    SortOrder.DESCEND: pb.RangeRequestSortOrder.DESCEND,
}
_COMPARE_TARGETS: Final[Mapping[CompareTarget, pb.CompareCompareTarget]] = {
    CompareTarget.VERSION: pb.CompareCompareTarget.VERSION,
    CompareTarget.CREATE_REVISION: pb.CompareCompareTarget.CREATE,
    CompareTarget.MOD_REVISION: pb.CompareCompareTarget.MOD,
    CompareTarget.VALUE: pb.CompareCompareTarget.VALUE,
    CompareTarget.LEASE: pb.CompareCompareTarget.LEASE,
}
_COMPARE_OPERATORS: Final[Mapping[CompareOperator, pb.CompareCompareResult]] = {
    CompareOperator.EQUAL: pb.CompareCompareResult.EQUAL,
    CompareOperator.NOT_EQUAL: pb.CompareCompareResult.NOT_EQUAL,
    CompareOperator.LESS: pb.CompareCompareResult.LESS,
    CompareOperator.GREATER: pb.CompareCompareResult.GREATER,
}


def put_request(put: PutOp) -> bytes:
    """The message of a put."""
    return writers[pb.PutRequest](
        key=put.key,
        value=put.value,
        lease=put.lease,
        prev_kv=put.prev_kv,
        ignore_value=put.ignore_value,
        ignore_lease=put.ignore_lease,
    )


def get_request(get: GetOp) -> bytes:
    """The message of a get: a range of one key."""
    return writers[pb.RangeRequest](
        key=get.key, revision=get.revision, serializable=get.serializable, keys_only=get.keys_only
    )


def range_request(range_: RangeOp) -> bytes:
    """The message of a range."""
    # Ascending by key is how etcd stores them: sent as NONE, a limit stops the read there. Sent as ASCEND, etcd would
    # read the whole range, sort it and cut it after that.
    is_stored_so = range_.sort_by is SortBy.KEY and range_.sort_order is SortOrder.ASCEND
    return writers[pb.RangeRequest](
        key=range_.keys.key,
        range_end=range_.keys.range_end,
        limit=range_.limit,
        revision=range_.revision,
        sort_order=0 if is_stored_so else _SORT_ORDERS[range_.sort_order],
        sort_target=0 if is_stored_so else _SORT_TARGETS[range_.sort_by],
        serializable=range_.serializable,
        keys_only=range_.keys_only,
        count_only=range_.count_only,
        min_mod_revision=range_.min_mod_revision,
        max_mod_revision=range_.max_mod_revision,
        min_create_revision=range_.min_create_revision,
        max_create_revision=range_.max_create_revision,
    )


def delete_request(delete: DeleteOp) -> bytes:
    """The message of a delete."""
    return writers[pb.DeleteRangeRequest](key=delete.keys.key, range_end=delete.keys.range_end, prev_kv=delete.prev_kv)


def txn_request(txn: TxnOp, depth: int = 1) -> bytes:
    """The message of a txn, which is the `depth`th message if it stands within others.

    Raises:
        InvalidRequestError: txns nest so deep that no reader of protobuf would take them.
    """
    if depth + 2 > MAX_DEPTH and (txn.then or txn.otherwise):
        raise InvalidRequestError(f"TxnRequest: messages nest more than {MAX_DEPTH} deep")
    return writers[pb.TxnRequest](
        compare=[_compare(compare) for compare in txn.when],
        success=[_request_op(operation, depth + 1) for operation in txn.then],
        failure=[_request_op(operation, depth + 1) for operation in txn.otherwise],
    )


def linearizable(txn: TxnOp) -> TxnOp:
    """The same txn, protected from being answered by a member that is behind.

    etcd answers a txn from the member's own state if every operation in it is a serializable read, and takes that to be
    so of a txn without operations: its comparisons could then be judged on stale data, which nobody asked for. One
    linearizable count of a compared key, which needs no permission that comparing it does not need, prevents that.
    """
    if not txn.when or txn.then or txn.otherwise:
        return txn
    count = RangeOp(KeyRange(txn.when[0].keys.key), count_only=True)
    return TxnOp(txn.when, (count,), (count,))


def _request_op(operation: Op, depth: int) -> bytes:
    write = writers[pb.RequestOp]
    match operation:
        case PutOp():
            return write(request_put=put_request(operation))
        case GetOp():
            return write(request_range=get_request(operation))
        case RangeOp():
            return write(request_range=range_request(operation))
        case DeleteOp():
            return write(request_delete_range=delete_request(operation))
        case TxnOp():
            return write(request_txn=txn_request(operation, depth + 1))


def _compare(compare: Compare) -> bytes:
    return writers[pb.Compare](
        key=compare.keys.key,
        range_end=compare.keys.range_end,
        target=_COMPARE_TARGETS[compare.target],
        result=_COMPARE_OPERATORS[compare.operator],
        # The field of the operand has the name of the target.
        **{compare.target.value: compare.operand},
    )
