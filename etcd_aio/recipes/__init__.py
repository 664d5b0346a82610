"""Recipes: transactions, counters, ids, barriers, queues, groups, schedules. Imported at first use.

`calls.py` is the way of all recipes to a store and a writer, and `combiner.py` makes one txn of several calls. `stm/`
runs transactions: `isolation.py` has the demands of each level, `read_set.py` the reads, the writes and the txn of one
attempt; `turnstile.py` keeps the transactions of one client from disturbing each other. `counter/` counts, by the
arithmetic of `sums.py`, and takes blocks of ids. `queue/` takes items by `taking.py`; `work_queue/` has jobs under the
claims of workers. `barrier/` makes processes wait for each other, by the decisions of `meeting.py`. `group/` divides
work among members by `hash_ring.py`. `schedule/` runs ticks once in a cluster, by the decisions of `ticks.py`.
Everything stands on the public client.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.recipes.barrier.barrier import Barrier as Barrier
    from etcd_aio.recipes.barrier.double_barrier import DoubleBarrier as DoubleBarrier
    from etcd_aio.recipes.counter.counter import Counter as Counter
    from etcd_aio.recipes.counter.ids import DEFAULT_BLOCK as DEFAULT_BLOCK
    from etcd_aio.recipes.counter.ids import IdAllocator as IdAllocator
    from etcd_aio.recipes.group.group import DEFAULT_TTL as DEFAULT_TTL
    from etcd_aio.recipes.group.group import Group as Group
    from etcd_aio.recipes.group.group import GroupCache as GroupCache
    from etcd_aio.recipes.group.group import Membership as Membership
    from etcd_aio.recipes.group.hash_ring import DEFAULT_REPLICAS as DEFAULT_REPLICAS
    from etcd_aio.recipes.group.hash_ring import HashRing as HashRing
    from etcd_aio.recipes.group.members import GroupMember as GroupMember
    from etcd_aio.recipes.group.members import GroupView as GroupView
    from etcd_aio.recipes.group.ring import Ring as Ring
    from etcd_aio.recipes.kubernetes import Found as Found
    from etcd_aio.recipes.kubernetes import Kubernetes as Kubernetes
    from etcd_aio.recipes.kubernetes import ListPage as ListPage
    from etcd_aio.recipes.kubernetes import OptimisticResult as OptimisticResult
    from etcd_aio.recipes.queue.priority_queue import PriorityQueue as PriorityQueue
    from etcd_aio.recipes.queue.queue import Queue as Queue
    from etcd_aio.recipes.queue.taking import Item as Item
    from etcd_aio.recipes.schedule.runs import Tick as Tick
    from etcd_aio.recipes.schedule.runs import Work as Work
    from etcd_aio.recipes.schedule.schedule import Schedule as Schedule
    from etcd_aio.recipes.schedule.ticks import CatchUp as CatchUp
    from etcd_aio.recipes.schedule.ticks import NextTick as NextTick
    from etcd_aio.recipes.stm.isolation import Isolation as Isolation
    from etcd_aio.recipes.stm.stm import DEFAULT_MAX_ATTEMPTS as DEFAULT_MAX_ATTEMPTS
    from etcd_aio.recipes.stm.stm import StmCall as StmCall
    from etcd_aio.recipes.stm.stm import StmResult as StmResult
    from etcd_aio.recipes.stm.transaction import Transaction as Transaction
    from etcd_aio.recipes.work_queue.job import Job as Job
    from etcd_aio.recipes.work_queue.work_queue import DeadJob as DeadJob
    from etcd_aio.recipes.work_queue.work_queue import WorkQueue as WorkQueue
    from etcd_aio.recipes.work_queue.worker import Worker as Worker
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
