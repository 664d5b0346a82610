"""Tables: what the sources do not say, such as the few members that are translated in another way."""

from typing import Final

OUTSIDE: Final = {
    "etcd_aio.arguments": "tools",
    "etcd_aio.backend": "written for asyncio",
    "etcd_aio.base": "tools for asyncio",
    "etcd_aio.contrib": "integrations of frameworks",
    "etcd_aio.fake.time": "event loops",
    "etcd_aio.observing": "observers are called in the loop, and are used as they are",
    "etcd_aio.testing": "blocking and asyncio code share it",
    "etcd_aio.views": "views are stores",
    "pytest_etcd_aio": "fixtures",
}
"""The public modules that have no blocking side, with the reason."""

WITHOUT: Final = {
    "etcd_aio.lease.kept_lease.KeptLease": "for recipes of asyncio, by callbacks in the loop; a part of Lease",
    "etcd_aio.lease.loans.LeaseSource": "for recipes of asyncio",
    "etcd_aio.lease.loans.Loan": "for recipes of asyncio",
    "etcd_aio.lease.pool.LeasePool": "for recipes of asyncio",
    "etcd_aio.offline.status.snapshot_status": "blocking code calls read_snapshot_status, which needs no loop",
    "etcd_aio.transport.interface.Engine": "used by the client alone",
    "etcd_aio.calls.writer.writer_for": "for recipes of asyncio",
}
"""The public classes and functions with something asynchronous that have no blocking side, with the reason."""

INNER: Final = ("etcd_aio.concurrency.fenced.FencedWriter",)
"""Classes that no annotation names, but that public methods return."""

OPTIONS: Final = "etcd_aio.config.options.ClientOptions"
"""The dict of options, which is translated too."""

PROTOCOLS: Final = frozenset({"etcd_aio.calls.writer.Writer"})
"""Protocols, which describe blocking methods."""

CONSTRUCTED: Final = frozenset(
    f"etcd_aio.{path}"
    for path in (
        "cache.cache.Cache",
        "mirror.mirror.Mirror",
        "once.once.ExactlyOnce",
        "recipes.barrier.barrier.Barrier",
        "recipes.barrier.double_barrier.DoubleBarrier",
        "recipes.counter.counter.Counter",
        "recipes.counter.ids.IdAllocator",
        "recipes.group.group.Group",
        "recipes.kubernetes.Kubernetes",
        "recipes.queue.priority_queue.PriorityQueue",
        "recipes.queue.queue.Queue",
        "recipes.schedule.schedule.Schedule",
        "recipes.work_queue.work_queue.WorkQueue",
        "services.endpoints.Endpoints",
        "services.registration.Registration",
    )
)
"""The classes that programs construct themselves, with a store first."""

SURVIVES_FORK: Final = frozenset(
    f"etcd_aio.{path}"
    for path in (
        "admin.auth.Auth",
        "admin.cluster.Cluster",
        "admin.maintenance.Maintenance",
        "lease.calls.Leases",
        "concurrency.election.Election",
        "concurrency.lock.Lock",
        "concurrency.rwlock.RWLock",
        "recipes.barrier.barrier.Barrier",
        "recipes.barrier.double_barrier.DoubleBarrier",
        "recipes.counter.counter.Counter",
        "recipes.group.group.Group",
        "recipes.kubernetes.Kubernetes",
        "recipes.queue.priority_queue.PriorityQueue",
        "recipes.queue.queue.Queue",
        "recipes.schedule.schedule.Schedule",
        "recipes.work_queue.work_queue.WorkQueue",
        "store.Ordered",
        "store.Store",
    )
)
"""The classes whose objects hold nothing, so that a forked child makes them again."""

EXCLUDED: Final = {
    "KeyCalls.backend": "written for asyncio",
    "StoreCalls.end_with_client": "for recipes of asyncio",
    "Leases.block": "see Store.lease",
    "Leases.kept": "for recipes of asyncio: callbacks in the loop",
    "Leases.pool": "for recipes of asyncio",
    "Leases.used_pool": "for closing a client",
    "KeptLease.begin": "entering the block does it",
    "KeptLease.close": "leaving the block does it",
    "KeptLease.on_doubt": "a callback in the loop",
    "KeptLease.on_end": "a callback in the loop",
    "Watcher.take_ready": "read by the iterator",
    "Scan.take_ready": "read by the iterator",
    "CacheBatches.add": "called by the cache",
    "CacheChanges.add": "called by the cache",
    "KeySetChanges.add": "called by the cache",
    "Follower.end": "called by the cache",
    "Cache.close": "a part of aclose",
    "TwoPartClose.close": "a part of aclose",
    "Client.connect": "in BaseClient, which is closed if it fails",
    "Client.aclose": "in BaseClient, which ends the thread too",
}
"""Public members that a facade does not have, by the class that defines them."""

