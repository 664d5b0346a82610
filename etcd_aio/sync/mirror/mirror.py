"""Mirror, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.mirror.mirror`: do not edit.
"""

from typing import NoReturn

from etcd_aio.arguments import KeyLike
from etcd_aio.mirror import Mirror as AsyncMirror
from etcd_aio.mirror import MirrorStatistics
from etcd_aio.portal import Facade
from etcd_aio.sync.calls.store_calls import StoreCalls


class Mirror(Facade):
    """A copy of a prefix in another cluster: `Mirror(source, destination, prefix="svc/").run()`.

    Each revision of the source becomes one txn of the destination, so its txns stay atomic; small revisions share a
    txn. The checkpoint, a key of the destination, is put in the same txn, so a mirror may be stopped or killed at any
    time, and the next one continues exactly there, also if a write was under way. Keys that were deleted meanwhile are
    deleted, even if the history is compacted.

    Everything under `to_prefix` belongs to the mirror: keys that the source does not have are deleted. Values are
    copied; leases and revisions are not, so a key with a lease lasts until it is deleted at the source.

    One mirror writes a checkpoint. A second one that starts leaves the first write to the other for `takeover_delay`
    seconds, and ends with `MirrorConflictError` once the other has written. If the other did not write in that time,
    the new one takes over, and the other ends with that error at its next write. Both never write.

    Args:
        source: a client of the cluster to copy from, or what serves as one.
        destination: a client of the cluster to copy to. If it is the same cluster, the prefixes must not overlap.
        prefix: of the keys at the source; empty is every key.
        to_prefix: what the copies have in place of `prefix`. Default: None, the same. If it is empty, a key that is
            `prefix` itself is left out, since etcd has no empty key.
        checkpoint_key: at the destination. Default: `__etcd_aio/mirror/` and `to_prefix`. If it is deleted, all keys
            are compared.
        max_txn_ops: the most changes in a txn. Default: 126; etcd accepts 128 operations, with that of the checkpoint,
            unless its `--max-txn-ops` is less: then the mirror makes smaller txns by itself.
        takeover_delay: seconds; see above. Default: 1, in which a mirror in use writes what it has received.

    Raises:
        InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid, or the prefixes overlap in one store.
    """

    def __init__(
        self,
        source: StoreCalls,
        destination: StoreCalls,
        *,
        prefix: KeyLike,
        to_prefix: KeyLike | None = None,
        checkpoint_key: KeyLike | None = None,
        max_txn_ops: int = 126,
        takeover_delay: float = 1.0,
    ) -> None:
        self._construct(
            AsyncMirror,
            source,
            destination,
            prefix=prefix,
            to_prefix=to_prefix,
            checkpoint_key=checkpoint_key,
            max_txn_ops=max_txn_ops,
            takeover_delay=takeover_delay,
        )

    @property
    def revision(self) -> int:
        """The revision of the source up to which the destination has every change; 0 before the first copy."""
        return self._aio.revision

    @property
    def checkpoint_key(self) -> bytes:
        """The key of the checkpoint at the destination."""
        return self._aio.checkpoint_key

    def run(self) -> NoReturn:
        """Copy, until Ctrl-C or an error, such as that of a client that was closed. It may be run again.

        Errors that may pass are waited for, with a growing pause of at most 6 seconds: `statistics().error` has it.

        Raises:
            MirrorConflictError: another mirror writes the checkpoint.
            MirrorError: both sides are one cluster and the prefixes overlap; or the checkpoint's key has another value.
            PermissionDeniedError: a user may not read the source, or not write the destination or its checkpoint.
            RequestTooLargeError: the destination does not accept a single key of the source with its value.
            ClientUsageError: it is running already, or a client is closed.
            EtcdError: one of the clusters refuses a request for good.

        Ctrl-C: a txn that is under way may be applied or not; the next run finds out.
        """
        self._run(self._aio.run)
        raise AssertionError("it ends by an exception")

    def wait_revision(self, revision: int, *, timeout: float | None = None) -> None:
        """Wait until the destination has every change of the source up to a revision; if need be, for the next run.

        Args:
            revision: of a write below the prefix, such as the last one before the writers move to the destination.
            timeout: seconds to wait. Default: None, no limit.

        Raises:
            EtcdTimeoutError: it has not all of them in time.
            ClientUsageError: the mirror was ended meanwhile.
            EtcdError: the error that has ended the mirror meanwhile.

        Ctrl-C changes nothing.
        """
        self._run(self._aio.wait_revision, revision, timeout=timeout)

    def statistics(self) -> MirrorStatistics:
        """A snapshot of the counters."""
        return self._run(self._aio.statistics)
