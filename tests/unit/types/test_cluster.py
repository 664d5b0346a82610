"""types/cluster.py: results of the calls about members: what they say besides their fields."""

from etcd_aio.types import Header, Member, MemberListResult

HEADER = Header(cluster_id=1, member_id=2, revision=7, raft_term=3)
MEMBER = Member(2, "m2", ("http://h:2380",), ("http://h:2379",))
ADDED = Member(3, peer_urls=("http://i:2380",), is_learner=True)


def test_a_listing_is_a_collection_of_its_members() -> None:
    listing = MemberListResult(HEADER, (MEMBER, ADDED))
    assert list(listing) == [MEMBER, ADDED]
    assert len(listing) == 2
    assert MEMBER in listing
    assert Member(9) not in listing


def test_a_member_without_a_name_has_not_started() -> None:
    assert MEMBER.is_started
    assert not ADDED.is_started
