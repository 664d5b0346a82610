"""Comparisons and operations of transactions, and the operations of etcd_aio that they mean. Pure."""

from collections.abc import Iterable
from typing import Any

from etcd_aio import Compare, DeleteResult, Header, Key, KeyRange, Op, PutResult, RangeResult, TxnResult, op
from etcd_aio.compat._ranges import named_keys
from etcd_aio.compat.aetcd import rtypes
from etcd_aio.compat.aetcd.utils import lease_to_id, to_bytes


class BaseCompare:
    """A comparison: `==`, `!=`, `<` and `>` complete it.

    Attributes:
        key: the key, or the first one of a range.
        range_end: the end of the range.
        op: the operator.
        value: the operand.
    """

    def __init__(self, key: bytes | str, range_end: bytes | str | None = None) -> None:
        self.key = key
        self.range_end = range_end
        self.value: Any = None
        self.op: str | None = None

    def _completed(self, operator: str, value: Any) -> "BaseCompare":
        self.op, self.value = operator, value
        return self

    def __eq__(self, other: object) -> "BaseCompare":  # type: ignore[override] # as in aetcd
        return self._completed("==", other)

    def __ne__(self, other: object) -> "BaseCompare":  # type: ignore[override] # as in aetcd
        return self._completed("!=", other)

    def __lt__(self, other: Any) -> "BaseCompare":
        return self._completed("<", other)

    def __gt__(self, other: Any) -> "BaseCompare":
        return self._completed(">", other)

    __hash__ = None  # type: ignore[assignment] # `==` makes a condition

    def __repr__(self) -> str:
        keys = self.key if self.range_end is None else f"[{self.key!r}, {self.range_end!r})"
        return f"{type(self)}: {keys!r} {self.op} {self.value!r}"

    def compare(self) -> Compare:
        """The comparison of etcd_aio.

        Raises:
            ValueError: it was never completed.
        """
        left = self._left(Key(**named_keys(to_bytes(self.key), to_bytes(self.range_end or b""))))
        right = self._right()
        match self.op:
            case "==":
                found = left == right
            case "!=":
                found = left != right
            case "<":
                found = left < right
            case ">":
                found = left > right
            case _:
                raise ValueError("a comparison needs one of ==, !=, < and >")
        compare: Compare = found
        return compare

    def _left(self, key: Key) -> Any:
        raise NotImplementedError  # in each subclass

    def _right(self) -> Any:
        return None if self.op is None else int(self.value)


class Value(BaseCompare):
    """Compares the value of a key."""

    def _left(self, key: Key) -> Any:
        return key.value

    def _right(self) -> Any:
        return None if self.op is None else to_bytes(self.value)


class Version(BaseCompare):
    """Compares the version of a key: 0 if it does not exist."""

    def _left(self, key: Key) -> Any:
        return key.version


class Create(BaseCompare):
    """Compares the revision that created a key: 0 if it does not exist."""

    def _left(self, key: Key) -> Any:
        return key.create_revision


class Mod(BaseCompare):
    """Compares the revision that changed a key last: 0 if it does not exist."""

    def _left(self, key: Key) -> Any:
        return key.mod_revision


class Put:
    """A put within a transaction."""

    def __init__(self, key: bytes, value: bytes, lease: Any = None, prev_kv: bool = False) -> None:
        self.key = key
        self.value = value
        self.lease = lease
        self.prev_kv = prev_kv


class Get:
    """A read within a transaction: of a key, or of a range."""

    def __init__(self, key: bytes, range_end: bytes | None = None) -> None:
        self.key = key
        self.range_end = range_end


class Delete:
    """A delete within a transaction."""

    def __init__(self, key: bytes, range_end: bytes | None = None, prev_kv: bool = False) -> None:
        self.key = key
        self.range_end = range_end
        self.prev_kv = prev_kv


class Txn:
    """A transaction within a transaction."""

    def __init__(
        self, compare: Iterable[BaseCompare], success: Iterable[Any] | None = None, failure: Iterable[Any] | None = None
    ) -> None:
        self.compare = compare
        self.success = success
        self.failure = failure


class Transactions:
    """The comparisons and operations by the names that `client.transactions` has for them."""

    def __init__(self) -> None:
        self.value = Value
        self.version = Version
        self.create = Create
        self.mod = Mod
        self.put = Put
        self.get = Get
        self.delete = Delete
        self.txn = Txn


def compares(given: Iterable[BaseCompare]) -> list[Compare]:
    """The comparisons of etcd_aio."""
    return [one.compare() for one in given]


def operations(given: Iterable[Any] | None) -> list[Op]:
    """The operations of etcd_aio.

    Raises:
        TypeError: one is no operation of this module.
    """
    return [_operation(one) for one in given or ()]


def _operation(one: Any) -> Op:
    match one:
        case Put():
            return op.put(one.key, one.value, lease=lease_to_id(one.lease), prev_kv=one.prev_kv)
        case Get():
            return op.RangeOp(KeyRange(one.key, one.range_end or b""))
        case Delete():
            return op.DeleteOp(KeyRange(one.key, one.range_end or b""), one.prev_kv)
        case Txn():
            branches = operations(one.success), operations(one.failure)
            return op.txn(when=compares(one.compare), then=branches[0], otherwise=branches[1])
        case _:
            raise TypeError(f"not an operation of a transaction: {type(one).__name__}")


class ResponseOp:
    """The response of an operation that is no read. One attribute is set, the others are None.

    Attributes:
        response_put: of a put: `header` and `prev_kv`.
        response_delete_range: of a delete: `header`, `deleted` and `prev_kvs`.
        response_txn: of a transaction: `succeeded`, `header` and `responses`.
        response_range: of a read within an inner transaction: `kvs`, `more` and `count`.
    """

    def __init__(self, response: Any) -> None:
        self.response_put = response if isinstance(response, PutResult) else None
        self.response_delete_range = response if isinstance(response, DeleteResult) else None
        self.response_range = response if isinstance(response, RangeResult) else None
        self.response_txn = TxnResponse(response) if isinstance(response, TxnResult) else None

    def WhichOneof(self, _: str) -> str | None:
        """The name of the attribute that is set."""
        return next((name for name, value in vars(self).items() if value is not None), None)


class TxnResponse:
    """The response of an inner transaction.

    Attributes:
        succeeded: whether the comparisons held.
        header: the metadata of the response.
        responses: one for each operation.
    """

    def __init__(self, result: TxnResult) -> None:
        self.succeeded = result.succeeded
        self.header = result.header
        self.responses = [ResponseOp(response) for response in result.responses]


def responses(result: TxnResult) -> list[Any]:
    """The responses of a transaction: of a read, its values with their keys, and a `ResponseOp` of any other."""
    return [
        _values(result.header, response) if isinstance(response, RangeResult) else ResponseOp(response)
        for response in result.responses
    ]


def _values(header: Header, found: RangeResult) -> list[tuple[bytes, rtypes.Get]]:
    return [(kv.value, rtypes.Get(header, kv)) for kv in found]
