"""Store and Ordered, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.store`: do not edit.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

from etcd_aio.arguments import KeyLike, ValueLike
from etcd_aio.base import UNSET, Timeout
from etcd_aio.errors import EtcdError
from etcd_aio.portal import in_caller, own_thread, unwrap
from etcd_aio.sync.calls.store_calls import StoreCalls
from etcd_aio.sync.calls.writer import Writer
from etcd_aio.types import KeyValue

if TYPE_CHECKING:
    from etcd_aio.recipes import Isolation, StmResult
    from etcd_aio.services import JSONValue, OnConflict
    from etcd_aio.sync.cache.cache import Cache
    from etcd_aio.sync.concurrency.election import Election
    from etcd_aio.sync.concurrency.lock import Lock
    from etcd_aio.sync.concurrency.rwlock import RWLock
    from etcd_aio.sync.concurrency.semaphore import Semaphore
    from etcd_aio.sync.concurrency.session import Session
    from etcd_aio.sync.once.once import ExactlyOnce
    from etcd_aio.sync.recipes.kubernetes import Kubernetes
    from etcd_aio.sync.recipes.stm.transaction import Transaction
    from etcd_aio.sync.services.endpoints import Endpoints
    from etcd_aio.sync.services.registration import Registration
    from etcd_aio.views import OrderedStatistics

_T = TypeVar("_T")


class Store(StoreCalls):
    """A store: a `Client`, or a view of one, such as `client.namespace("app/")`.

    It has every call about keys, watches and leases, and makes what stands on them: locks, caches, transactions.
    Making one sends nothing, and raises TypeError or InvalidRequestError if an argument cannot be right. Stores that
    are made of a client share its connections, streams and leases, and need no closing.
    """

    _survives_fork: ClassVar[bool] = True

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
            value: of the key, for `contenders()`. Default: the names of the host and the process.
            margin: seconds before the end of the lease at which it counts as lost, if no renewal was acknowledged. It
                pays for the time that the block needs to notice and end, and for clocks of different rates. Default: a
                tenth of `ttl`, at most 1.
            on_lost: a function that is called with the error if the lock is lost, in a thread of its own: a thread
                cannot be cancelled. Leaving raises `LockLostError` in any case, and `check()` raises it within the
                block. Default: None.
            reentrant: let the thread that holds this object enter it again.
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
            margin: seconds before the end of the lease at which it counts as lost.
            on_lost: a function that is called with the error of a loss; see `lock`.
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
            with election.lead("host-1") as leadership: ...           wait, lead, resign
            election.run(work, "host-1")                              run `work` whenever this candidate leads
            election.leader()                                         the present leader
            with election.changes() as leaders: ...                   every leader, one after the other

        It is open to Go's `concurrency.Election`, `etcdctl elect` and other libraries; a lock of the same name excludes
        its leader too.

        Args:
            name: its name. The keys are `<name>/<lease>`.
            ttl: seconds until another candidate may lead after a crash of this process, or in an outage. Default: 10,
                as of locks. etcd raises values below its minimum, 2 by default.
            margin: seconds before the end of the lease at which the leadership is lost, if no renewal was
                acknowledged. Default: a tenth of `ttl`, at most 1; see `lock`.
            on_lost: a function that is called with the error if a leadership is lost, in a thread of its own: a thread
                cannot be cancelled. Leaving raises `LeadershipLostError` in any case, and `check()` raises it within
                the block. Default: None.
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

        One object for each client is enough; threads may share it. Nothing is sent before its first write.

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
            cache.read("cfg/a")                                                   linearizable
            cache.wait_current()                                                  what is read now is linearizable
            for revision, changed in cache.changes(): ...                         what has changed

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
            view.get("k", serializable=True)            never older than what was read or written through `view`

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
            for change in web.changes(): ...               now, and after each change

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
        """Run a function as a transaction: what it reads and writes takes effect at once, or not at all.

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
            max_attempts: how many commits are sent at most. Default: 100; threads of one client that change the same
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
            in_caller(function, self._wrap),
            isolation=isolation,
            prefetch=prefetch,
            max_attempts=max_attempts,
            writer=unwrap(writer),
            timeout=timeout,
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

    _survives_fork: ClassVar[bool] = True

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
