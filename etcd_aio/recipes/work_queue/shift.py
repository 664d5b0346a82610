"""Shift: one lease of a worker, under which it claims jobs.

When the lease is lost, or less than the margin is left of it, the shift ends: all its jobs are lost. Until then the
lease is renewed, so no claim ends by itself: each job that is not run any more is released, however long that takes.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from etcd_aio import Key, op
from etcd_aio.base import Log, log_for, start_timer
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import LeaseLostError
from etcd_aio.lease import Loan
from etcd_aio.recipes.calls import RecipeCalls
from etcd_aio.recipes.work_queue.jobs import JobKeys

if TYPE_CHECKING:
    import asyncio

    from etcd_aio.lease import LeasePool

logger: Final = logging.getLogger("etcd_aio.queues")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """The settings of a worker, which its shifts and its jobs share: see `WorkQueue` and `WorkQueue.worker`.

    Attributes:
        pool: lends the leases, and runs what may outlive the worker.
        owner: the value of its claims.
        cancels: whether a loss cancels the task of a block.
    """

    calls: RecipeCalls
    keys: JobKeys
    pool: "LeasePool"
    ttl: int
    owner: bytes
    concurrency: int
    max_tries: int
    margin: float
    cancels: bool

    @property
    def log(self) -> Log:
        """The log of the client."""
        return log_for(logger, self.calls.store)


class Shift:
    """One lease of a worker, and the worker's own key under it, which proves that the lease was never lost.

    When it ends `on_end` is called, once, with the reason and the cause; when the store may be another one than before,
    `on_doubt`.

    Attributes:
        revision: `create_revision` of the worker's own key.
        claiming: the jobs that are being claimed.
        dirty: the jobs that a late copy of a request may claim.
        ending: revokes the lease, and with it the key and all claims; None until the shift has ended.
    """

    def __init__(
        self,
        context: WorkerContext,
        loan: Loan,
        *,
        on_end: Callable[["Shift", str, BaseException | None], None],
        on_doubt: Callable[[], None],
    ) -> None:
        self.context = context
        self.loan = loan
        self._on_end = on_end
        self._on_doubt = on_doubt
        self._timer: asyncio.TimerHandle | None = None
        self.worker_key = context.keys.worker_key(loan.id)
        self.revision = 0
        self.claiming: frozenset[bytes] = frozenset()
        self.dirty: set[bytes] = set()
        self.ending: asyncio.Task[bool] | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.ending is not None

    @property
    def left(self) -> float:
        """Seconds until the jobs are lost, unless a renewal is acknowledged before. Thread-safe."""
        return 0.0 if self.is_over else max(0.0, self.loan.remaining - self.context.margin)

    async def create(self) -> None:
        """Create the worker's own key, until that is answered. The shift is over then if that took too long.

        Raises:
            EtcdError: as every txn; the shift is over.
        """
        calls = self.context.calls
        look = op.get(self.worker_key)
        txn = op.txn(
            when=[Key(self.worker_key).missing],
            then=[op.put(self.worker_key, self.context.owner, lease=self.loan.id)],
            otherwise=[look],
        )
        try:
            result = await calls.store.do(txn, timeout=calls.timeout, retry="always")
        except BaseException as error:  # a cancellation too: the lease may have the key
            self.end("the key of its worker was not created", error)
            raise
        kv = None if result.succeeded else result[look]
        self.revision = result.revision if kv is None else kv.create_revision
        self.loan.on_loss(self._on_loss)
        self.loan.on_doubt(self._on_doubt)
        self._on_time()

    def end(self, reason: str, cause: BaseException | None = None) -> None:
        """The lease is lost, or the worker is left. The lease is revoked in the background."""
        if self.is_over:
            return
        if self._timer is not None:
            self._timer.cancel()
        self.loan.on_loss(None)
        self.loan.on_doubt(None)
        self.ending = self.context.pool.run(self.loan.revoke(), f"end of a worker of {self.context.keys.what}")
        self._on_end(self, reason, cause)

    def _on_time(self) -> None:
        """Check the margin at the instant at which it would have begun without the renewals since."""
        if self.left <= 0:
            self.end("no renewal of the worker's lease is acknowledged")
        elif not self.is_over:
            self._timer = start_timer(max(self.left, 0.001), self._on_time)

    def _on_loss(self, error: LeaseLostError) -> None:
        self.end(error.message, error)
