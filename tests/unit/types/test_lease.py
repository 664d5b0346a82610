"""types/lease.py: results of the lease calls: what they say besides their fields."""

from etcd_aio.types import (
    Header,
    KeyValue,
    LeaseGrantResult,
    LeaseKeepAliveResult,
    LeaseListResult,
    LeaseRevokeResult,
    LeaseStatus,
    LeaseTimeToLiveResult,
)

HEADER = Header(cluster_id=1, member_id=2, revision=7, raft_term=3)


def test_a_listing_has_ids_a_revocation_a_revision_and_an_unknown_lease_is_expired() -> None:
    assert LeaseListResult(HEADER, (LeaseStatus(9), LeaseStatus(-4))).ids == (9, -4)
    assert LeaseRevokeResult(HEADER).revision == 7
    assert [LeaseTimeToLiveResult(HEADER, 9, ttl).is_expired for ttl in (-1, 0, 1)] == [True, False, False]


def test_the_id_of_a_lease_is_shown_in_hexadecimal() -> None:
    header = Header()
    assert repr(LeaseGrantResult(header, 100, 5)) == f"LeaseGrantResult(header={header}, id=0x64, ttl=5)"
    assert repr(LeaseKeepAliveResult(header, 100, 5)) == f"LeaseKeepAliveResult(header={header}, id=0x64, ttl=5)"
    assert repr(LeaseTimeToLiveResult(header, 100, 5, 6, (b"k",))) == (
        f"LeaseTimeToLiveResult(header={header}, id=0x64, ttl=5, granted_ttl=6, keys=(b'k',))"
    )
    assert repr(LeaseListResult(header, (LeaseStatus(-1),))).endswith("leases=(LeaseStatus(id=-0x1),))")
    assert repr(KeyValue(b"k", lease=100)).endswith("lease=0x64)")
    assert repr(KeyValue(b"k")).endswith("lease=0)")
