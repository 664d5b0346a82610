"""The classes of asyncio, and where their blocking ones are.

Made by `python -m release.facade --write`: do not edit.
"""

from etcd_aio.portal import register

PLACES = {
    "etcd_aio.admin.auth.Auth": "etcd_aio.sync.admin.auth:Auth",
    "etcd_aio.admin.cluster.Cluster": "etcd_aio.sync.admin.cluster:Cluster",
    "etcd_aio.admin.maintenance.Maintenance": "etcd_aio.sync.admin.maintenance:Maintenance",
    "etcd_aio.admin.snapshot.Snapshot": "etcd_aio.sync.admin.snapshot:Snapshot",
    "etcd_aio.cache.cache.Cache": "etcd_aio.sync.cache.cache:Cache",
    "etcd_aio.cache.changes.CacheBatches": "etcd_aio.sync.cache.changes:CacheBatches",
    "etcd_aio.cache.changes.CacheChanges": "etcd_aio.sync.cache.changes:CacheChanges",
    "etcd_aio.cache.changes.KeySetChanges": "etcd_aio.sync.cache.changes:KeySetChanges",
    "etcd_aio.cache.derived.Derived": "etcd_aio.sync.cache.derived:Derived",
    "etcd_aio.cache.derived.DerivedChanges": "etcd_aio.sync.cache.derived:DerivedChanges",
    "etcd_aio.calls.keys.KeyCalls": "etcd_aio.sync.calls.keys:KeyCalls",
    "etcd_aio.calls.store_calls.StoreCalls": "etcd_aio.sync.calls.store_calls:StoreCalls",
    "etcd_aio.client.Client": "etcd_aio.sync.client:Client",
    "etcd_aio.concurrency.election.Election": "etcd_aio.sync.concurrency.election:Election",
    "etcd_aio.concurrency.election.Leaders": "etcd_aio.sync.concurrency.election:Leaders",
    "etcd_aio.concurrency.fenced.FencedWriter": "etcd_aio.sync.concurrency.fenced:FencedWriter",
    "etcd_aio.concurrency.leadership.Leadership": "etcd_aio.sync.concurrency.leadership:Leadership",
    "etcd_aio.concurrency.lock.Lock": "etcd_aio.sync.concurrency.lock:Lock",
    "etcd_aio.concurrency.rwlock.RWLock": "etcd_aio.sync.concurrency.rwlock:RWLock",
    "etcd_aio.concurrency.rwlock.ReadLock": "etcd_aio.sync.concurrency.rwlock:ReadLock",
    "etcd_aio.concurrency.rwlock.WriteLock": "etcd_aio.sync.concurrency.rwlock:WriteLock",
    "etcd_aio.concurrency.semaphore.Semaphore": "etcd_aio.sync.concurrency.semaphore:Semaphore",
    "etcd_aio.concurrency.session.Session": "etcd_aio.sync.concurrency.session:Session",
    "etcd_aio.fake.fake_etcd.FakeEtcd": "etcd_aio.sync.fake.fake_etcd:FakeEtcd",
    "etcd_aio.kv.scan.Scan": "etcd_aio.sync.kv.scan:Scan",
    "etcd_aio.kv.scan.ScanPages": "etcd_aio.sync.kv.scan:ScanPages",
    "etcd_aio.kv.txn.Txn": "etcd_aio.sync.kv.txn:Txn",
    "etcd_aio.lease.calls.Leases": "etcd_aio.sync.lease.calls:Leases",
    "etcd_aio.lease.lease.Lease": "etcd_aio.sync.lease.lease:Lease",
    "etcd_aio.mirror.follow.Follow": "etcd_aio.sync.mirror.follow:Follow",
    "etcd_aio.mirror.mirror.Mirror": "etcd_aio.sync.mirror.mirror:Mirror",
    "etcd_aio.once.once.ExactlyOnce": "etcd_aio.sync.once.once:ExactlyOnce",
    "etcd_aio.recipes.barrier.barrier.Barrier": "etcd_aio.sync.recipes.barrier.barrier:Barrier",
    "etcd_aio.recipes.barrier.double_barrier.DoubleBarrier": "etcd_aio.sync.recipes.barrier.double_barrier:DoubleBarrier",
    "etcd_aio.recipes.counter.counter.Counter": "etcd_aio.sync.recipes.counter.counter:Counter",
    "etcd_aio.recipes.counter.ids.IdAllocator": "etcd_aio.sync.recipes.counter.ids:IdAllocator",
    "etcd_aio.recipes.group.group.Group": "etcd_aio.sync.recipes.group.group:Group",
    "etcd_aio.recipes.group.group.GroupCache": "etcd_aio.sync.recipes.group.group:GroupCache",
    "etcd_aio.recipes.group.group.Membership": "etcd_aio.sync.recipes.group.group:Membership",
    "etcd_aio.recipes.group.ring.Ring": "etcd_aio.sync.recipes.group.ring:Ring",
    "etcd_aio.recipes.kubernetes.Kubernetes": "etcd_aio.sync.recipes.kubernetes:Kubernetes",
    "etcd_aio.recipes.queue.priority_queue.PriorityQueue": "etcd_aio.sync.recipes.queue.priority_queue:PriorityQueue",
    "etcd_aio.recipes.queue.queue.Queue": "etcd_aio.sync.recipes.queue.queue:Queue",
    "etcd_aio.recipes.schedule.schedule.Schedule": "etcd_aio.sync.recipes.schedule.schedule:Schedule",
    "etcd_aio.recipes.stm.transaction.Transaction": "etcd_aio.sync.recipes.stm.transaction:Transaction",
    "etcd_aio.recipes.work_queue.job.Job": "etcd_aio.sync.recipes.work_queue.job:Job",
    "etcd_aio.recipes.work_queue.work_queue.WorkQueue": "etcd_aio.sync.recipes.work_queue.work_queue:WorkQueue",
    "etcd_aio.recipes.work_queue.worker.Worker": "etcd_aio.sync.recipes.work_queue.worker:Worker",
    "etcd_aio.services.endpoints.Endpoints": "etcd_aio.sync.services.endpoints:Endpoints",
    "etcd_aio.services.registration.Registration": "etcd_aio.sync.services.registration:Registration",
    "etcd_aio.store.Ordered": "etcd_aio.sync.store:Ordered",
    "etcd_aio.store.Store": "etcd_aio.sync.store:Store",
    "etcd_aio.watch.watcher.WatchBatches": "etcd_aio.sync.watch.watcher:WatchBatches",
    "etcd_aio.watch.watcher.Watcher": "etcd_aio.sync.watch.watcher:Watcher",
}


def register_all() -> None:
    """Let portals find the blocking classes."""
    register(PLACES)
