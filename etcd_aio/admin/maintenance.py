"""`client.maintenance`: status, alarms, defragmentation, hashes, downgrades, snapshots, the leadership."""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final

from etcd_aio import methods, pb
from etcd_aio.admin.cluster import MemberLike, member_id
from etcd_aio.admin.leader import LeaderTransfer
from etcd_aio.admin.metrics import Get, read_document
from etcd_aio.admin.replies import ALARM_TYPES, alarm_result
from etcd_aio.admin.snapshot import Snapshot
from etcd_aio.arguments import parse_word, whole_number
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.base.deadline import time_left
from etcd_aio.errors import InvalidRequestError, NotSupportedByServerError
from etcd_aio.methods import Method, Reply, Request
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
    MemberHealth,
    MoveLeaderResult,
    SavedSnapshot,
    StatusResult,
)

if TYPE_CHECKING:
    from etcd_aio.admin.snapshot_file import OnProgress
    from etcd_aio.error_handler import Invoker

_DOWNGRADE_ACTIONS: Final = {action: pb.DowngradeRequestDowngradeAction[action.name] for action in DowngradeAction}


class Maintenance:
    """The maintenance API: `client.maintenance`.

    Every call takes `timeout` and, but for those over HTTP, `retry`, and raises, as the key-value calls do.

    A call that takes an `endpoint` goes to this member only, and waits for a connection to it. The endpoint must be one
    of `client.endpoints`, in any spelling; another one raises `UnknownEndpointError`, and nothing is sent. If the
    member cannot be connected to in time, `NoAvailableEndpointsError.errors` has the reason.
    """

    def __init__(self, invoker: "Invoker", get: Get) -> None:
        self._invoker = invoker
        self._get = get
        self._leader_transfer = LeaderTransfer(invoker)

    # About one member.

    async def status(self, endpoint: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> StatusResult:
        """Get the status of a member. Learners and members without a leader answer too."""
        return await self._ask(endpoint, methods.STATUS, pb.StatusRequest(), timeout, retry)

    async def defragment(
        self, endpoint: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> DefragmentResult:
        """Defragment a member's database, which frees the space that it does not use.

        The member serves no requests meanwhile, for seconds per GiB: defragment one member after the other, the leader
        last, with a long `timeout`. Neither the timeout nor a cancellation stops a member that has begun.
        """
        return await self._ask(endpoint, methods.DEFRAGMENT, pb.DefragmentRequest(), timeout, retry)

    async def hash(self, endpoint: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> HashResult:
        """Get the hash of a member's whole database, as etcd's own tests do. To compare members, use `hash_kv`.

        A large database needs a long `timeout`.
        """
        return await self._ask(endpoint, methods.HASH, pb.HashRequest(), timeout, retry)

    async def hash_kv(
        self, endpoint: str, revision: int = 0, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> HashKVResult:
        """Get the hash of a member's keys and their history. Equal members have equal hashes at the same revisions.

        A large database needs a long `timeout`.

        Args:
            endpoint: the member's endpoint.
            revision: hash the history up to this revision; 0 is all that the member has.

        Raises:
            CompactedError: the revision was compacted.
            FutureRevisionError: the member has not reached the revision.
        """
        request = pb.HashKvRequest(revision=whole_number(revision, "revision"))
        return await self._ask(endpoint, methods.HASH_KV, request, timeout, retry)

    async def metrics(self, endpoint: str, *, timeout: Timeout = UNSET) -> str:
        """Get the metrics of a member, as Prometheus reads them: some 200 kB of text.

        They are not in etcd's gRPC API, but at `/metrics` on the same port, and are read by a separate connection. No
        user is needed. A member that was started with `--listen-metrics-urls` may serve them elsewhere.

        Raises:
            ConnectError: the member cannot be reached, or does not serve its metrics at this endpoint.
            EtcdTimeoutError: they did not come in time. Nothing is read again.
        """
        return await read_document(self._invoker, self._get, _checked(endpoint), "/metrics", timeout)

    async def livez(self, endpoint: str, *, exclude: Iterable[str] = (), timeout: Timeout = UNSET) -> MemberHealth:
        """Ask a member whether it is live, as `/livez?verbose` tells it: one that is not should be restarted.

        It is live if it answers a read of its own data, also without a leader. See `readyz`.
        """
        return await self._health(endpoint, "/livez", exclude, timeout)

    async def readyz(self, endpoint: str, *, exclude: Iterable[str] = (), timeout: Timeout = UNSET) -> MemberHealth:
        """Ask a member whether it is ready for requests, as `/readyz?verbose` tells it.

        It makes a read of its own data and one with quorum, is no learner, and has found no corruption of its data. An
        alarm because the database is full is no reason for not being ready. Without a leader the read with quorum
        fails after some seven seconds: give a `timeout` above that to learn which of the checks fail.

        This is read over HTTP by a separate connection, as `metrics` is, and no user is needed. etcd serves it since
        3.4.29, 3.5.11 and 3.6. Of an older member `/health` is read: `MemberHealth.is_fallback` tells so. Its one
        check fails for any alarm, too.

        Args:
            endpoint: the member's endpoint.
            exclude: names of checks that are left out, such as "linearizable_read". Other names are ignored. `/health`
                knows none of them.
            timeout: seconds for the whole call.

        Returns:
            MemberHealth: true if the member is ready, with the result of each check.

        Raises:
            ConnectError: the member cannot be reached, or does not serve its health at this endpoint.
            EtcdTimeoutError: there was no answer in time. Nothing is read again.
        """
        return await self._health(endpoint, "/readyz", exclude, timeout)

    async def _health(self, endpoint: str, path: str, exclude: Iterable[str], timeout: Timeout) -> MemberHealth:
        from etcd_aio.admin.member_health import read_health  # at its first use

        return await read_health(self._invoker, self._get, _checked(endpoint), path, exclude, timeout)

    async def _ask(
        self,
        endpoint: str,
        method: Method[Request, Reply],
        request: Request,
        timeout: Timeout,
        retry: RetryMode | None,
    ) -> Reply:
        """Run a call at one member, which answers without a leader too."""
        only = _checked(endpoint)
        return await self._invoker.unary(
            method, request, timeout=timeout, retry=retry, needs_leader=False, endpoint=only
        )

    # Alarms.

    async def alarms(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AlarmResult:
        """List the alarms that are raised.

        Returns:
            AlarmResult: true if there is an alarm.
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
        """Disarm alarms: all of them, or those of one kind, of one member, or both. Remove their cause first.

        If the call fails or is cancelled, some of the alarms may be disarmed. It is safe to repeat.

        Args:
            alarm: only of this kind.
            member: only of this member.

        Returns:
            AlarmResult: the alarms that were disarmed; false if there was none.
        """
        kind = None if alarm is None else parse_word(Alarm, alarm, "alarm")
        about = None if member is None else member_id(member)
        deadline = self._invoker.deadline(timeout, self._invoker.clock())
        # Listed first, since a disarming that is repeated after a lost answer names no alarm.
        raised = await self.alarms(timeout=timeout, retry=retry)
        chosen = tuple(
            active for active in raised.alarms if kind in (None, active.alarm) and about in (None, active.member_id)
        )
        header = raised.header
        for active in chosen:
            request = pb.AlarmRequest(
                action=pb.AlarmRequestAlarmAction.DEACTIVATE,
                member_id=active.member_id,
                alarm=ALARM_TYPES[active.alarm],
            )
            left = time_left(deadline, self._invoker.clock())
            header = alarm_result(await self._invoker.unary(methods.ALARM, request, timeout=left, retry=retry)).header
        return AlarmResult(header, chosen)

    async def raise_alarm(
        self,
        alarm: AlarmLike,
        member: MemberLike | None = None,
        *,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> AlarmResult:
        """Raise an alarm, as etcd does itself. With `"nospace"` the cluster accepts no writes until it is disarmed.

        This is for tests, and to stop all writes on purpose. It is safe to repeat.

        Args:
            alarm: the kind.
            member: the member that has the problem. Default: none; the alarm is listed with the member id 0.

        Returns:
            AlarmResult: the alarm.
        """
        request = pb.AlarmRequest(
            action=pb.AlarmRequestAlarmAction.ACTIVATE,
            member_id=0 if member is None else member_id(member),
            alarm=ALARM_TYPES[parse_word(Alarm, alarm, "alarm")],
        )
        return alarm_result(await self._invoker.unary(methods.ALARM, request, timeout=timeout, retry=retry))

    # Leadership and versions.

    async def move_leader(
        self, to: MemberLike, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> MoveLeaderResult:
        """Transfer the leadership to another member, which takes about a tenth of a second.

        Reads and most writes wait that long. But etcd drops the writes that a follower forwards at that moment: they
        time out with `maybe_applied`, and are only repeated with `retry="always"`.

        If the answer is lost, the client looks up the leader again, so the outcome is hardly ever unknown. If the call
        is cancelled, the leadership may move all the same.

        Args:
            to: the member, which must have a vote. If it leads already, nothing is done.
            timeout: seconds for the whole call. etcd itself gives up after its election timeout.
            retry: with `"never"` the leader is asked once.

        Raises:
            BadLeaderTransfereeError: `to` is not a member, or it is a learner.
            UnknownEndpointError: the leader is not an endpoint of the client. Nothing was sent.
            EtcdTimeoutError: no leader was found in time, or `to` did not take over.
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
        """Validate, enable or cancel a downgrade of the cluster by one minor version (etcd 3.6 and newer).

        etcd 3.5 can only validate. `"enable"` would get no answer from it, and its members could not be started again;
        so this client validates first, and refuses a downgrade from 3.5.

        Args:
            action: `"validate"`, `"enable"` or `"cancel"`.
            version: the version to downgrade to, such as "3.5.0"; empty for `"cancel"`.

        Raises:
            InvalidRequestError: there is no such action, or the version is missing or not needed. Nothing was sent.
            InvalidDowngradeTargetVersionError: the version is not one minor version below the cluster's.
            DowngradeInProcessError: another downgrade is in progress.
            NoInflightDowngradeError: there is no downgrade to cancel (only etcd 3.5; newer servers accept this).
            NotSupportedByServerError: the server is older than etcd 3.5, or than 3.6 for `"enable"`. Nothing changed.
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
        """Read a member's whole database as a stream of chunks: `async for chunk in client.maintenance.snapshot():`.

        Args:
            endpoint: the member to read from, even if it is behind the others. Default: any member.
            timeout: seconds for each chunk.
            retry: which failed attempts are repeated before the first chunk. After it, nothing is repeated.

        Returns:
            Snapshot: iterate over it. Nothing is sent before; the iteration raises the errors.
        """
        return Snapshot(self._invoker, None if endpoint is None else _checked(endpoint), timeout, retry)

    async def save_snapshot(
        self,
        path: str | PathLike[str],
        *,
        endpoint: str | None = None,
        on_progress: "OnProgress | None" = None,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> SavedSnapshot:
        """Save a snapshot as a file for `etcdutl snapshot restore`.

        The file appears when it is complete, verified and on disk, readable only by its owner (mode 0600); until then a
        file of the same name stays as it is. After an error or a cancellation nothing is left behind.

        Args:
            path: the file to make or to replace, in a directory that exists.
            endpoint: as in `snapshot`.
            on_progress: called with the number of bytes written and the number in all, about once for each MiB, and at
                the end. An exception that it raises ends the call.
            timeout: seconds for each chunk; `asyncio.timeout()` bounds the whole call.
            retry: as in `snapshot`.

        Raises:
            OSError: the file cannot be written: no such directory, no permission, no space left ...
            SnapshotChecksumError: the snapshot was cut short or damaged.

        Cancellation waits until the current write, a MiB at most, is done, and removes the file. At the very end, the
        complete file may be there all the same.
        """
        from etcd_aio.admin.snapshot_file import save  # with the first snapshot

        snapshot = self.snapshot(endpoint, timeout=timeout, retry=retry)
        return await save(snapshot, Path(path), on_progress)


def _checked(endpoint: str) -> str:
    if not isinstance(endpoint, str):
        raise TypeError(f"endpoint must be str, one of client.endpoints; got {type(endpoint).__name__}")
    return endpoint
