"""Job, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.recipes.work_queue.job`: do not edit.
"""

from typing import Self

from etcd_aio.base import UNSET, Timeout
from etcd_aio.errors import JobLostError
from etcd_aio.kv import Op
from etcd_aio.portal import Losable


class Job(Losable):
    """A job of a worker: `with job:`.

    Leaving the block completes the job, unless it was ended within; if it ends by an exception, the job is free again
    for another attempt, and the exception goes on. If the end could not be made, as in an outage, the job is freed in
    the background as soon as that is possible, unless it was completed after all. If the worker's lease is lost,
    `check()` raises `JobLostError`, and so does leaving the block: another worker may have the job then.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def text(self) -> str:
        """The payload as UTF-8 text.

        Raises:
            ValueError: it is not UTF-8.
        """
        return self._aio.text()

    @property
    def deadline(self) -> float:
        """The instant of `time.monotonic()` at which the job is lost, unless a renewal is acknowledged before."""
        return self._run(getattr, self._aio, "deadline")

    @property
    def is_lost(self) -> bool:
        """Whether the job is lost. Thread-safe. By the clock, so it is right at once after a stop."""
        return self._aio.is_lost

    @property
    def is_ended(self) -> bool:
        """Whether this worker has ended the job."""
        return self._aio.is_ended

    def lost(self, *, timeout: float | None = None) -> JobLostError | None:
        """Wait until the job is lost or ended.

        Returns why it was lost; None if it was ended, also if it may have been by a request whose answer was lost.

        Args:
            timeout: seconds to wait; 0 looks once. Default: None, no limit.

        Raises:
            EtcdTimeoutError: it was neither in time.

        Ctrl-C changes nothing.
        """
        return self._run(self._aio.lost, timeout=timeout)

    def complete(self, *operations: Op, timeout: Timeout = UNSET) -> None:
        """End the job: it is done. The operations are applied in the same txn, so exactly once for the job.

        Without operations that put, it works while the store is full.

        Args:
            operations: such as `op.put("result/42", "ok")`; at most 120.
            timeout: seconds for the whole call; None for no limit.

        Raises:
            JobLostError: the job is lost, and nothing was applied; if `maybe_applied` is True, it may have been.
            InvalidRequestError: there are too many operations.
            EtcdError: as every txn. The job is still this worker's. If `maybe_applied` is True, the call can be made
                again: it finds out.

        Ctrl-C: the job was completed or not; call it again.
        """
        self._run(self._aio.complete, *operations, timeout=timeout)

    def retry(self, *, delay: float = 0.0, reason: str = "", timeout: Timeout = UNSET) -> None:
        """End this attempt: the job is free again, or given up if it was the last one.

        Args:
            delay: seconds for which it is not free, by the workers' clocks.
            reason: why, for a job that is given up.
            timeout: seconds for the whole call; None for no limit.

        Raises:
            JobLostError, EtcdError: as of `complete`.

        Ctrl-C: the attempt was ended or not; call it again.
        """
        self._run(self._aio.retry, delay=delay, reason=reason, timeout=timeout)

    def reject(self, reason: str = "", *, timeout: Timeout = UNSET) -> None:
        """End the job: it is given up, and moved to the dead letters, with the reason beside the payload.

        Raises:
            JobLostError, EtcdError: as of `complete`. A full store refuses it.

        Ctrl-C: the job was given up or not; call it again.
        """
        self._run(self._aio.reject, reason, timeout=timeout)

    @property
    def key(self) -> bytes:
        """The key of the job."""
        return self._aio.key

    @property
    def value(self) -> bytes:
        """Its payload."""
        return self._aio.value

    @property
    def tries(self) -> int:
        """Which attempt this is; 1 is the first."""
        return self._aio.tries

    @property
    def fencing_token(self) -> int:
        """Grows with every claim of the job; for systems that refuse smaller ones."""
        return self._aio.fencing_token
