"""StoreCalls: the calls about keys, watches and leases, written once, over any backend."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from etcd_aio import watch as watching
from etcd_aio.arguments import check_text, flag, parse_word, whole_number
from etcd_aio.backend import Backend, Block, WatchCall
from etcd_aio.base.blocking import check_asyncio
from etcd_aio.base.call_options import UNSET, Timeout
from etcd_aio.base.deadline import deadline_after
from etcd_aio.base.key_space import KeySpace
from etcd_aio.calls.keys import KeyCalls
from etcd_aio.errors import InvalidRequestError
from etcd_aio.kv import op
from etcd_aio.types import (
    KeyLike,
    KeyRange,
    OnCompaction,
    OnCompactionLike,
    WatchFilter,
    WatchFilterLike,
)
from etcd_aio.watch import DEFAULT_MAX_PENDING

if TYPE_CHECKING:
    from etcd_aio.lease import Lease, LeaseGuard, Leases, OnLost
    from etcd_aio.types import EndpointVersions
    from etcd_aio.watch import Watcher

_B = TypeVar("_B", bound=Block)


def check_store(store: object, name: str = "client") -> None:
    """Check that an argument is a client or a store of asyncio, which has a backend and is none.

    All that takes a store calls it first; a test finds them by their signatures.

    Raises:
        TypeError: it is something else.
    """
    check_asyncio(store, name)
    if not hasattr(store, "backend"):
        hint = ": write Store(backend)" if hasattr(store, "do") else ""
        raise TypeError(f"{name} must be a client or a store, got {type(store).__name__}{hint}")


class StoreCalls(KeyCalls):
    """A store as far as recipes and other layers need it; a `Client` is one.

    Args:
        backend: sends the operations, and opens the watches: that of a client, or a view of another one.

    Attributes:
        backend: see above.
        is_exact: False; see `Writer`.
    """

    is_exact = False

    def __init__(self, backend: Backend) -> None:
        if isinstance(backend, StoreCalls):
            raise TypeError(f"backend must be a backend, got {type(backend).__name__}: write Store(store.backend)")
        self.backend = backend

    @property
    def name(self) -> str:
        """The name of the client; empty if it has none. Lines in logs begin with it."""
        return self.backend.shared.name

    @property
    def default_timeout(self) -> float | None:
        """Seconds of a call without a `timeout` of its own; None for no limit."""
        return self.backend.shared.timeout

    @property
    def key_space(self) -> KeySpace:
        """The cluster or namespace whose keys the calls name; a writer has that of the store that its recipe reads."""
        return self.backend.key_space

    @property
    def leases(self) -> "Leases":
        """The single lease calls: grant, revoke, time_to_live, keep_alive_once, list."""
        return self.backend.leases

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

            async with client.watch(prefix="svc/") as watcher:
                async for event in watcher: ...

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
        keys = KeyRange.of(key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys)
        if keys.range_end > b"\0" and keys.range_end <= keys.key:
            raise InvalidRequestError("the range is empty: range_end must be greater than key")
        if isinstance(filters, str):
            raise TypeError("filters must be a list of words, got str")
        chosen = tuple(dict.fromkeys(parse_word(WatchFilter, word, "filters") for word in filters))
        resync = parse_word(OnCompaction, on_compaction, "on_compaction") is OnCompaction.RESYNC
        if resync and WatchFilter.NO_PUT in chosen:
            raise InvalidRequestError(
                'on_compaction="resync" cannot be combined with the filter "no_put", since it compares puts'
            )
        if max_outage is not None:
            deadline_after(max_outage, 0.0)
        if timeout is not UNSET:
            deadline_after(timeout, 0.0)
        check_text(stream, "stream")
        options = watching.WatchOptions(
            keys,
            prev_kv=flag(prev_kv, "prev_kv"),
            progress_notify=flag(progress_notify, "progress_notify"),
            filters=chosen,
            fragment=None if fragment is None else flag(fragment, "fragment"),
            resync=resync,
            max_pending=whole_number(max_pending, "max_pending", minimum=1),
            max_outage=max_outage,
        )
        return self.backend.watch(WatchCall(options, whole_number(start_revision, "start_revision"), timeout, stream))

    async def wait_deleted(self, key: KeyLike, revision: int = 0, *, timeout: float | None = None) -> None:
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

        Cancellation leaves nothing behind.
        """
        from etcd_aio.watch import wait_deleted

        whole_number(revision, "revision")
        look = op.get(key, keys_only=True)
        await wait_deleted(
            lambda: self.watch(look.key, filters=("no_put",), timeout=None),
            lambda: self.do(look, timeout=None),
            revision,
            self.backend.shared.deadline(timeout),
        )

    def lease(
        self,
        ttl: int,
        *,
        id: int | None = None,
        adopt: bool = False,
        on_lost: "OnLost" = "cancel",
        guard: "LeaseGuard | None" = None,
        watchdog: float | None = None,
        timeout: Timeout = UNSET,
    ) -> "Lease":
        """A lease for a block of code: `async with client.lease(10) as lease:`.

        Entering grants the lease, and raises what `leases.grant` raises. In the block it is kept alive. Leaving revokes
        it, within 2 seconds and even if the block was cancelled; if that fails, a warning is logged and the lease
        expires.

        Args:
            ttl: seconds until it expires without renewal, from 1 to 9 000 000 000: after a crash of this process, or in
                an outage. etcd raises smaller values to its minimum, 2 by default.
            id: its id. Default: a random one.
            adopt: take over the lease that has this `id` already, as after a restart, instead of granting one: entering
                renews it, and raises `LeaseNotFoundError` if it is gone. Its own TTL counts, not `ttl`. If entering
                fails or is cancelled, the lease is left alone.
            on_lost: what happens if the lease is lost: `"cancel"` cancels the task in the block, `"signal"` only sets
                `lease.is_lost`. Leaving raises `LeaseLostError` in both cases.
            guard: `"thread"` lets a thread renew the lease, with a connection of its own, so that it is not lost while
                the loop is blocked or too busy. A process that hangs then looks alive: see `watchdog`. Default: None:
                the loop renews it.
            watchdog: seconds within which the program must call `lease.feed()`, again and again; else the lease is
                lost, and revoked. Only with `guard="thread"`. Default: None: it needs no feeding.
            timeout: seconds for the grant, or for the first renewal.

        Raises:
            InvalidRequestError, LeaseTTLTooLargeError, TypeError: an argument is invalid.
        """
        return self.backend.leases.block(
            ttl, on_lost, id=id, adopt=adopt, guard=guard, watchdog=watchdog, timeout=timeout
        )

    async def versions(self, timeout: Timeout = UNSET) -> "tuple[EndpointVersions, ...]":
        """The release of etcd at each endpoint, and the version that the cluster has agreed on.

        The latter is not in etcd's gRPC API; it is read from `/version` on the same port, by a separate connection.

        Returns:
            tuple[EndpointVersions, ...]: one for each endpoint, in their order; with the error if there was no answer.
        """
        return await self.backend.shared.versions(timeout)

    def end_with_client(self, block: _B) -> _B:
        """Have the client end a block when it is closed, unless the block is gone before. It holds the block weakly.

        Returns:
            The block.
        """
        self.backend.shared.blocks.add(block)
        return block
