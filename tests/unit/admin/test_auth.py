"""admin/auth.py: auth calls: their requests, their results, and the arguments that they refuse."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from etcd_aio import methods, pb
from etcd_aio.admin.auth import Auth
from etcd_aio.errors import ConnectionLostError, EmptyKeyError, InvalidRequestError, StatusCode, UserNotFoundError
from etcd_aio.methods import AnyMethod
from etcd_aio.types import Header, KeyPermission, Permission
from tests.support.answers import always, asked, header, refused, requests
from tests.support.calls import CLUSTER, Calls, unknown

pytestmark = pytest.mark.anyio

HEADER = Header(CLUSTER, 1, 7, 2)


async def new(answer: pb.Message) -> tuple[Calls, Auth]:
    calls = await Calls().ready()
    for member in calls.engine.members.values():
        member.otherwise = always(answer)
    return calls, Auth(calls.invoker)


Change = Callable[[Auth], Awaitable[Any]]
_permission, _kind = pb.Permission, pb.PermissionType
CHANGES: list[tuple[Change, AnyMethod, pb.Message]] = [
    (lambda auth: auth.enable(), methods.AUTH_ENABLE, pb.AuthEnableRequest()),
    (lambda auth: auth.disable(), methods.AUTH_DISABLE, pb.AuthDisableRequest()),
    (
        lambda auth: auth.user_add("web", "pw-c4n4ry"),
        methods.USER_ADD,
        pb.AuthUserAddRequest(name="web", password="pw-c4n4ry", options=pb.UserAddOptions()),
    ),
    (
        lambda auth: auth.user_add("cn"),
        methods.USER_ADD,
        pb.AuthUserAddRequest(name="cn", options=pb.UserAddOptions(no_password=True)),
    ),
    (lambda auth: auth.user_delete("web"), methods.USER_DELETE, pb.AuthUserDeleteRequest(name="web")),
    (
        lambda auth: auth.user_change_password("web", "new-c4n4ry"),
        methods.USER_CHANGE_PASSWORD,
        pb.AuthUserChangePasswordRequest(name="web", password="new-c4n4ry"),
    ),
    (
        lambda auth: auth.user_grant_role("web", "app"),
        methods.USER_GRANT_ROLE,
        pb.AuthUserGrantRoleRequest(user="web", role="app"),
    ),
    (
        lambda auth: auth.user_revoke_role("web", "app"),
        methods.USER_REVOKE_ROLE,
        pb.AuthUserRevokeRoleRequest(name="web", role="app"),
    ),
    (lambda auth: auth.role_add("app"), methods.ROLE_ADD, pb.AuthRoleAddRequest(name="app")),
    (lambda auth: auth.role_delete("app"), methods.ROLE_DELETE, pb.AuthRoleDeleteRequest(role="app")),
    (
        lambda auth: auth.role_grant_permission("app", "k", permission="read"),
        methods.ROLE_GRANT_PERMISSION,
        pb.AuthRoleGrantPermissionRequest(name="app", perm=_permission(perm_type=_kind.READ, key=b"k")),
    ),
    (
        lambda auth: auth.role_grant_permission("app", prefix="svc/", permission=Permission.WRITE),
        methods.ROLE_GRANT_PERMISSION,
        pb.AuthRoleGrantPermissionRequest("app", _permission(_kind.WRITE, b"svc/", b"svc0")),
    ),
    (
        lambda auth: auth.role_grant_permission("app", all_keys=True, permission="readwrite"),
        methods.ROLE_GRANT_PERMISSION,
        pb.AuthRoleGrantPermissionRequest("app", _permission(_kind.READWRITE, b"\0", b"\0")),
    ),
    (
        lambda auth: auth.role_revoke_permission("app", "a", range_end="c"),
        methods.ROLE_REVOKE_PERMISSION,
        pb.AuthRoleRevokePermissionRequest(role="app", key=b"a", range_end=b"c"),
    ),
    (
        lambda auth: auth.role_revoke_permission("app", from_key="m"),
        methods.ROLE_REVOKE_PERMISSION,
        pb.AuthRoleRevokePermissionRequest(role="app", key=b"m", range_end=b"\0"),
    ),
]


@pytest.mark.parametrize(("change", "method", "request_message"), CHANGES)
async def test_a_change_sends_its_request_and_returns_the_header(
    change: Change, method: AnyMethod, request_message: pb.Message
) -> None:
    calls, auth = await new(pb.AuthEnableResponse(header=header()))  # all replies are alike
    assert (await change(auth)).header == HEADER
    assert requests(calls, method, type(request_message)) == [request_message]
    await calls.aclose()


@pytest.mark.parametrize(("change", "method"), [(change, method) for change, method, _ in CHANGES])
async def test_a_change_without_an_answer_is_not_repeated(change: Change, method: AnyMethod) -> None:
    calls, auth = await new(pb.AuthEnableResponse())
    calls["m1"].answers.append(unknown())
    with pytest.raises(ConnectionLostError) as caught:
        await change(auth)
    assert caught.value.maybe_applied
    assert asked(calls, method) == ["m1"]
    await calls.aclose()


async def test_status_returns_whether_authentication_is_enabled() -> None:
    calls, auth = await new(pb.AuthStatusResponse(header=header(), enabled=True, auth_revision=5))
    status = await auth.status()
    assert (status.header, status.enabled, status.auth_revision) == (HEADER, True, 5)
    await calls.aclose()


async def test_authenticate_returns_a_token() -> None:
    calls, auth = await new(pb.AuthenticateResponse(header=header(), token="token-c4n4ry"))
    found = await auth.authenticate("web", "pw-c4n4ry")
    assert (found.header, found.token) == (HEADER, "token-c4n4ry")
    (request,) = requests(calls, methods.AUTHENTICATE, pb.AuthenticateRequest)
    assert (request.name, request.password) == ("web", "pw-c4n4ry")
    await calls.aclose()


async def test_users_are_returned_with_their_roles() -> None:
    calls, auth = await new(pb.AuthUserGetResponse(header=header(), roles=["app", "other"]))
    user = await auth.user_get("web")
    assert (user.header, user.name, user.roles) == (HEADER, "web", ("app", "other"))
    assert requests(calls, methods.USER_GET, pb.AuthUserGetRequest) == [pb.AuthUserGetRequest(name="web")]
    assert (await auth.user_list()).users == ("app", "other")  # the two replies are alike
    assert (await auth.role_list()).roles == ("app", "other")
    await calls.aclose()


async def test_roles_are_returned_with_their_permissions() -> None:
    sent = [_permission(_kind.READ, b"k"), _permission(_kind.READWRITE, b"svc/", b"svc0")]
    calls, auth = await new(pb.AuthRoleGetResponse(header=header(), perm=sent))
    role = await auth.role_get("app")
    assert (role.header, role.name) == (HEADER, "app")
    assert role.permissions == (
        KeyPermission(Permission.READ, b"k"),
        KeyPermission(Permission.READWRITE, b"svc/", b"svc0"),
    )
    assert requests(calls, methods.ROLE_GET, pb.AuthRoleGetRequest) == [pb.AuthRoleGetRequest(role="app")]
    await calls.aclose()


async def test_a_refusal_raises_the_class_of_its_text() -> None:
    calls, auth = await new(pb.AuthUserDeleteResponse())
    calls["m1"].answers.append(refused("etcdserver: user name not found", StatusCode.FAILED_PRECONDITION))
    with pytest.raises(UserNotFoundError) as caught:
        await auth.user_delete("web")
    assert not caught.value.maybe_applied
    await calls.aclose()


WRONG: list[tuple[Change, type[Exception]]] = [
    (lambda auth: auth.user_add(""), InvalidRequestError),
    (lambda auth: auth.user_add("web", ""), InvalidRequestError),
    (lambda auth: auth.user_add("web", "c4n4ry\ud800"), InvalidRequestError),
    (lambda auth: auth.user_add("web", b"c4n4ry"), TypeError),  # type: ignore[arg-type]
    (lambda auth: auth.user_add(b"web"), TypeError),  # type: ignore[arg-type]
    (lambda auth: auth.user_add("web\ud800"), InvalidRequestError),
    (lambda auth: auth.user_get(""), InvalidRequestError),
    (lambda auth: auth.user_delete(""), InvalidRequestError),
    (lambda auth: auth.user_delete(None), TypeError),  # type: ignore[arg-type]
    (lambda auth: auth.user_change_password("", "c4n4ry"), InvalidRequestError),
    (lambda auth: auth.user_change_password("web", ""), InvalidRequestError),
    (lambda auth: auth.user_change_password("web", None), TypeError),  # type: ignore[arg-type]
    (lambda auth: auth.user_grant_role("", "app"), InvalidRequestError),
    (lambda auth: auth.user_grant_role("web", ""), InvalidRequestError),
    (lambda auth: auth.user_revoke_role("", "app"), InvalidRequestError),
    (lambda auth: auth.user_revoke_role("web", ""), InvalidRequestError),
    (lambda auth: auth.role_add(""), InvalidRequestError),
    (lambda auth: auth.role_get(""), InvalidRequestError),
    (lambda auth: auth.role_delete(""), InvalidRequestError),
    (lambda auth: auth.authenticate("", "c4n4ry"), InvalidRequestError),
    (lambda auth: auth.authenticate("web", ""), InvalidRequestError),
    (lambda auth: auth.role_grant_permission("", "k", permission="read"), InvalidRequestError),
    (lambda auth: auth.role_grant_permission("app", permission="read"), InvalidRequestError),
    (lambda auth: auth.role_grant_permission("app", "k", prefix="p", permission="read"), InvalidRequestError),
    (lambda auth: auth.role_grant_permission("app", "", permission="read"), EmptyKeyError),
    (lambda auth: auth.role_grant_permission("app", "k", permission="READ"), InvalidRequestError),  # type: ignore[arg-type]
    (lambda auth: auth.role_revoke_permission("app"), InvalidRequestError),
    (lambda auth: auth.role_revoke_permission("", "k"), InvalidRequestError),
    (lambda auth: auth.role_revoke_permission("app", "k", all_keys=True), InvalidRequestError),
]


@pytest.mark.parametrize(("call", "error"), WRONG)
async def test_invalid_arguments_are_not_sent_and_errors_show_no_secret(call: Change, error: type[Exception]) -> None:
    calls, auth = await new(pb.AuthEnableResponse())
    with pytest.raises(error) as caught:
        await call(auth)
    assert "c4n4ry" not in str(caught.value)
    assert caught.value.__context__ is None
    assert not calls.engine.attempts
    await calls.aclose()
