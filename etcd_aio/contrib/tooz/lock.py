"""EtcdLock: a lock of tooz, exclusive or shared, on a read-write lock of the client.

Each acquisition stands in the line of etcd by itself: two locks of one name, of one or of two coordinators, exclude
each other, and so do two threads with one lock. The client keeps the lease alive while the lock is held, heartbeats or
not. Only shared acquisitions of one lock are counted here: standing in line again would wait for a writer that waits
for the first one.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from tooz import ToozError, locking, utils

from etcd_aio import Key, op
from etcd_aio.concurrency import Contender
from etcd_aio.contrib.tooz.errors import translated
from etcd_aio.errors import EtcdError, LockError, LockLostError, LockTimeoutError
from etcd_aio.sync import Store
from etcd_aio.sync.concurrency import Lock, RWLock

_log: Final = logging.getLogger("etcd_aio.tooz")
_GIVING_BACK: Final = 1.0  # seconds; those that wait longer are cancelled when the client is closed


class EtcdLock(locking.Lock):
    """A lock; made by `get_lock`.

    Args:
        name: its name.
        key: its name in etcd.
        store: gives the client, or raises if the coordinator is not started.
        ttl: seconds that it outlives a crash of the process, unless `acquire` has a `timeout`.
        locks: those of the coordinator.
    """

    def __init__(self, name: bytes, key: str, store: Callable[[], Store], ttl: int, locks: "Locks") -> None:
        super().__init__(name)
        self._key = key
        self._store = store
        self._ttl = ttl
        self._locks = locks
        self._mutex = threading.RLock()  # a signal handler may stop the coordinator
        self._held: Lock | None = None
        self._shares = 0  # how often it is held; more than once only if it is shared
        self._is_shared = False

    @property
    def acquired(self) -> bool:
        """Whether the lock is held now, by the clock of this process."""
        held = self._held
        with translated():
            return held is not None and held.is_held

    def acquire(self, blocking: bool | float = True, shared: bool = False, timeout: int | None = None) -> bool:
        """Acquire the lock.

        Args:
            blocking: whether to wait; a number is the seconds to wait at most.
            shared: whether others may hold it too, if they share it. A lock that is shared may be acquired again, and
                is then released as often.
            timeout: seconds that it outlives a crash of the process. Default: `lock_timeout` of the coordinator.

        Returns:
            bool: whether it is held now.

        Raises:
            ToozConnectionError: etcd cannot be reached.
        """
        if shared and self._share():
            return True
        waits, seconds = utils.convert_blocking(blocking)
        if seconds is not None and seconds <= 0:
            waits = False
        with translated():
            line = self._line(self._ttl if timeout is None else timeout)
            with self._locks.acquiring():
                acquired = _stand(line, shared, waits, seconds)
                if acquired is None:
                    return False
                self._keep(acquired, shared)
                try:
                    self._store()
                except ToozError:  # the coordinator has been stopped meanwhile
                    self.end()
                    raise
                return True

    def release(self) -> bool:
        """Release the lock. Returns False if it is not held, also if it was lost or broken."""
        with self._mutex:
            held = self._held
            if held is None:
                return False
            self._shares -= 1
            if self._shares:
                return True
            self._held = None
            self._locks.held.discard(self)
        with translated():
            try:
                return self._is_held_in_etcd(held)
            finally:
                _end(held)

    def break_(self) -> bool:
        """Take the lock from those that hold it. Those that wait are next, in their order.

        Returns:
            bool: False if it was free.
        """
        with translated():
            line = self._line(self._ttl)
            holders = _holders(line.contenders(), line.name + b"/read/")
            for holder in holders:
                is_same = Key(holder.key).create_revision == holder.create_revision
                self._store().txn().when(is_same).then(op.delete(holder.key)).commit(retry="always")
            return bool(holders)

    def is_still_owner(self) -> bool:
        """Whether it is held, as etcd says."""
        held = self._held
        with translated():
            return held is not None and self._is_held_in_etcd(held)

    def heartbeat(self) -> bool:
        """Whether it is held. The client renews it by itself."""
        return self.acquired

    def end(self, until: float = math.inf) -> None:
        """Release it, however often it is held, since its coordinator stops; after a monotonic time only here."""
        with self._mutex:
            held, self._held = self._held, None
            self._locks.held.discard(self)
        if held is not None and time.monotonic() < until:
            _end(held)

    def _line(self, ttl: int) -> RWLock:
        return self._store().rwlock(self._key, ttl=ttl, on_lost=self._lost)

    def _lost(self, error: EtcdError) -> None:
        """Log it, and let the lease go, which is kept alive until then."""
        _log.warning("%s", error)
        with self._mutex:
            lost = self._held
            if lost is None or lost.is_held:  # it has been acquired again
                return
            self._held = None
            self._locks.held.discard(self)
        _end(lost)

    def _share(self) -> bool:
        """Acquire it once more, if it is shared already."""
        with self._mutex:
            is_held = self._is_shared and self.acquired
            self._shares += is_held
            return is_held

    def _keep(self, acquired: Lock, shared: bool) -> None:
        """Hold the lock from now on."""
        with self._mutex:
            if shared and self._is_shared and self.acquired:  # another thread has been faster
                self._shares += 1
                superfluous: Lock | None = acquired
            else:
                superfluous = self._held  # that was lost
                self._held, self._is_shared, self._shares = acquired, shared, 1
                self._locks.held.add(self)
        if superfluous is not None:
            _end(superfluous)

    def _is_held_in_etcd(self, held: Lock) -> bool:
        try:
            is_held = held.held_condition()
        except LockError:  # it was lost
            return False
        return bool(self._store().txn().when(is_held).commit())


class Locks:
    """The locks of a coordinator.

    Attributes:
        held: those that are held.
    """

    def __init__(self) -> None:
        self.held: set[EtcdLock] = set()
        self._changed = threading.Condition()
        self._acquiring = 0

    @contextmanager
    def acquiring(self) -> Iterator[None]:
        """A block in which a lock is acquired."""
        with self._changed:
            self._acquiring += 1
        try:
            yield
        finally:
            with self._changed:
                self._acquiring -= 1
                self._changed.notify_all()

    def end(self, until: float) -> None:
        """Release all, since the coordinator stops. A thread that gets one of them by that gives it back.

        Args:
            until: a monotonic time. If etcd does not answer until then, the others end with their leases.
        """
        for lock in list(self.held):
            lock.end(until)
        with self._changed:
            self._changed.wait_for(lambda: not self._acquiring, _GIVING_BACK)


def _stand(line: RWLock, shared: bool, waits: bool, seconds: float | None) -> Lock | None:
    """Stand in the line until the lock is held; None if that takes longer than it may."""
    make = line.reading if shared else line.writing
    until = None if seconds is None else time.monotonic() + seconds
    while True:
        left = None if until is None else until - time.monotonic()
        if left is not None and left <= 0:
            return None
        lock = make(timeout=left)
        with suppress(LockLostError):  # a long outage, or a key that was deleted: stand in line again
            try:
                if not waits:
                    return lock if lock.try_acquire() else None
                lock.acquire()
            except LockTimeoutError:
                return None
            return lock
        if not waits:
            return None


def _end(lock: Lock) -> None:
    with suppress(EtcdError):  # it was lost, or goes on in the background
        lock.release()


def _holders(contenders: Sequence[Contender], readers: bytes) -> Sequence[Contender]:
    """The contenders that hold: the first one, and if it reads all that read before the first writer."""
    is_reader = [contender.key.startswith(readers) for contender in contenders]
    if not contenders or not is_reader[0]:
        return contenders[:1]
    return contenders[: is_reader.index(False)] if False in is_reader else contenders
