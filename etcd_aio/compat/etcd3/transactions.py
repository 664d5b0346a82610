"""Conditions and operations of a transaction."""

from typing import Any, ClassVar, Final, Self

from etcd_aio.compat.etcd3 import etcdrpc, utils

_SIGNS: Final = {
    etcdrpc.Compare.EQUAL: "==",
    etcdrpc.Compare.NOT_EQUAL: "!=",
    etcdrpc.Compare.LESS: "<",
    etcdrpc.Compare.GREATER: ">",
}


class BaseCompare:
    """A property of a key, or of every key of a range, to be compared with `==`, `!=`, `<` or `>`.

    A comparison returns the object itself, which remembers the operator as `op` and the other side as `value`.
    """

    target: ClassVar[int]
    operand: ClassVar[str]

    def __init__(self, key: str | bytes, range_end: str | bytes | None = None) -> None:
        self.key = key
        self.range_end = range_end
        self.value: Any = None
        self.op: int | None = None

    def __eq__(self, other: object) -> Self:  # type: ignore[override] # as in python-etcd3
        return self._compare(etcdrpc.Compare.EQUAL, other)

    def __ne__(self, other: object) -> Self:  # type: ignore[override] # as in python-etcd3
        return self._compare(etcdrpc.Compare.NOT_EQUAL, other)

    def __lt__(self, other: object) -> Self:
        return self._compare(etcdrpc.Compare.LESS, other)

    def __gt__(self, other: object) -> Self:
        return self._compare(etcdrpc.Compare.GREATER, other)

    __hash__ = None  # type: ignore[assignment]  # `==` makes a condition

    def __repr__(self) -> str:
        keys = self.key if self.range_end is None else f"[{self.key!r}, {self.range_end!r})"
        sign = None if self.op is None else _SIGNS[self.op]
        return f"{type(self)}: {keys!r} {sign} {self.value!r}"

    def build_message(self) -> etcdrpc.Compare:
        """The condition as a message.

        Raises:
            ValueError: nothing was compared; or a version or revision is compared with something that is no number.
        """
        if self.op is None:
            raise ValueError("a condition needs one of the operators ==, !=, < and >")
        message = etcdrpc.Compare(self.op, self.target, utils.to_bytes(self.key))
        if self.range_end is not None:
            message.range_end = utils.to_bytes(self.range_end)
        self.build_compare(message)
        return message

    def build_compare(self, compare: etcdrpc.Compare) -> None:
        """Fill in the other side of the comparison."""
        setattr(compare, self.operand, int(self.value))

    def _compare(self, operator: int, other: object) -> Self:
        self.op, self.value = operator, other
        return self


class Value(BaseCompare):
    """The value of a key."""

    target = etcdrpc.Compare.VALUE

    def build_compare(self, compare: etcdrpc.Compare) -> None:
        """Fill in the value on the other side."""
        compare.value = utils.to_bytes(self.value)


class Version(BaseCompare):
    """The number of writes since the key was created; 0 if it does not exist."""

    target = etcdrpc.Compare.VERSION
    operand = "version"


class Create(BaseCompare):
    """The revision that created the key; 0 if it does not exist."""

    target = etcdrpc.Compare.CREATE
    operand = "create_revision"


class Mod(BaseCompare):
    """The revision that changed the key last; 0 if it does not exist."""

    target = etcdrpc.Compare.MOD
    operand = "mod_revision"


class Put:
    """Put a key."""

    def __init__(self, key: str | bytes, value: str | bytes, lease: Any = None, prev_kv: bool = False) -> None:
        self.key = key
        self.value = value
        self.lease = lease
        self.prev_kv = prev_kv


class Get:
    """Get a key or a range."""

    def __init__(self, key: str | bytes, range_end: str | bytes | None = None) -> None:
        self.key = key
        self.range_end = range_end


class Delete:
    """Delete a key or a range."""

    def __init__(self, key: str | bytes, range_end: str | bytes | None = None, prev_kv: bool = False) -> None:
        self.key = key
        self.range_end = range_end
        self.prev_kv = prev_kv


class Txn:
    """A transaction inside a transaction."""

    def __init__(self, compare: Any, success: Any = None, failure: Any = None) -> None:
        self.compare = compare
        self.success = success
        self.failure = failure
