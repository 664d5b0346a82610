"""Alarms, and the writes that they forbid. Pure."""

from collections.abc import Sequence
from typing import Final

from etcd_aio import pb
from etcd_aio.fake.refusals import Reason, Refusal
from etcd_aio.fake.releases import Release

_Action: Final = pb.AlarmRequestAlarmAction
_Type: Final = pb.AlarmType


class Alarms:
    """The alarms of a cluster."""

    def __init__(self) -> None:
        self._active: dict[tuple[int, int], pb.AlarmMember] = {}

    def answer(self, request: pb.AlarmRequest) -> list[pb.AlarmMember]:
        """List, raise or disarm alarms. Returns those that the request is about."""
        place = (request.member_id, int(request.alarm))
        match request.action:
            case _Action.GET:
                return self.active(request.alarm)
            case _Action.ACTIVATE if request.alarm != _Type.NONE:
                alarm = pb.AlarmMember(member_id=request.member_id, alarm=request.alarm)
                return [self._active.setdefault(place, alarm)]
            case _Action.DEACTIVATE:
                found = self._active.pop(place, None)
                return [] if found is None else [found]
            case _:
                return []

    def active(self, kind: pb.AlarmType = _Type.NONE) -> list[pb.AlarmMember]:
        """The active alarms of a kind; all of them for `NONE`."""
        return [alarm for alarm in self._active.values() if kind in (_Type.NONE, alarm.alarm)]

    def texts(self) -> list[str]:
        """The active alarms as texts of a member's status."""
        return [f"memberID:{alarm.member_id} alarm:{alarm.alarm.name} " for alarm in self._active.values()]

    def check(self, *, needs_space: bool) -> None:
        """Check that a write is allowed.

        Args:
            needs_space: whether it writes keys or leases.

        Raises:
            Refusal: the store is corrupt or full.
        """
        if self._active:
            if self.active(_Type.CORRUPT):
                raise Refusal(Reason.CORRUPT)
            if needs_space and self.active(_Type.NOSPACE):
                raise Refusal(Reason.NO_SPACE)


def puts_something(ops: Sequence[pb.RequestOp], release: Release) -> bool:
    """Whether operations need space. Those of inner transactions count unless the release does not look at them."""
    return any(
        one.request_put is not None
        or (
            release.checks_whole_txns
            and one.request_txn is not None
            and puts_something((*one.request_txn.success, *one.request_txn.failure), release)
        )
        for one in ops
    )
