"""types/maintenance.py: results of the maintenance calls: what they say besides their fields."""

import pytest

from etcd_aio.types import (
    ActiveAlarm,
    Alarm,
    AlarmResult,
    EndpointVersions,
    Header,
    SnapshotChunk,
    StatusResult,
)

HEADER = Header(cluster_id=1, member_id=2, revision=7, raft_term=3)


def test_no_repr_shows_the_content_of_a_snapshot() -> None:
    assert repr(SnapshotChunk(HEADER, 5, b"s3cret", "3.7.0")) == "SnapshotChunk(<6 bytes>, remaining_bytes=5)"


def test_an_alarm_result_is_true_if_there_are_alarms() -> None:
    assert AlarmResult(HEADER, (ActiveAlarm(2, Alarm.CORRUPT),))
    assert not AlarmResult(HEADER)


@pytest.mark.parametrize(("leader", "is_leader"), [(2, True), (3, False), (0, False)])
def test_a_member_is_the_leader_if_it_reports_its_own_id(leader: int, is_leader: bool) -> None:
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
def test_versions_are_compared_as_numbers(text: str, numbers: tuple[int, int, int]) -> None:
    versions = EndpointVersions("m1", text, text)
    assert versions.server_version == versions.cluster_version == numbers
