"""The output of commands: results of the client, with the words of the command that are printed beside them."""

from typing import TypeAlias

from etcd_aio import DeleteResult, Event, Header, PutResult, RangeResult, TxnResult
from etcd_aio.dataclass import dataclass
from etcd_aio.types import (
    AlarmResult,
    AuthStatus,
    HashKVResult,
    LeaseGrantResult,
    LeaseKeepAliveResult,
    LeaseListResult,
    LeaseTimeToLiveResult,
    Member,
    MemberHealth,
    MemberListResult,
    Role,
    RoleListResult,
    SnapshotStatus,
    StatusResult,
    User,
    UserListResult,
)


@dataclass(frozen=True, slots=True)
class Done:
    """A change whose reply is only a header.

    Attributes:
        text: the line for people.
        header: the metadata of the response.
        has_fields: whether etcdctl has it as fields.
    """

    text: str
    header: Header
    has_fields: bool = True


@dataclass(frozen=True, slots=True)
class MembersChanged:
    """A change of the members.

    Attributes:
        text: the lines for people.
        header: the metadata of the response.
        members: all members after it.
        member: the member that was added; None for other changes.
    """

    text: str
    header: Header
    members: tuple[Member, ...]
    member: Member | None = None


@dataclass(frozen=True, slots=True)
class LeaseShown:
    """The remaining time of a lease.

    Attributes:
        result: the answer.
        has_keys: the keys were requested.
    """

    result: LeaseTimeToLiveResult
    has_keys: bool


@dataclass(frozen=True, slots=True)
class Watched:
    """Events of a watch.

    Attributes:
        header: of the store; its revision is that of the events.
        events: the events.
        is_canceled: the server has ended the watch.
        compact_revision: the oldest revision that can be watched, if compaction ended the watch; else 0.
    """

    header: Header
    events: tuple[Event, ...]
    is_canceled: bool = False
    compact_revision: int = 0


@dataclass(frozen=True, slots=True)
class OwnWord:
    """The word of a member about itself, when it is asked whether it is live, or ready.

    Attributes:
        asked: "livez" or "readyz".
        health: the answer; None if there was none.
        error: why there was none.
    """

    asked: str
    health: MemberHealth | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class EndpointHealth:
    """Whether an endpoint is healthy.

    Attributes:
        endpoint: the endpoint.
        is_healthy: the endpoint answers a linearizable read, and there is no alarm.
        took: the duration of the read, as Go prints it; empty if there was no connection.
        error: the reason if it is not healthy.
        words: what the member says of itself, if that was requested.
    """

    endpoint: str
    is_healthy: bool
    took: str
    error: str = ""
    words: tuple[OwnWord, ...] = ()


@dataclass(frozen=True, slots=True)
class HealthReport:
    """The health of endpoints."""

    rows: tuple[EndpointHealth, ...]


@dataclass(frozen=True, slots=True)
class ClusterHealth:
    """The health of a cluster in one word.

    Attributes:
        is_healthy: the verdict.
        endpoints: the health of each endpoint.
    """

    is_healthy: bool
    endpoints: tuple[EndpointHealth, ...]


@dataclass(frozen=True, slots=True)
class StatusReport:
    """The status of endpoints."""

    rows: tuple[tuple[str, StatusResult], ...]


@dataclass(frozen=True, slots=True)
class HashReport:
    """The hashes of endpoints."""

    rows: tuple[tuple[str, HashKVResult], ...]


Shown: TypeAlias = (
    AlarmResult
    | AuthStatus
    | ClusterHealth
    | DeleteResult
    | Done
    | HashReport
    | HealthReport
    | LeaseGrantResult
    | LeaseKeepAliveResult
    | LeaseListResult
    | LeaseShown
    | MemberListResult
    | MembersChanged
    | PutResult
    | RangeResult
    | Role
    | RoleListResult
    | SnapshotStatus
    | StatusReport
    | TxnResult
    | User
    | UserListResult
    | Watched
)
"""All results that a command may show."""
