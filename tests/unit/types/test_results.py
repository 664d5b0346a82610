"""types/kv.py, types/lease.py, types/cluster.py, types/maintenance.py, types/result.py: frozen values.

No repr shows a value of keys.
"""

import copy
import pickle
from dataclasses import FrozenInstanceError

import pytest

from etcd_aio.types import (
    ActiveAlarm,
    Alarm,
    AlarmResult,
    CompactResult,
    DefragmentResult,
    DeleteResult,
    DowngradeInfo,
    DowngradeResult,
    HashKVResult,
    HashResult,
    Header,
    KeyValue,
    LeaseGrantResult,
    LeaseKeepAliveResult,
    LeaseListResult,
    LeaseRevokeResult,
    LeaseStatus,
    LeaseTimeToLiveResult,
    Member,
    MemberAddResult,
    MemberListResult,
    MemberPromoteResult,
    MemberRemoveResult,
    MemberUpdateResult,
    MoveLeaderResult,
    PutResult,
    RangeChunk,
    RangeResult,
    SavedSnapshot,
    SnapshotChunk,
    StatusResult,
    TxnResult,
)

HEADER = Header(cluster_id=1, member_id=2, revision=7, raft_term=3)
SECRET = KeyValue(b"k", b"s3cret", create_revision=4, mod_revision=6, version=2, lease=9)
OTHER = KeyValue(b"l", b"other")
MEMBER = Member(2, "m2", ("http://h:2380",), ("http://h:2379",))
ADDED = Member(3, peer_urls=("http://i:2380",), is_learner=True)
ALL: tuple[object, ...] = (
    HEADER,
    SECRET,
    PutResult(HEADER, SECRET),
    DeleteResult(HEADER, 1, (SECRET,)),
    RangeResult(HEADER, (SECRET, OTHER), more=True, count=5),
    RangeChunk(RangeResult(HEADER, (SECRET,))),
    TxnResult(True, HEADER, (PutResult(HEADER, SECRET), SECRET, None)),
    CompactResult(HEADER),
    LeaseGrantResult(HEADER, 9, 10),
    LeaseRevokeResult(HEADER),
    LeaseKeepAliveResult(HEADER, 9, 10),
    LeaseTimeToLiveResult(HEADER, 9, 5, 10, (b"k",)),
    LeaseStatus(9),
    LeaseListResult(HEADER, (LeaseStatus(9),)),
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


@pytest.mark.parametrize("result", ALL, ids=lambda result: type(result).__name__)
def test_no_repr_shows_a_value(result: object) -> None:
    assert "s3cret" not in repr(result)
    assert "s3cret" not in str(result)
