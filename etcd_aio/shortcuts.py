"""Shortcuts: the methods of a client that stand on its others, or make objects of the layers above it.

The layers above are imported at their first use. A store that wraps another one has all of them too: see `StoreCalls`.
"""

import asyncio
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, overload
from weakref import WeakSet

from etcd_aio.aio import start_background_task
from etcd_aio.call_options import UNSET, Timeout
from etcd_aio.kv import KVCalls, op
from etcd_aio.lease import Lease, OnLost
from etcd_aio.store import Store, Writer
from etcd_aio.types import (
    EndpointVersions,
    KeyLike,
    KeyRange,
    KeyValue,
    OnCompaction,
    OnCompactionLike,
    ValueLike,
    WatchFilterLike,
    whole_number,
)
from etcd_aio.watch import DEFAULT_MAX_PENDING, Watcher, wait_deleted

if TYPE_CHECKING:
    from etcd_aio.cache import Cache
    from etcd_aio.concurrency import Election, LeasePool, Lock, RWLock, Semaphore, Session
    from etcd_aio.error_handler import Invoker
    from etcd_aio.layers import Endpoints, JSONValue, Kubernetes, Namespace, OnConflict, Ordered, Registration
    from etcd_aio.once import ExactlyOnce

T = TypeVar("T")

_CLOSE_SECONDS: Final = 0.5
"""Seconds that exactly-once blocks, caches and revocations get to end when the client is closed: as locks."""


class Block(Protocol):
    """A block of a layer above, which ends when the client is closed."""

    async def aclose(self) -> None:
        """End it."""
        ...


class ClientLike(Store, Protocol):
    """What the shortcuts need of the client that has them, or of the store that wraps one."""

    _invoker: "Invoker"

    def _lease_pool(self) -> "LeasePool":
        """The leases of locks and elections; made by the first of them."""
        ...

    def _blocks_to_close(self) -> "WeakSet[Block]":
        """The blocks that closing the client ends."""
        ...

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
    ) -> Watcher:
        """Follow the changes of keys; with the options that `Store.watch` leaves out."""
        ...


class _PoolOwner(Store, Protocol):
    """A client, which has the leases."""

    _pool: "LeasePool | None"


