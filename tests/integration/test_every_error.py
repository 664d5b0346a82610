"""Every error of etcd's table arrives as its class: from a real server wherever one can be made to give it."""

import asyncio
import importlib
import inspect
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from etcd_aio import Client, methods, pb
from etcd_aio.error_handler import RetryPolicy
from etcd_aio.errors import (
    AuthenticationFailedError,
    AuthNotEnabledError,
    AuthOldRevisionError,
    BadLeaderTransfereeError,
    ClusterIDMismatchError,
    ClusterVersionUnavailableError,
    Delivery,
    DuplicateWatchIDError,
    EmptyKeyError,
    EmptyWatcherRangeError,
    InvalidAuthManagementError,
    InvalidClientAPIVersionError,
    InvalidDowngradeTargetVersionError,
    InvalidSortOptionError,
    InvalidTokenError,
    LeaderChangedError,
    LeaseExistsError,
    LeaseProvidedError,
    LeaseTTLTooLargeError,
    MemberBadURLsError,
    MemberExistsError,
    MemberNotEnoughStartedError,
    MemberNotFoundError,
    MemberNotLearnerError,
    NoInflightDowngradeError,
    NoLeaderError,
    NotCapableError,
    NotPrimaryLessorError,
    NotRaftLeaderError,
    PeerURLExistsError,
    PermissionDeniedError,
    PermissionNotGivenError,
    PermissionNotGrantedError,
    ProposalDroppedError,
    RequestCancelledError,
    RequestDeadlineExceededError,
    RequestTimedOutError,
    RetryHint,
    RoleAlreadyExistsError,
    RoleEmptyError,
    RoleNotFoundError,
    RoleNotGrantedError,
    RootRoleNotExistError,
    RootUserNotExistError,
    ServerError,
    ServerStoppedError,
    StatusCode,
    TimeoutDueToConnectionLostError,
    TimeoutDueToLeaderFailError,
    TimeoutLeaderTransferError,
    TimeoutWaitAppliedIndexError,
    TooManyRequestsError,
    UnhealthyClusterError,
    UserAlreadyExistsError,
    UserEmptyError,
    UserNotFoundError,
    ValueProvidedError,
    WatchCancelledError,
    WrongDowngradeVersionFormatError,
    server_error,
)
from etcd_aio.errors.server_error_table import ROWS, Row
from etcd_aio.testing import EtcdCluster, EtcdServer
from tests.support.conversations import Recorder
from tests.support.raw import carry, send
from tests.support.scripted import GRPC, Wire, scripted
from tests.support.versions import is_at_least, need, need_beside

if TYPE_CHECKING:
    from etcd_aio.types import WatchReply

pytestmark = [pytest.mark.anyio, pytest.mark.http2_only]
cluster_test = pytest.mark.cluster

