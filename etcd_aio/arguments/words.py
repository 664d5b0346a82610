"""Words in place of the members of an enum."""

from enum import Enum
from typing import TypeVar

from etcd_aio.errors import InvalidRequestError

_E = TypeVar("_E", bound=Enum)


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
