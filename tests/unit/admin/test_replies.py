"""admin/replies.py: replies of the calls on authentication and alarms, as results."""

import pytest

from etcd_aio import codec, pb
from etcd_aio.admin import replies
from etcd_aio.errors import MalformedReplyError
from etcd_aio.types import ActiveAlarm, Alarm, AlarmResult, Header, Permission

HEADER = Header(cluster_id=1, member_id=2, revision=7, raft_term=3)


def wire_header() -> pb.ResponseHeader:
    return pb.ResponseHeader(cluster_id=1, member_id=2, revision=7, raft_term=3)


def test_alarms_are_returned_with_their_members() -> None:
    raised = [
        pb.AlarmMember(member_id=2**64 - 1, alarm=pb.AlarmType.NOSPACE),
        pb.AlarmMember(member_id=1, alarm=pb.AlarmType.CORRUPT),
    ]
    expected = (ActiveAlarm(2**64 - 1, Alarm.NOSPACE), ActiveAlarm(1, Alarm.CORRUPT))
    assert replies.alarm_result(pb.AlarmResponse(header=wire_header(), alarms=raised)) == AlarmResult(HEADER, expected)
    assert replies.alarm_result(pb.AlarmResponse()) == AlarmResult(Header())


@pytest.mark.parametrize("number", [0, 3])
def test_an_alarm_of_an_unknown_kind_is_malformed(number: int) -> None:
    reply = pb.AlarmResponse(alarms=[pb.AlarmMember(member_id=0xAB, alarm=pb.AlarmType(number))])
    with pytest.raises(MalformedReplyError, match=f"member ab has raised alarm {number}"):
        replies.alarm_result(reply)


def test_a_permission_of_an_unknown_kind_is_malformed() -> None:
    raw = codec.encode(pb.AuthRoleGetResponse(perm=[pb.Permission(key=b"k")]))
    assert (
        replies.role_result("app", codec.decode(pb.AuthRoleGetResponse, raw)).permissions[0].permission
        is Permission.READ
    )
    sent = pb.AuthRoleGetResponse(perm=[pb.Permission(perm_type=pb.PermissionType(7), key=b"k")])
    with pytest.raises(MalformedReplyError, match="'app' has a permission of kind 7"):
        replies.role_result("app", sent)