# Where a real server gives each: a file of this folder and a test in it, which names the class.
REAL: dict[str, str] = {
    **dict.fromkeys(
        (
            *("CompactedError", "FutureRevisionError", "TooManyOpsError", "DuplicateKeyError", "KeyNotFoundError"),
            *("LeaseNotFoundError", "RequestTooLargeError"),
        ),
        "test_server_errors:ERRORS",
    ),
    "CompactedError": "test_server_errors:test_compacted",
    "NoSpaceError": "test_server_errors:test_no_space",
    "CorruptError": "test_server_errors:test_corrupt",
    "TooManyLearnersError": "test_cluster:test_a_fourth_member_is_added_as_a_learner_promoted_and_removed",
    "LearnerNotReadyError": "test_cluster:test_a_fourth_member_is_added_as_a_learner_promoted_and_removed",
    "NotSupportedForLearnerError": "test_cluster:test_a_fourth_member_is_added_as_a_learner_promoted_and_removed",
    "DowngradeInProcessError": "test_maintenance:test_a_downgrade_is_checked_begun_and_cancelled",
    **dict.fromkeys(
        (
            *("EmptyKeyError", "ValueProvidedError", "LeaseProvidedError", "InvalidSortOptionError"),
            *("LeaseExistsError", "LeaseTTLTooLargeError"),
        ),
        "test_every_error:test_requests_that_cannot_be_right",
    ),
    **dict.fromkeys(
        ("EmptyWatcherRangeError", "DuplicateWatchIDError"), "test_every_error:test_watches_that_cannot_be_right"
    ),
    **dict.fromkeys(
        (
            *("MemberBadURLsError", "MemberNotFoundError", "MemberNotLearnerError", "PeerURLExistsError"),
            *("BadLeaderTransfereeError", "MemberNotEnoughStartedError"),
        ),
        "test_every_error:test_members_that_cannot_be_right",
    ),
    **dict.fromkeys(
        ("WrongDowngradeVersionFormatError", "InvalidDowngradeTargetVersionError"),
        "test_every_error:test_downgrades_that_cannot_be_right",
    ),
    "NoInflightDowngradeError": "test_every_error:test_a_downgrade_that_is_none_is_cancelled",
    **dict.fromkeys(
        (
            *("NotRaftLeaderError", "UnhealthyClusterError", "NoLeaderError", "RequestTimedOutError"),
            *("RequestDeadlineExceededError", "LeaderChangedError"),
        ),
        "test_every_error:test_a_leader_that_loses_its_followers",
    ),
    **dict.fromkeys(
        (
            *("AuthNotEnabledError", "RootUserNotExistError", "RootRoleNotExistError", "UserNotFoundError"),
            *("RoleNotFoundError", "UserEmptyError", "RoleEmptyError", "UserAlreadyExistsError"),
            *("RoleAlreadyExistsError", "PermissionNotGivenError", "PermissionNotGrantedError", "RoleNotGrantedError"),
            *("AuthenticationFailedError", "InvalidTokenError", "PermissionDeniedError", "InvalidAuthManagementError"),
        ),
        "test_every_error:test_users_and_roles",
    ),
    "AuthOldRevisionError": "test_every_error:test_a_token_older_than_the_users",
}

# What no server can be made to say when a test wants it, and why. A scripted one says it.
SCRIPTED_ONLY: dict[type[ServerError], str] = {
    InvalidClientAPIVersionError: "what this client says of itself is always text",
    MemberExistsError: "the id is a hash that the server draws from the time",
    ClusterIDMismatchError: "members say it to each other",
    ClusterVersionUnavailableError: "only in the moment before the members have agreed",
    NotCapableError: "only in the moment after a start",
    TooManyRequestsError: "a member would have to fall five thousand entries behind",
    WatchCancelledError: "only to a stream whose client has just cancelled it",
    RequestCancelledError: "only to a call that its client has just cancelled",
    ServerStoppedError: "a server that ends first lets its calls end",
    TimeoutDueToLeaderFailError: "whether it is this one or another timeout is chance",
    TimeoutDueToConnectionLostError: "whether it is this one or another timeout is chance",
    TimeoutWaitAppliedIndexError: "a disk would have to stand still",
    TimeoutLeaderTransferError: "this side gives up at the same moment",
    NotPrimaryLessorError: "only in the moment after a leader has lost its place",
    ProposalDroppedError: "only in the moment in which a leader hands over",
}


def test_no_error_of_the_table_is_left_out() -> None:
    scripted_only = {error.__name__ for error in SCRIPTED_ONLY}
    assert not scripted_only & REAL.keys()
    assert scripted_only | REAL.keys() == {row.error.__name__ for row in ROWS}


@pytest.mark.parametrize("where", sorted(set(REAL.values())))
def test_the_tests_that_are_named_are_there_and_name_their_errors(where: str) -> None:
    file, _, name = where.partition(":")
    module = importlib.import_module(f"tests.integration.{file}")
    found = getattr(module, name)
    named = str(found) if isinstance(found, dict) else inspect.getsource(found)
    assert not [error for error, test in REAL.items() if test == where and error not in named]


# A client without a token may be known by a certificate, which etcd may have to look at again.
TRIED_AGAIN = {InvalidTokenError}
AFTER_CHANGES = {AuthOldRevisionError}  # as often as users and roles may have changed

# --- real servers ---


