"""Semaphore, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.concurrency.semaphore`: do not edit.
"""

from etcd_aio.sync.concurrency.lock import Lock


class Semaphore(Lock):
    """Permits of a semaphore: `with client.semaphore("gpu", limit=3) as permit:`.

    It is used as a `Lock`. At any time the permits that are held are at most `limit`. Requests are served in the order
    of arrival, so a large one at the head is not overtaken by small ones. `fencing_token` orders the holders, but does
    not exclude the others: several hold at the same time.

    All contenders must name the same limit: one with another limit than the oldest gets a `LockError`. Its key stands
    until it has found that out, and those that came after it wait for so long. The name cannot be that of a lock.
    """

    @property
    def limit(self) -> int:
        """The permits that there are."""
        return self._aio.limit

    @property
    def permits(self) -> int:
        """The permits that this acquires."""
        return self._aio.permits
