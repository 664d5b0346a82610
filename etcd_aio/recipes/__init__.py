"""Recipes: transactions, counters, ids, barriers, queues, groups, schedules. Imported at first use.

`stm.py` runs transactions: `isolation.py` says what each level demands, `read_set.py` has the reads, the writes and the
txn of one attempt, `transaction.py` is what the function sees, `turnstile.py` keeps the transactions of one client from
disturbing each other. `counter.py` counts, by the arithmetic of `sums.py`, and `ids.py` takes blocks of it.
`barrier.py` and `double_barrier.py` make processes wait for each other, the latter by the decisions of `meeting.py`.
`group.py` has the members of a group, by the views of `members.py`, and divides work among them by `hash_ring.py`.
`schedule.py` runs ticks once in a cluster, by the txns of `runs.py` and the decisions of `ticks.py`.
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
    from etcd_aio.recipes.group.group import GroupViews as GroupViews
    from etcd_aio.recipes.group.group import Membership as Membership
    from etcd_aio.recipes.group.hash_ring import DEFAULT_REPLICAS as DEFAULT_REPLICAS
    from etcd_aio.recipes.group.hash_ring import HashRing as HashRing
    from etcd_aio.recipes.group.members import GroupMember as GroupMember
    from etcd_aio.recipes.group.members import GroupView as GroupView
    from etcd_aio.recipes.group.ring import Ring as Ring
    from etcd_aio.recipes.group.ring import RingChanges as RingChanges
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
    from etcd_aio.recipes.stm.stm import StmResult as StmResult
    from etcd_aio.recipes.stm.stm import run_stm as run_stm
    from etcd_aio.recipes.stm.transaction import Transaction as Transaction
    from etcd_aio.recipes.stm.turnstile import Turnstile as Turnstile
    from etcd_aio.recipes.work_queue.job import Job as Job
    from etcd_aio.recipes.work_queue.work_queue import DeadJob as DeadJob
    from etcd_aio.recipes.work_queue.work_queue import WorkQueue as WorkQueue
    from etcd_aio.recipes.work_queue.worker import Worker as Worker
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
