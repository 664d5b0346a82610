"""Conditions of a txn, written as Python comparisons of a `Key`.

    Key("lock").create_revision == 0          the key does not exist
    Key("lock").missing                       the same
    Key(prefix="jobs/").mod_revision < 42     no key under jobs/ was changed since 42

For more than one key etcd's rules are: every key in the range must satisfy the condition. If the range has no key, a
comparison of values is false, and every other property is compared as 0.
"""

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar

from etcd_aio.arguments import MIN_INT64, lease_id, to_bytes, whole_number
from etcd_aio.base.reprs import when_constructed
from etcd_aio.codec import write_Compare
from etcd_aio.dataclass import dataclass
from etcd_aio.types import KeyLike, KeyRange, LeaseLike, ValueLike


class CompareTarget(Enum):
    """The property of a key that is compared. The value is the name of the message's field for the operand."""

    VERSION = "version"
    CREATE_REVISION = "create_revision"
    MOD_REVISION = "mod_revision"
    VALUE = "value"
    LEASE = "lease"

    __hash__ = object.__hash__  # that of an enum is a function in Python


class CompareOperator(Enum):
    """The operators that etcd has."""

    EQUAL = "=="
    NOT_EQUAL = "!="
    LESS = "<"
    GREATER = ">"

    __hash__ = object.__hash__


# As `Compare.CompareTarget` and `Compare.CompareResult` of etcd's messages, which call the revisions CREATE and MOD.
_TARGETS: Final = {target: number for number, target in enumerate(CompareTarget)}
_OPERATORS: Final = {
    CompareOperator.EQUAL: 0,
    CompareOperator.GREATER: 1,
    CompareOperator.LESS: 2,
    CompareOperator.NOT_EQUAL: 3,
}


@dataclass(frozen=True, slots=True, repr=False)
class Compare:
    """One condition of a txn, written as `Key("k").version == 1`.

    It has no truth value, since Python's `and`, `or`, `not` and chained comparisons cannot be sent. Give several
    conditions to `when()` instead: all of them must hold.

    Attributes:
        keys: the key or range.
        target: the property that is compared.
        operator: the operator.
        operand: the number or bytes on the right side.
    """

    keys: KeyRange
    target: CompareTarget
    operator: CompareOperator
    operand: int | bytes

    def message(self) -> bytes:
        """Encode the message of this condition."""
        operand: dict[str, Any] = {self.target.value: self.operand}
        return write_Compare(
            key=self.keys.key,
            range_end=self.keys.range_end,
            target=_TARGETS[self.target],
            result=_OPERATORS[self.operator],
            **operand,
        )

    def __bool__(self) -> bool:  # NoReturn would make type checkers skip the code that follows
        raise TypeError(
            "a Compare has no truth value, so `and`, `or`, `not` and chains like 1 < x < 3 do not work: "
            "give each condition to when(a, b, ...), which holds if all do"
        )

    def __repr__(self) -> str:
        shown = f"<{len(self.operand)} bytes>" if isinstance(self.operand, bytes) else str(self.operand)
        return f"<Compare {self.keys!r}.{self.target.value} {self.operator.value} {shown}>"


_T = TypeVar("_T")


class Comparand(Generic[_T]):
    """A property of a key, to be compared with `==`, `!=`, `<` or `>`.

    A comparison raises TypeError for an operand of the wrong type, and InvalidRequestError for one that cannot be sent.
    """

    __slots__ = ("_encode", "_keys", "_target")

    def __init__(self, keys: KeyRange, target: CompareTarget, encode: Callable[[_T, str], int | bytes]) -> None:
        self._keys = keys
        self._target = target
        self._encode = encode

    def __eq__(self, operand: _T) -> Compare:  # type: ignore[override]
        return self._compare(CompareOperator.EQUAL, operand)

    def __ne__(self, operand: _T) -> Compare:  # type: ignore[override]
        return self._compare(CompareOperator.NOT_EQUAL, operand)

    def __lt__(self, operand: _T) -> Compare:
        return self._compare(CompareOperator.LESS, operand)

    def __gt__(self, operand: _T) -> Compare:
        return self._compare(CompareOperator.GREATER, operand)

    # `==` makes a Compare, so there is no hash. Type checkers see only this line.
    __hash__ = None  # type: ignore[assignment]

    if not TYPE_CHECKING:  # hidden from type checkers, so that they report the mistake

        def __le__(self, operand: object) -> NoReturn:
            self._refuse("<=", "`version < 4` instead of `version <= 3`")

        def __ge__(self, operand: object) -> NoReturn:
            self._refuse(">=", "`version > 2` instead of `version >= 3`")

    @when_constructed
    def __repr__(self) -> str:
        return f"<{self._keys!r}.{self._target.value}>"

    def _compare(self, operator: CompareOperator, operand: _T) -> Compare:
        encoded = self._encode(operand, f"the operand of {self._target.value}")
        return Compare(self._keys, self._target, operator, encoded)

    def _refuse(self, operator: str, instead: str) -> NoReturn:
        raise TypeError(f"etcd has no {operator}, only ==, !=, < and >: use {instead}")


class Key:
    """A key, or a range of keys, as the left side of a txn's conditions.

    The keys are named as in `client.range()`, with the same errors.
    """

    __slots__ = ("_keys",)

    def __init__(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
    ) -> None:
        self._keys = KeyRange.of(key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys)

    @property
    def version(self) -> Comparand[int]:
        """The number of writes since the key was created; 0 if it does not exist."""
        return Comparand(self._keys, CompareTarget.VERSION, _encode_number)

    @property
    def create_revision(self) -> Comparand[int]:
        """The revision that created the key; 0 if it does not exist."""
        return Comparand(self._keys, CompareTarget.CREATE_REVISION, _encode_number)

    @property
    def mod_revision(self) -> Comparand[int]:
        """The revision that changed the key last; 0 if it does not exist."""
        return Comparand(self._keys, CompareTarget.MOD_REVISION, _encode_number)

    @property
    def value(self) -> Comparand[ValueLike]:
        """The value, compared byte by byte. If the key does not exist, every comparison is false, also `!=`."""
        return Comparand(self._keys, CompareTarget.VALUE, to_bytes)

    @property
    def lease(self) -> Comparand[LeaseLike]:
        """The id of the lease that the key is attached to; 0 if it has none or does not exist."""
        return Comparand(self._keys, CompareTarget.LEASE, lease_id)

    @property
    def exists(self) -> Compare:
        """The key exists; for a range: at least one key does."""
        return self.version > 0

    @property
    def missing(self) -> Compare:
        """The key does not exist; for a range: no key does."""
        return self.mod_revision == 0  # the form that kine knows, too

    @when_constructed
    def __repr__(self) -> str:
        return f"<Key of {self._keys!r}>"


def _encode_number(number: int, what: str) -> int:
    return whole_number(number, what, minimum=MIN_INT64)
