"""Users of a fake and a real etcd side by side: what each may do is compared, call by call."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st

from etcd_aio import methods, pb
from etcd_aio.methods import AnyMethod
from tests.support.differential import Pair, Step
from tests.support.drawn_requests import BEGINNING, deletes, puts, ranges, txns

USERS: Final = ("u1", "u2")
ROLES: Final = ("r1", "r2")
PASSWORD: Final = "pw"


@dataclass(frozen=True)
class CallOf:
    """A request of a user; of one who has no token if `user` is empty, or has a token that nobody gave out."""

    user: str
    step: Step


def _step(method: AnyMethod, request: Any) -> Step:
    return Step(method, request)


_user = st.sampled_from((*USERS, *USERS, "root", "", "nobody"))
_name = st.sampled_from((*USERS, *USERS, *USERS, "root", "u3", ""))
_role = st.sampled_from((*ROLES, *ROLES, *ROLES, "root", "r3", ""))
_permission = st.builds(
    pb.Permission,
    perm_type=st.sampled_from((0, 1, 2)).map(pb.PermissionType),
    key=st.sampled_from((b"a", b"ab", b"b", b"\x00", b"c", b"")),
    range_end=st.sampled_from((b"", b"", b"b", b"c", b"\x00", b"\xff", b"a")),
)
_changes = st.one_of(
    _name.map(lambda name: _step(methods.USER_ADD, pb.AuthUserAddRequest(name=name, password=PASSWORD))),
    _name.map(
        lambda name: _step(
            methods.USER_ADD, pb.AuthUserAddRequest(name=name, options=pb.UserAddOptions(no_password=True))
        )
    ),
    _name.map(lambda name: _step(methods.USER_DELETE, pb.AuthUserDeleteRequest(name=name))).filter(
        lambda step: step.request != pb.AuthUserDeleteRequest(name="root")
    ),
    _name.map(
        lambda name: _step(methods.USER_CHANGE_PASSWORD, pb.AuthUserChangePasswordRequest(name=name, password=PASSWORD))
    ),
    _role.map(lambda name: _step(methods.ROLE_ADD, pb.AuthRoleAddRequest(name=name))),
    _role.map(lambda name: _step(methods.ROLE_DELETE, pb.AuthRoleDeleteRequest(role=name))).filter(
        lambda step: step.request != pb.AuthRoleDeleteRequest(role="root")
    ),
    st.builds(pb.AuthUserGrantRoleRequest, user=_name, role=_role).map(lambda one: _step(methods.USER_GRANT_ROLE, one)),
    st.builds(pb.AuthUserRevokeRoleRequest, name=_name, role=_role)
    .filter(lambda one: one.name != "root")
    .map(lambda one: _step(methods.USER_REVOKE_ROLE, one)),
    st.builds(pb.AuthRoleGrantPermissionRequest, name=_role, perm=_permission).map(
        lambda one: _step(methods.ROLE_GRANT_PERMISSION, one)
    ),
    st.builds(pb.AuthRoleGrantPermissionRequest, name=_role, perm=_permission).map(
        lambda one: _step(methods.ROLE_GRANT_PERMISSION, one)
    ),
    st.tuples(_role, _permission).map(
        lambda pair: _step(
            methods.ROLE_REVOKE_PERMISSION,
            pb.AuthRoleRevokePermissionRequest(role=pair[0], key=pair[1].key, range_end=pair[1].range_end),
        )
    ),
)
_looks = st.one_of(
    _name.map(lambda name: _step(methods.USER_GET, pb.AuthUserGetRequest(name=name))),
    _role.map(lambda name: _step(methods.ROLE_GET, pb.AuthRoleGetRequest(role=name))),
    st.just(_step(methods.USER_LIST, pb.AuthUserListRequest())),
    st.just(_step(methods.ROLE_LIST, pb.AuthRoleListRequest())),
)
_lease = st.sampled_from((1, 2, 3))
_uses = st.one_of(
    puts.map(lambda one: _step(methods.PUT, one)),
    ranges(has_odd_numbers=False).map(lambda one: _step(methods.RANGE, one)),
    ranges(has_odd_numbers=False).map(lambda one: _step(methods.RANGE, one)),
    deletes.map(lambda one: _step(methods.DELETE_RANGE, one)),
    txns(has_odd_numbers=False, depth=2).map(lambda one: _step(methods.TXN, one)),
    _lease.map(lambda one: _step(methods.LEASE_REVOKE, pb.LeaseRevokeRequest(id=one))),
    _lease.map(lambda one: _step(methods.LEASE_GRANT, pb.LeaseGrantRequest(id=one, ttl=1000))),
    _lease.map(lambda one: _step(methods.LEASE_TIME_TO_LIVE, pb.LeaseTimeToLiveRequest(id=one, keys=True))),
    _lease.map(lambda one: _step(methods.LEASE_TIME_TO_LIVE, pb.LeaseTimeToLiveRequest(id=one))),
    st.just(_step(methods.LEASE_LEASES, pb.LeaseLeasesRequest())),
    st.just(_step(methods.COMPACT, pb.CompactionRequest(revision=1))),
)
# Users with roles that have permissions, so that some calls are allowed.
_granted = st.lists(_permission.filter(lambda one: bool(one.key)), min_size=2, max_size=4).map(
    lambda permissions: [
        *(_step(methods.USER_ADD, pb.AuthUserAddRequest(name=name, password=PASSWORD)) for name in USERS),
        *(_step(methods.ROLE_ADD, pb.AuthRoleAddRequest(name=name)) for name in ROLES),
        *(
            _step(methods.ROLE_GRANT_PERMISSION, pb.AuthRoleGrantPermissionRequest(name=ROLES[number % 2], perm=one))
            for number, one in enumerate(permissions)
        ),
        *(
            _step(methods.USER_GRANT_ROLE, pb.AuthUserGrantRoleRequest(user=user, role=role))
            for user, role in (("u1", "r1"), ("u2", "r2"))
        ),
    ]
)
setups = st.tuples(_granted, st.lists(st.one_of(_changes, _changes, _looks), max_size=5)).map(
    lambda parts: [*parts[0], *parts[1]]
)
calls = st.lists(
    st.one_of(
        *[st.builds(CallOf, _user, _uses)] * 4,
        st.builds(CallOf, _user, st.one_of(_looks, _changes)),
        st.builds(CallOf, st.just("root"), _changes),
    ),
    min_size=10,
    max_size=25,
)


async def play_auth(pair: Pair, setup: Sequence[Step], made: Sequence[CallOf]) -> None:
    """Make users and roles, enable them, and let users call."""
    history = [
        *BEGINNING,
        _step(methods.AUTH_ENABLE, pb.AuthEnableRequest()),
        _step(methods.USER_ADD, pb.AuthUserAddRequest(name="root", password=PASSWORD)),
        _step(methods.AUTH_ENABLE, pb.AuthEnableRequest()),
        _step(methods.USER_GRANT_ROLE, pb.AuthUserGrantRoleRequest(user="root", role="root")),
        *setup,
        _step(methods.AUTH_ENABLE, pb.AuthEnableRequest()),
    ]
    try:
        for step in history:
            await pair.compare(step, history)
        for name in ("root", *USERS, "nobody"):
            await pair.log_in(name, PASSWORD)
        for number, call in enumerate(made):
            await pair.compare(call.step, [*history, *(one.step for one in made[: number + 1])], call.user)
    finally:
        await pair.compare(_step(methods.AUTH_DISABLE, pb.AuthDisableRequest()), history, "root")
        pair.tokens.clear()
        for name in ("root", *USERS, "u3"):
            await pair.compare(_step(methods.USER_DELETE, pb.AuthUserDeleteRequest(name=name)), ())
        for name in ("root", *ROLES, "r3"):
            await pair.compare(_step(methods.ROLE_DELETE, pb.AuthRoleDeleteRequest(role=name)), ())
        await pair.begin_anew()
