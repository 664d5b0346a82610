"""Methods: one row for each RPC of etcd, with its path, its messages and whether it is safe to repeat.

Whether an attempt is repeated is decided by the error handler. The column `repeatable` is the retry table of etcd's Go
client. Where that repeats a mutation, or does not repeat a read, a comment says what the API has to do.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, Generic, NoReturn, TypeAlias, TypeVar

from etcd_aio import pb, types

API_VERSION: Final = "3.7"
"""The release whose .proto files this client was generated from."""

Request = TypeVar("Request", bound="pb.Message")
Reply = TypeVar("Reply", bound="pb.Message | types.Result")


class Cardinality(Enum):
    """How many messages travel each way. etcd has no RPC that streams requests only."""

    UNARY = "unary"
    SERVER_STREAMING = "server-streaming"
    BIDIRECTIONAL = "bidirectional"


UNARY: Final = Cardinality.UNARY
SERVER_STREAMING: Final = Cardinality.SERVER_STREAMING
BIDIRECTIONAL: Final = Cardinality.BIDIRECTIONAL


_LATE: Final = ("request", "reply")


class Method(Generic[Request, Reply]):
    """One RPC.

    Args:
        request, reply: return the classes. Both are found at the first use of a method: to import all of etcd's
            messages takes longer than a call.

    Attributes:
        name: service and method, such as "KV/Range", for errors and statistics.
        path: the gRPC path, such as "/etcdserverpb.KV/Range".
        request: class of the request message.
        reply: class that a reply is decoded into: its message, or the result instead of it.
        cardinality: how many messages travel each way.
        repeatable: whether an attempt with an unknown outcome may be repeated. For a stream this means opening it,
            until its first reply; after that the owner of the stream decides.
        is_mutation: whether it changes anything on the server, so that an unknown outcome matters. A mutation may be
            repeatable, and its outcome can still be unknown after the last attempt.
        served_by_learner: whether a learner serves it; `RANGE` only if it is serializable.
        is_member_local: whether the answer is about the member that gives it. Such a call names its endpoint and is
            never sent to another.
        since: the first release of etcd that serves it, such as "3.5"; empty if every supported one (3.4) does.
    """

    name: str
    path: str
    request: type[Request]
    reply: type[Reply]
    cardinality: Cardinality
    repeatable: bool
    is_mutation: bool
    served_by_learner: bool
    is_member_local: bool
    since: str

    def __init__(
        self,
        name: str,
        request: Callable[[], type[Request]],
        reply: Callable[[], type[Reply]],
        cardinality: Cardinality,
        *,
        package: str,
        repeatable: bool,
        is_mutation: bool,
        served_by_learner: bool = False,
        is_member_local: bool = False,
        since: str = "",
    ) -> None:
        vars(self).update(
            name=name,
            path=f"/{package}.{name}",
            _classes=(request, reply),
            cardinality=cardinality,
            repeatable=repeatable,
            is_mutation=is_mutation,
            served_by_learner=served_by_learner,
            is_member_local=is_member_local,
            since=since,
        )

    def __getattr__(self, name: str) -> type:
        """The class of the requests or replies, at its first use."""
        if name not in _LATE:
            raise AttributeError(f"a Method has no attribute {name!r}")
        found: type = vars(self)["_classes"][_LATE.index(name)]()
        vars(self)[name] = found
        return found

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Method does not change: cannot assign {name!r}")

    def __repr__(self) -> str:
        return f"<Method {self.name}>"


# For code that reads rows and sends nothing. `Method` is invariant, so that the request of another RPC is a type error.
AnyMethod: TypeAlias = Method[Any, Any]


def _read(
    name: str,
    request: Callable[[], type[Request]],
    reply: Callable[[], type[Reply]],
    cardinality: Cardinality = UNARY,
    *,
    package: str = "etcdserverpb",
    repeatable: bool = True,
    served_by_learner: bool = False,
    is_member_local: bool = False,
    since: str = "",
) -> Method[Request, Reply]:
    return Method(
        name,
        request,
        reply,
        cardinality,
        package=package,
        repeatable=repeatable,
        is_mutation=False,
        served_by_learner=served_by_learner,
        is_member_local=is_member_local,
        since=since,
    )


def _mutation(
    name: str,
    request: Callable[[], type[Request]],
    reply: Callable[[], type[Reply]],
    cardinality: Cardinality = UNARY,
    *,
    repeatable: bool = False,
    is_member_local: bool = False,
    since: str = "",
) -> Method[Request, Reply]:
    return Method(
        name,
        request,
        reply,
        cardinality,
        package="etcdserverpb",
        repeatable=repeatable,
        is_mutation=True,
        is_member_local=is_member_local,
        since=since,
    )


# --- KV ---

# A learner serves serializable ranges only, and refuses the others before they run.
RANGE: Final = _read("KV/Range", lambda: pb.RangeRequest, lambda: types.RangeResult, served_by_learner=True)
# The Go client does not repeat it: after the first reply, only the owner can continue behind the last key, at the same
# revision. `StreamedReply` does so at every step, and may repeat it at any time.
RANGE_STREAM: Final = _read(
    "KV/RangeStream", lambda: pb.RangeRequest, lambda: types.RangeChunk, SERVER_STREAMING, repeatable=False, since="3.7"
)
PUT: Final = _mutation("KV/Put", lambda: pb.PutRequest, lambda: types.PutResult)
DELETE_RANGE: Final = _mutation("KV/DeleteRange", lambda: pb.DeleteRangeRequest, lambda: types.DeleteResult)
# A txn that only reads is repeatable too. The row cannot see that, the API can, and has to tell the error handler.
TXN: Final = _mutation("KV/Txn", lambda: pb.TxnRequest, lambda: types.TxnResult)
COMPACT: Final = _mutation("KV/Compact", lambda: pb.CompactionRequest, lambda: types.CompactResult)

# --- Watch ---

# Its owner creates each watcher again at its next revision, so opening the stream again is safe at any time.
WATCH: Final = _read("Watch/Watch", lambda: pb.WatchRequest, lambda: types.WatchReply, BIDIRECTIONAL)

# --- Lease ---

# With ID 0 the server chooses, so a repetition grants a second lease and the first one lingers until its TTL ends. The
# API has to draw the ID itself; then "lease already exists" after an unknown outcome means that it was granted. An ID
# that the user chose may be the lease of another client: there the error stands.
LEASE_GRANT: Final = _mutation(
    "Lease/LeaseGrant", lambda: pb.LeaseGrantRequest, lambda: pb.LeaseGrantResponse, repeatable=True
)
# A repetition is answered "lease not found" if the first attempt got through. After an unknown outcome that is success:
# the lease is gone.
LEASE_REVOKE: Final = _mutation(
    "Lease/LeaseRevoke", lambda: pb.LeaseRevokeRequest, lambda: types.LeaseRevokeResult, repeatable=True
)
# To renew twice is to renew once, a little later. Its owner sends every lease's ID again on the new stream.
LEASE_KEEP_ALIVE: Final = _mutation(
    "Lease/LeaseKeepAlive",
    lambda: pb.LeaseKeepAliveRequest,
    lambda: types.LeaseKeepAliveResult,
    BIDIRECTIONAL,
    repeatable=True,
)
LEASE_TIME_TO_LIVE: Final = _read(
    "Lease/LeaseTimeToLive", lambda: pb.LeaseTimeToLiveRequest, lambda: types.LeaseTimeToLiveResult
)
LEASE_LEASES: Final = _read("Lease/LeaseLeases", lambda: pb.LeaseLeasesRequest, lambda: types.LeaseListResult)

# --- Cluster ---

MEMBER_ADD: Final = _mutation("Cluster/MemberAdd", lambda: pb.MemberAddRequest, lambda: types.MemberAddResult)
MEMBER_REMOVE: Final = _mutation(
    "Cluster/MemberRemove", lambda: pb.MemberRemoveRequest, lambda: types.MemberRemoveResult
)
MEMBER_UPDATE: Final = _mutation(
    "Cluster/MemberUpdate", lambda: pb.MemberUpdateRequest, lambda: types.MemberUpdateResult
)
MEMBER_LIST: Final = _read("Cluster/MemberList", lambda: pb.MemberListRequest, lambda: types.MemberListResult)
MEMBER_PROMOTE: Final = _mutation(
    "Cluster/MemberPromote", lambda: pb.MemberPromoteRequest, lambda: types.MemberPromoteResult
)

# --- Maintenance ---

# Lists, raises or disarms. A repeated disarm changes nothing, but answers with no alarm if the first one got through:
# the API must not read that as "there was none".
ALARM: Final = _mutation("Maintenance/Alarm", lambda: pb.AlarmRequest, lambda: pb.AlarmResponse, repeatable=True)
STATUS: Final = _read(
    "Maintenance/Status",
    lambda: pb.StatusRequest,
    lambda: types.StatusResult,
    served_by_learner=True,
    is_member_local=True,
)
# Its member serves no other client meanwhile, and a repetition would start over.
DEFRAGMENT: Final = _mutation(
    "Maintenance/Defragment", lambda: pb.DefragmentRequest, lambda: types.DefragmentResult, is_member_local=True
)
HASH: Final = _read("Maintenance/Hash", lambda: pb.HashRequest, lambda: types.HashResult, is_member_local=True)
HASH_KV: Final = _read("Maintenance/HashKV", lambda: pb.HashKvRequest, lambda: types.HashKVResult, is_member_local=True)
# Only until its first reply: chunks of two members' databases do not fit together (`StreamedReply(resumes=False)`).
SNAPSHOT: Final = _read(
    "Maintenance/Snapshot",
    lambda: pb.SnapshotRequest,
    lambda: types.SnapshotChunk,
    SERVER_STREAMING,
    served_by_learner=True,
)
# Only the leader serves it, and after an attempt that got through the member that was asked leads no more: a repetition
# is then answered "not leader". The API has to send it to the leader, and after an unknown outcome to look who leads.
MOVE_LEADER: Final = _mutation(
    "Maintenance/MoveLeader", lambda: pb.MoveLeaderRequest, lambda: types.MoveLeaderResult, repeatable=True
)
DOWNGRADE: Final = _mutation(
    "Maintenance/Downgrade", lambda: pb.DowngradeRequest, lambda: types.DowngradeResult, since="3.5"
)

# --- Auth ---

AUTH_ENABLE: Final = _mutation("Auth/AuthEnable", lambda: pb.AuthEnableRequest, lambda: pb.AuthEnableResponse)
AUTH_DISABLE: Final = _mutation("Auth/AuthDisable", lambda: pb.AuthDisableRequest, lambda: pb.AuthDisableResponse)
# The Go client repeats neither of these two, though both may be: the second costs the server one more password hash and
# one more token, no more. A caller that needs the answer passes `retry="always"`.
AUTH_STATUS: Final = _read(
    "Auth/AuthStatus", lambda: pb.AuthStatusRequest, lambda: types.AuthStatus, repeatable=False, since="3.5"
)
AUTHENTICATE: Final = _read(
    "Auth/Authenticate", lambda: pb.AuthenticateRequest, lambda: types.AuthenticateResult, repeatable=False
)
USER_ADD: Final = _mutation("Auth/UserAdd", lambda: pb.AuthUserAddRequest, lambda: pb.AuthUserAddResponse)
USER_GET: Final = _read("Auth/UserGet", lambda: pb.AuthUserGetRequest, lambda: pb.AuthUserGetResponse)
USER_LIST: Final = _read("Auth/UserList", lambda: pb.AuthUserListRequest, lambda: types.UserListResult)
USER_DELETE: Final = _mutation("Auth/UserDelete", lambda: pb.AuthUserDeleteRequest, lambda: pb.AuthUserDeleteResponse)
USER_CHANGE_PASSWORD: Final = _mutation(
    "Auth/UserChangePassword", lambda: pb.AuthUserChangePasswordRequest, lambda: pb.AuthUserChangePasswordResponse
)
USER_GRANT_ROLE: Final = _mutation(
    "Auth/UserGrantRole", lambda: pb.AuthUserGrantRoleRequest, lambda: pb.AuthUserGrantRoleResponse
)
USER_REVOKE_ROLE: Final = _mutation(
    "Auth/UserRevokeRole", lambda: pb.AuthUserRevokeRoleRequest, lambda: pb.AuthUserRevokeRoleResponse
)
ROLE_ADD: Final = _mutation("Auth/RoleAdd", lambda: pb.AuthRoleAddRequest, lambda: pb.AuthRoleAddResponse)
ROLE_GET: Final = _read("Auth/RoleGet", lambda: pb.AuthRoleGetRequest, lambda: pb.AuthRoleGetResponse)
ROLE_LIST: Final = _read("Auth/RoleList", lambda: pb.AuthRoleListRequest, lambda: types.RoleListResult)
ROLE_DELETE: Final = _mutation("Auth/RoleDelete", lambda: pb.AuthRoleDeleteRequest, lambda: pb.AuthRoleDeleteResponse)
ROLE_GRANT_PERMISSION: Final = _mutation(
    "Auth/RoleGrantPermission", lambda: pb.AuthRoleGrantPermissionRequest, lambda: pb.AuthRoleGrantPermissionResponse
)
ROLE_REVOKE_PERMISSION: Final = _mutation(
    "Auth/RoleRevokePermission", lambda: pb.AuthRoleRevokePermissionRequest, lambda: pb.AuthRoleRevokePermissionResponse
)

ALL: Final[tuple[AnyMethod, ...]] = tuple(value for value in tuple(vars().values()) if isinstance(value, Method))
"""Every RPC of etcd's six services, in the order of the .proto file."""

# --- gRPC's health service, which is not etcd's own and so not in ALL ---

_HEALTH: Final = "grpc.health.v1"
HEALTH_CHECK: Final = _read(
    "Health/Check",
    lambda: pb.health.HealthCheckRequest,
    lambda: pb.health.HealthCheckResponse,
    package=_HEALTH,
    is_member_local=True,
)
HEALTH_WATCH: Final = _read(
    "Health/Watch",
    lambda: pb.health.HealthCheckRequest,
    lambda: pb.health.HealthCheckResponse,
    SERVER_STREAMING,
    package=_HEALTH,
    is_member_local=True,
)
