"""StoreCalls, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.calls.store_calls`: do not edit.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from etcd_aio.arguments import KeyLike
from etcd_aio.backend import Backend
from etcd_aio.base import UNSET, KeySpace, Timeout
from etcd_aio.errors import EtcdError
from etcd_aio.sync.calls.keys import KeyCalls
from etcd_aio.types import OnCompaction, OnCompactionLike, WatchFilterLike
from etcd_aio.watch import DEFAULT_MAX_PENDING

if TYPE_CHECKING:
    from etcd_aio.lease import LeaseGuard
    from etcd_aio.sync.lease.calls import Leases
    from etcd_aio.sync.lease.lease import Lease
    from etcd_aio.sync.watch.watcher import Watcher
    from etcd_aio.types import EndpointVersions


class StoreCalls(KeyCalls):
    """A store as far as recipes and other layers need it; a `Client` is one."""

    @property
    def name(self) -> str:
        """The name of the client; empty if it has none. Lines in logs begin with it."""
        return self._aio.name

    @property
    def default_timeout(self) -> float | None:
        """Seconds of a call without a `timeout` of its own; None for no limit."""
        return self._aio.default_timeout

    @property
    def key_space(self) -> KeySpace:
        """The cluster or namespace whose keys the calls name; a writer has that of the store that its recipe reads."""
        return self._aio.key_space

    @property
    def leases(self) -> "Leases":
        """The single lease calls: grant, revoke, time_to_live, keep_alive_once, list."""
        return self._part("leases")

    def watch(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        start_revision: int = 0,
        prev_kv: bool = False,
        progress_notify: bool = False,
        filters: Iterable[WatchFilterLike] = (),
        fragment: bool | None = None,
        on_compaction: OnCompactionLike = OnCompaction.RAISE,
        max_pending: int = DEFAULT_MAX_PENDING,
        max_outage: float | None = None,
        stream: str = "",
        timeout: Timeout = UNSET,
    ) -> "Watcher":
        """Follow the changes of keys. Every change is delivered once and in order, also when members fail.

            with client.watch(prefix="svc/") as watcher:
                for event in watcher: ...

        The keys are named as in `range()`.

        Args:
            start_revision: the first revision of interest. 0 starts from now: with the writes after the watch is
                entered, and with some written shortly before if the member that serves it is behind. After a range or
                scan, its `revision + 1` continues it without a gap.
            prev_kv: each event has the previous key-value, unless that is compacted.
            progress_notify: the server reports from time to time how far a watch without events is, by an empty batch;
                every 10 minutes unless it is configured otherwise. It also keeps a quiet watch from falling behind a
                compaction.
            filters: events that the server leaves out: `"no_put"`, `"no_delete"`.
            fragment: the server splits messages that are too large. The delivered events are the same. Default: None,
                only after a message came that was larger than the client's `max_receive_bytes`. With False, such a
                message ends the watch with `ReplyTooLargeError`. etcd splits in time that grows with the square of the
                number of events: a catch-up of 100 000 small events of 1000 txns took it a minute, and 0.4 s unsplit.
            on_compaction: the behaviour if the next revision was compacted while the watch was not connected, or if
                `start_revision` was. `"raise"` ends it with `CompactedError`. `"resync"` lists the present keys,
                delivers the difference as one batch of events with `is_resync`, and goes on behind it. For that it
                remembers each key of the range (its size and some 100 bytes), lists all keys on entering, and holds
                the whole difference in memory at once. If even the revision before `start_revision` is compacted on
                entering, the keys of that time are unknown, and their deletes are not reported; if `start_revision` is
                in the future, the watch compares with the keys that exist now. Deletes cannot be reported with the
                filter `"no_put"`, so the two exclude each other. A store that went back, since a backup was restored,
                is treated the same way: `"raise"` ends the watch with `StoreRolledBackError`; `"resync"` reports every
                key that exists, and `revision` goes back too.
            max_pending: bytes of memory, estimated, that undelivered events may take. If a consumer is slower than
                that, its watch is cancelled on the server, and created again when half of them are taken. No other
                watch is affected, and nothing is lost unless the next events are compacted before: then see
                `on_compaction`. A larger single batch is accepted. Default: 16 MiB.
            max_outage: seconds without any member to watch on, after which the watch ends with
                `NoAvailableEndpointsError`. One that creates the watch ends the outage, even if it breaks the stream
                right after. Default: None, it waits without a limit.
            stream: the name of the stream that the watch shares with others: watches with another name have another
                stream, perhaps to another member. A progress notification needs all watches of a stream to be up to
                date, so one that depends on them may want a stream of its own. Default: "", the common stream.
            timeout: seconds that entering may take.

        Returns:
            Watcher: nothing is sent before it is entered.

        Raises:
            InvalidRequestError: the keys are not given in exactly one form, or an option is out of bounds.
            EmptyKeyError: the key is empty.
            TypeError: an argument has a wrong type.
        """
        return self._made(
            "watch",
            key,
            range_end=range_end,
            prefix=prefix,
            from_key=from_key,
            all_keys=all_keys,
            start_revision=start_revision,
            prev_kv=prev_kv,
            progress_notify=progress_notify,
            filters=filters,
            fragment=fragment,
            on_compaction=on_compaction,
            max_pending=max_pending,
            max_outage=max_outage,
            stream=stream,
            timeout=timeout,
        )

    def wait_deleted(self, key: KeyLike, revision: int = 0, *, timeout: float | None = None) -> None:
        """Wait until a key is deleted. It moves from member to member with the watches, and outlasts compactions.

        Args:
            key: the key.
            revision: a revision at which the key existed, such as that of the range that it was found in. If the key
                was deleted since then, and created again, this does not wait for the new one. 0 is now.
            timeout: seconds for the whole wait. Default: None, no limit.

        Raises:
            EmptyKeyError: the key is empty.
            EtcdTimeoutError: the key was not deleted in time.
            EtcdError: as every read and watch.

        Ctrl-C leaves nothing behind.
        """
        self._run(self._aio.wait_deleted, key, revision, timeout=timeout)

    def lease(
        self,
        ttl: int,
        *,
        id: int | None = None,
        adopt: bool = False,
        on_lost: Callable[[EtcdError], object] | None = None,
        guard: "LeaseGuard | None" = None,
        watchdog: float | None = None,
        timeout: Timeout = UNSET,
    ) -> "Lease":
        """A lease for a block of code: `with client.lease(10) as lease:`.

        Entering grants the lease, and raises what `leases.grant` raises. In the block it is kept alive. Leaving revokes
        it, within 2 seconds and however the block ends; if that fails, a warning is logged and the lease expires.

        Args:
            ttl: seconds until it expires without renewal, from 1 to 9 000 000 000: after a crash of this process, or in
                an outage. etcd raises smaller values to its minimum, 2 by default.
            id: its id. Default: a random one.
            adopt: take over the lease that has this `id` already, as after a restart, instead of granting one: entering
                renews it, and raises `LeaseNotFoundError` if it is gone. Its own TTL counts, not `ttl`. If entering
                fails or Ctrl-C interrupts it, the lease is left alone.
            on_lost: a function that is called with the error if the lease is lost, in a thread of its own: a thread
                cannot be cancelled. Leaving raises `LeaseLostError` in any case, and `check()` raises it within the
                block. Default: None.
            guard: `"thread"` renews the lease by a connection of its own, which `watchdog` needs. The lease of a
                blocking client is renewed in a thread in any case, so a process that hangs looks alive. Default: None.
            watchdog: seconds within which the program must call `lease.feed()`, again and again; else the lease is
                lost, and revoked. Only with `guard="thread"`. Default: None: it needs no feeding.
            timeout: seconds for the grant, or for the first renewal.

        Raises:
            InvalidRequestError, LeaseTTLTooLargeError, TypeError: an argument is invalid.
        """
        return self._made(
            "lease", ttl, id=id, adopt=adopt, on_lost="signal", guard=guard, watchdog=watchdog, timeout=timeout
        )._telling(on_lost)

    def versions(self, timeout: Timeout = UNSET) -> "tuple[EndpointVersions, ...]":
        """The release of etcd at each endpoint, and the version that the cluster has agreed on.

        The latter is not in etcd's gRPC API; it is read from `/version` on the same port, by a separate connection.

        Returns:
            tuple[EndpointVersions, ...]: one for each endpoint, in their order; with the error if there was no answer.
        """
        return self._run(self._aio.versions, timeout)

    @property
    def backend(self) -> Backend:
        """See above."""
        return self._aio.backend
