"""Checks that all calls share: keys, values, leases, numbers, flags and words, before anything is sent.

An argument of a wrong type raises TypeError; a value that etcd cannot take raises InvalidRequestError.
"""

from collections.abc import Collection
from enum import Enum
from typing import Final, Protocol, TypeAlias, TypeVar

from etcd_aio.errors import EmptyKeyError, InvalidRequestError

_E = TypeVar("_E", bound=Enum)
_W = TypeVar("_W")

KeyLike: TypeAlias = str | bytes | bytearray | memoryview
"""A key as users write it: text, which is sent as UTF-8, or bytes."""

ValueLike: TypeAlias = str | bytes | bytearray | memoryview
"""A value as users write it: text, which is sent as UTF-8, or bytes."""

MIN_INT64: Final = -(2**63)
_MAX_INT64: Final = 2**63 - 1
_BYTES_LIKE: Final = (bytes, bytearray, memoryview)


class HasLeaseId(Protocol):
    """Anything with a lease's id, such as a `Lease`."""

    @property
    def id(self) -> int:
        """The lease's id."""
        ...


LeaseLike: TypeAlias = int | HasLeaseId
"""A lease as users write it: its id, or an object that has one."""


def to_bytes(text: str | bytes | bytearray | memoryview, what: str) -> bytes:
    """Return a copy of `text` as bytes; `what` names the argument in errors, which never show the text itself.

    Raises:
        InvalidRequestError: UTF-8 cannot encode the str, since it has a lone surrogate.
        TypeError: it is neither str nor bytes-like.
    """
    if isinstance(text, str):
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            position = error.start
        # Outside of the except block: the Unicode error holds the whole text, and would become the context.
        raise InvalidRequestError(f"{what} has a lone surrogate at position {position}, which is not text: pass bytes")
    if isinstance(text, _BYTES_LIKE):
        return bytes(text)  # bytes are not copied
    raise TypeError(f"{what} must be str or bytes, got {type(text).__name__}")


def encode_key(key: KeyLike, what: str = "key") -> bytes:
    """Return the bytes of a key.

    Raises:
        EmptyKeyError: the key is empty; etcd has no such key.
        InvalidRequestError: UTF-8 cannot encode the key.
        TypeError: the key is neither str nor bytes-like.
    """
    encoded = to_bytes(key, what)
    if not encoded:
        raise EmptyKeyError(f"{what} is empty, and etcd has no empty key")
    return encoded


def is_encodable(text: str) -> bool:
    """Whether UTF-8 can encode the text: it has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_text(text: str, what: str) -> str:
    """Return `text`, checked.

    Raises:
        InvalidRequestError: UTF-8 cannot encode it.
        TypeError: it is not a str.
    """
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a str, got {type(text).__name__}")
    if not is_encodable(text):
        raise InvalidRequestError(f"{what} has a lone surrogate, which is not text")
    return text


def flag(value: bool, what: str) -> bool:
    """Return `value` if it is a real bool. Truthy strings such as "no" are rejected: some flags delete every key.

    Raises:
        TypeError: it is neither True nor False.
    """
    if value is not True and value is not False:
        raise TypeError(f"{what} must be True or False, got {type(value).__name__}")
    return value


def lease_id(lease: LeaseLike, what: str = "lease") -> int:
    """Return the id of a lease; 0 means no lease, and negative ids are legal.

    Raises:
        InvalidRequestError: the id does not fit 64 bits.
        TypeError: it is neither an int nor an object with an int `.id`.
    """
    number = lease if isinstance(lease, int) else getattr(lease, "id", None)
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{what} must be a lease id or an object with .id, got {type(lease).__name__}")
    return whole_number(number, what, minimum=MIN_INT64)


def whole_number(number: int, what: str, *, minimum: int = 0) -> int:
    """Return `number`, checked.

    Raises:
        InvalidRequestError: it is below `minimum` or does not fit 64 bits.
        TypeError: it is not an int, or a bool, which would be a mistake.
    """
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{what} must be an int, got {type(number).__name__}")
    if number < minimum and minimum == 0:
        raise InvalidRequestError(f"{what} must not be negative, got {number}")
    if not minimum <= number <= _MAX_INT64:
        raise InvalidRequestError(f"{what} must be between {minimum} and {_MAX_INT64}, got {number}")
    return number


def finite_seconds(seconds: float, what: str) -> float:
    """Return a number of seconds, checked.

    Raises:
        InvalidRequestError: it is negative, infinite or not a number.
        TypeError: it is neither an int nor a float, or a bool, which would be a mistake.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"{what} must be a number of seconds, got {type(seconds).__name__}")
    if not 0 <= seconds < float("inf"):
        raise InvalidRequestError(f"{what} must be a number of seconds, 0 or more; got {seconds!r}")
    return float(seconds)


def one_of(
    words: Collection[str],
    word: _W,
    what: str,
    *,
    or_function: bool = False,
    error: type[Exception] = InvalidRequestError,
) -> _W:
    """Return `word` if it is one of these words, or if functions are accepted too and it is one.

    Args:
        words: the words, which the error lists.
        word: the argument.
        what: its name, for the error.
        or_function: whether a function is accepted too.
        error: the class of the error if it is another word.
    """
    if word in words or (or_function and callable(word)):
        return word
    listed = ", ".join(map(repr, words))
    raise error(f"{what} must be one of {listed}{', or a function' if or_function else ''}; got {word!r}")


def parse_word(enum: type[_E], word: object, what: str) -> _E:
    """Return `word` if it is a member of `enum`, else the member with this value; `what` names the argument in errors.

    Raises:
        InvalidRequestError: there is no such member. The error lists the words.
    """
    if isinstance(word, enum):
        return word
    if isinstance(word, str):
        for member in enum:
            if member.value == word:
                return member
    words = ", ".join(repr(member.value) for member in enum)
    raise InvalidRequestError(f"{what} must be one of {words} or a {enum.__name__}, got {word!r}")
