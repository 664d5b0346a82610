"""Lock, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.concurrency.lock`: do not edit.
"""

from typing import ClassVar, Self

from etcd_aio.base import UNSET, Timeout
from etcd_aio.concurrency import Contender
from etcd_aio.errors import LockLostError
from etcd_aio.kv import Compare
from etcd_aio.portal import Losable
from etcd_aio.sync.calls.writer import Writer


class Lock(Losable):
    """A lock: `with client.lock("jobs/42", ttl=10) as lock:`.

    Entering waits until the lock is held, leaving releases it. A thread cannot be cancelled: if the lock is lost in
    between, `is_held` is False and `check()` raises before etcd lets another contender in, `on_lost` is called, and
    leaving raises `LockLostError`. A lock cannot stop a process that does not run, so writes that must not overlap are
    made through `fenced`, or carry `fencing_token`.

    A `Lock` may be used again after it was released, but by one thread at a time.
    """

    _survives_fork: ClassVar[bool] = True

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def acquire(self, *, timeout: Timeout = UNSET) -> None:
        """Wait until the lock is held. `with` does this on entering, and releases the lock whatever happens.

        Args:
            timeout: seconds to wait at most, above 0; None for no limit. Default: the lock's own.

        Raises:
            LockTimeoutError: the lock was not acquired within `timeout`.
            LockLostError: the lease was lost, or the key deleted, while this waited: a deleted key is noticed when the
                contender before it leaves. Or this thread holds the lock, and it is lost.
            ClientUsageError: this object is in use, by another thread, or by this one and it is not `reentrant`.
            EtcdError: no lease was granted, or the key could not be created.

        Ctrl-C: the key is deleted within half a second, or in the background.
        """
        self._acquire(self._aio.acquire, timeout=timeout)

    def try_acquire(self) -> bool:
        """Acquire the lock if it is free; if it is taken, nothing is written. Returns whether it is held now.

        Raises:
            LockLostError, ClientUsageError, EtcdError: as `acquire`.

        Ctrl-C: as of `acquire`.
        """
        is_acquired: bool = self._acquire(self._aio.try_acquire)
        return is_acquired

    def release(self) -> None:
        """Release the lock. If etcd does not answer, that goes on in the background.

        Raises:
            NotHeldError: the lock is not held.
            LockLostError: the lock was lost before.
            ForkedError: this process is a fork of the one that holds the lock, which goes on to hold it.

        Ctrl-C: the lock is released all the same.
        """
        self._run(self._aio.release)

    def contenders(self) -> tuple[Contender, ...]:
        """List the holder of the lock and the contenders that wait for it, the holder first.

        Raises:
            EtcdError: as every read.
        """
        return self._run(self._aio.contenders)

    @property
    def name(self) -> bytes:
        """The name."""
        return self._aio.name

    @property
    def ttl(self) -> int:
        """The seconds that it outlives a crash of this process; while it is held, as etcd has granted them."""
        return self._aio.ttl

    @property
    def is_held(self) -> bool:
        """Whether it is held now. Thread-safe."""
        return self._aio.is_held

    @property
    def is_lost(self) -> bool:
        """Whether it was lost while it was held. Thread-safe.

        It looks at the clock, so it is right at once when the process or the machine was stopped.
        """
        return self._aio.is_lost

    @property
    def remaining(self) -> float:
        """Seconds until it is lost, unless a renewal is acknowledged before; 0 if it is not held.

        While renewals are acknowledged it stays above about two thirds of the TTL, less the margin. In an outage it
        shrinks.
        """
        return self._aio.remaining

    @property
    def fencing_token(self) -> int:
        """A number that grows from one holder to the next: the `create_revision` of the holder's key.

        Raises:
            NotHeldError, NotLeaderError: it is not held.
        """
        return self._aio.fencing_token

    @property
    def key(self) -> bytes:
        """The holder's key in etcd.

        Raises:
            NotHeldError, NotLeaderError: it is not held.
        """
        return self._aio.key

    @property
    def fenced(self) -> Writer:
        """Writes that etcd applies only while this is held.

        Raises:
            NotHeldError, NotLeaderError: it is not held.
        """
        return self._wrap(self._aio.fenced)

    def fenced_by(self, writer: Writer) -> Writer:
        """As `fenced`, with the writes of another writer, such as `client.exactly_once()`.

        Raises:
            InvalidRequestError: the writer is of another namespace or client.
            NotHeldError, NotLeaderError: it is not held.
        """
        return self._made("fenced_by", writer)

    def held_condition(self) -> Compare:
        """The condition that this is held, for the `when` of a txn.

        Raises:
            NotHeldError, NotLeaderError: it is not held.
        """
        return self._aio.held_condition()

    def lost(self, *, timeout: float | None = None) -> LockLostError | None:
        """Wait until it is lost or left. Returns why it was lost; None if it was left.

        Args:
            timeout: seconds to wait; 0 looks once. Default: None, no limit.

        Raises:
            EtcdTimeoutError: it was neither in time.
            NotHeldError, NotLeaderError: it is not held.

        Ctrl-C changes nothing.
        """
        return self._run(self._aio.lost, timeout=timeout)
