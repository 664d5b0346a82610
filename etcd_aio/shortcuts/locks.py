"""Shortcuts to locks, semaphores, elections and sessions, and to waiting for the end of one."""

from typing import TYPE_CHECKING

from etcd_aio.arguments import whole_number
from etcd_aio.kv import op
from etcd_aio.lease import OnLost
from etcd_aio.shortcuts.client_like import ClientLike
from etcd_aio.types import KeyLike, ValueLike
from etcd_aio.watch import wait_deleted

if TYPE_CHECKING:
    from etcd_aio.concurrency import Election, Lock, RWLock, Semaphore, Session


class LockShortcuts:
    """The shortcuts to what excludes others."""

    def lock(
        self: ClientLike,
        name: KeyLike,
        *,
        ttl: int = 10,
        timeout: float | None = None,
        value: ValueLike | None = None,
        margin: float | None = None,
        on_lost: OnLost = "cancel",
        reentrant: bool = False,
    ) -> "Lock":
        """A lock for a block of code: `async with client.lock("jobs/42") as lock:`.

        It excludes Go's `concurrency.Mutex`, `etcdctl lock` and other libraries that lock the same name, in the order
        of arrival.

        Args:
            name: its name. The keys are `<name>/<lease>`.
            ttl: seconds until another may hold it after a crash of this process, or in an outage. Default: 10, which
                outlasts a leader election several times. etcd raises values below its minimum, 2 by default.
            timeout: seconds to wait for it, above 0; `try_acquire()` does not wait. None for no limit.
            value: of the key, for `contenders()`. Default: the names of the host, the process and the task.
            margin: seconds before the end of the lease at which the block is cancelled, if no renewal was acknowledged.
                It pays for the time that the block needs to end, and for clocks of different rates. Default: a tenth
                of `ttl`, at most 1.
            on_lost: what happens if the lock is lost: `"cancel"` cancels the task in the block, `"signal"` only sets
                `lock.is_lost`. Leaving raises `LockLostError` in both cases.
            reentrant: let the task that holds this object enter it again.

        Returns:
            Lock: nothing is sent before it is entered.

        Raises:
            InvalidRequestError: an argument is invalid.
        """
        from etcd_aio.concurrency import Lock

        return Lock(
            self,
            self.leases.pool,
            name,
            ttl=ttl,
            timeout=timeout,
            value=value,
            margin=margin,
            on_lost=on_lost,
            reentrant=reentrant,
        )

    def rwlock(
        self: ClientLike,
        name: KeyLike,
        *,
        ttl: int = 10,
        value: ValueLike | None = None,
        margin: float | None = None,
        on_lost: OnLost = "cancel",
    ) -> "RWLock":
        """A lock for many readers or one writer: `async with client.rwlock("catalog").reading() as lock:`.

        The arguments are those of `lock()`; `reading(timeout=...)` and `writing(timeout=...)` make the locks.
        """
        from etcd_aio.concurrency import RWLock

        return RWLock(self, self.leases.pool, name, ttl=ttl, value=value, margin=margin, on_lost=on_lost)

    def semaphore(
        self: ClientLike,
        name: KeyLike,
        *,
        limit: int,
        permits: int = 1,
        ttl: int = 10,
        timeout: float | None = None,
        margin: float | None = None,
        on_lost: OnLost = "cancel",
    ) -> "Semaphore":
        """Permits for a block of code: `async with client.semaphore("gpu", limit=3) as permit:`.

        Args:
            name: its name, which must not be that of a lock. The keys are `<name>/<lease>`.
            limit: the number of permits; all contenders must name the same.
            permits: how many of them the block needs.
            ttl: as of `lock()`, like the other arguments.
            timeout: seconds to wait for them, above 0; `try_acquire()` does not wait. None for no limit.
            margin: seconds before the end of the lease at which the block is cancelled.
            on_lost: `"cancel"` or `"signal"`.

        Raises:
            InvalidRequestError: an argument is invalid.
        """
        from etcd_aio.concurrency import Semaphore

        return Semaphore(
            self,
            self.leases.pool,
            name,
            limit=limit,
            permits=permits,
            ttl=ttl,
            timeout=timeout,
            margin=margin,
            on_lost=on_lost,
        )

    def election(
        self: ClientLike, name: KeyLike, *, ttl: int = 10, margin: float | None = None, on_lost: OnLost = "cancel"
    ) -> "Election":
        """An election: one leader among the candidates of a name.

            election = client.election("scheduler")
            async with election.lead("host-1") as leadership: ...     wait, lead, resign
            await election.run(work, "host-1")                        run `work` whenever this candidate leads
            await election.leader()                                   the present leader
            async with election.observe() as leaders: ...             every leader, one after the other

        It is open to Go's `concurrency.Election`, `etcdctl elect` and other libraries; a lock of the same name excludes
        its leader too.

        Args:
            name: its name. The keys are `<name>/<lease>`.
            ttl: seconds until another candidate may lead after a crash of this process, or in an outage. Default: 10,
                as of locks. etcd raises values below its minimum, 2 by default.
            margin: seconds before the end of the lease at which the leadership is lost, if no renewal was
                acknowledged. Default: a tenth of `ttl`, at most 1; see `lock`.
            on_lost: what happens if a leadership is lost: `"cancel"` cancels the task in the block, `"signal"` only
                sets `leadership.is_lost`. Leaving raises `LeadershipLostError` in both cases.

        Returns:
            Election: nothing is sent before it is used.

        Raises:
            InvalidRequestError: an argument is invalid.
        """
        from etcd_aio.concurrency import Election

        return Election(self, self.leases.pool, name, ttl=ttl, margin=margin, on_lost=on_lost)

    def session(self: ClientLike, *, ttl: int = 60, on_lost: OnLost = "cancel") -> "Session":
        """One lease for several locks, and for keys of your own: `async with client.session() as session:`.

        Locks by themselves are better off with a lease each, as `lock()` gives them. A session is for what must live
        and die together, and for names that another process takes over by adopting the lease.

        Args:
            ttl: seconds that the lease lasts without renewal. Default: 60, as of Go's sessions.
            on_lost: what happens if the lease is lost: see `lease()`.

        Raises:
            InvalidRequestError: an argument is invalid.
        """
        from etcd_aio.concurrency import Session

        return Session(self, self.leases.pool, ttl=ttl, on_lost=on_lost)

    async def wait_deleted(self: ClientLike, key: KeyLike, revision: int = 0, *, timeout: float | None = None) -> None:
        """Wait until a key is deleted. It moves from member to member with the watches, and outlasts compactions.

        Args:
            key: the key.
            revision: a revision at which the key existed, such as that of the range that it was found in. If the key
                was deleted since then, and created again, this does not wait for the new one. 0 is now.
            timeout: seconds for the whole wait. Default: None, no limit.

        Raises:
            EmptyKeyError: the key is empty.
            EtcdTimeoutError: the key was not deleted in time.
            EtcdError: as every read and watch.

        Cancellation leaves nothing behind.
        """
        whole_number(revision, "revision")
        look = op.get(key, keys_only=True)
        await wait_deleted(
            lambda: self.watch(look.key, filters=("no_put",), timeout=None),
            lambda: self.do(look, timeout=None),
            revision,
            self._invoker.deadline(timeout, self._invoker.clock()),
        )
