"""Compare: the conditions of a txn, written as Python comparisons of a `Key`.

    Key("lock").create_revision == 0          the key does not exist
    Key("lock").missing                       the same
    Key(prefix="jobs/").mod_revision < 42     no key under jobs/ was changed since 42

Knows: what etcd can compare, and with which operators. Never knows: the txn a condition ends up in.

etcd's rules for more than one key: every key in the range must satisfy the condition. For a range without any key, a
comparison of values is false, and every other target is compared with 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

from etcd_aio.types import MIN_INT64, KeyLike, KeyRange, LeaseLike, ValueLike, lease_id, to_bytes, whole_number


class CompareTarget(Enum):
    """What of a key is compared."""

    VERSION = "version"
    CREATE_REVISION = "create_revision"
    MOD_REVISION = "mod_revision"
    VALUE = "value"
    LEASE = "lease"


class CompareOperator(Enum):
    """How it is compared. etcd has these four."""

    EQUAL = "=="
    NOT_EQUAL = "!="
    LESS = "<"
    GREATER = ">"


@dataclass(frozen=True, slots=True, repr=False)
class Compare:
    """One condition of a txn. Written as `Key("k").version == 1`, never built by hand.

    It has no truth value: Python's `and`, `or`, `not` and chained comparisons cannot be sent. Conditions are joined by
    giving several to `when()`.

    Attributes:
        keys: the key or range compared.
        target: what of it.
        operator: how.
        operand: with what.
    """

    keys: KeyRange
    target: CompareTarget
    operator: CompareOperator
    operand: int | bytes

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
    """One property of a key, waiting for its comparison: `==`, `!=`, `<` or `>`.

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

    # Without `==` as a question there is no hash either; said here, since a type checker sees only this.
    __hash__ = None  # type: ignore[assignment]

    if not TYPE_CHECKING:  # a type checker finds the mistake by these two being absent

        def __le__(self, operand: object) -> NoReturn:
            self._refuse("<=", "<")

        def __ge__(self, operand: object) -> NoReturn:
            self._refuse(">=", ">")

    def __repr__(self) -> str:
        return f"<{self._keys!r}.{self._target.value}>"

    def _compare(self, operator: CompareOperator, operand: _T) -> Compare:
        return Compare(
            self._keys, self._target, operator, self._encode(operand, f"what {self._target.value} is compared with")
        )

    def _refuse(self, operator: str, instead: str) -> NoReturn:
        raise TypeError(
            f"etcd compares with ==, !=, < and >, there is no {operator}: "
            f"for whole numbers write {instead} with the next number, as in version > 2 for version >= 3"
        )


class Key:
    """A key, or a range of keys, as the left side of a txn's conditions.

    It takes exactly one of the forms that every range takes, and raises as `client.range()` does.

    Args:
        key: this key alone; with `range_end`, the first key of an interval.
        range_end: the key before which the interval ends.
        prefix: every key that begins with this.
        from_key: every key from this one on.
        all_keys: every key.
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
        """How many times the key was put since it was created; 0 if it does not exist."""
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
        """The value, compared byte by byte. Of a key that does not exist, every comparison is false, `!=` too."""
        return Comparand(self._keys, CompareTarget.VALUE, to_bytes)

    @property
    def lease(self) -> Comparand[LeaseLike]:
        """The lease the key is attached to; 0 if there is none, or no key."""
        return Comparand(self._keys, CompareTarget.LEASE, lease_id)

    @property
    def exists(self) -> Compare:
        """The key exists; of a range: it holds a key."""
        return self.version > 0

    @property
    def missing(self) -> Compare:
        """The key does not exist; of a range: it is empty."""
        return self.version == 0

    def __repr__(self) -> str:
        return f"<Key of {self._keys!r}>"


def _encode_number(number: int, what: str) -> int:
    return whole_number(number, what, minimum=MIN_INT64)