DIRECT: Final = frozenset(
    {
        "Client.statistics",
        "Client.streams",
        "Endpoints.__bool__",
        "Endpoints.__len__",
        "Endpoints.pick",
        "Holding.held_condition",
        "Job.text",
        "LocalReads.__bool__",
        "LocalReads.__contains__",
        "LocalReads.__getitem__",
        "LocalReads.__len__",
        "LocalReads.get",
        "LocalReads.kv",
        "Ring.owner",
        "Ring.owners",
        "Transaction.delete",
        "Transaction.put",
        "Txn.otherwise",
        "Txn.then",
        "Txn.when",
    }
)
"""Plain methods that any thread may call while the loop runs, and that are short; the others run in the loop."""

THREAD_SAFE: Final = frozenset({"FakeEtcd"})
"""Classes whose plain methods may be called from any thread."""

CALLBACKS: Final = {
    "on_error": "cache.on_error",
    "on_progress": "save_snapshot.on_progress",
    "listener": "subscribe",
}
"""Parameters for plain functions that are told of something, and the name of the thread that runs each.

Other plain functions, such as `decode`, `policy` and that of `update`, give a result at once, so they run in the loop.
"""

IN_LOOP: Final = frozenset({"Job.deadline"})
"""Properties that need the running loop."""

ATTRIBUTES: Final = {
    "FakeEtcd.members": "tuple[FakeMember, ...]",
    "KeptLease.ttl": "int",
}
"""Attributes whose types `__init__` does not say."""

LOSABLE: Final = frozenset({"DoubleBarrier", "Job", "Leadership", "Lease", "Lock", "Session"})
"""Classes of what is held, and may be lost while it is."""

LOSABLE_MAKERS: Final = frozenset({"Election", "RWLock", "Worker"})
"""Classes that have an `on_lost`, and hand it to what they make."""

_CALLED_WITH_FACADE: Final = "in_caller({0}, self._wrap)"
ARGUMENTS: Final = {
    "Election.run.work": _CALLED_WITH_FACADE.format("work"),
    "Store.stm.function": _CALLED_WITH_FACADE.format("function"),
    "Schedule.run.work": "in_caller(work)",
}
"""How functions of the user are given to the asyncio method, which awaits them."""

_OPENED: Final = """
        client = cls.__new__(cls)
        client._open(AsyncClient.{0}, options.pop("allow_in_loop", False), {1}, **options)
        return client
    """
BODIES: Final = {
    "Client.from_env": _OPENED.format("from_env", "environ"),
    "Client.from_url": _OPENED.format("from_url", "url"),
    "Derived.subscribe": """
        unsubscribe = self._run(self._aio.subscribe, own_thread(listener, "etcd_aio.subscribe"))
        return lambda: self._run(unsubscribe)
    """,
    "FakeEtcd.client": """
        from etcd_aio.sync.client import Client

        options.setdefault("engine", self._aio.engine)
        return Client(self._aio.endpoints, **options)
    """,
    "FakeEtcd.serve": """
        return self._within(self._aio.serve(address))
    """,
    "LocalReads.__iter__": """
        return iter(self._run(list, self._aio))
    """,
    "Watcher.next_batch": """
        try:
            return self._run(self._aio.next_batch)
        except StopAsyncIteration:
            raise StopIteration from None
    """,
    "Lock.acquire": """
        self._acquire(self._aio.acquire, timeout=timeout)
    """,
    "Lock.try_acquire": """
        is_acquired: bool = self._acquire(self._aio.try_acquire)
        return is_acquired
    """,
}
"""Bodies that are written by hand, by the class that defines the asyncio method."""

NAMES: Final = {
    "Derived.subscribe": {"own_thread": "etcd_aio.portal"},
}
"""The names that these bodies need, and their modules."""
