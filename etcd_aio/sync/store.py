"""Store and Ordered, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.store`: do not edit.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, overload

from etcd_aio.arguments import KeyLike, LeaseLike, ValueLike
from etcd_aio.backend import Backend
from etcd_aio.base import UNSET, KeySpace, RetryMode, Timeout
from etcd_aio.errors import EtcdError
from etcd_aio.kv import DEFAULT_PAGE_SIZE
from etcd_aio.portal import Facade, in_caller, own_thread, unwrap
from etcd_aio.sync.calls.writer import Writer
from etcd_aio.types import (
    DeleteResult,
    KeyValue,
    OnCompaction,
    OnCompactionLike,
    Operation,
    PutResult,
    RangeResult,
    SortBy,
    SortByLike,
    SortOrder,
    SortOrderLike,
    WatchFilterLike,
)
from etcd_aio.watch import DEFAULT_MAX_PENDING

if TYPE_CHECKING:
    from etcd_aio.recipes import Isolation, StmResult
    from etcd_aio.services import JSONValue, OnConflict
    from etcd_aio.sync.cache.cache import Cache
    from etcd_aio.sync.concurrency.election import Election
    from etcd_aio.sync.concurrency.lock import Lock
    from etcd_aio.sync.concurrency.rwlock import RWLock
    from etcd_aio.sync.concurrency.semaphore import Semaphore
    from etcd_aio.sync.concurrency.session import Session
    from etcd_aio.sync.kv.scan import Scan
    from etcd_aio.sync.kv.txn import Txn
    from etcd_aio.sync.lease.calls import Leases
    from etcd_aio.sync.lease.lease import Lease
    from etcd_aio.sync.once.once import ExactlyOnce
    from etcd_aio.sync.recipes.kubernetes import Kubernetes
    from etcd_aio.sync.recipes.stm.transaction import Transaction
    from etcd_aio.sync.services.endpoints import Endpoints
    from etcd_aio.sync.services.registration import Registration
    from etcd_aio.sync.watch.watcher import Watcher
    from etcd_aio.types import EndpointVersions
    from etcd_aio.views import OrderedStatistics

_T = TypeVar("_T")
_R = TypeVar("_R")


class Store(Facade):
    """A store: a `Client`, or a view of one, such as `client.namespace("app/")`.

    It has every call about keys, watches and leases, and makes what stands on them: locks, caches, transactions.
    Making one sends nothing, and raises TypeError or InvalidRequestError if an argument cannot be right. Stores that
    are made of a client share its connections, streams and leases, and need no closing.
    """

    survives_fork: ClassVar[bool] = True

    def lock(
        self,
        name: KeyLike,
        *,
        ttl: int = 10,
        timeout: float | None = None,
        value: ValueLike | None = None,
        margin: float | None = None,
        on_lost: Callable[[EtcdError], object] | None = None,
        reentrant: bool = False,
    ) -> "Lock":
        """A lock for a block of code: `with client.lock("jobs/42") as lock:`.

        It excludes Go's `concurrency.Mutex`, `etcdctl lock` and other libraries that lock the same name, in the order
        of arrival.

        Args:
            name: its name. The keys are `<name>/<lease>`.
            ttl: seconds until another may hold it after a crash of this process, or in an outage. Default: 10, which
                outlasts a leader election several times. etcd raises values below its minimum, 2 by default.
            timeout: seconds to wait for it, above 0; `try_acquire()` does not wait. None for no limit.
            value: of the key, for `contenders()`. Default: the names of the host, the process and the task.
            margin: seconds before the end of the lease at which the block is cancelled, if no renewal was acknowledged.
                It pays for the time that the block needs to end, and for clocks of different rates. Default: a tenth
                of `ttl`, at most 1.
            on_lost: what happens if the lock is lost: `"cancel"` cancels the task in the block, `"signal"` only sets
                `lock.is_lost`. Leaving raises `LockLostError` in both cases.
            reentrant: let the task that holds this object enter it again.
        """
        return self._made(
            "lock", name, ttl=ttl, timeout=timeout, value=value, margin=margin, on_lost="signal", reentrant=reentrant
        )._telling(on_lost)

    def rwlock(
        self,
        name: KeyLike,
        *,
        ttl: int = 10,
        value: ValueLike | None = None,
        margin: float | None = None,
        on_lost: Callable[[EtcdError], object] | None = None,
    ) -> "RWLock":
        """A lock for many readers or one writer: `with client.rwlock("catalog").reading() as lock:`.

        The arguments are those of `lock()`; `reading(timeout=...)` and `writing(timeout=...)` make the locks.
        """
        return self._made("rwlock", name, ttl=ttl, value=value, margin=margin, on_lost="signal")._telling(on_lost)

    def semaphore(
        self,
        name: KeyLike,
        *,
        limit: int,
        permits: int = 1,
        ttl: int = 10,
        timeout: float | None = None,
        margin: float | None = None,
        on_lost: Callable[[EtcdError], object] | None = None,
    ) -> "Semaphore":
        """Permits for a block of code: `with client.semaphore("gpu", limit=3) as permit:`.

        Args:
            name: its name, which must not be that of a lock. The keys are `<name>/<lease>`.
            limit: the number of permits; all contenders must name the same.
            permits: how many of them the block needs.
            ttl: as of `lock()`, like the other arguments.
            timeout: seconds to wait for them, above 0; `try_acquire()` does not wait. None for no limit.
            margin: seconds before the end of the lease at which the block is cancelled.
            on_lost: `"cancel"` or `"signal"`.
        """
        return self._made(
            "semaphore", name, limit=limit, permits=permits, ttl=ttl, timeout=timeout, margin=margin, on_lost="signal"
        )._telling(on_lost)

    def election(
        self,
        name: KeyLike,
        *,
        ttl: int = 10,
        margin: float | None = None,
        on_lost: Callable[[EtcdError], object] | None = None,
    ) -> "Election":
        """An election: one leader among the candidates of a name.

            election = client.election("scheduler")
            with election.lead("host-1") as leadership: ...     wait, lead, resign
            election.run(work, "host-1")                        run `work` whenever this candidate leads
            election.leader()                                   the present leader
            with election.changes() as leaders: ...             every leader, one after the other

        It is open to Go's `concurrency.Election`, `etcdctl elect` and other libraries; a lock of the same name excludes
        its leader too.

        Args:
            name: its name. The keys are `<name>/<lease>`.
            ttl: seconds until another candidate may lead after a crash of this process, or in an outage. Default: 10,
                as of locks. etcd raises values below its minimum, 2 by default.
            margin: seconds before the end of the lease at which the leadership is lost, if no renewal was
                acknowledged. Default: a tenth of `ttl`, at most 1; see `lock`.
            on_lost: what happens if a leadership is lost: `"cancel"` cancels the task in the block, `"signal"` only
                sets `leadership.is_lost`. Leaving raises `LeadershipLostError` in both cases.
        """
        return self._made("election", name, ttl=ttl, margin=margin, on_lost="signal")._telling(on_lost)

    def session(self, *, ttl: int = 60, on_lost: Callable[[EtcdError], object] | None = None) -> "Session":
        """One lease for several locks, and for keys of your own: `with client.session() as session:`.

        Locks by themselves are better off with a lease each, as `lock()` gives them. A session is for what must live
        and die together, and for names that another process takes over by adopting the lease.

        Args:
            ttl: seconds that the lease lasts without renewal. Default: 60, as of Go's sessions.
            on_lost: what happens if the lease is lost: see `lease()`.
        """
        return self._made("session", ttl=ttl, on_lost="signal")._telling(on_lost)

    def exactly_once(
        self, *, slots: int = 64, ttl: int = 300, window: int = 24 * 3600, prefix: KeyLike = "__etcd_aio/once/"
    ) -> "ExactlyOnce":
        """Writes that are applied exactly once: `with client.exactly_once() as once: once.put("k", "v")`.

        One object for each client is enough; tasks may share it. Nothing is sent before its first write.

        Args:
            slots: the most writes at a time; more wait for their turn. Each is a key on the server.
            ttl: seconds for which these keys outlive a crash of this process. They are under one lease; an outage that
                is longer ends it, and the next write needs another one.
            window: seconds for which an idempotency id is remembered at least, from the end of the call on. Default:
                a day. If a call takes longer than a day, its window begins at the end of its first day.
            prefix: of all these keys. With authentication, the user needs the permission to read and write it.
        """
        return self._made("exactly_once", slots=slots, ttl=ttl, window=window, prefix=prefix)

    @overload
    def cache(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        decode: None = None,
        keep_current: float | None = None,
        fallback: bool = True,
        max_outage: float = 10.0,
    ) -> "Cache[KeyValue]": ...

    @overload
    def cache(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        decode: Callable[[bytes], _T],
        on_error: Callable[[bytes, Exception], None] | None = None,
        keep_current: float | None = None,
        fallback: bool = True,
        max_outage: float = 10.0,
    ) -> "Cache[_T]": ...

    def cache(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        decode: Callable[[bytes], Any] | None = None,
        on_error: Callable[[bytes, Exception], None] | None = None,
        keep_current: float | None = None,
        fallback: bool = True,
        max_outage: float = 10.0,
    ) -> "Cache[Any]":
        """The keys of a range in memory, kept like the store: `with client.cache(prefix="cfg/") as cache:`.

            cache.get("cfg/a"), cache["cfg/a"], cache.range(prefix="cfg/web/")    what is here now
            cache.read("cfg/a")                                             linearizable
            cache.wait_current()                                            what is read now is linearizable
            for revision, changed in cache.changes(): ...                   what has changed

        Entering reads all keys. A watch follows them, over lost connections, failed members and compactions. Every read
        is of the store at one revision.

        Args:
            key: this key alone; with `range_end`, the first key of an interval.
            range_end: the key before which the interval ends.
            prefix: every key that begins with this.
            from_key: every key from this one on.
            all_keys: every key.
            decode: turns a value into what is read; called once for each change. If it raises, the key keeps its value
                of before, unless it was deleted in between. Default: None, `KeyValue`s are read.
            on_error: called with the key and the exception if `decode` raises. Default: None, the first one of each key
                is logged, without the value.
            keep_current: seconds, more than 0, between two reads of the store's revision in the background. Reads with
                `max_staleness` above it do not wait then, while all is well, and `age` grows visibly if the cluster is
                out of reach. Default: None, the store is asked only when a caller waits.
            fallback: whether `read` goes to the server if the cache is not current in time.
            max_outage: seconds without any member to watch on, after which `state` is LAGGING. Default: 10, which
                outlasts a leader election several times.
        """
        return self._made(
            "cache",
            key,
            range_end=range_end,
            prefix=prefix,
            from_key=from_key,
            all_keys=all_keys,
            decode=decode,
            on_error=None if on_error is None else own_thread(on_error, "etcd_aio.cache.on_error"),
            keep_current=keep_current,
            fallback=fallback,
            max_outage=max_outage,
        )

    def namespace(self, prefix: KeyLike) -> "Store":
        """The keys that begin with a prefix, as a store of their own, without the prefix.

            app = client.namespace("app/")
            app.put("color", "blue")  # the key app/color

        A namespace of a namespace is one of both prefixes.

        Args:
            prefix: the prefix, as it is: write the separator that ends it.
        """
        return self._made("namespace", prefix)

    def ordered(self) -> "Ordered":
        """A store whose reads never go back: `view = client.ordered()`.

            view.put("k", "1")
            view.get("k", serializable=True)      never older than what was read or written through `view`

        Each view has its own mark, so a session or a request may have one of its own; see `Ordered`.
        """
        return self._made("ordered")

    def kubernetes(self, *, writer: Writer | None = None) -> "Kubernetes":
        """The calls that Kubernetes makes to etcd: reads, pages of a prefix, and optimistic writes.

            kubernetes = client.kubernetes()
            found = kubernetes.get("pods/a")
            result = kubernetes.optimistic_put("pods/a", "new", found.kv.mod_revision if found.kv else 0)

        Args:
            writer: makes the writes, such as `client.exactly_once()`. Default: the client; then a lost answer is
                replaced by the history of the key.
        """
        return self._made("kubernetes", writer=writer)

    def register(
        self,
        target: KeyLike,
        address: str,
        *,
        metadata: "JSONValue" = None,
        name: str | None = None,
        ttl: int = 10,
        on_conflict: "OnConflict" = "keep",
        drain: float = 0.0,
        timeout: Timeout = UNSET,
    ) -> "Registration":
        """Register an endpoint of a service: `with client.register("svc/web", "10.0.0.1:80"):`.

        The entry is there while the block runs, and ends soon after a crash of the process. After an outage of any
        length it is put again without any help. The format is that of Go's `naming/endpoints`, so its resolver finds
        the endpoint too.

        Args:
            target: the service. The key is `<target>/<name>`.
            address: where the endpoint is reached. An address belongs to one process: an equal entry of an earlier
                process is taken over.
            metadata: what others learn with the address: any value that JSON can express.
            name: the end of the key. Default: the address.
            ttl: seconds until the entry ends after a crash of this process, or in an outage. Default: 10, as of locks.
                etcd raises values below its minimum, 2 by default.
            on_conflict: if the key has a different entry of another process, `"keep"` leaves it alone until it is
                gone, and `"replace"` replaces it.
            drain: seconds that leaving the block waits after the entry was deleted, so that those who follow the
                service stop using the endpoint before it ends. Default: 0.
            timeout: seconds for the grant of the lease, and again for the put, on entering.
        """
        return self._made(
            "register",
            target,
            address,
            metadata=metadata,
            name=name,
            ttl=ttl,
            on_conflict=on_conflict,
            drain=drain,
            timeout=timeout,
        )

    def resolve(self, target: KeyLike, *, keep_last: float = 0.0, keep_current: float | None = None) -> "Endpoints":
        """The endpoints of a service, kept up to date in memory: `with client.resolve("svc/web") as web:`.

            web.endpoints                                  what is known now
            web.pick().address                             the next one, in turn
            for change in web.changes(): ...         now, and after each change

        It finds what `register` and Go's `naming/endpoints` have put under `<target>/`.

        Args:
            target: the service.
            keep_last: seconds for which the last endpoints stay when etcd has none any more, as for servers that
                register again after an outage. Default: 0, none is known as soon as etcd has none.
            keep_current: seconds between two reads of the store's revision in the background, so that `age` shows how
                old the endpoints may be. Default: None, the store is asked only when a caller waits for it.
        """
        return self._made("resolve", target, keep_last=keep_last, keep_current=keep_current)

    def stm(
        self,
        function: "Callable[[Transaction], _T]",
        *,
        isolation: "Isolation" = "serializable_snapshot",
        prefetch: Iterable[KeyLike] = (),
        max_attempts: int = 100,
        writer: Writer | None = None,
        timeout: Timeout = UNSET,
    ) -> "StmResult[_T]":
        """Run an async function as a transaction: what it reads and writes takes effect at once, or not at all.

            def transfer(tx: Transaction) -> int:
                a, b = int(tx.get("a").text()), int(tx.get("b").text())
                tx.put("a", str(a - 10))
                tx.put("b", str(b + 10))
                return b + 10

            result = client.stm(transfer)

        If another writer has changed what the function has read, it runs again, on the newer state. So it must have no
        side effects but those of its transaction. An exception of the function ends the call; nothing is written then.

        Args:
            function: gets a `Transaction`, which it reads and writes through.
            isolation: `"serializable_snapshot"`: all reads are of one revision, and no key that was read or is written
                has changed since. `"serializable"`: the same, but keys that are only written may have changed.
                `"repeatable_reads"`: each key is read once, and has not changed since, but the reads are of several
                revisions. `"read_committed"`: each read is of the newest state, and may be out of date.
            prefetch: keys that are read first, in one round trip. Default: none.
            max_attempts: how many commits are sent at most. Default: 100; tasks of one client that change the same
                keys wait for each other, so only conflicts with other clients come near it.
            writer: sends the commits, such as `client.exactly_once()`, which finds out what became of one whose answer
                was lost; or `lock.fenced`. Default: the client.
            timeout: seconds for the whole call, with all attempts and the function; None for no limit.

        Returns:
            StmResult: the value of the function, the revision of the commit, and how often the function has run.

        Raises:
            TxnConflictError: every attempt met a conflict. Nothing was applied.
            EtcdTimeoutError: the time was over. If `maybe_applied` is False, nothing was applied.
            InvalidRequestError, TypeError: an argument is invalid, or the transaction has more reads or writes than
                etcd accepts in a txn.
            EtcdError: as every call; if `maybe_applied` is True, the transaction may have been applied, and was not
                repeated: it might have been applied twice.

        Ctrl-C: the transaction was applied or not, as with every write.
        """
        return self._run(
            self._aio.stm,
            in_caller(lambda one: function(self._wrap(one))),
            isolation=isolation,
            prefetch=prefetch,
            max_attempts=max_attempts,
            writer=unwrap(writer),
            timeout=timeout,
        )

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
        return self._wrap(self._aio.leases)

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

        Cancellation leaves nothing behind.
        """
        self._run(self._aio.wait_deleted, key, revision, timeout=timeout)

    def lease(
        self,
        ttl: int,
        *,
        id: int | None = None,
        adopt: bool = False,
        on_lost: Callable[[EtcdError], object] | None = None,
        timeout: Timeout = UNSET,
    ) -> "Lease":
        """A lease for a block of code: `with client.lease(10) as lease:`.

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
            timeout: seconds for the grant, or for the first renewal.
        """
        return self._made("lease", ttl, id=id, adopt=adopt, on_lost="signal", timeout=timeout)._telling(on_lost)

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

    def do(self, operation: Operation[_R], *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> _R:
        """Send one operation: `client.do(op.get("key"))` is `client.get("key")`.

        All of `get`, `range`, `put`, `delete`, `update`, the `commit()` of a txn, the pages of a scan and the listings
        of a watch are operations that the backend sends. `compact()`, and the part of a scan that the server streams,
        are not.

        Args:
            operation: an operation such as `op.put("key", "value")`; with `op.txn(...)` a whole txn.
            retry: which failed attempts are retried. An operation that changes nothing is retried like a read. Any
                other is applied at most once, unless this is `"always"`.

        Returns:
            The result of the call that has the operation's name.

        Raises:
            TypeError: `operation` is not an operation.
            EtcdError: those of the call that has the operation's name.
        """
        return self._run(self._aio.do, operation, timeout=timeout, retry=retry)

    def get(
        self,
        key: KeyLike,
        *,
        revision: int = 0,
        serializable: bool = False,
        keys_only: bool = False,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> KeyValue | None:
        """Get one key.

        Args:
            key: the key.
            revision: read the store as it was at this revision; 0 is now.
            serializable: let one member answer from its own state, which is faster, needs no quorum, and may be stale.
            keys_only: leave the value out; etcd 3.7 also leaves out the lease.

        Returns:
            KeyValue | None: None if the key does not exist.

        Raises:
            EmptyKeyError: the key is empty.
            CompactedError: the revision was compacted.
            FutureRevisionError: the store has not reached the revision.
        """
        return self._run(
            self._aio.get,
            key,
            revision=revision,
            serializable=serializable,
            keys_only=keys_only,
            timeout=timeout,
            retry=retry,
        )

    def range(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        limit: int = 0,
        revision: int = 0,
        sort_by: SortByLike = SortBy.KEY,
        sort_order: SortOrderLike = SortOrder.ASCEND,
        serializable: bool = False,
        keys_only: bool = False,
        count_only: bool = False,
        min_mod_revision: int = 0,
        max_mod_revision: int = 0,
        min_create_revision: int = 0,
        max_create_revision: int = 0,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> RangeResult:
        """Get the keys of a range in one reply. Use `scan()` for ranges of unknown size.

        Args:
            key: this key alone; with `range_end`, the first key of an interval.
            range_end: the key before which the interval ends.
            prefix: every key that begins with this.
            from_key: every key from this one on.
            all_keys: every key.
            limit: the most keys to return; 0 is no limit.
            revision: read the store as it was at this revision; 0 is now.
            sort_by: `"key"`, `"version"`, `"create_revision"`, `"mod_revision"` or `"value"`. Unless it is the key, the
                server reads the whole range, even if there is a limit.
            sort_order: `"ascend"` or `"descend"`.
            serializable: let one member answer from its own state, which is faster, needs no quorum, and may be stale.
            keys_only: leave the values out; etcd 3.7 also leaves out the leases.
            count_only: return only `count`, no keys.
            min_mod_revision: leave out keys whose last change is before this revision; 0 is no bound.
            max_mod_revision: leave out keys whose last change is after this revision; 0 is no bound.
            min_create_revision: leave out keys created before this revision; 0 is no bound.
            max_create_revision: leave out keys created after this revision; 0 is no bound.

        Returns:
            RangeResult: the keys; `count` ignores the limit and the four bounds.

        Raises:
            InvalidRequestError: not exactly one form names the keys, or an option is out of bounds.
            EmptyKeyError: the key is empty.
            CompactedError: the revision was compacted.
            FutureRevisionError: the store has not reached the revision.
        """
        return self._run(
            self._aio.range,
            key,
            range_end=range_end,
            prefix=prefix,
            from_key=from_key,
            all_keys=all_keys,
            limit=limit,
            revision=revision,
            sort_by=sort_by,
            sort_order=sort_order,
            serializable=serializable,
            keys_only=keys_only,
            count_only=count_only,
            min_mod_revision=min_mod_revision,
            max_mod_revision=max_mod_revision,
            min_create_revision=min_create_revision,
            max_create_revision=max_create_revision,
            timeout=timeout,
            retry=retry,
        )

    @overload
    def put(
        self,
        key: KeyLike,
        value: ValueLike,
        *,
        lease: LeaseLike | None = None,
        prev_kv: bool = False,
        ignore_value: Literal[False] = False,
        ignore_lease: bool = False,
        if_missing: Literal[False] = False,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> PutResult: ...

    @overload
    def put(
        self,
        key: KeyLike,
        value: None = None,
        *,
        lease: LeaseLike | None = None,
        prev_kv: bool = False,
        ignore_value: Literal[True],
        ignore_lease: bool = False,
        if_missing: Literal[False] = False,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> PutResult: ...

    @overload
    def put(
        self,
        key: KeyLike,
        value: ValueLike,
        *,
        lease: LeaseLike | None = None,
        prev_kv: Literal[False] = False,
        ignore_value: Literal[False] = False,
        ignore_lease: Literal[False] = False,
        if_missing: bool,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> PutResult | None: ...

    def put(
        self,
        key: KeyLike,
        value: ValueLike | None = None,
        *,
        lease: LeaseLike | None = None,
        prev_kv: bool = False,
        ignore_value: bool = False,
        ignore_lease: bool = False,
        if_missing: bool = False,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> PutResult | None:
        """Put a value under a key. The put is applied at most once, unless `retry="always"`.

        Args:
            key: the key.
            value: the value; may be empty.
            lease: the lease to attach the key to, or its id. Without it the key loses the lease it had.
            prev_kv: return the key as it was before.
            ignore_value: keep the key's value, and leave `value` out: attaches an existing key to another lease.
            ignore_lease: keep the key's lease, and leave `lease` out. The key must exist.
            if_missing: put only if the key does not exist: a txn with that condition. It excludes `prev_kv`,
                `ignore_value` and `ignore_lease`. Together with `retry="always"`, None may mean that this call itself
                has put the key.

        Returns:
            PutResult: the revision of the put, and `prev_kv` if requested. None if `if_missing=True` and the key
                exists.

        Raises:
            InvalidRequestError: the value is missing, or options exclude each other.
            EmptyKeyError: the key is empty.
            ValueProvidedError: a value together with `ignore_value=True`.
            LeaseProvidedError: a lease together with `ignore_lease=True`.
            KeyNotFoundError: `ignore_value` or `ignore_lease` for a key that does not exist.
            LeaseNotFoundError: there is no such lease.
            NoSpaceError: the store is full. When the store becomes full, the first failing writes may still be applied.
        """
        return self._run(
            self._aio.put,
            key,
            value,
            lease=lease,
            prev_kv=prev_kv,
            ignore_value=ignore_value,
            ignore_lease=ignore_lease,
            if_missing=if_missing,
            timeout=timeout,
            retry=retry,
        )

    def update(
        self,
        key: KeyLike,
        function: Callable[[bytes | None], ValueLike],
        *,
        lease: LeaseLike | None = None,
        timeout: Timeout = UNSET,
    ) -> KeyValue:
        """Read a key, compute its next value, and put that if no other writer was faster; else begin again.

            client.update("counter", lambda value: str(int(value or 0) + 1))

        Between two attempts it waits for a random time, up to 0.1 s when many writers compete for the key.

        Args:
            key: the key.
            function: called with the present value, None if the key does not exist; returns the next one. It may be
                called several times, and should do nothing else.
            lease: the lease to attach the key to, or its id. Without it an existing key keeps the lease it has.
            timeout: seconds for the whole update, with all attempts.

        Returns:
            KeyValue: the key as it was put.

        Raises:
            EtcdTimeoutError: the time was over. If other writers were faster in every attempt, `maybe_applied` is
                False.
            EtcdError: as every call; `maybe_applied` is True if the last attempt may have been applied.
            Exception: raised by the function; nothing was put then.

        Ctrl-C: the last attempt may have been applied.
        """
        return self._run(self._aio.update, key, function, lease=lease, timeout=timeout)

    def delete(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        prev_kv: bool = False,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> DeleteResult:
        """Delete a key or a range. The delete is applied at most once, unless `retry="always"`.

        The keys are named as in `range()`, but only `all_keys=True` deletes every key: an empty `prefix` or `from_key`
        is refused.

        Args:
            prev_kv: return the deleted keys as they were.

        Returns:
            DeleteResult: the number of deleted keys, and `prev_kvs` if requested. Deleting nothing is not an error.

        Raises:
            InvalidRequestError: not exactly one form names the keys, or another form than `all_keys` names all of them.
            EmptyKeyError: the key is empty.
        """
        return self._run(
            self._aio.delete,
            key,
            range_end=range_end,
            prefix=prefix,
            from_key=from_key,
            all_keys=all_keys,
            prev_kv=prev_kv,
            timeout=timeout,
            retry=retry,
        )

    def txn(self) -> "Txn":
        """Build a txn: `client.txn().when(...).then(...).otherwise(...).commit()`.

        Returns:
            Txn: a builder. Nothing is sent before its `commit()`.
        """
        return self._made("txn")

    def scan(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        revision: int = 0,
        keys_only: bool = False,
        serializable: bool = False,
        page_size: int = DEFAULT_PAGE_SIZE,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> "Scan":
        """Iterate over a range of any size at one revision: streamed by etcd 3.7, page by page from older servers.

            for kv in client.scan(prefix="svc/"): ...

        The keys are named as in `range()`.

        Args:
            revision: read the store as it was at this revision; 0 is the revision of the first page.
            keys_only: leave the values out; etcd 3.7 also leaves out the leases.
            serializable: let one member answer from its own state, which is faster, needs no quorum, and may be stale.
            page_size: the most keys in a page; 1000, as in etcd's own mirror. A server that does not stream counts the
                rest of the range for every page, so larger pages are cheaper for it, and smaller pages take less memory
                here. A server that streams decides itself how much it sends at once.
            timeout: seconds for the next page or chunk of a stream, with all attempts, also if a page that is too large
                is requested again with fewer keys. The time between two steps does not count.

        Returns:
            Scan: an async iterator of `KeyValue`; `pages()` iterates by pages. Nothing is sent before the first step.

        Raises:
            InvalidRequestError: not exactly one form names the keys, or an option is out of bounds.
            EmptyKeyError: the key is empty.
        """
        return self._made(
            "scan",
            key,
            range_end=range_end,
            prefix=prefix,
            from_key=from_key,
            all_keys=all_keys,
            revision=revision,
            keys_only=keys_only,
            serializable=serializable,
            page_size=page_size,
            timeout=timeout,
            retry=retry,
        )


class Ordered(Store):
    """A store whose reads never go back: `view = client.ordered()`.

    Without it, a serializable read may be answered by a member that is behind the one that answered the read before,
    and show an older state. Here the newest revision of all answers is remembered. A serializable read that is older is
    repeated once, linearizably, so it costs a second call only if its member is behind. Linearizable reads and writes
    are sent as they are; a write is never repeated for this. `StoreRolledBackError` says that the store itself is older
    than what was seen: a backup was restored, or `revision` was assigned from another cluster.

    What watches deliver raises the mark too: no read that follows an event is older than the event. The revision of a
    revocation of a lease is not seen. Tasks may share it. Reads that run at the same time are not compared with each
    other, only with what was seen before they began.
    """

    survives_fork: ClassVar[bool] = True

    @property
    def revision(self) -> int:
        """The newest revision that was seen: no read that begins now returns an older state.

        Assign one that another process has seen, and reads here are not older than its reads were. One that is lower
        than what was seen here changes nothing.

        Raises:
            InvalidRequestError: it is negative, or does not fit 64 bits.
        """
        return self._aio.revision

    @revision.setter
    def revision(self, revision: int) -> None:
        self._run(setattr, self._aio, "revision", revision)

    def statistics(self) -> "OrderedStatistics":
        """A snapshot of the counters."""
        return self._run(self._aio.statistics)
