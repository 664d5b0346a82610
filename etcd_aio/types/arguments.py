"""Arguments: values, leases and whole numbers, as users write them and as etcd takes them.

Knows: which Python values are right. Never knows: which call they belong to. What a type checker would refuse raises
TypeError, what only its number makes wrong raises InvalidRequestError, and both before anything is sent.
"""

from typing import Final, Protocol, TypeAlias

from etcd_aio.errors import InvalidRequestError
from etcd_aio.types.keys import encode

ValueLike: TypeAlias = str | bytes | bytearray | memoryview
"""A value as users write it: text, which is sent as UTF-8, or bytes."""

MIN_INT64: Final = -(2**63)
_MAX_INT64: Final = 2**63 - 1


class HasLeaseId(Protocol):
    """Anything with a lease's id, such as a `Lease`."""

    @property
    def id(self) -> int:
        """The lease's id."""
        ...


LeaseLike: TypeAlias = int | HasLeaseId
"""A lease as users write it: its id, or an object that has one."""


def encode_value(value: ValueLike, what: str = "value") -> bytes:
    """The bytes of a value, captured by value.

    Raises:
        InvalidRequestError: it is a str that UTF-8 cannot encode.
        TypeError: it is neither str nor bytes-like.
    """
    return encode(value, what)


def lease_id(lease: LeaseLike, what: str = "lease") -> int:
    """The id of a lease; 0 is no lease, and negative ids are legal.

    Raises:
        InvalidRequestError: the id does not fit 64 bits.
        TypeError: it is neither an int nor an object with an int `.id`.
    """
    number = lease if isinstance(lease, int) else getattr(lease, "id", None)
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{what} must be a lease id or an object with .id, got {type(lease).__name__}")
    return whole_number(number, what, minimum=MIN_INT64)


def whole_number(number: int, what: str, *, minimum: int = 0) -> int:
    """`number` itself, checked.

    Raises:
        InvalidRequestError: it is below `minimum` or does not fit 64 bits.
        TypeError: it is not an int. A bool is none: it would be a slip.
    """
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{what} must be an int, got {type(number).__name__}")
    if number < minimum and minimum == 0:
        raise InvalidRequestError(f"{what} must not be negative, got {number}")
    if not minimum <= number <= _MAX_INT64:
        raise InvalidRequestError(f"{what} must be between {minimum} and {_MAX_INT64}, got {number}")
    return number