class Shortcuts:
    """The shortcuts of a client."""

    _pool: "LeasePool | None" = None
    _blocks: "WeakSet[Block] | None" = None
    _closings: "list[asyncio.Task[None]] | None" = None

    def _lease_pool(self: _PoolOwner) -> "LeasePool":
        """The leases of locks and elections; made by the first of them."""
        if self._pool is None:
            from etcd_aio.concurrency import LeasePool

            self._pool = LeasePool(self)
        return self._pool

    def _blocks_to_close(self) -> "WeakSet[Block]":
        """The blocks that closing the client ends."""
        if self._blocks is None:
            self._blocks = WeakSet()
        return self._blocks

    async def _close_layers(self, endings: AbstractSet[asyncio.Task[None]]) -> None:
        """End what the layers above have under way, while the client still works; within half a second.

        Args:
            endings: tasks that are ending something already.
        """
        ends = asyncio.get_running_loop().time() + _CLOSE_SECONDS
        if self._closings is None:  # a second close waits for those of the first
            blocks = tuple(self._blocks or ())
            self._closings = [start_background_task(block.aclose(), name="etcd_aio close") for block in blocks]
        try:
            if self._pool is not None:
                await self._pool.aclose()
            tasks = {*self._closings, *endings}
            if tasks:
                await asyncio.wait(tasks, timeout=max(0.0, ends - asyncio.get_running_loop().time()))
        finally:
            for closing in self._closings:
                closing.cancel()

    def lock(
        self: ClientLike,
        name: KeyLike,
        *,
        ttl: int = 10,
        timeout: float | None = None,
        value: ValueLike | None = None,
        margin: float | None = None,
        on_lost: OnLost = "cancel",
        reentrant: bool = False,
    ) -> "Lock":
        """A lock for a block of code: `async with client.lock("jobs/42") as lock:`.

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

        Returns:
            Lock: nothing is sent before it is entered.

        Raises:
            InvalidRequestError: an argument is invalid.
        """
        from etcd_aio.concurrency import Lock

        return Lock(
            self,
            self._lease_pool().source(ttl),
            name,
            ttl=ttl,
            timeout=timeout,
            value=value,
            margin=margin,
            on_lost=on_lost,
            reentrant=reentrant,
        )

    def rwlock(
        self: ClientLike,
        name: KeyLike,
        *,
        ttl: int = 10,
        value: ValueLike | None = None,
        margin: float | None = None,
        on_lost: OnLost = "cancel",
    ) -> "RWLock":
        """A lock for many readers or one writer: `async with client.rwlock("catalog").reading() as lock:`.

        The arguments are those of `lock()`; `reading(timeout=...)` and `writing(timeout=...)` make the locks.
        """
        from etcd_aio.concurrency import RWLock

        source = self._lease_pool().source(ttl)
        return RWLock(self, source, name, ttl=ttl, value=value, margin=margin, on_lost=on_lost)

    def semaphore(
        self: ClientLike,
        name: KeyLike,
        *,
        limit: int,
        permits: int = 1,
        ttl: int = 10,
        timeout: float | None = None,
        margin: float | None = None,
        on_lost: OnLost = "cancel",
    ) -> "Semaphore":
        """Permits for a block of code: `async with client.semaphore("gpu", limit=3) as permit:`.

        Args:
            name: its name, which must not be that of a lock. The keys are `<name>/<lease>`.
            limit: the number of permits; all contenders must name the same.
            permits: how many of them the block needs.
            ttl: as of `lock()`, like the other arguments.
            timeout: seconds to wait for them, above 0; `try_acquire()` does not wait. None for no limit.
            margin: seconds before the end of the lease at which the block is cancelled.
            on_lost: `"cancel"` or `"signal"`.

        Raises:
            InvalidRequestError: an argument is invalid.
        """
        from etcd_aio.concurrency import Semaphore

        return Semaphore(
            self,
            self._lease_pool().source(ttl),
            name,
            limit=limit,
            permits=permits,
            ttl=ttl,
            timeout=timeout,
            margin=margin,
            on_lost=on_lost,
        )

    def election(
        self: ClientLike, name: KeyLike, *, ttl: int = 10, margin: float | None = None, on_lost: OnLost = "cancel"
    ) -> "Election":
        """An election: one leader among the candidates of a name.

            election = client.election("scheduler")
            async with election.lead("host-1") as leadership: ...     stand, lead, resign
            await election.run(work, "host-1")                        run `work` whenever this candidate leads
            await election.leader()                                   the present leader
            async with election.observe() as leaders: ...             every leader, one after the other

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

        Returns:
            Election: nothing is sent before it is used.

        Raises:
            InvalidRequestError: an argument is invalid.
        """
        from etcd_aio.concurrency import Election

        return Election(self, self._lease_pool().source(ttl), name, ttl=ttl, margin=margin, on_lost=on_lost)

    def session(self: ClientLike, *, ttl: int = 60, on_lost: OnLost = "cancel") -> "Session":
        """One lease for several locks, and for keys of your own: `async with client.session() as session:`.

        Locks by themselves are better off with a lease each, as `lock()` gives them. A session is for what must live
        and die together, and for names that another process takes over by adopting the lease.

        Args:
            ttl: seconds that the lease lasts without renewal. Default: 60, as of Go's sessions.
            on_lost: what happens if the lease is lost: see `lease()`.

        Raises:
            InvalidRequestError: an argument is invalid.
        """
        from etcd_aio.concurrency import Session

        return Session(self, self._lease_pool(), ttl=ttl, on_lost=on_lost)

    async def wait_deleted(self: ClientLike, key: KeyLike, revision: int = 0, *, timeout: float | None = None) -> None:
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
        whole_number(revision, "revision")
        look = op.get(key, keys_only=True)
        await wait_deleted(
            lambda: self.watch(look.key, filters=("no_put",), timeout=None),
            lambda: self.do(look, timeout=None),
            revision,
            self._invoker.deadline(timeout, self._invoker.clock()),
        )

    def exactly_once(
        self: ClientLike,
        *,
        slots: int = 64,
        ttl: int = 300,
        window: int = 24 * 3600,
        prefix: KeyLike = "__etcd_aio/once/",
    ) -> "ExactlyOnce":
        """Writes that are applied exactly once: `async with client.exactly_once() as once: await once.put("k", "v")`.

        One object for each client is enough; tasks may share it. Nothing is sent before its first write.

        Args:
            slots: the most writes at a time; more wait for their turn. Each is a key on the server.
            ttl: seconds for which these keys outlive a crash of this process. They are under one lease; an outage that
                is longer ends it, and the next write needs another one.
            window: seconds for which an idempotency id is remembered at least, from the end of the call on. Default:
                a day. If a call takes longer than a day, its window begins at the end of its first day.
            prefix: of all these keys. With authentication, the user needs the permission to read and write it.

        Raises:
            InvalidRequestError, TypeError: an argument is invalid.
        """
        from etcd_aio.once import ExactlyOnce

        timeout = self._invoker.deadline(UNSET, 0.0)  # the client's default, in seconds
        block = ExactlyOnce(self, slots=slots, ttl=ttl, window=window, prefix=prefix, timeout=timeout)
        self._blocks_to_close().add(block)
        return block

    @overload
    def cache(
        self: ClientLike,
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
        self: ClientLike,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        decode: Callable[[bytes], T],
        on_error: Callable[[bytes, Exception], None] | None = None,
        keep_current: float | None = None,
        fallback: bool = True,
        max_outage: float = 10.0,
    ) -> "Cache[T]": ...

    def cache(
        self: ClientLike,
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
        """The keys of a range in memory, kept like the store: `async with client.cache(prefix="cfg/") as cache:`.

            cache.get("cfg/a"), cache["cfg/a"], cache.range(prefix="cfg/web/")    what is here now; no await
            await cache.read("cfg/a")                                             linearizable
            await cache.wait_current()                                            what is read now is linearizable
            async for revision, changed in cache.changes(): ...                   what has changed

        Entering reads all keys. A watch follows them, over lost connections, failed members and compactions. Every read
        is of the store at one revision.

        Args:
            key: this key alone; with `range_end`, the first key of an interval.
            range_end: the key before which the interval ends.
            prefix: every key that begins with this.
            from_key: every key from this one on.
            all_keys: every key.
            decode: turns a value into what is read; called once for each change. If it raises, the key keeps its value
                of before. Default: None, `KeyValue`s are read.
            on_error: called with the key and the exception if `decode` raises. Default: None, the first one of each key
                is logged, without the value.
            keep_current: seconds between two reads of the store's revision in the background. Reads with
                `max_staleness` above it do not wait then, while all is well, and `age` grows visibly if the cluster is
                out of reach. Default: None, the store is asked only when a caller waits.
            fallback: whether `read` goes to the server if the cache is not current in time.
            max_outage: seconds without any member to watch on, after which `state` is LAGGING. Default: 10, which
                outlasts a leader election several times.

        Returns:
            Cache: nothing is sent before it is entered.

        Raises:
            InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
        """
        from etcd_aio.cache import Cache

        block: Cache[Any] = Cache(
            self,
            KeyRange.of(key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys),
            decode=decode,
            on_error=on_error,
            keep_current=keep_current,
            fallback=fallback,
            max_outage=max_outage,
            timeout=self._invoker.deadline(UNSET, 0.0),  # the client's default, in seconds
        )
        self._blocks_to_close().add(block)
        return block

    def namespace(self: ClientLike, prefix: KeyLike) -> "Namespace":
        """The keys that begin with a prefix, as a store of their own, without the prefix.

            app = client.namespace("app/")
            await app.put("color", "blue")  # the key app/color

        It has all calls about keys, watches and leases, and all shortcuts. It shares the connections, streams and
        leases of this client, and needs no closing. A namespace of a namespace is one of both prefixes.

        Args:
            prefix: the prefix, as it is: write the separator that ends it.

        Returns:
            Namespace: nothing is sent before it is used.

        Raises:
            EmptyKeyError: the prefix is empty.
            InvalidRequestError, TypeError: it is no key.
        """
        from etcd_aio.layers import Namespace

        return Namespace(self, prefix)

    def ordered(self: ClientLike) -> "Ordered":
        """A store whose reads never go back: `view = client.ordered()`.

            await view.put("k", "1")
            await view.get("k", serializable=True)      never older than what was read or written through `view`

        A serializable read that is answered by a member that is behind is repeated once, linearizably. Each view
        has its own mark, so a session or a request may have one of its own.
        """
        from etcd_aio.layers import Ordered

        return Ordered(self)

    def kubernetes(self: ClientLike, *, writer: Writer | None = None) -> "Kubernetes":
        """The calls that Kubernetes makes to etcd: reads, pages of a prefix, and optimistic writes.

            kubernetes = client.kubernetes()
            found = await kubernetes.get("pods/a")
            result = await kubernetes.optimistic_put("pods/a", "new", found.kv.mod_revision if found.kv else 0)

        Args:
            writer: makes the writes, such as `client.exactly_once()`. Default: the client; then a lost answer is
                replaced by the history of the key.
        """
        from etcd_aio.layers import Kubernetes

        return Kubernetes(self, writer=writer, timeout=self._invoker.deadline(UNSET, 0.0))  # the client's default

    def register(
        self: ClientLike,
        target: KeyLike,
        address: str,
        *,
        metadata: "JSONValue" = None,
        name: str | None = None,
        ttl: int = 10,
        on_conflict: "OnConflict" = "keep",
        timeout: Timeout = UNSET,
    ) -> "Registration":
        """Register an endpoint of a service: `async with client.register("svc/web", "10.0.0.1:80"):`.

        The entry is there while the block runs, and ends soon after a crash of the process. After an outage of any
        length it is put again without any help. The format is that of Go's `naming/endpoints`, so its resolver finds
        the endpoint too.

        Args:
            target: the service. The key is `<target>/<name>`.
            address: where the endpoint is reached. An address belongs to one process: an equal entry of an earlier
                process is taken over.
            metadata: what others learn with the address: whatever JSON can express.
            name: the end of the key. Default: the address.
            ttl: seconds until the entry ends after a crash of this process, or in an outage. Default: 10, as of locks.
                etcd raises values below its minimum, 2 by default.
            on_conflict: if the key has a different entry of another process, `"keep"` leaves it alone until it is
                gone, and `"replace"` replaces it.
            timeout: seconds for the grant of the lease, and again for the put, on entering.

        Raises:
            InvalidRequestError, TypeError: an argument is invalid.
        """
        from etcd_aio.layers import Registration

        made = Registration(
            self, target, address, metadata=metadata, name=name, ttl=ttl, on_conflict=on_conflict, timeout=timeout
        )
        self._blocks_to_close().add(made)
        return made

    def resolve(self: ClientLike, target: KeyLike, *, keep_current: float | None = None) -> "Endpoints":
        """The endpoints of a service, kept up to date in memory: `async with client.resolve("svc/web") as web:`.

            web.endpoints                                  what is known now; no await
            web.pick().address                             the next one, in turn
            async for endpoints in web.changes(): ...      now, and after each change

        It finds what `register` and Go's `naming/endpoints` have put under `<target>/`.

        Args:
            target: the service.
            keep_current: seconds between two reads of the store's revision in the background, so that `age` shows how
                old the endpoints may be. Default: None, the store is asked only when a caller waits for it.

        Raises:
            InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
        """
        from etcd_aio.layers import Endpoints

        timeout = self._invoker.deadline(UNSET, 0.0)  # the client's default, in seconds
        made = Endpoints(self, target, keep_current=keep_current, timeout=timeout)
        self._blocks_to_close().add(made)
        return made


class StoreCalls(KVCalls, Shortcuts):
    """The calls and the shortcuts of a store that wraps another one. `do`, `scan`, `watch` and `leases` are its own.

    Closing the client ends the locks and blocks of all stores that wrap it.

    Args:
        store: the client, or a store that wraps it.
    """

    def __init__(self, store: ClientLike) -> None:
        self._store = store
        self._invoker = store._invoker

    def _lease_pool(self) -> "LeasePool":
        return self._store._lease_pool()

    def _blocks_to_close(self) -> "WeakSet[Block]":
        return self._store._blocks_to_close()

    def lease(
        self,
        ttl: int,
        *,
        id: int | None = None,
        adopt: bool = False,
        on_lost: OnLost = "cancel",
        timeout: Timeout = UNSET,
    ) -> Lease:
        """A lease for a block of code; see `Client.lease`. Leases have no names, so it is one of the whole cluster."""
        return self._store.lease(ttl, id=id, adopt=adopt, on_lost=on_lost, timeout=timeout)

    async def versions(self, timeout: Timeout = UNSET) -> tuple[EndpointVersions, ...]:
        """The release of etcd at each endpoint; see `Client.versions`."""
        return await self._store.versions(timeout)
