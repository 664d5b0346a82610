"""error_handler/description.py: every call says in its error what it was about, and nothing secret."""

import pytest

from etcd_aio import codec, methods, op, pb
from etcd_aio.error_handler.credentials import Credentials, Password, StaticToken
from etcd_aio.error_handler.description import explain
from etcd_aio.errors import (
    AuthenticationFailedError,
    EtcdError,
    LeaseNotFoundError,
    PermissionDeniedError,
    RequestTooLargeError,
    TooManyOpsError,
    UserEmptyError,
)
from etcd_aio.kv.compare import Compare, Key
from etcd_aio.kv.operations import Op, TxnOp
from etcd_aio.methods import AnyMethod
from tests.support.canary import CANARY

# What each call says of its request, which holds secrets wherever it can.
SAYS: dict[str, tuple[pb.Message, str]] = {
    "KV/Range": (pb.RangeRequest(key=b"p/", range_end=b"p0"), "range prefix='p/'"),
    "KV/RangeStream": (pb.RangeRequest(key=b"p/", range_end=b"p0"), "scan prefix='p/'"),
    "KV/Put": (pb.PutRequest(key=b"k", value=CANARY.encode()), "put 'k'"),
    "KV/DeleteRange": (pb.DeleteRangeRequest(key=b"\0", range_end=b"\0"), "delete all_keys=True"),
    "KV/Txn": (
        pb.TxnRequest(compare=[pb.Compare(key=b"c", value=CANARY.encode())]),
        "txn on 'c'",
    ),
    "KV/Compact": (pb.CompactionRequest(revision=7), "compact at revision 7"),
    "Watch/Watch": (
        pb.WatchRequest(create_request=pb.WatchCreateRequest(key=b"k", range_end=b"\0", start_revision=5)),
        "watch from_key='k' from revision 5",
    ),
    "Lease/LeaseGrant": (pb.LeaseGrantRequest(id=0xABC, ttl=10), "grant lease 0xabc of 10 s"),
    "Lease/LeaseRevoke": (pb.LeaseRevokeRequest(id=0xABC), "revoke lease 0xabc"),
    "Lease/LeaseKeepAlive": (pb.LeaseKeepAliveRequest(id=0xABC), "keep lease 0xabc alive"),
    "Lease/LeaseTimeToLive": (pb.LeaseTimeToLiveRequest(id=0xABC), "time to live of lease 0xabc"),
    "Lease/LeaseLeases": (pb.LeaseLeasesRequest(), "list leases"),
    "Cluster/MemberAdd": (pb.MemberAddRequest(peer_urls=["http://m4:2380"]), "add member 'http://m4:2380'"),
    "Cluster/MemberRemove": (pb.MemberRemoveRequest(id=0xABC), "remove member abc"),
    "Cluster/MemberUpdate": (
        pb.MemberUpdateRequest(id=0xABC, peer_urls=["http://m4:2380"]),
        "update member abc to 'http://m4:2380'",
    ),
    "Cluster/MemberList": (pb.MemberListRequest(), "list members"),
    "Cluster/MemberPromote": (pb.MemberPromoteRequest(id=0xABC), "promote member abc"),
    "Maintenance/Alarm": (pb.AlarmRequest(action=pb.AlarmRequestAlarmAction.DEACTIVATE), "disarm alarms"),
    "Maintenance/Status": (pb.StatusRequest(), "status"),
    "Maintenance/Defragment": (pb.DefragmentRequest(), "defragment"),
    "Maintenance/Hash": (pb.HashRequest(), "hash"),
    "Maintenance/HashKV": (pb.HashKvRequest(), "hash of the keys"),
    "Maintenance/Snapshot": (pb.SnapshotRequest(), "snapshot"),
    "Maintenance/MoveLeader": (pb.MoveLeaderRequest(target_id=0xABC), "move leader to member abc"),
    "Maintenance/Downgrade": (pb.DowngradeRequest(version="3.6"), "downgrade to '3.6'"),
    "Auth/AuthEnable": (pb.AuthEnableRequest(), "enable authentication"),
    "Auth/AuthDisable": (pb.AuthDisableRequest(), "disable authentication"),
    "Auth/AuthStatus": (pb.AuthStatusRequest(), "status of authentication"),
    "Auth/Authenticate": (pb.AuthenticateRequest(name="eve", password=CANARY), "log in as 'eve'"),
    "Auth/UserAdd": (pb.AuthUserAddRequest(name="eve", password=CANARY), "add user 'eve'"),
    "Auth/UserGet": (pb.AuthUserGetRequest(name="eve"), "get user 'eve'"),
    "Auth/UserList": (pb.AuthUserListRequest(), "list users"),
    "Auth/UserDelete": (pb.AuthUserDeleteRequest(name="eve"), "delete user 'eve'"),
    "Auth/UserChangePassword": (
        pb.AuthUserChangePasswordRequest(name="eve", password=CANARY),
        "change password of user 'eve'",
    ),
    "Auth/UserGrantRole": (pb.AuthUserGrantRoleRequest(user="eve", role="r"), "grant role 'r' to user 'eve'"),
    "Auth/UserRevokeRole": (pb.AuthUserRevokeRoleRequest(name="eve", role="r"), "revoke role 'r' from user 'eve'"),
    "Auth/RoleAdd": (pb.AuthRoleAddRequest(name="r"), "add role 'r'"),
    "Auth/RoleGet": (pb.AuthRoleGetRequest(role="r"), "get role 'r'"),
    "Auth/RoleList": (pb.AuthRoleListRequest(), "list roles"),
    "Auth/RoleDelete": (pb.AuthRoleDeleteRequest(role="r"), "delete role 'r'"),
    "Auth/RoleGrantPermission": (
        pb.AuthRoleGrantPermissionRequest(name="r", perm=pb.Permission(key=b"p/", range_end=b"p0")),
        "grant permission on prefix='p/' to role 'r'",
    ),
    "Auth/RoleRevokePermission": (
        pb.AuthRoleRevokePermissionRequest(role="r", key=b"p/", range_end=b"p0"),
        "revoke permission on prefix='p/' from role 'r'",
    ),
    "Health/Check": (pb.health.HealthCheckRequest(), "health check"),
    "Health/Watch": (pb.health.HealthCheckRequest(), "health watch"),
}


