"""Enums of the API. Each member is also accepted as its lower-case word."""

from enum import Enum
from typing import Literal, TypeAlias, TypeVar

from etcd_aio.errors import InvalidRequestError
from etcd_aio.types.auth import Permission
from etcd_aio.types.maintenance import Alarm


class SortBy(Enum):
    """The property that a range is sorted by."""

    KEY = "key"
    VERSION = "version"
    CREATE_REVISION = "create_revision"
    MOD_REVISION = "mod_revision"
    VALUE = "value"


class SortOrder(Enum):
    """The direction in which a range is sorted."""

    ASCEND = "ascend"
    DESCEND = "descend"


class WatchFilter(Enum):
    """The events that a watch leaves out."""

    NO_PUT = "no_put"
    NO_DELETE = "no_delete"


class OnCompaction(Enum):
    """The reaction of a watch if its history was compacted before it was delivered."""

    RAISE = "raise"
    RESYNC = "resync"


class DowngradeAction(Enum):
    """A step of a downgrade of the cluster."""

    VALIDATE = "validate"
    ENABLE = "enable"
    CANCEL = "cancel"


SortByLike: TypeAlias = SortBy | Literal["key", "version", "create_revision", "mod_revision", "value"]
SortOrderLike: TypeAlias = SortOrder | Literal["ascend", "descend"]
WatchFilterLike: TypeAlias = WatchFilter | Literal["no_put", "no_delete"]
OnCompactionLike: TypeAlias = OnCompaction | Literal["raise", "resync"]
AlarmLike: TypeAlias = Alarm | Literal["nospace", "corrupt"]
DowngradeActionLike: TypeAlias = DowngradeAction | Literal["validate", "enable", "cancel"]
PermissionLike: TypeAlias = Permission | Literal["read", "write", "readwrite"]

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
