"""Requests and responses with the names of etcd's messages, as plain Python classes, and their constants.

python-etcd3 has all of etcd's generated messages here. These are the ones that its calls take and return. A request may
be filled after it was made; responses and what they contain are frozen.
"""

from dataclasses import field
from typing import ClassVar, Final, TypeAlias

from etcd_aio import Header, KeyValue
from etcd_aio.dataclass import dataclass

ResponseHeader: TypeAlias = Header

NONE: Final = 0
NOSPACE: Final = 1
CORRUPT: Final = 2

NO_KEY_VALUE: Final = KeyValue(b"")
"""The key-value of a message that has none."""


@dataclass(slots=True)
class RangeRequest:
    """A read of a range; `sort_order` and `sort_target` are numbers of this class."""

    NONE: ClassVar[int] = 0
    ASCEND: ClassVar[int] = 1
    DESCEND: ClassVar[int] = 2

    KEY: ClassVar[int] = 0
    VERSION: ClassVar[int] = 1
    CREATE: ClassVar[int] = 2
    MOD: ClassVar[int] = 3
    VALUE: ClassVar[int] = 4

    key: bytes = b""
    range_end: bytes = b""
    limit: int = 0
    revision: int = 0
    sort_order: int = 0
    sort_target: int = 0
    serializable: bool = False
    keys_only: bool = False
    count_only: bool = False
    min_mod_revision: int = 0
    max_mod_revision: int = 0
    min_create_revision: int = 0
    max_create_revision: int = 0


@dataclass(slots=True)
class PutRequest:
    """A put."""

    key: bytes = b""
    value: bytes = b""
    lease: int = 0
    prev_kv: bool = False
    ignore_value: bool = False
    ignore_lease: bool = False


@dataclass(slots=True)
class DeleteRangeRequest:
    """A delete of a key or a range."""

    key: bytes = b""
    range_end: bytes = b""
    prev_kv: bool = False


@dataclass(slots=True)
class Compare:
    """A condition of a txn: `target` and `result` are numbers of this class, and one other field has the operand."""

    EQUAL: ClassVar[int] = 0
    GREATER: ClassVar[int] = 1
    LESS: ClassVar[int] = 2
    NOT_EQUAL: ClassVar[int] = 3

    VERSION: ClassVar[int] = 0
    CREATE: ClassVar[int] = 1
    MOD: ClassVar[int] = 2
    VALUE: ClassVar[int] = 3
    LEASE: ClassVar[int] = 4

    result: int = 0
    target: int = 0
    key: bytes = b""
    version: int = 0
    create_revision: int = 0
    mod_revision: int = 0
    value: bytes = b""
    lease: int = 0
    range_end: bytes = b""


@dataclass(slots=True)
class RequestOp:
    """One operation of a txn: one of the fields has it."""

    request_range: RangeRequest | None = None
    request_put: PutRequest | None = None
    request_delete_range: DeleteRangeRequest | None = None
    request_txn: "TxnRequest | None" = None


@dataclass(slots=True)
class TxnRequest:
    """A txn."""

    compare: list[Compare] = field(default_factory=list)
    success: list[RequestOp] = field(default_factory=list)
    failure: list[RequestOp] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RangeResponse:
    """The keys of a range; `kvs` is a list, as in python-etcd3."""

    header: Header
    kvs: list[KeyValue]
    more: bool
    count: int


@dataclass(frozen=True, slots=True)
class PutResponse:
    """A put was applied; `prev_kv` is an empty key-value if there was none, or none was asked for."""

    header: Header
    prev_kv: KeyValue = NO_KEY_VALUE


@dataclass(frozen=True, slots=True)
class DeleteRangeResponse:
    """A delete was applied."""

    header: Header
    deleted: int
    prev_kvs: list[KeyValue]


@dataclass(frozen=True, slots=True)
class ResponseOp:
    """The response to one operation of a txn: one of the fields has it."""

    response_range: RangeResponse | None = None
    response_put: PutResponse | None = None
    response_delete_range: DeleteRangeResponse | None = None
    response_txn: "TxnResponse | None" = None

    def WhichOneof(self, oneof_group: str) -> str | None:
        """The name of the field that has the response.

        Args:
            oneof_group: `"response"`, the only group there is.
        """
        if oneof_group != "response":
            raise ValueError(f"ResponseOp has the group 'response', and none of the name {oneof_group!r}")
        fields = ("response_range", "response_put", "response_delete_range", "response_txn")
        return next((name for name in fields if getattr(self, name) is not None), None)


@dataclass(frozen=True, slots=True)
class TxnResponse:
    """A txn was applied."""

    header: Header
    succeeded: bool
    responses: list[ResponseOp]


@dataclass(frozen=True, slots=True)
class LeaseKeepAliveResponse:
    """A lease was renewed; `TTL` is 0 if it does not exist any more."""

    header: Header
    ID: int
    TTL: int


@dataclass(frozen=True, slots=True)
class LeaseTimeToLiveResponse:
    """The remaining time of a lease; `TTL` is -1 if it does not exist any more."""

    header: Header
    ID: int
    TTL: int
    grantedTTL: int
    keys: list[bytes]


@dataclass(frozen=True, slots=True)
class Event:
    """One change of a key; `type` is a number of this class."""

    PUT: ClassVar[int] = 0
    DELETE: ClassVar[int] = 1

    type: int
    kv: KeyValue
    prev_kv: KeyValue = NO_KEY_VALUE


@dataclass(frozen=True, slots=True)
class WatchCreateRequest:
    """The filters of a watch, as numbers."""

    NOPUT: ClassVar[int] = 0
    NODELETE: ClassVar[int] = 1
