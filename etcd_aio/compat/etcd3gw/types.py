"""The results of calls: the JSON of etcd's gateway. Fields with their default are absent; 64-bit numbers are text."""

from typing import Any, NotRequired, TypedDict

Header = dict[str, Any]
"""`cluster_id`, `member_id`, `revision` and `raft_term`."""


class KeyValue(TypedDict):
    """A key. Of `get`, `key` is decoded and there is no `value`; of a watch, both are decoded."""

    key: bytes
    mod_revision: str
    create_revision: NotRequired[str]
    version: NotRequired[str]
    value: NotRequired[bytes]
    lease: NotRequired[str]


class Event(TypedDict):
    """An event of a watch. `type` is `DELETE`, or absent for a put; `prev_kv` stays in Base64."""

    kv: KeyValue
    type: NotRequired[str]
    prev_kv: NotRequired[KeyValue]


class RangeResponse(TypedDict):
    """The keys of a range."""

    header: Header
    kvs: NotRequired[list[KeyValue]]
    more: NotRequired[bool]
    count: NotRequired[str]


class StatusResponse(TypedDict):
    """The status of a member."""

    header: Header
    version: str
    dbSize: str
    leader: str
    raftIndex: str
    raftTerm: str
    raftAppliedIndex: NotRequired[str]
    errors: NotRequired[list[str]]
    dbSizeInUse: NotRequired[str]
    isLearner: NotRequired[bool]


class Member(TypedDict):
    """A member of the cluster."""

    ID: str
    name: NotRequired[str]
    peerURLs: NotRequired[list[str]]
    clientURLs: NotRequired[list[str]]
    isLearner: NotRequired[bool]


class TxnResponse(TypedDict):
    """The response of a transaction. `succeeded` is absent if a comparison did not hold."""

    header: Header
    succeeded: NotRequired[bool]
    responses: NotRequired[list[Any]]


class WatchResponse(TypedDict):
    """A message of a watch, as etcd sends it. No call returns it."""

    header: Header
    watch_id: NotRequired[str]
    created: NotRequired[bool]
    canceled: NotRequired[bool]
    compact_revision: NotRequired[str]
    cancel_reason: NotRequired[str]
    fragment: NotRequired[bool]
    events: NotRequired[list[Event]]
