"""The blocking classes for those of `etcd_aio.recipes`.

Made by `python -m release.facade --write` from `etcd_aio.recipes`: do not edit.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.sync.recipes.barrier.barrier import Barrier as Barrier
    from etcd_aio.sync.recipes.barrier.double_barrier import DoubleBarrier as DoubleBarrier
    from etcd_aio.sync.recipes.counter.counter import Counter as Counter
    from etcd_aio.sync.recipes.counter.ids import IdAllocator as IdAllocator
    from etcd_aio.sync.recipes.group.group import Group as Group
    from etcd_aio.sync.recipes.group.group import GroupCache as GroupCache
    from etcd_aio.sync.recipes.group.group import Membership as Membership
    from etcd_aio.sync.recipes.group.ring import Ring as Ring
    from etcd_aio.sync.recipes.kubernetes import Kubernetes as Kubernetes
    from etcd_aio.sync.recipes.queue.priority_queue import PriorityQueue as PriorityQueue
    from etcd_aio.sync.recipes.queue.queue import Queue as Queue
    from etcd_aio.sync.recipes.schedule.schedule import Schedule as Schedule
    from etcd_aio.sync.recipes.stm.transaction import Transaction as Transaction
    from etcd_aio.sync.recipes.work_queue.job import Job as Job
    from etcd_aio.sync.recipes.work_queue.work_queue import WorkQueue as WorkQueue
    from etcd_aio.sync.recipes.work_queue.worker import Worker as Worker
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
