"""Cluster results: frozen values, and the few things they say of themselves."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import pytest

from etcd_aio.types import (
    ActiveAlarm,
    Alarm,
    AlarmResult,
    DefragmentResult,
    DowngradeInfo,
    DowngradeResult,
    EndpointVersions,
    HashKVResult,
    HashResult,
    Header,
    Member,
    MemberAddResult,
    MemberListResult,
    MemberPromoteResult,
    MemberRemoveResult,
    MemberUpdateResult,
    MoveLeaderResult,
    SavedSnapshot,
    SnapshotChunk,
    StatusResult,
)

HEADER = Header(cluster_id=1, member_id=2, revision=7, raft_term=3)
MEMBER = Member(2, "m2", ("http://h:2380",), ("http://h:2379",))
ADDED = Member(3, peer_urls=("http://i:2380",), is_learner=True)
ALL: tuple[object, ...] = (
    MEMBER,
    MemberListResult(HEADER, (MEMBER, ADDED)),
    MemberAddResult(HEADER, ADDED, (MEMBER, ADDED)),
    MemberRemoveResult(HEADER, (MEMBER,)),
    MemberUpdateResult(HEADER, (MEMBER,)),
    MemberPromoteResult(HEADER, (MEMBER,)),
    ActiveAlarm(2, Alarm.NOSPACE),
    AlarmResult(HEADER, (ActiveAlarm(2, Alarm.CORRUPT),)),
    DowngradeInfo(True, "3.6.0"),
    StatusResult(HEADER, "3.7.0", downgrade_info=DowngradeInfo()),
    DefragmentResult(HEADER),
    HashResult(HEADER, 5),
    HashKVResult(HEADER, 5, 6, 7),
    MoveLeaderResult(HEADER),
    DowngradeResult(HEADER, "3.7.0"),
    SnapshotChunk(HEADER, 5, b"s3cret", "3.7.0"),
    SavedSnapshot(32, "00", "m1:2379"),
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


def test_no_repr_shows_what_is_in_a_snapshot() -> None:
    assert repr(ALL[-2]) == "SnapshotChunk(<6 bytes>, remaining_bytes=5)"


def test_a_listing_is_a_collection_of_its_members() -> None:
    listing = MemberListResult(HEADER, (MEMBER, ADDED))
    assert list(listing) == [MEMBER, ADDED]
    assert len(listing) == 2
    assert MEMBER in listing
    assert Member(9) not in listing


def test_a_member_without_a_name_has_not_started() -> None:
    assert MEMBER.is_started
    assert not ADDED.is_started


def test_alarms_are_true_if_there_are_any() -> None:
    assert AlarmResult(HEADER, (ActiveAlarm(2, Alarm.CORRUPT),))
    assert not AlarmResult(HEADER)


@pytest.mark.parametrize(("leader", "is_leader"), [(2, True), (3, False), (0, False)])
def test_who_takes_itself_for_the_leader(leader: int, is_leader: bool) -> None:
    assert StatusResult(HEADER, leader=leader).is_leader is is_leader
    assert not StatusResult(Header(), leader=0).is_leader


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("3.6.4", (3, 6, 4)),
        ("v3.6.4", (3, 6, 4)),
        ("3.6", (3, 6, 0)),
        ("3.7.0-alpha.0+git", (3, 7, 0)),
        ("", (0, 0, 0)),
        ("3", (0, 0, 0)),
        ("3.6.x", (0, 0, 0)),
        ("\u0663.6.1", (0, 0, 0)),
    ],
)
def test_versions_to_compare_with(text: str, numbers: tuple[int, int, int]) -> None:
    found = EndpointVersions("m1", text, text)
    assert found.server_version == found.cluster_version == numbers
