"""Description: what a call was about, in words for its error. Pure, and used only after a failure.

Keys and names are shown, long ones shortened. Values, passwords and tokens never are.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from etcd_aio import codec, methods, pb
from etcd_aio.error_handler.credentials import Credentials, Password
from etcd_aio.errors import (
    EtcdError,
    LeaseNotFoundError,
    MalformedReplyError,
    PermissionDeniedError,
    RequestTooLargeError,
    TooManyOpsError,
    UserEmptyError,
)
from etcd_aio.methods import AnyMethod
from etcd_aio.types import shown_keys, shown_text

_MAX_SUBJECTS: Final = 3  # of a txn


def explain(
    error: EtcdError, method: AnyMethod, request: "pb.Message | bytes", credentials: Credentials | None
) -> None:
    """Add to an error which call it ends, and which part of the request it is about.

    Args:
        error: of the call. An error of a call within this one (a login) keeps the description of that call.
        method: the RPC.
        request: its message, or the bytes of one.
        credentials: of the client.
    """
    try:
        message = codec.decode(method.request, request) if isinstance(request, bytes) else request
    except MalformedReplyError:  # the bytes are not such a request: the error matters more than its description
        message = method.request()
    call = _WORDS[method.name](message)
    if error.call:
        error.call = f"{call}: {error.call}"
    else:
        error.call = call
        size = len(request) if isinstance(request, bytes) else len(codec.encode(request))
        error.detail = _detail(error, message, size, credentials)


def _detail(error: EtcdError, request: "pb.Message", size: int, credentials: Credentials | None) -> str:
    """Return the part of the request that an error is about, unless the error or the name of the call has it."""
    match error, request:
        case PermissionDeniedError(), _ if isinstance(credentials, Password):
            return f"user {shown_text(credentials.name)}"
        case UserEmptyError(), _ if credentials is None:
            return "this cluster requires credentials: pass auth= or token="
        case RequestTooLargeError(), _ if error.message == RequestTooLargeError.default_message:
            return f"it has {size} bytes; etcd accepts 1.5 MiB unless --max-request-bytes is set"
        case TooManyOpsError(), pb.TxnRequest():
            return f"{_count(request)} operations; etcd accepts 128 unless --max-txn-ops is set"
        case LeaseNotFoundError(), pb.TxnRequest():
            leases = dict.fromkeys(put.lease for put in _puts(request) if put.lease)
            return f"one of {', '.join(map(_hex, leases))}" if len(leases) > 1 else "".join(map(_hex, leases))
        case _:
            return ""


# --- one row for each RPC, in the words of the API ---


def _range(request: "pb.RangeRequest", word: str = "range") -> str:
    verb = word if request.range_end else "get"
    at = f" at revision {request.revision}" if request.revision else ""
    return f"{verb} {shown_keys(request.key, request.range_end)}{at}"


def _put(request: "pb.PutRequest") -> str:
    lease = f" with lease 0x{_hex(request.lease)}" if request.lease else ""
    return f"put {shown_keys(request.key)}{lease}"


def _txn(request: "pb.TxnRequest") -> str:
    subjects = tuple(dict.fromkeys(_subjects(request)))
    if not subjects:
        return "txn"
    more = f" and {len(subjects) - _MAX_SUBJECTS} more" if len(subjects) > _MAX_SUBJECTS else ""
    return f"txn on {', '.join(subjects[:_MAX_SUBJECTS])}{more}"


def _watch(request: "pb.WatchRequest") -> str:
    create = request.create_request
    if create is None:
        return "watch"
    since = f" from revision {create.start_revision}" if create.start_revision else ""
    return f"watch {shown_keys(create.key, create.range_end)}{since}"


def _alarm(request: "pb.AlarmRequest") -> str:
    verb = {pb.AlarmRequestAlarmAction.ACTIVATE: "raise", pb.AlarmRequestAlarmAction.DEACTIVATE: "disarm"}
    return f"{verb.get(request.action, 'list')} alarms"


def _grant_permission(request: "pb.AuthRoleGrantPermissionRequest") -> str:
    perm = request.perm or pb.Permission()
    return f"grant permission on {shown_keys(perm.key, perm.range_end)} to role {shown_text(request.name)}"


def _revoke_permission(request: "pb.AuthRoleRevokePermissionRequest") -> str:
    keys = shown_keys(request.key, request.range_end)
    return f"revoke permission on {keys} from role {shown_text(request.role)}"


def _member_urls(request: "pb.MemberAddRequest | pb.MemberUpdateRequest") -> str:
    return ", ".join(map(shown_text, request.peer_urls))


def _plain(words: str) -> Callable[[Any], str]:
    return lambda request: words


_WORDS: Final[Mapping[str, Callable[[Any], str]]] = {
    methods.RANGE.name: _range,
    methods.RANGE_STREAM.name: lambda request: _range(request, "scan"),
    methods.PUT.name: _put,
    methods.DELETE_RANGE.name: lambda request: f"delete {shown_keys(request.key, request.range_end)}",
    methods.TXN.name: _txn,
    methods.COMPACT.name: lambda request: f"compact at revision {request.revision}",
    methods.WATCH.name: _watch,
    methods.LEASE_GRANT.name: lambda request: f"grant lease 0x{_hex(request.id)} of {request.ttl} s",
    methods.LEASE_REVOKE.name: lambda request: f"revoke lease 0x{_hex(request.id)}",
    methods.LEASE_KEEP_ALIVE.name: lambda request: f"keep lease 0x{_hex(request.id)} alive",
    methods.LEASE_TIME_TO_LIVE.name: lambda request: f"time to live of lease 0x{_hex(request.id)}",
    methods.LEASE_LEASES.name: _plain("list leases"),
    methods.MEMBER_ADD.name: lambda request: f"add member {_member_urls(request)}",
    methods.MEMBER_REMOVE.name: lambda request: f"remove member {_hex(request.id)}",
    methods.MEMBER_UPDATE.name: lambda request: f"update member {_hex(request.id)} to {_member_urls(request)}",
    methods.MEMBER_LIST.name: _plain("list members"),
    methods.MEMBER_PROMOTE.name: lambda request: f"promote member {_hex(request.id)}",
    methods.ALARM.name: _alarm,
    methods.STATUS.name: _plain("status"),
    methods.DEFRAGMENT.name: _plain("defragment"),
    methods.HASH.name: _plain("hash"),
    methods.HASH_KV.name: _plain("hash of the keys"),
    methods.SNAPSHOT.name: _plain("snapshot"),
    methods.MOVE_LEADER.name: lambda request: f"move leader to member {_hex(request.target_id)}",
    methods.DOWNGRADE.name: lambda request: f"downgrade to {shown_text(request.version)}",
    methods.AUTH_ENABLE.name: _plain("enable authentication"),
    methods.AUTH_DISABLE.name: _plain("disable authentication"),
    methods.AUTH_STATUS.name: _plain("status of authentication"),
    methods.AUTHENTICATE.name: lambda request: f"log in as {shown_text(request.name)}",
    methods.USER_ADD.name: lambda request: f"add user {shown_text(request.name)}",
    methods.USER_GET.name: lambda request: f"get user {shown_text(request.name)}",
    methods.USER_LIST.name: _plain("list users"),
    methods.USER_DELETE.name: lambda request: f"delete user {shown_text(request.name)}",
    methods.USER_CHANGE_PASSWORD.name: lambda request: f"change password of user {shown_text(request.name)}",
    methods.USER_GRANT_ROLE.name: lambda request: (
        f"grant role {shown_text(request.role)} to user {shown_text(request.user)}"
    ),
    methods.USER_REVOKE_ROLE.name: lambda request: (
        f"revoke role {shown_text(request.role)} from user {shown_text(request.name)}"
    ),
    methods.ROLE_ADD.name: lambda request: f"add role {shown_text(request.name)}",
    methods.ROLE_GET.name: lambda request: f"get role {shown_text(request.role)}",
    methods.ROLE_LIST.name: _plain("list roles"),
    methods.ROLE_DELETE.name: lambda request: f"delete role {shown_text(request.role)}",
    methods.ROLE_GRANT_PERMISSION.name: _grant_permission,
    methods.ROLE_REVOKE_PERMISSION.name: _revoke_permission,
    methods.HEALTH_CHECK.name: _plain("health check"),
    methods.HEALTH_WATCH.name: _plain("health watch"),
}


# --- the parts of a txn ---


def _hex(number: int) -> str:
    return f"{number:x}"  # as etcdctl shows ids


def _branches(request: "pb.TxnRequest") -> "Iterable[pb.RequestOp]":
    return (*request.success, *request.failure)


def _subjects(request: "pb.TxnRequest") -> Iterator[str]:
    """Yield the keys that the txn compares or touches."""
    for compare in request.compare:
        yield shown_keys(compare.key, compare.range_end)
    for operation in _branches(request):
        if operation.request_txn is not None:
            yield from _subjects(operation.request_txn)
        elif operation.request_put is not None:
            yield shown_keys(operation.request_put.key)
        else:
            keys = operation.request_range or operation.request_delete_range
            if keys is not None:
                yield shown_keys(keys.key, keys.range_end)


def _puts(request: "pb.TxnRequest") -> "Iterator[pb.PutRequest]":
    for operation in _branches(request):
        if operation.request_put is not None:
            yield operation.request_put
        elif operation.request_txn is not None:
            yield from _puts(operation.request_txn)


def _count(request: "pb.TxnRequest") -> int:
    """Return how many operations etcd counts: those of the longest list, and of the longest list of a nested txn."""
    inner = (_count(operation.request_txn) for operation in _branches(request) if operation.request_txn is not None)
    return max(len(request.compare), len(request.success), len(request.failure)) + max(inner, default=0)