async def refused(
    call: Awaitable[object],
    expected: type[ServerError],
    endpoint: str,
    *,
    codes: tuple[StatusCode, ...] = (),
) -> None:
    """The call ends with this error, which tells its story.

    Args:
        call: what cannot succeed.
        expected: its error.
        endpoint: where it was made.
        codes: statuses that may be sent instead of the table's.
    """
    with pytest.raises(expected) as caught:
        await call
    error = caught.value
    assert type(error) is expected, repr(error)
    texts = {row.message: row.code for row in ROWS if row.error is expected}
    assert str(error).startswith(f"{error.call}: {error.message}")
    assert error.call
    assert error.code in (texts[error.message], *codes)
    assert len(error.attempts) == (2 if expected in TRIED_AGAIN else 1)
    for attempt in error.attempts:
        assert (attempt.code, attempt.message, attempt.delivery) == (error.code, error.message, Delivery.ANSWERED)
        assert error.endpoint == attempt.endpoint == endpoint
    assert not (error.maybe_applied and error.is_definite)


@cluster_test
async def test_requests_that_cannot_be_right(client: Client, shared_server: EtcdServer, prefix: str) -> None:
    where, key = shared_server.endpoint, prefix.encode()

    def put(request: pb.PutRequest) -> Awaitable[object]:
        return send(client, methods.PUT, request)

    await refused(put(pb.PutRequest()), EmptyKeyError, where)
    await refused(put(pb.PutRequest(key=key, value=b"v", ignore_value=True)), ValueProvidedError, where)
    await refused(put(pb.PutRequest(key=key, lease=1, ignore_lease=True)), LeaseProvidedError, where)
    if is_at_least("3.6"):  # older ones sort in no order then
        unknown_order = bytes(pb.RangeRequest(key=b"k")) + b"\x28\x07"
        await refused(send(client, methods.RANGE, unknown_order), InvalidSortOptionError, where)
    too_long = pb.LeaseGrantRequest(ttl=9_000_000_001)
    await refused(send(client, methods.LEASE_GRANT, too_long), LeaseTTLTooLargeError, where)
    lease = await client.leases.grant(60)
    await refused(client.leases.grant(60, id=lease.id), LeaseExistsError, where)
    await client.leases.revoke(lease)


@cluster_test
async def test_watches_that_cannot_be_right(client: Client) -> None:
    """The hub sends none of these; what the server says of them is what the table holds."""
    empty = pb.WatchRequest(create_request=pb.WatchCreateRequest(key=b"b", range_end=b"a"))
    twice = pb.WatchRequest(create_request=pb.WatchCreateRequest(key=b"k", watch_id=7))
    talk: Recorder[pb.WatchRequest, WatchReply] = Recorder(empty, twice, twice)
    supervisor = client._invoker.supervise(methods.WATCH, talk, "test")
    supervisor.wake()
    async with asyncio.timeout(10):
        while len(talk.replies) < 3:  # noqa: ASYNC110 - the recorder has no event to wait for
            await asyncio.sleep(0.01)
    talk.wanted = False
    supervisor.wake()
    reasons = [reply.cancel_reason for reply in talk.replies if reply.canceled]
    assert [type(server_error(None, reason)) for reason in reasons] == [EmptyWatcherRangeError, DuplicateWatchIDError]


@cluster_test
async def test_members_that_cannot_be_right() -> None:
    async with EtcdServer() as server, Client(server.endpoint, require_leader=False) as client:
        where, (member,) = server.endpoint, await client.cluster.members()
        await refused(
            send(client, methods.MEMBER_ADD, pb.MemberAddRequest(peer_urls=["nowhere"])), MemberBadURLsError, where
        )
        await refused(client.cluster.remove(12345), MemberNotFoundError, where)
        await refused(client.cluster.promote(member), MemberNotLearnerError, where)
        await refused(client.cluster.add(member.peer_urls), PeerURLExistsError, where)
        move = pb.MoveLeaderRequest(target_id=12345)
        await refused(send(client, methods.MOVE_LEADER, move), BadLeaderTransfereeError, where)
        await client.cluster.add("http://127.0.0.1:1")  # from now on there is no quorum
        more = client.cluster.add("http://127.0.0.1:2")
        await refused(more, MemberNotEnoughStartedError, where, codes=(StatusCode.UNKNOWN,))


@cluster_test
async def test_downgrades_that_cannot_be_right(client: Client, shared_server: EtcdServer) -> None:
    need("3.5", why="it is the first that answers to Downgrade")
    where, downgrade = shared_server.endpoint, client.maintenance.downgrade
    await refused(downgrade("validate", "three"), WrongDowngradeVersionFormatError, where)
    await refused(downgrade("validate", "3.0.0"), InvalidDowngradeTargetVersionError, where)


