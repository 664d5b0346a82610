"""Users of a fake and a real etcd side by side: what each may do is compared, call by call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, TypeAlias

from etcd_aio import methods, pb
from tests.support.differential import Pair, Step
from tests.support.drawn_requests import (
    BEGINNING,
    deletes,
    grants,
    looks_at_leases,
    puts,
    range_streams,
    ranges,
    renewals,
    revocations,
    short_txns,
    watch_creation,
    weighted,
)

USERS: Final = ("u1", "u2")
ROLES: Final = ("r1", "r2")
PASSWORD: Final = "pw"


@dataclass(frozen=True)
class CallOf:
    """A request of a user; of one who has no token if `user` is empty, or has a token that no server gave out."""

    user: str
    step: Step


Item: TypeAlias = Step | CallOf
_Make: TypeAlias = Callable[[Random], Step]

_CALLERS: Final = (*USERS, *USERS, "root", "", "nobody")
_NAMES: Final = (*USERS, *USERS, *USERS, "root", "u3", "")
_ROLE_NAMES: Final = (*ROLES, *ROLES, *ROLES, "root", "r3", "")
_ENDS: Final = (b"", b"", b"b", b"c", b"\x00", b"\xff", b"a")
_KEYS: Final = (b"a", b"ab", b"b", b"\x00", b"c")


def _permission(random: Random, keys: Sequence[bytes] = (*_KEYS, b"")) -> pb.Permission:
    kind = 7 if random.random() < 0.03 else random.choice((0, 1, 2))
    return pb.Permission(perm_type=pb.PermissionType(kind), key=random.choice(keys), range_end=random.choice(_ENDS))


def _user_add(random: Random) -> Step:
    return Step(methods.USER_ADD, pb.AuthUserAddRequest(name=random.choice(_NAMES), password=PASSWORD))


def _user_add_without_password(random: Random) -> Step:
    options = pb.UserAddOptions(no_password=True)
    return Step(methods.USER_ADD, pb.AuthUserAddRequest(name=random.choice(_NAMES), options=options))


def _user_delete(random: Random) -> Step:
    # Root is needed at the end.
    return Step(methods.USER_DELETE, pb.AuthUserDeleteRequest(name=random.choice((*USERS, *USERS, "u3", ""))))


def _user_change_password(random: Random) -> Step:
    request = pb.AuthUserChangePasswordRequest(name=random.choice(_NAMES), password=PASSWORD)
    return Step(methods.USER_CHANGE_PASSWORD, request)


def _role_add(random: Random) -> Step:
    return Step(methods.ROLE_ADD, pb.AuthRoleAddRequest(name=random.choice(_ROLE_NAMES)))


def _role_delete(random: Random) -> Step:
    return Step(methods.ROLE_DELETE, pb.AuthRoleDeleteRequest(role=random.choice((*ROLES, *ROLES, "r3", ""))))


def _user_grant_role(random: Random) -> Step:
    request = pb.AuthUserGrantRoleRequest(user=random.choice(_NAMES), role=random.choice(_ROLE_NAMES))
    return Step(methods.USER_GRANT_ROLE, request)


def _user_revoke_role(random: Random) -> Step:
    name = random.choice((*USERS, *USERS, *USERS, "u3", ""))
    return Step(methods.USER_REVOKE_ROLE, pb.AuthUserRevokeRoleRequest(name=name, role=random.choice(_ROLE_NAMES)))


def _role_grant_permission(random: Random) -> Step:
    permission = None if random.random() < 0.02 else _permission(random)
    request = pb.AuthRoleGrantPermissionRequest(name=random.choice(_ROLE_NAMES), perm=permission)
    return Step(methods.ROLE_GRANT_PERMISSION, request)


def _role_revoke_permission(random: Random) -> Step:
    permission = _permission(random)
    request = pb.AuthRoleRevokePermissionRequest(
        role=random.choice(_ROLE_NAMES), key=permission.key, range_end=permission.range_end
    )
    return Step(methods.ROLE_REVOKE_PERMISSION, request)


def _user_get(random: Random) -> Step:
    return Step(methods.USER_GET, pb.AuthUserGetRequest(name=random.choice(_NAMES)))


def _role_get(random: Random) -> Step:
    return Step(methods.ROLE_GET, pb.AuthRoleGetRequest(role=random.choice(_ROLE_NAMES)))


def _user_list(random: Random) -> Step:
    return Step(methods.USER_LIST, pb.AuthUserListRequest())


def _role_list(random: Random) -> Step:
    return Step(methods.ROLE_LIST, pb.AuthRoleListRequest())


def _auth_status(random: Random) -> Step:
    return Step(methods.AUTH_STATUS, pb.AuthStatusRequest())


def _lease_list(random: Random) -> Step:
    return Step(methods.LEASE_LEASES, pb.LeaseLeasesRequest())


def _compaction(random: Random) -> Step:
    return Step(methods.COMPACT, pb.CompactionRequest(revision=1))


def _enable(random: Random) -> Step:
    return Step(methods.AUTH_ENABLE, pb.AuthEnableRequest())


def _alarms(random: Random) -> Step:
    return Step(methods.ALARM, pb.AlarmRequest())


def _status(random: Random) -> Step:
    return Step(methods.STATUS, pb.StatusRequest())


def _hash(random: Random) -> Step:
    return Step(methods.HASH, pb.HashRequest())


def _hash_kv(random: Random) -> Step:
    return Step(methods.HASH_KV, pb.HashKvRequest())


def _defragmentation(random: Random) -> Step:
    return Step(methods.DEFRAGMENT, pb.DefragmentRequest())


def _members(random: Random) -> Step:
    return Step(methods.MEMBER_LIST, pb.MemberListRequest())


def _move_leader(random: Random) -> Step:
    return Step(methods.MOVE_LEADER, pb.MoveLeaderRequest(target_id=5))


def _log_in(random: Random) -> Step:
    """A password that is wrong: the token of one that is right would differ."""
    request = pb.AuthenticateRequest(name=random.choice((*_NAMES, "nobody")), password="wrong")
    return Step(methods.AUTHENTICATE, request)


def _maintenance(random: Random) -> Step:
    makes = (_status, _hash, _hash_kv, _defragmentation, _members, _move_leader)
    return random.choice(makes)(random)


_CHANGES: Final[Sequence[tuple[int, _Make]]] = (
    *((1, make) for make in (_user_add, _user_add_without_password, _user_delete, _user_change_password)),
    *((1, make) for make in (_role_add, _role_delete, _user_grant_role, _user_revoke_role, _role_revoke_permission)),
    (2, _role_grant_permission),
)
_LOOKS: Final[Sequence[tuple[int, _Make]]] = tuple(
    (1, make) for make in (_user_get, _role_get, _user_list, _role_list, _auth_status, _alarms, _log_in)
)
_USES: Final[Sequence[tuple[int, _Make]]] = (
    *((2, make) for make in (ranges, short_txns)),
    *((1, make) for make in (puts, deletes, revocations, grants, renewals, looks_at_leases, range_streams)),
    *((1, make) for make in (_lease_list, _compaction, watch_creation, _enable)),
    (1, _maintenance),
)


def user_history(random: Random) -> list[Item]:
    """Users and roles, made before users are enabled, and calls of the users afterwards."""
    permissions = [_permission(random, _KEYS) for _ in range(random.randint(2, 4))]
    setup = [
        # Users with roles that have permissions, so that some calls are allowed.
        *(Step(methods.USER_ADD, pb.AuthUserAddRequest(name=name, password=PASSWORD)) for name in USERS),
        *(Step(methods.ROLE_ADD, pb.AuthRoleAddRequest(name=name)) for name in ROLES),
        *(
            Step(methods.ROLE_GRANT_PERMISSION, pb.AuthRoleGrantPermissionRequest(name=ROLES[number % 2], perm=one))
            for number, one in enumerate(permissions)
        ),
        *(
            Step(methods.USER_GRANT_ROLE, pb.AuthUserGrantRoleRequest(user=user, role=role))
            for user, role in zip(USERS, ROLES, strict=True)
        ),
        *(weighted(random, (*_CHANGES, *_LOOKS))(random) for _ in range(random.randint(0, 5))),
    ]
    made: list[Item] = []
    for _ in range(random.randint(10, 40)):
        kind: Any = weighted(random, ((8, _USES), (1, _LOOKS), (1, _CHANGES), (2, "root")))
        caller = kind if kind == "root" else random.choice(_CALLERS)
        made.append(CallOf(caller, weighted(random, _CHANGES if kind == "root" else kind)(random)))
    return [*setup, *made]


async def play_users(pair: Pair, items: Sequence[Item]) -> None:
    """Make users and roles, enable them, and let users call."""
    setup = [one for one in items if isinstance(one, Step)]
    made = [one for one in items if isinstance(one, CallOf)]
    history: list[object] = [
        *BEGINNING,
        Step(methods.AUTH_ENABLE, pb.AuthEnableRequest()),
        Step(methods.USER_ADD, pb.AuthUserAddRequest(name="root", password=PASSWORD)),
        Step(methods.AUTH_ENABLE, pb.AuthEnableRequest()),
        Step(methods.USER_GRANT_ROLE, pb.AuthUserGrantRoleRequest(user="root", role="root")),
        *setup,
        Step(methods.AUTH_ENABLE, pb.AuthEnableRequest()),
    ]
    for number, step in enumerate(history):
        assert isinstance(step, Step)
        await pair.compare(step, history[: number + 1])
    for name in ("root", *USERS, "nobody"):
        await pair.log_in(name, PASSWORD)
    for number, call in enumerate(made):
        await pair.compare(call.step, [*history, *made[: number + 1]], call.user)
    await pair.compare(Step(methods.AUTH_DISABLE, pb.AuthDisableRequest()), history, "root")
    pair.tokens.clear()
    for name in ("root", *USERS, "u3"):
        await pair.compare(Step(methods.USER_DELETE, pb.AuthUserDeleteRequest(name=name)), ())
    for name in ("root", *ROLES, "r3"):
        await pair.compare(Step(methods.ROLE_DELETE, pb.AuthRoleDeleteRequest(role=name)), ())
    await pair.begin_anew()
