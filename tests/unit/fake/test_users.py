"""fake/users.py, fake/permissions.py, fake/tokens.py: users, roles and permissions of the fake, and their tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio import pb
from etcd_aio.fake.permissions import FROM_KEY, covers, interval
from etcd_aio.fake.refusals import Reason, Refusal
from etcd_aio.fake.releases import RELEASES
from etcd_aio.fake.tokens import Tokens
from etcd_aio.fake.users import Users

READ = pb.PermissionType.READ
WRITE = pb.PermissionType.WRITE


def made() -> Users:
    users = Users(RELEASES["3.7"])
    users.add_user("root", "pw")
    users.grant_role("root", "root")
    users.add_user("u", "pw")
    users.add_role("r")
    users.grant_role("u", "r")
    users.grant_permission("r", pb.Permission(perm_type=READ, key=b"a", range_end=b"c"))
    users.grant_permission("r", pb.Permission(perm_type=WRITE, key=b"b"))
    users.enable()
    return users


def test_users_may_do_what_their_roles_may_and_root_everything() -> None:
    users = made()
    users.check_read("u", b"a", b"c")
    users.check_write("u", b"b", b"")
    users.check_write("root", b"\x00", FROM_KEY)
    for name, reason in (("u", Reason.PERMISSION_DENIED), ("x", Reason.PERMISSION_DENIED), (None, Reason.USER_EMPTY)):
        with pytest.raises(Refusal) as caught:
            users.check_write(name, b"a", b"")
        assert caught.value.text == reason.text


def test_every_change_grows_the_revision_and_nothing_else_does() -> None:
    users = made()
    before = users.revision
    users.grant_role("u", "r")
    users.enable()
    users.check_read("u", b"a", b"")
    assert users.revision == before == 8
    users.revoke_role("u", "r")
    users.disable()
    users.disable()
    assert users.revision == before + 2


def test_passwords_are_not_shown() -> None:
    assert "pw" not in repr(made()._users)


def test_a_token_lives_as_long_as_it_is_used() -> None:
    tokens = Tokens()
    tokens.assign("t.1", "u", 0.0)
    assert tokens.user_of("t.1", 299.0) == "u"
    assert tokens.user_of("t.1", 598.0) == "u"
    assert tokens.user_of("t.1", 899.0) is None
    assert tokens.user_of("t.1", 899.0) is None
    tokens.assign("t.2", "u", 900.0)
    tokens.assign("t.3", "v", 900.0)
    tokens.forget("u")
    assert (tokens.user_of("t.2", 900.0), tokens.user_of("t.3", 900.0)) == (None, "v")
    assert "t.3" not in repr(tokens)


_key = st.binary(min_size=1, max_size=2).map(lambda raw: bytes(byte % 3 for byte in raw))
_ends = st.one_of(st.just(b""), st.just(FROM_KEY), _key)
KEYS = sorted({bytes([a]) for a in range(3)} | {bytes([a, b]) for a in range(3) for b in range(3)})


@given(granted=st.lists(st.tuples(_key, _ends), max_size=4), wanted=st.tuples(_key, _ends))
def test_an_interval_is_covered_if_all_its_keys_are(
    granted: list[tuple[bytes, bytes]], wanted: tuple[bytes, bytes]
) -> None:
    def keys(key: bytes, end: bytes) -> set[bytes]:
        first, last = interval(key, end)
        return {one for one in KEYS if first <= one and (last is None or one < last)}

    is_covered = covers([interval(*one) for one in granted], interval(*wanted))
    if is_covered:
        assert keys(*wanted) <= set().union(*(keys(*one) for one in granted))
