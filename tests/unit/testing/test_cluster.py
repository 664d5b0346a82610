"""testing/cluster.py: who leads, by the opinions of the members; the rest of a cluster needs real servers."""

import pytest

from etcd_aio.testing import EtcdCluster, RaftStatus
from etcd_aio.testing.cluster import _agreed_leader, _member_id


def opinion(member: int, leader: int, term: int = 2) -> RaftStatus:
    return RaftStatus(member_id=member, leader_id=leader, term=term, command_line=())


@pytest.mark.parametrize(
    ("opinions", "size", "expected"),
    [
        ({}, 3, None),
        ({"a": opinion(1, 1)}, 1, "a"),
        ({"a": opinion(1, 1)}, 3, None),
        ({"a": opinion(1, 2), "b": opinion(2, 2), "c": opinion(3, 2)}, 3, "b"),
        ({"a": opinion(1, 2), "b": opinion(2, 2)}, 3, "b"),
        # Two followers still believe in a leader that does not answer.
        ({"a": opinion(1, 2), "c": opinion(3, 2)}, 3, None),
        # A deposed leader that has not heard of it.
        ({"a": opinion(1, 1, term=2), "b": opinion(2, 2, term=3), "c": opinion(3, 2, term=3)}, 3, "b"),
        # An election: a later term without a leader.
        ({"a": opinion(1, 1, term=2), "b": opinion(2, 1, term=2), "c": opinion(3, 0, term=3)}, 3, None),
        ({"a": opinion(1, 0), "b": opinion(2, 0)}, 3, None),
        ({"a": opinion(1, 1), "b": opinion(2, 1)}, 4, None),
    ],
)
def test_the_leader_is_the_choice_of_a_majority_in_the_latest_term(
    opinions: dict[str, RaftStatus], size: int, expected: str | None
) -> None:
    assert _agreed_leader(opinions, size) == expected


def test_a_member_is_found_by_its_peer_url() -> None:
    listing: dict[str, object] = {
        "members": [{"ID": "1", "peerURLs": ["http://h:1"]}, {"ID": "2", "name": "x", "peerURLs": ["http://h:2"]}]
    }
    assert _member_id(listing, "http://h:2") == "2"
    assert _member_id(listing, "http://h:3") is None
    assert _member_id({}, "http://h:3") is None


def test_a_cluster_has_members() -> None:
    with pytest.raises(ValueError, match="at least one member"):
        EtcdCluster(size=0)


def test_before_the_start_there_is_nothing_to_cut_off() -> None:
    cluster = EtcdCluster()
    assert not cluster.members
    assert not cluster.endpoints
    assert repr(cluster) == "<EtcdCluster not started>"
