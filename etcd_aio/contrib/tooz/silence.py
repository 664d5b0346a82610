"""Silence: which members of a group have sent no heartbeat for longer than they may. Pure.

Their leases end too, but not in time if the cluster elects a leader meanwhile: the new one lets all leases last for
their whole TTL again. A heartbeat also writes the member's key. So one who reads the same revision of it twice, longer
apart than the TTL, knows that there was no heartbeat in between, whatever the clocks of others say.
"""

from collections.abc import Iterable, Mapping

from etcd_aio.contrib.tooz.groups import Member
from etcd_aio.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _Heard:
    """When a revision of a member's key was read first."""

    revision: int
    since: float


class Silence:
    """The heartbeats that one coordinator has heard, in the groups that it reads."""

    def __init__(self) -> None:
        self._heard: dict[bytes, Mapping[bytes, _Heard]] = {}

    def read(self, group: bytes, members: Mapping[bytes, Member], began: float, ended: float) -> Iterable[bytes]:
        """Tell of a group that was read. Returns the members that are silent.

        Args:
            group: its identifier.
            members: those that it has.
            began: the monotonic time at which the request was sent.
            ended: the monotonic time at which the answer was there.
        """
        before = self._heard.get(group, {})
        now: dict[bytes, _Heard] = {}
        silent: list[bytes] = []
        for name, member in members.items():
            heard = before.get(name)
            if heard is None or heard.revision != member.revision:
                heard = _Heard(member.revision, ended)
            elif began - heard.since > member.ttl:
                silent.append(name)
            now[name] = heard
        self._heard[group] = now
        return silent

    def forget(self, group: bytes) -> None:
        """Begin anew with a group whose members could not send heartbeats."""
        self._heard.pop(group, None)
