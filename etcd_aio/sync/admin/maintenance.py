"""Maintenance, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.admin.maintenance`: do not edit.
"""

from collections.abc import Callable, Iterable
from os import PathLike
from typing import ClassVar

from etcd_aio.base import UNSET, RetryMode, Timeout
from etcd_aio.portal import Facade, own_thread
from etcd_aio.sync.admin.snapshot import Snapshot
from etcd_aio.types import (
    AlarmLike,
    AlarmResult,
    DefragmentResult,
    DowngradeActionLike,
    DowngradeResult,
    HashKVResult,
    HashResult,
    Member,
    MemberHealth,
    MoveLeaderResult,
    SavedSnapshot,
    StatusResult,
)


class Maintenance(Facade):
    """The maintenance API: `client.maintenance`.

    Every call takes `timeout` and, but for those over HTTP, `retry`, and raises, as the key-value calls do.

    A call that takes an `endpoint` goes to this member only, and waits for a connection to it. The endpoint must be one
    of `client.endpoints`, in any spelling; another one raises `UnknownEndpointError`, and nothing is sent. If the
    member cannot be connected to in time, `NoAvailableEndpointsError.errors` has the reason.
    """

    _survives_fork: ClassVar[bool] = True

    def status(self, endpoint: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> StatusResult:
        """Get the status of a member. Learners and members without a leader answer too."""
        return self._run(self._aio.status, endpoint, timeout=timeout, retry=retry)

    def defragment(
        self, endpoint: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> DefragmentResult:
        """Defragment a member's database, which frees the space that it does not use.

        The member serves no requests meanwhile, for seconds per GiB: defragment one member after the other, the leader
        last, with a long `timeout`. Neither the timeout nor Ctrl-C stops a member that has begun.
        """
        return self._run(self._aio.defragment, endpoint, timeout=timeout, retry=retry)

    def hash(self, endpoint: str, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> HashResult:
        """Get the hash of a member's whole database, as etcd's own tests do. To compare members, use `hash_kv`.

        A large database needs a long `timeout`.
        """
        return self._run(self._aio.hash, endpoint, timeout=timeout, retry=retry)

    def hash_kv(
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
        return self._run(self._aio.hash_kv, endpoint, revision, timeout=timeout, retry=retry)

    def metrics(self, endpoint: str, *, timeout: Timeout = UNSET) -> str:
        """Get the metrics of a member, as Prometheus reads them: some 200 kB of text.

        They are not in etcd's gRPC API, but at `/metrics` on the same port, and are read by a separate connection. No
        user is needed. A member that was started with `--listen-metrics-urls` may serve them elsewhere.

        Raises:
            ConnectError: the member cannot be reached, or does not serve its metrics at this endpoint.
            EtcdTimeoutError: they did not come in time. Nothing is read again.
        """
        return self._run(self._aio.metrics, endpoint, timeout=timeout)

    def livez(self, endpoint: str, *, exclude: Iterable[str] = (), timeout: Timeout = UNSET) -> MemberHealth:
        """Ask a member whether it is live, as `/livez?verbose` tells it: one that is not should be restarted.

        It is live if it answers a read of its own data, also without a leader. See `readyz`.
        """
        return self._run(self._aio.livez, endpoint, exclude=exclude, timeout=timeout)

    def readyz(self, endpoint: str, *, exclude: Iterable[str] = (), timeout: Timeout = UNSET) -> MemberHealth:
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
        return self._run(self._aio.readyz, endpoint, exclude=exclude, timeout=timeout)

    def alarms(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> AlarmResult:
        """List the alarms that are raised.

        Returns:
            AlarmResult: true if there is an alarm.
        """
        return self._run(self._aio.alarms, timeout=timeout, retry=retry)

    def disarm(
        self,
        alarm: AlarmLike | None = None,
        member: int | Member | None = None,
        *,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> AlarmResult:
        """Disarm alarms: all of them, or those of one kind, of one member, or both. Remove their cause first.

        If the call fails or Ctrl-C interrupts it, some of the alarms may be disarmed. It is safe to repeat.

        Args:
            alarm: only of this kind.
            member: only of this member.

        Returns:
            AlarmResult: the alarms that were disarmed; false if there was none.
        """
        return self._run(self._aio.disarm, alarm, member, timeout=timeout, retry=retry)

    def raise_alarm(
        self,
        alarm: AlarmLike,
        member: int | Member | None = None,
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
        return self._run(self._aio.raise_alarm, alarm, member, timeout=timeout, retry=retry)

    def move_leader(
        self, to: int | Member, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> MoveLeaderResult:
        """Transfer the leadership to another member, which takes about a tenth of a second.

        Reads and most writes wait that long. But etcd drops the writes that a follower forwards at that moment: they
        time out with `maybe_applied`, and are only repeated with `retry="always"`.

        If the answer is lost, the client looks up the leader again, so the outcome is hardly ever unknown. If Ctrl-C
        interrupts the call, the leadership may move all the same.

        Args:
            to: the member, which must have a vote. If it leads already, nothing is done.
            timeout: seconds for the whole call. etcd itself gives up after its election timeout.
            retry: with `"never"` the leader is asked once.

        Raises:
            BadLeaderTransfereeError: `to` is not a member, or it is a learner.
            UnknownEndpointError: the leader is not an endpoint of the client. Nothing was sent.
            EtcdTimeoutError: no leader was found in time, or `to` did not take over.
        """
        return self._run(self._aio.move_leader, to, timeout=timeout, retry=retry)

    def downgrade(
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
        return self._run(self._aio.downgrade, action, version, timeout=timeout, retry=retry)

    def snapshot(
        self, endpoint: str | None = None, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> Snapshot:
        """Read a member's whole database as a stream of chunks: `for chunk in client.maintenance.snapshot():`.

        Args:
            endpoint: the member to read from, even if it is behind the others. Default: any member.
            timeout: seconds for each chunk.
            retry: which failed attempts are repeated before the first chunk. After it, nothing is repeated.

        Returns:
            Snapshot: iterate over it. Nothing is sent before; the iteration raises the errors.
        """
        return self._made("snapshot", endpoint, timeout=timeout, retry=retry)

    def save_snapshot(
        self,
        path: str | PathLike[str],
        *,
        endpoint: str | None = None,
        on_progress: Callable[[int, int], object] | None = None,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> SavedSnapshot:
        """Save a snapshot as a file for `etcdutl snapshot restore`.

        The file appears when it is complete, verified and on disk, readable only by its owner (mode 0600); until then a
        file of the same name stays as it is. After an error or Ctrl-C nothing is left behind.

        Args:
            path: the file to make or to replace, in a directory that exists.
            endpoint: as in `snapshot`.
            on_progress: called with the number of bytes written and the number in all, about once for each MiB, and at
                the end. An exception that it raises ends the call.
            timeout: seconds for each chunk.
            retry: as in `snapshot`.

        Raises:
            OSError: the file cannot be written: no such directory, no permission, no space left ...
            SnapshotChecksumError: the snapshot was cut short or damaged.

        Ctrl-C waits until the current write, a MiB at most, is done, and removes the file. At the very end, the
        complete file may be there all the same.
        """
        return self._run(
            self._aio.save_snapshot,
            path,
            endpoint=endpoint,
            on_progress=None if on_progress is None else own_thread(on_progress, "etcd_aio.save_snapshot.on_progress"),
            timeout=timeout,
            retry=retry,
        )
