"""Enums of the API. Each member is also accepted as its lower-case word."""

from enum import Enum
from typing import Literal, TypeAlias


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
DowngradeActionLike: TypeAlias = DowngradeAction | Literal["validate", "enable", "cancel"]
