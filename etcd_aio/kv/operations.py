"""Operations: each request of the key-value API as an immutable value.

An operation holds checked arguments, encodes them as its message, and turns the decoded reply into its result. It is
the same value whether it is sent alone or within a txn.
"""

from collections.abc import Awaitable
from dataclasses import field
from typing import Any, ClassVar, Final, Protocol, TypeAlias, TypeVar

from etcd_aio import methods
from etcd_aio.arguments import flag, whole_number
from etcd_aio.base.call_options import RetryMode, Timeout
from etcd_aio.codec import (
    MAX_DEPTH,
    write_DeleteRangeRequest,
    write_PutRequest,
    write_RangeRequest,
    write_RequestOp,
    write_TxnRequest,
)
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import InvalidRequestError, MalformedReplyError
from etcd_aio.fast_frozen import filled
from etcd_aio.kv.compare import Compare
from etcd_aio.kv.endless_deletes import NOTHING, Extent
from etcd_aio.types import (
    NO_END,
    DeleteResult,
    Header,
    KeyRange,
    KeyValue,
    Operation,
    OpResult,
    PutResult,
    RangeResult,
    SortBy,
    SortOrder,
    TxnResult,
    shown_key,
    shown_lease,
)

T_co = TypeVar("T_co", covariant=True)
_Op_contra = TypeVar("_Op_contra", contravariant=True)

# As `RangeRequest.SortTarget` and `RangeRequest.SortOrder` of etcd's messages.
_SORT_TARGETS: Final = {
    SortBy.KEY: 0,
    SortBy.VERSION: 1,
    SortBy.CREATE_REVISION: 2,
    SortBy.MOD_REVISION: 3,
    SortBy.VALUE: 4,
}
_SORT_ORDERS: Final = {SortOrder.ASCEND: 1, SortOrder.DESCEND: 2}
_NO_HEADER: Final = filled(Header, 0, 0, 0, 0)


class KVOperation(Operation[T_co]):
    """An operation that `Store.do` can send.

    Attributes:
        method: the RPC that carries it.
        serializable: one member may answer it from its own, possibly stale, state; that member then needs no leader.
    """

    __slots__ = ()
    method: ClassVar[methods.AnyMethod]
    serializable: bool

    def message(self) -> bytes:
        """Encode the request message of this operation, sent alone."""
        raise NotImplementedError  # every operation below has its own

    @property
    def has_endless_delete(self) -> bool:
        """Whether this is, or contains, a delete of all keys from one on."""
        return False

    def extent(self) -> Extent:
        """The keys that this operation may write within a txn; none for reads."""
        return NOTHING

    def result(self, reply: Any) -> T_co:
        """Return the result that a decoded reply of `method` means for this operation: mostly the reply itself.

        Raises:
            MalformedReplyError: the reply does not answer this operation.
        """
        result: T_co = reply
        return result


