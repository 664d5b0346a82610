"""Barrier, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.recipes.barrier.barrier`: do not edit.
"""

from typing import ClassVar

from etcd_aio.arguments import KeyLike, LeaseLike, ValueLike
from etcd_aio.base import UNSET, Timeout
from etcd_aio.portal import Facade
from etcd_aio.recipes import Barrier as AsyncBarrier
from etcd_aio.sync.calls.store_calls import StoreCalls
from etcd_aio.sync.calls.writer import Writer


class Barrier(Facade):
    """A barrier: processes that wait go on when it is released.

        barrier = Barrier(client, "deploy/ready")
        barrier.hold()
        barrier.release()
        barrier.wait_released(timeout=30)            in other processes

    The key is the name itself, as of Go's `Barrier`. Without a lease it stays until it is released.

    Args:
        client: the client, or a store that wraps one.
        name: the key.
        writer: makes `hold` exact although its answer is lost, such as `client.exactly_once()`. Default: the client.
        timeout: seconds for `hold` and `release` without a `timeout` of their own; None for no limit. Default: 5, as of
            `Client`.

    Raises:
        EmptyKeyError, InvalidRequestError, TypeError: an argument is invalid.
    """

    _survives_fork: ClassVar[bool] = True

    def __init__(
        self, client: StoreCalls, name: KeyLike, *, writer: Writer | None = None, timeout: Timeout = UNSET
    ) -> None:
        self._construct(AsyncBarrier, client, name, writer=writer, timeout=timeout)

    def hold(self, *, value: ValueLike = b"", lease: LeaseLike | None = None, timeout: Timeout = UNSET) -> bool:
        """Hold the barrier, if it is not held.

        Args:
            value: of the key, such as the name of the holder.
            lease: the lease to attach the key to, so that the barrier ends with its holder. Default: none.
            timeout: seconds for the whole call; None for no limit.

        Returns:
            bool: whether this call holds it now; False if it was held already.

        Raises:
            EtcdError: as every txn. If `maybe_applied` is True, it may be held, now or later. It is not repeated by
                itself, since a late copy would hold the barrier after its release. With a lease, call it again: it
                finds the key that is its own.

        Ctrl-C: it is held or not, as with every write.
        """
        return self._run(self._aio.hold, value=value, lease=lease, timeout=timeout)

    def release(self, *, force: bool = False, timeout: Timeout = UNSET) -> bool:
        """Release the barrier: all that wait for it go on.

        Args:
            force: release it also if another process holds it.
            timeout: seconds for the whole call; None for no limit.

        Returns:
            bool: whether it was held until now; False if another process has released it, or its lease has ended, or if
                an earlier copy of the request, whose answer was lost, has released it.

        Raises:
            BarrierError: this object does not hold it, and there is no `force`.
            EtcdError: as every txn.

        Ctrl-C: it is released or not; call it again.
        """
        return self._run(self._aio.release, force=force, timeout=timeout)

    def wait_released(self, *, timeout: float | None = None) -> None:
        """Wait until the barrier is not held; it returns at once if it is not.

        It goes on with other members after a failure, and is not disturbed by compactions. If the barrier is held again
        at once, it returns all the same.

        Args:
            timeout: seconds for the whole wait. Default: None, no limit.

        Raises:
            BarrierTimeoutError: the barrier was not released in time.
            EtcdError: as every read and watch.

        Ctrl-C leaves nothing behind.
        """
        self._run(self._aio.wait_released, timeout=timeout)
