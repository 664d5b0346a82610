"""Election and Leaders, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.concurrency.election`: do not edit.
"""

from collections.abc import Callable
from typing import ClassVar, Self, TypeVar

from etcd_aio.arguments import LeaseLike, ValueLike
from etcd_aio.base import UNSET, Timeout
from etcd_aio.concurrency import Leader
from etcd_aio.portal import Block, BlockingIterator, LosableMaker, in_caller
from etcd_aio.sync.concurrency.leadership import Leadership

T = TypeVar("T")


class Election(LosableMaker):
    """An election: `client.election("scheduler")`. One object serves any number of threads."""

    _survives_fork: ClassVar[bool] = True

    @property
    def name(self) -> bytes:
        """The name."""
        return self._aio.name

    def lead(self, value: ValueLike = "", *, timeout: float | None = None) -> Leadership:
        """Stand as a candidate: `with election.lead("host-1") as leadership:`.

        Entering waits until this candidate leads, in the order of arrival; leaving resigns.

        Args:
            value: what observers see while this candidate leads, such as its address.
            timeout: seconds that entering may take, above 0. Default: None, it waits until it leads, or loses its
                lease.

        Entering raises:
            ElectionTimeoutError: it did not lead within `timeout`.
            LeadershipLostError: the lease was lost, or the key deleted, while it waited.
            EtcdError: no lease was granted, or the key could not be created.

        Ctrl-C: while it waits, the key is deleted within half a second, or in the background.
        """
        return self._made("lead", value, timeout=timeout)

    def resume(self, lease: LeaseLike, fencing_token: int) -> Leadership:
        """Go on with a leadership of an earlier process: `with election.resume(lease, token) as leadership:`.

        That process has left its lease to expire, as `session.orphan()` does, or was killed, and has stored both
        numbers. Entering takes the lease over; leaving resigns, and revokes the lease with all that is attached to it.

        Args:
            lease: the id of the lease.
            fencing_token: of that leadership.

        Entering raises:
            LeadershipLostError: it is over: the lease or the key is gone.
            EtcdError: it could not be found out.
        """
        return self._made("resume", lease, fencing_token)

    def run(self, work: Callable[[Leadership], T], value: ValueLike = "", *, again: bool = False) -> T:
        """Become a candidate, and run `work` whenever this candidate leads.

        If the leadership is lost, `work` goes on until it returns: a thread cannot be cancelled, so let it call
        `leadership.check()` from time to time. The process is a candidate again when `work` has ended: one process
        never runs it twice at a time. If `work` has not ended when the margin is over, it may overlap with that of the
        next leader, which is logged every second; let it write through `leadership.fenced`.

        A candidate that loses its lease, or cannot reach the cluster, tries again with a new one, after a pause of
        about 1 to 15 seconds; so does one that has led for less than a second, as with `again` and work that returns at
        once. It never gives up by itself. On a session there is no other lease: when that has ended, so does this.

        Args:
            work: the function; it gets the leadership. It runs in the thread that calls this.
            value: what observers see while this candidate leads.
            again: be a candidate again after `work` has returned. Default: False, its return ends the run.

        Returns:
            What `work` has returned; the candidate has resigned then.

        Raises:
            TypeError: `work` is no function.
            Exception: what `work` has raised; the candidate has resigned then.
            LeadershipLostError: the election is one of a session, and that has ended.
            EtcdError: an error that would come again, such as a denied permission, or a closed client.

        An error is logged too.

        Ctrl-C: the candidate resigns.
        """
        return self._run(self._aio.run, in_caller(work, self._wrap), value, again=again)

    def leader(self, *, timeout: Timeout = UNSET) -> Leader | None:
        """The present leader, by one linearizable read; None if there is none.

        Args:
            timeout: seconds for the whole call.

        Raises:
            EtcdError: as every read.
        """
        return self._run(self._aio.leader, timeout=timeout)

    def changes(self) -> "Leaders":
        """Follow the leaders: `with election.changes() as leaders:`, then `for leader in leaders:`.

        The present leader comes at once, then each new leader or value, in order; None if there is no candidate. Lost
        connections leave no gap. Only after an outage that is longer than etcd keeps its history, what was overtaken is
        left out.
        """
        return self._made("changes")


class Leaders(Block, BlockingIterator[Leader | None]):
    """The leaders of an election, one after the other; made by `Election.changes`.

    Iterate over it within its block. Ctrl-C loses nothing.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def close(self) -> None:
        """End the watch. Safe to repeat."""
        self._end(self._aio.aclose)
