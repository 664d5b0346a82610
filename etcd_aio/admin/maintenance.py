"""`client.maintenance`: status, alarms, defragmentation, hashes, downgrades, snapshots, the leadership."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final

from etcd_aio import methods, pb
from etcd_aio.admin.cluster import MemberLike, member_id
from etcd_aio.admin.leader import LeaderTransfer
from etcd_aio.admin.replies import alarm_result
from etcd_aio.admin.snapshot import Snapshot
from etcd_aio.admin.snapshot_file import OnProgress, save
from etcd_aio.call_options import UNSET, RetryMode, Timeout
from etcd_aio.deadline import time_left
from etcd_aio.errors import InvalidRequestError, NotSupportedByServerError
from etcd_aio.types import (
    Alarm,
    AlarmLike,
    AlarmResult,
    DefragmentResult,
    DowngradeAction,
    DowngradeActionLike,
    DowngradeResult,
    HashKVResult,
    HashResult,
    MoveLeaderResult,
    SavedSnapshot,
    StatusResult,
    parse_word,
    whole_number,
)

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

_ALARM_TYPES: Final[Mapping[Alarm, pb.AlarmType]] = {
    Alarm.NOSPACE: pb.AlarmType.NOSPACE,
    Alarm.CORRUPT: pb.AlarmType.CORRUPT,
}
_DOWNGRADE_ACTIONS: Final[Mapping[DowngradeAction, pb.DowngradeRequestDowngradeAction]] = {
    DowngradeAction.VALIDATE: pb.DowngradeRequestDowngradeAction.VALIDATE,
    DowngradeAction.ENABLE: pb.DowngradeRequestDowngradeAction.ENABLE,
    DowngradeAction.CANCEL: pb.DowngradeRequestDowngradeAction.CANCEL,
}


class Maintenance:
    """The maintenance API: `client.maintenance`.

    Every call takes `timeout` and `retry`, and raises, as the key-value calls do. Those that take an `endpoint` are
    about the one member there: they go to it and to no other, waiting for it if it is not connected. It is one of
    `client.endpoints`, in any spelling; another one raises `UnknownEndpointError`, and nothing is sent.
    """

    def __init__(self, invoker: "Invoker") -> None:
        self._invoker = invoker
        self._leader_transfer = LeaderTransfer(invoker)

    # About one member.

    async def status(self, endpoint: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> StatusResult:
        """Ask a member how it is. It answers without a leader too, and as a learner.

        Args:
            endpoint: which one.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            NoAvailableEndpointsError: it could not be connected to in time; `errors` has the real reason.
            EtcdError: as every call.
        """
        return await self._invoker.unary(
            methods.STATUS,
            pb.StatusRequest(),
            timeout=timeout,
            retry=retry,
            needs_leader=False,
            endpoint=_checked(endpoint),
        )

    async def defragment(
        self, endpoint: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> DefragmentResult:
        """Have a member give back the space that its database does not use.

        The member serves no requests meanwhile, for seconds per GiB: take one member after the other, the leader last.

        Args:
            endpoint: which one.
            timeout: seconds for the whole call; give it many. If they are over it goes on all the same.
            retry: which failed attempts are repeated.

        Raises:
            NoAvailableEndpointsError: it could not be connected to in time; `errors` has the real reason.
            EtcdError: as every call. With `maybe_applied` it may have been defragmented, or be at it still.

        Cancellation: it goes on all the same.
        """
        return await self._invoker.unary(
            methods.DEFRAGMENT,
            pb.DefragmentRequest(),
            timeout=timeout,
            retry=retry,
            needs_leader=False,
            endpoint=_checked(endpoint),
        )

    async def hash(self, endpoint: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> HashResult:
        """Have a member hash its whole database, as etcd's own tests do. To compare members, take `hash_kv`.

        Args:
            endpoint: which one.
            timeout: seconds for the whole call; a big database takes many.
            retry: which failed attempts are repeated.

        Raises:
            NoAvailableEndpointsError: it could not be connected to in time; `errors` has the real reason.
            EtcdError: as every call.
        """
        return await self._invoker.unary(
            methods.HASH,
            pb.HashRequest(),
            timeout=timeout,
            retry=retry,
            needs_leader=False,
            endpoint=_checked(endpoint),
        )

    async def hash_kv(
        self, endpoint: str, revision: int = 0, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> HashKVResult:
        """Have a member hash its keys and their history. Members that agree have the same hash at the same revisions.

        Args:
            endpoint: which one.
            revision: the revision up to which; 0 is all the member has.
            timeout: seconds for the whole call; a big database takes many.
            retry: which failed attempts are repeated.

        Raises:
            CompactedError: `revision` was compacted.
            FutureRevisionError: the member has not got so far.
            NoAvailableEndpointsError: it could not be connected to in time; `errors` has the real reason.
            EtcdError: as every call.
        """
        return await self._invoker.unary(
            methods.HASH_KV,
            pb.HashKvRequest(revision=whole_number(revision, "revision")),
            timeout=timeout,
            retry=retry,
            needs_leader=False,
            endpoint=_checked(endpoint),
        )

    # Alarms.

    async def alarms(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AlarmResult:
        """List the alarms that are raised.

        Args:
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Returns:
            AlarmResult: true if there is any.

        Raises:
            EtcdError: as every call.
        """
        request = pb.AlarmRequest(action=pb.AlarmRequestAlarmAction.GET)
        reply = await self._invoker.unary(methods.ALARM, request, timeout=timeout, retry=retry, repeatable=True)
        return alarm_result(reply)

    async def disarm(
        self,
        alarm: AlarmLike | None = None,
        member: MemberLike | None = None,
        *,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> AlarmResult:
        """Disarm alarms: all of them, or those of one kind, of one member, or both. Mend what they are about first.

        Args:
            alarm: only of this kind.
            member: only of this member.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Returns:
            AlarmResult: those that were raised before and are disarmed now; false if there was nothing to disarm.

        Raises:
            EtcdError: as every call. Some may have been disarmed before; to try again does no harm.

        Cancellation: any of them may be disarmed all the same.
        """
        kind = None if alarm is None else parse_word(Alarm, alarm, "alarm")
        about = None if member is None else member_id(member)
        deadline = self._invoker.deadline(timeout, self._invoker.clock())
        # Asked for first, since a disarming that is repeated after a lost answer tells of no alarm.
        raised = await self.alarms(timeout=timeout, retry=retry)
        chosen = tuple(one for one in raised.alarms if kind in (None, one.alarm) and about in (None, one.member_id))
        header = raised.header
        for one in chosen:
            request = pb.AlarmRequest(
                action=pb.AlarmRequestAlarmAction.DEACTIVATE, member_id=one.member_id, alarm=_ALARM_TYPES[one.alarm]
            )
            left = time_left(deadline, self._invoker.clock())
            header = alarm_result(await self._invoker.unary(methods.ALARM, request, timeout=left, retry=retry)).header
        return AlarmResult(header, chosen)

    # LeaderTransfer and versions.

    async def move_leader(
        self, to: MemberLike, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> MoveLeaderResult:
        """Have another member lead. The leader is found, and asked to hand over, which takes about a tenth of a second.

        Reads and most writes under way only take that long. But etcd drops writes that a follower forwards at that
        moment: they time out, with `maybe_applied`, unless `retry="always"` lets them be repeated.

        If the answer is lost, the client looks up the leader again; so the outcome is hardly ever unknown.

        Args:
            to: the member that is to lead; a voting one. If it leads already, nothing is done.
            timeout: seconds for the whole call. etcd itself gives up after its election timeout.
            retry: which failed attempts are repeated. With `"never"` the leader is asked once.

        Raises:
            BadLeaderTransfereeError: `to` is no member, or a learner.
            UnknownEndpointError: none of the client's endpoints is the leader's. Nothing was sent.
            EtcdTimeoutError: no leader was found in time, or `to` did not take over.
            EtcdError: as every call.

        Cancellation: the leadership may move all the same.
        """
        return await self._leader_transfer.move(member_id(to, "to"), timeout, retry)

    async def downgrade(
        self,
        action: DowngradeActionLike,
        version: str = "",
        *,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> DowngradeResult:
        """Check, begin or cancel a downgrade of the cluster by one minor version (etcd 3.6 and newer).

        etcd 3.5 can check one. If told to begin, it would never answer, and its members could not be started again: so
        a downgrade is always checked before it is begun, and one from 3.5 is refused here.

        Args:
            action: `"validate"`, `"enable"` or `"cancel"`.
            version: what to downgrade to, such as "3.5.0"; nothing for `"cancel"`.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            InvalidRequestError: the action is none, or has too much or too little of a version. Nothing was sent.
            InvalidDowngradeTargetVersionError: it is not one minor version below the cluster's.
            DowngradeInProcessError: another one is under way.
            NoInflightDowngradeError: there is none to cancel; newer servers than 3.5 have nothing against that.
            NotSupportedByServerError: the server is older than etcd 3.5, or than 3.6 for `"enable"`: nothing was begun.
            EtcdError: as every call.

        Cancellation: it may be carried out all the same.
        """
        found = parse_word(DowngradeAction, action, "action")
        if not isinstance(version, str):
            raise TypeError(f"version must be str, got {type(version).__name__}")
        if bool(version) is (found is DowngradeAction.CANCEL):
            needed = "takes no" if version else "needs a"
            raise InvalidRequestError(f"downgrade {found.value!r} {needed} version")
        if found is not DowngradeAction.ENABLE:
            return await self._downgrade(found, version, timeout, retry)
        deadline = self._invoker.deadline(timeout, self._invoker.clock())
        checked = await self._downgrade(DowngradeAction.VALIDATE, version, timeout, retry)
        if f"{checked.version}.".startswith("3.5."):
            text = f"the cluster is of {checked.version}, and its members would not start again"
            raise NotSupportedByServerError(text, feature=f"{methods.DOWNGRADE.name} enable", needs="3.6")
        left = time_left(deadline, self._invoker.clock())
        return await self._downgrade(found, version, left, retry)

    async def _downgrade(
        self, action: DowngradeAction, version: str, timeout: Timeout, retry: RetryMode | None
    ) -> DowngradeResult:
        request = pb.DowngradeRequest(action=_DOWNGRADE_ACTIONS[action], version=version)
        return await self._invoker.unary(methods.DOWNGRADE, request, timeout=timeout, retry=retry)

    # Snapshots.

    def snapshot(
        self, endpoint: str | None = None, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> Snapshot:
        """A member's whole database, as a stream of chunks: `async for chunk in client.maintenance.snapshot():`.

        Args:
            endpoint: the member to take it from, even if it is behind the others; any of them by default.
            timeout: seconds within which each chunk is there, once it is asked for.
            retry: which failed attempts are repeated, until the first chunk has come.

        Returns:
            Snapshot: iterate over it; nothing is sent before.

        Raises:
            EtcdError: as every call, from the iteration. After the first chunk nothing is repeated.
            SnapshotChecksumError: all chunks have come, and they are not what the member has hashed.
        """
        return Snapshot(self._invoker, None if endpoint is None else _checked(endpoint), timeout, retry)

    async def save_snapshot(
        self,
        path: str | PathLike[str],
        *,
        endpoint: str | None = None,
        on_progress: OnProgress | None = None,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> SavedSnapshot:
        """Save a snapshot as a file, which `etcdutl snapshot restore` takes.

        The file is there when it is whole, verified and on disk, readable only by its owner (mode 0600); until then
        what had its name before stays. After an error or a cancellation nothing is left of it.

        Args:
            path: the file to make or to replace. Its directory exists.
            endpoint: as with `snapshot`.
            on_progress: called with the bytes written and the bytes in all, about once for each MiB, and at the end.
                What it raises ends the saving.
            timeout: seconds within which each chunk is there; the whole takes as long as it takes. Bound it by
                `asyncio.timeout()`.
            retry: as with `snapshot`.

        Returns:
            SavedSnapshot: its size and hash.

        Raises:
            OSError: the file cannot be made or written: no such directory, no permission, no space left ...
            SnapshotChecksumError: what came is cut short or damaged.
            EtcdError: as every call.

        Cancellation waits for what is being written at the moment, a MiB at most, and then removes the file. In the
        very last moment the whole file may be there all the same.
        """
        snapshot = self.snapshot(endpoint, timeout=timeout, retry=retry)
        return await save(snapshot, Path(path), on_progress)


def _checked(endpoint: str) -> str:
    if not isinstance(endpoint, str):
        raise TypeError(f"endpoint must be str, one of client.endpoints; got {type(endpoint).__name__}")
    return endpoint