def explained(
    error: EtcdError,
    method: AnyMethod,
    request: pb.Message | bytes,
    credentials: Credentials | None = None,
) -> EtcdError:
    explain(error, method, request, credentials)
    return error


def of_txn(error: EtcdError, *then: Op, when: tuple[Compare, ...] = ()) -> EtcdError:
    return explained(error, methods.TXN, TxnOp(when, then).message())


@pytest.mark.parametrize("method", [*methods.ALL, methods.HEALTH_CHECK, methods.HEALTH_WATCH], ids=lambda one: one.name)
def test_every_call_is_described_from_a_message_and_from_bytes_without_a_secret(method: AnyMethod) -> None:
    request, words = SAYS[method.name]
    for given in (request, codec.encode(request)):
        error = explained(EtcdError("failed"), method, given)
        assert (error.call, str(error)) == (words, f"{words}: failed")
        assert CANARY not in repr(vars(error))


def test_a_range_of_one_key_is_described_as_a_get_with_its_revision() -> None:
    assert explained(EtcdError(), methods.RANGE, pb.RangeRequest(key=b"k", revision=5)).call == "get 'k' at revision 5"


def test_the_description_of_a_put_has_its_lease() -> None:
    assert explained(EtcdError(), methods.PUT, pb.PutRequest(key=b"k", lease=0xABC)).call == "put 'k' with lease 0xabc"


@pytest.mark.parametrize(
    ("action", "says"),
    [(pb.AlarmRequestAlarmAction.GET, "list alarms"), (pb.AlarmRequestAlarmAction.ACTIVATE, "raise alarms")],
)
def test_the_description_of_an_alarm_call_has_its_action(action: pb.AlarmRequestAlarmAction, says: str) -> None:
    assert explained(EtcdError(), methods.ALARM, pb.AlarmRequest(action=action)).call == says