class Sends(Protocol[_Op_contra, T_co]):
    """Sends an operation: `Backend.do`."""

    def __call__(self, operation: _Op_contra, *, timeout: Timeout, retry: RetryMode | None) -> Awaitable[T_co]:
        """Send the operation."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class PutOp(KVOperation[PutResult]):
    """Put one key; the attributes are the arguments of `client.put()`."""

    method = methods.PUT
    is_read_only = False
    serializable = False

    key: bytes
    value: bytes = b""
    lease: int = 0
    prev_kv: bool = False
    ignore_value: bool = False
    ignore_lease: bool = False

    def message(self) -> bytes:
        return write_PutRequest(
            key=self.key,
            value=self.value,
            lease=self.lease,
            prev_kv=self.prev_kv,
            ignore_value=self.ignore_value,
            ignore_lease=self.ignore_lease,
        )

    def extent(self) -> Extent:
        return Extent(self.key)

    def __repr__(self) -> str:
        # Values are secrets.
        return f"PutOp(key={shown_key(self.key)}, value=<{len(self.value)} bytes>, lease={shown_lease(self.lease)})"


@dataclass(frozen=True, slots=True)
class GetOp(KVOperation[KeyValue | None]):
    """Get one key; the attributes are the arguments of `client.get()`."""

    method = methods.RANGE
    is_read_only = True

    key: bytes
    revision: int = 0
    serializable: bool = False
    keys_only: bool = False

    def message(self) -> bytes:
        return write_RangeRequest(
            key=self.key, revision=self.revision, serializable=self.serializable, keys_only=self.keys_only
        )

    def result(self, reply: RangeResult) -> KeyValue | None:
        return reply.kvs[0] if reply.kvs else None


@dataclass(frozen=True, slots=True)
class RangeOp(KVOperation[RangeResult]):
    """Get the keys of a range; the attributes are the arguments of `client.range()`.

    Raises:
        InvalidRequestError: an option is out of bounds.
        TypeError: an option is of another type.
    """

    method = methods.RANGE
    is_read_only = True

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

    def __post_init__(self) -> None:
        whole_number(self.limit, "limit")
        whole_number(self.revision, "revision")
        flag(self.serializable, "serializable")
        flag(self.keys_only, "keys_only")
        flag(self.count_only, "count_only")
        _check_bounds("mod_revision", self.min_mod_revision, self.max_mod_revision)
        _check_bounds("create_revision", self.min_create_revision, self.max_create_revision)

    def message(self) -> bytes:
        # etcd stores keys in ascending order. With sort order NONE a limit stops the read early; with ASCEND etcd would
        # read the whole range, sort it, and then cut it.
        is_stored_order = self.sort_by is SortBy.KEY and self.sort_order is SortOrder.ASCEND
        return write_RangeRequest(
            key=self.keys.key,
            range_end=self.keys.range_end,
            limit=self.limit,
            revision=self.revision,
            sort_order=0 if is_stored_order else _SORT_ORDERS[self.sort_order],
            sort_target=0 if is_stored_order else _SORT_TARGETS[self.sort_by],
            serializable=self.serializable,
            keys_only=self.keys_only,
            count_only=self.count_only,
            min_mod_revision=self.min_mod_revision,
            max_mod_revision=self.max_mod_revision,
            min_create_revision=self.min_create_revision,
            max_create_revision=self.max_create_revision,
        )


@dataclass(frozen=True, slots=True)
class DeleteOp(KVOperation[DeleteResult]):
    """Delete the keys of a range; the attributes are the arguments of `client.delete()`."""

    method = methods.DELETE_RANGE
    is_read_only = False
    serializable = False

    keys: KeyRange
    prev_kv: bool = False

    def __post_init__(self) -> None:
        flag(self.prev_kv, "prev_kv")

    def message(self) -> bytes:
        return write_DeleteRangeRequest(key=self.keys.key, range_end=self.keys.range_end, prev_kv=self.prev_kv)

    @property
    def has_endless_delete(self) -> bool:
        return self.keys.range_end == NO_END

    def extent(self) -> Extent:
        return Extent(b"", self.keys.key) if self.has_endless_delete else NOTHING


@dataclass(frozen=True, slots=True)
class TxnOp(KVOperation[TxnResult]):
    """A whole txn; the attributes are the arguments of `op.txn()`.

    It is read-only if all operations of both branches are. It is serializable if it has operations and all of them are
    serializable reads; etcd runs a nested txn through raft, so one with a nested txn is not.
    """

    method = methods.TXN

    when: tuple[Compare, ...] = ()
    then: "tuple[Op, ...]" = ()
    otherwise: "tuple[Op, ...]" = ()
    is_read_only: bool = field(init=False, repr=False, compare=False)
    serializable: bool = field(init=False, repr=False, compare=False)
    _message: bytes = field(init=False, repr=False, compare=False)  # once it is encoded, for those that are sent again

    def __post_init__(self) -> None:
        operations = self.then + self.otherwise
        is_read_only, serializable = True, bool(operations)
        for operation in operations:
            if not operation.is_read_only:
                is_read_only = serializable = False
                break
            if not operation.serializable or isinstance(operation, TxnOp):
                serializable = False
        object.__setattr__(self, "is_read_only", is_read_only)
        object.__setattr__(self, "serializable", serializable)
        object.__setattr__(self, "_message", b"")

    def message(self) -> bytes:
        if not self._message:
            encoded = self._linearizable()._encode(1, writes=not self.is_read_only)  # checks how deep it nests
            if self.has_endless_delete:
                self.extent()
            object.__setattr__(self, "_message", encoded)
        return self._message

    @property
    def has_endless_delete(self) -> bool:
        return any(operation.has_endless_delete for operation in self.then + self.otherwise)

    def extent(self) -> Extent:
        """The keys that either branch may write.

        Raises:
            DuplicateKeyError: a branch would end the members of etcd, see `endless_deletes`.
        """
        then = otherwise = NOTHING
        for operation in self.then:
            then = then.beside(operation.extent())
        for operation in self.otherwise:
            otherwise = otherwise.beside(operation.extent())
        return then.instead_of(otherwise)

    def result(self, reply: TxnResult, outer: Header = _NO_HEADER) -> TxnResult:
        """Return the result; `outer` is the header of the txn around this one.

        etcd gives a nested txn no revision: it has the revision of the txn around it.
        """
        header = reply.header if reply.header.revision else outer
        operations = self.then if reply.succeeded else self.otherwise
        if not operations:
            if reply.responses and not (self.when or reply.succeeded):  # kine answers a delete so that it has not done
                raise MalformedReplyError("a txn without conditions was answered as if one did not hold")
            return TxnResult(reply.succeeded, header)
        if len(reply.responses) != len(operations):
            text = f"a txn of {len(operations)} operations was answered by {len(reply.responses)} responses"
            raise MalformedReplyError(text)
        pairs = zip(operations, reply.responses, strict=True)
        return TxnResult(
            reply.succeeded,
            header,
            tuple(_inner_result(operation, response, header) for operation, response in pairs),
            operations,
        )

    def _linearizable(self) -> "TxnOp":
        """This txn, but never answered from the state of a member that is behind.

        etcd answers a txn from the member's own state if every operation in it is a serializable read. A txn without
        operations qualifies, so its comparisons could be judged on stale data. One linearizable count of a compared key
        prevents that; it needs no permission that the comparison does not need.
        """
        if not self.when or self.then or self.otherwise:
            return self
        count = RangeOp(KeyRange(self.when[0].keys.key), count_only=True)
        return TxnOp(self.when, (count,), (count,))

    def _encode(self, depth: int, *, writes: bool) -> bytes:
        """Encode the message; `depth` counts the messages from the outermost one, which `writes`, to this one.

        Raises:
            InvalidRequestError: the txns nest too deep for any reader of protobuf, or see `_inner_message`.
        """
        if depth + 2 > MAX_DEPTH and (self.then or self.otherwise):
            raise InvalidRequestError(f"TxnRequest: messages nest more than {MAX_DEPTH} deep")
        return write_TxnRequest(
            compare=[compare.message() for compare in self.when],
            success=[_inner_message(operation, depth + 1, writes) for operation in self.then],
            failure=[_inner_message(operation, depth + 1, writes) for operation in self.otherwise],
        )


Op: TypeAlias = PutOp | GetOp | RangeOp | DeleteOp | TxnOp
"""One operation of a txn, or of `client.do()`."""


def _check_bounds(what: str, least: int, greatest: int) -> None:
    whole_number(least, f"min_{what}")
    whole_number(greatest, f"max_{what}")
    if greatest and least > greatest:
        raise InvalidRequestError(f"min_{what} must not exceed max_{what}, got {least} and {greatest}")


def _inner_message(operation: Op, depth: int, writes: bool) -> bytes:
    """Encode an operation of a txn, which is the `depth`th message counted from the outermost one.

    Raises:
        InvalidRequestError: the txn `writes`, and the operation reads a past revision. The member that answers refuses
            the txn if that revision is compacted; the others skip its reads, so they may apply it: etcd's members then
            differ for good (etcd-io/etcd#18667).
    """
    match operation:
        case PutOp():
            return write_RequestOp(request_put=operation.message())
        case GetOp() | RangeOp():
            if writes and operation.revision:
                raise InvalidRequestError(
                    "a txn that writes must not read a past revision, which can make the members of etcd differ: "
                    "leave revision= out, or read before or after the txn"
                )
            return write_RequestOp(request_range=operation.message())
        case DeleteOp():
            return write_RequestOp(request_delete_range=operation.message())
        case TxnOp():
            return write_RequestOp(request_txn=operation._encode(depth + 1, writes=writes))


def _inner_result(operation: Op, response: OpResult, outer: Header) -> OpResult:
    """The result of an operation of a txn; `outer` is the header of the txn."""
    match operation, response:
        case (PutOp(), PutResult()) | (RangeOp(), RangeResult()) | (DeleteOp(), DeleteResult()):
            return response
        case GetOp(), RangeResult():
            return operation.result(response)
        case TxnOp(), TxnResult():
            return operation.result(response, outer)
        case _:
            raise MalformedReplyError(f"the response to a {type(operation).__name__} is of another kind")
