"""contrib/tooz/silence.py: which members have sent no heartbeat for too long."""

from etcd_aio.contrib.tooz.groups import Member
from etcd_aio.contrib.tooz.silence import Silence


def member(revision: int, ttl: int = 10) -> Member:
    return Member(None, 0.0, 0.0, ttl, revision)


def test_a_member_is_silent_if_its_key_was_the_same_for_longer_than_its_ttl() -> None:
    silence = Silence()
    assert list(silence.read(b"g", {b"a": member(5), b"b": member(6)}, 100.0, 101.0)) == []
    assert list(silence.read(b"g", {b"a": member(5), b"b": member(8)}, 111.0, 112.0)) == []
    assert list(silence.read(b"g", {b"a": member(5), b"b": member(8)}, 111.1, 112.0)) == [b"a"]


def test_the_time_counts_from_the_answer_to_the_next_request() -> None:
    silence = Silence()
    silence.read(b"g", {b"a": member(5)}, 100.0, 109.0)  # the heartbeat may have been just before 109
    assert list(silence.read(b"g", {b"a": member(5)}, 118.0, 130.0)) == []
    assert list(silence.read(b"g", {b"a": member(5)}, 119.5, 130.0)) == [b"a"]


def test_a_heartbeat_a_rejoining_and_another_group_begin_anew() -> None:
    silence = Silence()
    silence.read(b"g", {b"a": member(5)}, 0.0, 0.0)
    assert list(silence.read(b"other", {b"a": member(5)}, 50.0, 50.0)) == []
    assert list(silence.read(b"g", {b"a": member(7)}, 50.0, 50.0)) == []
    assert list(silence.read(b"g", {}, 55.0, 55.0)) == []
    assert list(silence.read(b"g", {b"a": member(7)}, 100.0, 100.0)) == []


def test_each_member_has_its_own_ttl() -> None:
    silence = Silence()
    members = {b"quick": member(1, ttl=2), b"slow": member(2, ttl=60)}
    silence.read(b"g", members, 0.0, 0.0)
    assert list(silence.read(b"g", members, 3.0, 3.0)) == [b"quick"]
