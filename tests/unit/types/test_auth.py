"""types/auth.py: auth results: frozen values, the few things they say of themselves, and what they do not show."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import pytest

from etcd_aio.types import (
    AuthenticateResult,
    AuthResult,
    AuthStatus,
    Header,
    KeyPermission,
    Permission,
    Role,
    RoleListResult,
    User,
    UserListResult,
)

HEADER = Header(cluster_id=1, member_id=2, revision=7, raft_term=3)
READS = KeyPermission(Permission.READ, b"a", b"b")
ALL: tuple[object, ...] = (
    AuthResult(HEADER),
    AuthStatus(HEADER, True, 5),
    AuthenticateResult(HEADER, "token-c4n4ry"),
    READS,
    User(HEADER, "web", ("app",)),
    Role(HEADER, "app", (READS,)),
    UserListResult(HEADER, ("root", "web")),
    RoleListResult(HEADER, ("root", "app")),
)


@pytest.mark.parametrize("result", ALL, ids=lambda result: type(result).__name__)
def test_results_are_frozen_slotted_values(result: object) -> None:
    field = next(iter(type(result).__dataclass_fields__))  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        setattr(result, field, None)
    assert not hasattr(result, "__dict__")
    assert copy.deepcopy(result) == result
    assert pickle.loads(pickle.dumps(result)) == result
    assert hash(copy.deepcopy(result)) == hash(result)
    assert "c4n4ry" not in repr(result)


@pytest.mark.parametrize("listing", [ALL[-2], ALL[-1]], ids=["users", "roles"])
def test_a_listing_is_a_collection_of_names(listing: UserListResult | RoleListResult) -> None:
    assert len(list(listing)) == len(listing) == 2
    assert "root" in listing
    assert "nobody" not in listing


def test_a_status_is_true_if_it_is_enabled() -> None:
    assert AuthStatus(HEADER, True)
    assert not AuthStatus(HEADER, False, 5)


@pytest.mark.parametrize(
    ("key", "range_end", "shown"),
    [
        (b"k", b"", "KeyPermission(READ, 'k')"),
        (b"svc/", b"svc0", "KeyPermission(READ, prefix='svc/')"),
        (b"k", b"\0", "KeyPermission(READ, from_key='k')"),
        (b"\0", b"\0", "KeyPermission(READ, all_keys=True)"),
        (b"a", b"c", "KeyPermission(READ, 'a', range_end='c')"),
        (b"a\xff", b"b", "KeyPermission(READ, prefix=b'a\\xff')"),
        (b"", b"x", "KeyPermission(READ, '', range_end='x')"),
    ],
)
def test_a_permission_names_its_keys_as_users_do(key: bytes, range_end: bytes, shown: str) -> None:
    assert repr(KeyPermission(Permission.READ, key, range_end)) == shown