@cluster_test
async def test_a_downgrade_that_is_none_is_cancelled() -> None:
    """Newer servers have nothing against it."""
    need_beside("3.5")
    async with EtcdServer(version="3.5") as server, Client(server.endpoint) as client:
        await refused(client.maintenance.downgrade("cancel"), NoInflightDowngradeError, server.endpoint)


@cluster_test
@pytest.mark.slow
async def test_a_leader_that_loses_its_followers() -> None:
    """etcd itself takes five seconds to give up what it cannot finish."""
    async with EtcdCluster(size=3, heartbeat_ms=50, election_ms=500) as cluster:
        leader = await cluster.leader()
        one, another = await cluster.followers()
        where = leader.endpoint
        async with Client(cluster.endpoints) as client:
            move = pb.MoveLeaderRequest(target_id=(await leader.raft_status()).member_id)
            await refused(send(client, methods.MOVE_LEADER, move, one.endpoint), NotRaftLeaderError, one.endpoint)
        async with Client(where, timeout=15, require_leader=False) as patient, Client(where, timeout=15) as client:
            await client.put("k", "v")
            await one.kill()
            await refused(patient.cluster.add("http://127.0.0.1:1", retry="never"), UnhealthyClusterError, where)
            another.pause()
            agreed = asyncio.create_task(patient.put("k", "w", retry="never"))  # it leads yet, and writes it down
            async with asyncio.timeout(10):
                while (await leader.raft_status()).leader_id:  # noqa: ASYNC110 - the server has no event to wait for
                    await asyncio.sleep(0.02)
            await refused(client.put("k", "x", retry="never"), NoLeaderError, where)
            asked = patient.put("k", "x", retry="never")  # no leader is known to the member
            await refused(asked, RequestDeadlineExceededError, where, codes=(StatusCode.UNKNOWN,))
            await refused(agreed, RequestTimedOutError, where)
            reading = asyncio.create_task(patient.get("k", retry="never"))
            await asyncio.sleep(0.2)
            another.resume()
            await refused(reading, LeaderChangedError, where)


@cluster_test
async def test_users_and_roles(monkeypatch: pytest.MonkeyPatch) -> None:
    async with EtcdServer() as server, Client(server.endpoint) as client:
        where = server.endpoint
        root = pb.AuthUserAddRequest(name="root", password="secret")
        role = pb.AuthRoleAddRequest(name="reads")
        log_in = pb.AuthenticateRequest(name="root", password="secret")
        await refused(send(client, methods.AUTHENTICATE, log_in), AuthNotEnabledError, where)
        await refused(send(client, methods.AUTH_ENABLE, pb.AuthEnableRequest()), RootUserNotExistError, where)
        await refused(send(client, methods.USER_GET, pb.AuthUserGetRequest(name="x")), UserNotFoundError, where)
        await refused(send(client, methods.ROLE_GET, pb.AuthRoleGetRequest(role="x")), RoleNotFoundError, where)
        await refused(send(client, methods.USER_ADD, pb.AuthUserAddRequest()), UserEmptyError, where)
        await refused(send(client, methods.ROLE_ADD, pb.AuthRoleAddRequest()), RoleEmptyError, where)
        await send(client, methods.USER_ADD, root)
        await refused(send(client, methods.USER_ADD, root), UserAlreadyExistsError, where)
        await refused(send(client, methods.AUTH_ENABLE, pb.AuthEnableRequest()), RootRoleNotExistError, where)
        await send(client, methods.ROLE_ADD, role)
        await refused(send(client, methods.ROLE_ADD, role), RoleAlreadyExistsError, where)
        take = pb.AuthRoleRevokePermissionRequest(role="reads", key=b"k")
        await refused(send(client, methods.ROLE_REVOKE_PERMISSION, take), PermissionNotGrantedError, where)
        leave = pb.AuthUserRevokeRoleRequest(name="root", role="reads")
        await refused(send(client, methods.USER_REVOKE_ROLE, leave), RoleNotGrantedError, where)
        nothing = pb.AuthRoleGrantPermissionRequest(name="reads")
        if is_at_least("3.4.25"):  # older ones end themselves instead
            await refused(send(client, methods.ROLE_GRANT_PERMISSION, nothing), PermissionNotGivenError, where)
        await enable(client)
        wrong = pb.AuthenticateRequest(name="root", password="wrong")
        await refused(send(client, methods.AUTHENTICATE, wrong), AuthenticationFailedError, where)
        await refused(client.get("k"), UserEmptyError, where)
        as_root = (await send(client, methods.AUTHENTICATE, log_in)).token
        with monkeypatch.context() as patch:
            carry(patch, ("token", as_root))
            remove = pb.AuthUserDeleteRequest(name="root")
            await refused(send(client, methods.USER_DELETE, remove), InvalidAuthManagementError, where)
            await send(client, methods.USER_ADD, pb.AuthUserAddRequest(name="guest", password="guest"))
        as_guest = (await send(client, methods.AUTHENTICATE, pb.AuthenticateRequest("guest", "guest"))).token
        with monkeypatch.context() as patch:
            carry(patch, ("token", as_guest))
            await refused(client.get("k"), PermissionDeniedError, where)
        with monkeypatch.context() as patch:
            carry(patch, ("token", "nonsense"))
            await refused(client.put("k", "v"), InvalidTokenError, where)


