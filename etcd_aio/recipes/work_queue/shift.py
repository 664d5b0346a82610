"""Shift: one lease of a worker, under which it claims jobs.

When the lease is lost, or less than the margin is left of it, the shift ends: all its jobs are lost. Until then the
lease is renewed, so no claim ends by itself: each job that is not run any more is released, however long that takes.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from etcd_aio.base import Log, log_for, start_timer
from etcd_aio.calls import StoreCalls, Writer
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import LeaseLostError
from etcd_aio.lease import Loan
from etcd_aio.recipes.work_queue.jobs import JobKeys
from etcd_aio.types import shown_key

if TYPE_CHECKING:
    import asyncio

logger: Final = logging.getLogger("etcd_aio.queues")


if TYPE_CHECKING:
    from etcd_aio.lease import LeasePool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """What a worker has in common with its shifts and its jobs.

    Attributes:
        store: reads and writes.
        writer: makes the txns that end jobs.
        keys: of the work queue.
        pool: lends the leases, and runs what may outlive the worker.
        ttl: of the leases, in seconds.
        timeout: seconds for a call that has no `timeout` of its own; None for no limit.
        max_tries: attempts after which a job is given up.
        margin: seconds before the end of the lease at which the jobs are lost.
        cancels: whether a loss cancels the task of a block.
    """

    store: StoreCalls
    writer: Writer
    keys: JobKeys
    pool: "LeasePool"
    ttl: int
    timeout: float | None
    max_tries: int
    margin: float
    cancels: bool

    @property
    def what(self) -> str:
        """The work queue, for logs."""
        return f"work queue {shown_key(self.keys.prefix[:-1])[1:]}"

    @property
    def log(self) -> Log:
        """The log of the client."""
        return log_for(logger, self.store)


class Shift:
    """One lease of a worker.

    Args:
        context: of the worker.
        loan: the lease.
        on_end: called once, with the shift, the reason and the cause, when it ends.
        on_doubt: called when the store may be another one than before.

    Attributes:
        worker_key: the worker's own key, which proves that the lease was never lost.
        revision: its `create_revision`.
        claiming: the jobs that are being claimed.
        dirty: the jobs that a late copy of a request may claim.
        is_over: whether it has ended.
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
        self.is_over = False

    def begin(self, revision: int) -> None:
        """The worker's own key was created."""
        self.revision = revision
        self.loan.on_loss(self._on_loss)
        self.loan.on_doubt(self._on_doubt)
        if not self.is_over:
            self._on_time()

    @property
    def left(self) -> float:
        """Seconds until the jobs are lost, unless a renewal is acknowledged before. Thread-safe."""
        return 0.0 if self.is_over else max(0.0, self.loan.remaining - self.context.margin)

    def end(self, reason: str, cause: BaseException | None = None) -> None:
        """The lease is lost, or the worker is left."""
        if self.is_over:
            return
        self.is_over = True
        if self._timer is not None:
            self._timer.cancel()
        self.loan.on_loss(None)
        self.loan.on_doubt(None)
        self._on_end(self, reason, cause)

    def _on_time(self) -> None:
        """The margin is looked at when it would have begun without the renewals since."""
        if self.left <= 0:
            self.end("no renewal of the worker's lease is acknowledged")
        elif not self.is_over:
            self._timer = start_timer(max(self.left, 0.001), self._on_time)

    def _on_loss(self, error: LeaseLostError) -> None:
        self.end(error.message, error)
