"""ReadLock, WriteLock and RWLock, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.concurrency.rwlock`: do not edit.
"""

from typing import ClassVar

from etcd_aio.concurrency import Contender
from etcd_aio.portal import LosableMaker
from etcd_aio.sync.concurrency.lock import Lock


class ReadLock(Lock):
    """A lock that other readers may hold at the same time; made by `RWLock.reading()`.

    It is a `Lock`. Its fencing token is larger than those of all writers that held before it, and smaller than those of
    all that hold after it.
    """


class WriteLock(Lock):
    """A lock that excludes all readers and other writers; made by `RWLock.writing()`. It is a `Lock`."""


class RWLock(LosableMaker):
    """A read-write lock: `with client.rwlock("catalog").reading() as lock:`, or `.writing()`.

    Each call of `reading` and `writing` makes a `Lock` of its own, so one object serves many threads.

    A reader cannot become a writer, since two that wait for each other would wait for ever; and a writer cannot become
    a reader without standing behind the writers that wait. Take the write lock for as long as it is needed.
    """

    _survives_fork: ClassVar[bool] = True

    @property
    def name(self) -> bytes:
        """The name."""
        return self._aio.name

    def reading(self, *, timeout: float | None = None) -> "ReadLock":
        """A lock for one reader.

        Args:
            timeout: seconds to wait for it, above 0; None for no limit.
        """
        return self._made("reading", timeout=timeout)

    def writing(self, *, timeout: float | None = None) -> "WriteLock":
        """A lock for one writer.

        Args:
            timeout: seconds to wait for it, above 0; None for no limit.
        """
        return self._made("writing", timeout=timeout)

    def contenders(self) -> tuple[Contender, ...]:
        """List the readers and writers that hold or wait, in their order; see `Lock.contenders`."""
        return self._run(self._aio.contenders)