@cluster_test
async def test_a_token_older_than_the_users(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("an hmac key of this test's own")
    tokens = f"--auth-token=jwt,sign-method=HS256,priv-key={key},ttl=5m"
    async with EtcdServer(flags=[tokens]) as server, Client(server.endpoint) as client:
        await send(client, methods.USER_ADD, pb.AuthUserAddRequest(name="root", password="secret"))
        await enable(client)
        log_in = pb.AuthenticateRequest(name="root", password="secret")
        token = (await send(client, methods.AUTHENTICATE, log_in)).token
        async with Client(server.endpoint, token=token, allow_insecure_auth=True) as root:
            await root.put("k", "v")
            await root.auth.user_add("guest", "guest")
            await refused(root.put("k", "w"), AuthOldRevisionError, server.endpoint)


async def enable(client: Client) -> None:
    """Give the user `root` its role, and switch authentication on."""
    await send(client, methods.ROLE_ADD, pb.AuthRoleAddRequest(name="root"))
    await send(client, methods.USER_GRANT_ROLE, pb.AuthUserGrantRoleRequest(user="root", role="root"))
    await send(client, methods.AUTH_ENABLE, pb.AuthEnableRequest())


# --- scripted servers: every text of the table, as it comes over the wire ---


@asynccontextmanager
async def two_members_that_say(row: Row) -> AsyncIterator[list[str]]:
    """The endpoints of two members that answer whatever they are asked with this status and text."""
    status = (*GRPC, ("grpc-status", str(int(row.code))), ("grpc-message", row.message))

    async def refuse(wire: Wire) -> None:
        while True:
            wire.headers(await wire.request(), status, end=True)

    async with AsyncExitStack() as stack:
        ports = [await stack.enter_async_context(scripted(refuse)) for _ in range(2)]
        yield [f"http://127.0.0.1:{port}" for port in ports]


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.error.__name__}-{row.code.name}")
async def test_every_text_arrives_as_its_class_and_is_repeated_where_that_is_safe(row: Row) -> None:
    elsewhere = row.error.retry_hint is RetryHint.RETRY_ELSEWHERE
    if_repeatable = row.error.retry_hint is RetryHint.RETRY_IF_REPEATABLE
    async with two_members_that_say(row) as endpoints:
        policy = RetryPolicy(max_attempts=2, initial_backoff=0.001)
        async with Client(endpoints, retry_policy=policy) as client:
            await client.wait_ready()
            for is_write in (True, False):
                with pytest.raises(row.error) as caught:
                    await (client.put("k", "v") if is_write else client.get("k"))
                error = caught.value
                assert type(error) is row.error
                assert (error.code, error.message) == (row.code, row.message)
                assert error.endpoint in endpoints
                assert error.maybe_applied is (is_write and not row.error.is_definite)
                repeats = elsewhere or (if_repeatable and not is_write) or row.error in TRIED_AGAIN | AFTER_CHANGES
                assert len(error.attempts) == (2 if repeats else 1)
                assert {attempt.delivery for attempt in error.attempts} == {Delivery.ANSWERED}