def test_long_and_strange_keys_are_cut_and_escaped() -> None:
    call = explained(EtcdError(), methods.PUT, pb.PutRequest(key=b"k" * 1000)).call
    assert call == f"put '{'k' * 64}'...<1000 characters>"
    assert explained(EtcdError(), methods.PUT, pb.PutRequest(key=b"\xff\n")).call == "put b'\\xff\\n'"
    assert explained(EtcdError(), methods.PUT, pb.PutRequest(key=b"a\nb")).call == "put 'a\\nb'"


def test_a_txn_tells_the_first_of_its_keys_once_each() -> None:
    inner = op.txn(then=[op.get("i"), op.put("a", "1")])
    when = (Key("a").version == 1,)
    error = of_txn(EtcdError(), op.put("a", "1"), op.range(prefix="r/"), op.delete("d"), inner, when=when)
    assert error.call == "txn on 'a', prefix='r/', 'd' and 1 more"
    assert of_txn(EtcdError()).call == "txn"


def test_the_description_of_a_call_within_a_call_has_both() -> None:
    login = explained(AuthenticationFailedError(), methods.AUTHENTICATE, pb.AuthenticateRequest(name="eve"))
    explain(login, methods.PUT, pb.PutRequest(key=b"k"), None)
    assert login.call == "put 'k': log in as 'eve'"


def test_bytes_that_are_no_request_do_not_hide_the_error() -> None:
    assert explained(EtcdError("failed"), methods.PUT, b"\xff").call == "put ''"


# --- what of a request an error is about ---


def test_a_denied_permission_names_the_user_if_it_is_known() -> None:
    request = pb.RangeRequest(key=b"p/", range_end=b"p0")
    error = explained(PermissionDeniedError(), methods.RANGE, request, Password("eve", CANARY))
    assert str(error) == "range prefix='p/': etcdserver: permission denied: user 'eve'"
    assert CANARY not in repr(vars(error))
    assert explained(PermissionDeniedError(), methods.RANGE, request, StaticToken(CANARY)).detail == ""


def test_a_cluster_that_wants_credentials_says_how_to_give_them() -> None:
    error = explained(UserEmptyError(), methods.RANGE, pb.RangeRequest(key=b"k"))
    assert str(error) == (
        "get 'k': etcdserver: user name is empty: this cluster requires credentials: pass auth= or token="
    )
    assert explained(UserEmptyError(), methods.RANGE, pb.RangeRequest(key=b"k"), Password("eve", "x")).detail == ""


def test_a_request_that_is_too_large_tells_its_size_and_the_limit() -> None:
    request = codec.encode(pb.PutRequest(key=b"k", value=b"x" * 2000))
    error = explained(RequestTooLargeError(), methods.PUT, request)
    assert error.detail == f"it has {len(request)} bytes; etcd accepts 1.5 MiB unless --max-request-bytes is set"
    ours = RequestTooLargeError("the request has 9 bytes, more than max_send_bytes (8)")
    assert explained(ours, methods.PUT, request).detail == ""


def test_too_many_operations_are_counted_as_etcd_does() -> None:
    puts = [op.put(str(number), "x") for number in range(128)]
    error = of_txn(TooManyOpsError(), op.txn(then=puts[:70]), *puts)
    assert error.detail == "199 operations; etcd accepts 128 unless --max-txn-ops is set"


@pytest.mark.parametrize(
    ("leases", "says"), [((), ""), ((0xA,), "a"), ((0xA, 0), "a"), ((0xA, 0xB, 0xA), "one of b, a")]
)
def test_a_txn_tells_the_leases_of_which_one_was_not_found(leases: tuple[int, ...], says: str) -> None:
    puts = [op.put(str(number), "x", lease=lease) for number, lease in enumerate(leases)]
    assert of_txn(LeaseNotFoundError(), op.txn(then=puts[1:]), *puts[:1], op.get("k")).detail == says
