"""Election: one leader among several candidates, and what others see of it.

The keys are those of Go's `Election`, `etcdctl elect` and the server's own election service, and those of a lock of the
same name: all of them exclude each other. The value of a key is what its candidate proclaims.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn, Self, TypeVar

from etcd_aio.arguments import check_async_function, check_awaitable, flag, lease_id, whole_number
from etcd_aio.base import (
    UNSET,
    Backoff,
    NotAwaitable,
    Pauses,
    Timeout,
    check_timeout,
    log_for,
    start_task,
    when_constructed,
)
from etcd_aio.calls import StoreCalls
from etcd_aio.concurrency.leaders import Candidates, Leader
from etcd_aio.concurrency.leadership import Leadership
from etcd_aio.concurrency.options import HoldOptions
from etcd_aio.concurrency.place import lock_keys
from etcd_aio.errors import ClientUsageError, ElectionTimeoutError, EtcdError, LeadershipLostError
from etcd_aio.lease import LeaseSource, OnLost
from etcd_aio.types import KeyLike, LeaseLike, ValueLike, shown_key

if TYPE_CHECKING:
    from etcd_aio import Watcher

T = TypeVar("T")

logger: Final = logging.getLogger("etcd_aio.elections")

_STAND_AGAIN: Final = Backoff(initial=1.0, multiplier=2.0, maximum=15.0, jitter=0.5)
"""Pauses before a process whose session is lost is a candidate again, so that candidates add no load in an outage; and
if it has led for a moment only, so that work that returns at once does not keep the cluster busy."""

_MOMENT: Final = 1.0  # seconds

_TAKES: Final = "run() takes an async function of a Leadership"
_NOT_ENTERED: Final = "not entered: write `async with election.changes() as leaders:`"

_OVERDUE_EVERY: Final = 1.0  # seconds between two warnings


class Election:
    """An election: `client.election("scheduler")`. One object serves any number of tasks."""

    def __init__(
        self,
        store: StoreCalls,
        source: LeaseSource,
        name: KeyLike,
        *,
        ttl: int,
        margin: float | None = None,
        on_lost: OnLost = "cancel",
    ) -> None:
        self._options = options = HoldOptions.checked(
            store,
            source,
            name,
            ttl,
            margin,
            on_lost,
            kind="election",
            lost=LeadershipLostError,
            late=ElectionTimeoutError,
            reached="won",
        )
        self._store = store
        self._log = log_for(logger, store)
        self._what = options.subject.what
        self._keys = lock_keys(options.name)

    @when_constructed
    def __repr__(self) -> str:
        return f"<Election {shown_key(self.name)[1:]}>"

    @property
    def name(self) -> bytes:
        """The name."""
        return self._options.name

    if not TYPE_CHECKING:  # type checkers refuse `async with` on an election by themselves

        async def __aenter__(self) -> NoReturn:
            raise TypeError("an election is not a block: write `async with election.lead() as leadership:`")

        async def __aexit__(self, *exc_info: object) -> None:
            """Python looks for it before it enters."""

    # Candidates.

    def lead(self, value: ValueLike = "", *, timeout: float | None = None) -> Leadership:
        """Stand as a candidate: `async with election.lead("host-1") as leadership:`.

        Entering waits until this candidate leads, in the order of arrival; leaving resigns.

        Args:
            value: what observers see while this candidate leads, such as its address.
            timeout: seconds that entering may take, above 0. Default: None, it waits until it leads, is cancelled, or
                loses its lease.

        Entering raises:
            ElectionTimeoutError: it did not lead within `timeout`.
            LeadershipLostError: the lease was lost, or the key deleted, while it waited.
            EtcdError: no lease was granted, or the key could not be created.

        Cancellation: while it waits, the key is deleted within half a second, or in the background.
        """
        check_timeout(timeout)
        return Leadership(self._options, value, lambda line: line.stand(timeout))

    def resume(self, lease: LeaseLike, fencing_token: int) -> Leadership:
        """Go on with a leadership of an earlier process: `async with election.resume(lease, token) as leadership:`.

        That process has left its lease to expire, as `session.orphan()` does, or was killed, and has stored both
        numbers. Entering takes the lease over; leaving resigns, and revokes the lease with all that is attached to it.

        Args:
            lease: the id of the lease.
            fencing_token: of that leadership.

        Entering raises:
            LeadershipLostError: it is over: the lease or the key is gone.
            EtcdError: it could not be found out.
        """
        id_ = lease_id(lease)
        revision = whole_number(fencing_token, "fencing_token", minimum=1)
        return Leadership(self._options, "", lambda line: line.resume(id_, revision))

    async def run(
        self,
        work: Callable[[Leadership], Coroutine[object, object, T]],
        value: ValueLike = "",
        *,
        again: bool = False,
    ) -> T:
        """Become a candidate, and run `work` whenever this candidate leads.

        If the leadership is lost, `work` is cancelled, and the process is a candidate again when `work` has ended: one
        process never runs it twice at a time. If `work` has not ended when the margin is over, it may overlap with that
        of the next leader, which is logged every second; let it write through `leadership.fenced`.

        A candidate that loses its lease, or cannot reach the cluster, tries again with a new one, after a pause of
        about 1 to 15 seconds; so does one that has led for less than a second, as with `again` and work that returns at
        once. It never gives up by itself. On a session there is no other lease: when that has ended, so does this.

        Args:
            work: the function; it gets the leadership. It runs in a task of its own, to its end also if it resigns.
            value: what observers see while this candidate leads.
            again: be a candidate again after `work` has returned. Default: False, its return ends the run.

        Returns:
            What `work` has returned; the candidate has resigned then.

        Raises:
            TypeError: `work` is no async function; of a function that returns no coroutine this is known only when the
                candidate leads, and it has resigned then.
            Exception: what `work` has raised; the candidate has resigned then.
            LeadershipLostError: the election is one of a session, and that has ended.
            EtcdError: an error that would come again, such as a denied permission, or a closed client.

        An error is logged too, since a caller that gathers tasks may never look at it.

        Cancellation: `work` is cancelled, the candidate waits for its end, and resigns.
        """
        flag(again, "again")
        check_async_function(work, _TAKES)
        try:
            return await self._run(work, value, again)
        except Exception as error:
            # Its text is left out: that of an error of the work may have values.
            text = "%s: run() ends with %s; it is a candidate again only if run() is called again"
            self._log.warning(text, self._what, type(error).__name__)
            raise

    async def _run(
        self, work: Callable[[Leadership], Coroutine[object, object, T]], value: ValueLike, again: bool
    ) -> T:
        clock = asyncio.get_running_loop().time
        pauses = Pauses(_STAND_AGAIN)
        options = replace(self._options, cancels=False)
        while True:
            leadership = Leadership(options, value, lambda line: line.stand(None))
            done: list[T] = []
            led_from: float | None = None
            try:
                async with leadership:
                    led_from = clock()
                    await self._work(work, leadership, done)
            except LeadershipLostError as error:
                if led_from is not None and not leadership.is_lost:
                    raise  # it is of another election, and was raised by the work
                if led_from is None and options.source.over.is_set():
                    raise  # it would come again, since there is no other session
                self._log.warning("%s", error)
            except ExceptionGroup as group:  # of the work's own tasks
                losses, others = group.split(LeadershipLostError)
                if losses is None or others is not None or not leadership.is_lost:
                    raise
                self._log.warning("%s is lost, which tasks of the work found first", self._what)
            except EtcdError as error:
                if led_from is not None or not error.retryable:
                    raise
                self._log.warning("%s: this candidate could not take part; this is tried again: %s", self._what, error)
            if done and not again:
                return done[0]
            if led_from is not None and clock() - led_from >= _MOMENT:
                pauses.reset()
            else:
                await self._pause(pauses.next())

    async def _pause(self, seconds: float) -> None:
        """Wait so long, or until there is no lease to stand with any more."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._options.source.over.wait()

    async def _work(
        self, work: Callable[[Leadership], Coroutine[object, object, T]], leadership: Leadership, done: list[T]
    ) -> None:
        """Run the work in a task of its own. However this ends, the task has ended then.

        Args:
            work: the function.
            leadership: its argument; the work is cancelled when it is lost, but goes on if the work itself resigns.
            done: gets the result.
        """
        made = work(leadership)
        check_awaitable(made, _TAKES)
        working = start_task(made, name=f"etcd_aio leader of {self._what}")
        losing = start_task(leadership.lost(), name=f"etcd_aio loss of {self._what}")
        try:
            await asyncio.wait([working, losing], return_when=asyncio.FIRST_COMPLETED)
            if losing.done() and losing.result() is None:
                await asyncio.wait([working])
        finally:
            losing.cancel()
            await self._end(working)
        if not (working.cancelled() and leadership.is_lost):
            done.append(working.result())

    async def _end(self, working: "asyncio.Task[T]") -> None:
        """Cancel the work, if it has not ended, and wait for its end, whatever happens meanwhile."""
        loop = asyncio.get_running_loop()
        began, patience = loop.time(), self._options.margin
        cancelled: asyncio.CancelledError | None = None
        working.cancel()
        while not working.done():
            try:
                await asyncio.wait([working], timeout=patience)
            except asyncio.CancelledError as error:  # it goes on from here, when the work has ended
                cancelled = error
                continue
            if not working.done():
                self._log.warning(
                    "%s: the work was cancelled %.1f s ago and is still running; "
                    "it may overlap with that of the next leader",
                    self._what,
                    loop.time() - began,
                )
                patience = _OVERDUE_EVERY
        if cancelled is not None:
            raise cancelled

    # Observers.

    async def leader(self, *, timeout: Timeout = UNSET) -> Leader | None:
        """The present leader, by one linearizable read; None if there is none.

        Args:
            timeout: seconds for the whole call.

        Raises:
            EtcdError: as every read.
        """
        limit = 1
        while True:
            found = await self._store.range(
                prefix=self._keys.before, sort_by="create_revision", limit=limit, timeout=timeout
            )
            for kv in found.kvs:
                if self._keys.has(kv):
                    return Leader.of(kv)
            if len(found.kvs) < limit:
                return None
            limit *= 2  # all of these are data, or belong to elections whose names begin with this one

    def changes(self) -> "Leaders":
        """Follow the leaders: `async with election.changes() as leaders:`, then `async for leader in leaders:`.

        The present leader comes at once, then each new leader or value, in order; None if there is no candidate. Lost
        connections leave no gap. Only after an outage that is longer than etcd keeps its history, what was overtaken is
        left out.
        """
        return Leaders(self._store, Candidates(self._keys), self._keys.before)


class Leaders(NotAwaitable):
    """The leaders of an election, one after the other; made by `Election.changes`.

    Iterate over it within its block. Cancelling the wait for the next one loses nothing.
    """

    usage: ClassVar[str] = _NOT_ENTERED

    def __init__(self, store: StoreCalls, candidates: Candidates, prefix: bytes) -> None:
        self._store = store
        self._candidates = candidates
        self._prefix = prefix
        self._watcher: Watcher | None = None
        self._news: deque[Leader | None] = deque()

    async def __aenter__(self) -> Self:
        """Begin.

        Raises:
            EtcdError: as entering a watch, and as every read.
        """
        if self._watcher is not None:
            raise ClientUsageError("an observation can only be entered once: call `changes` for another one")
        # Watch from now, then list: no change is missed, and the watch is never behind.
        self._watcher = watcher = self._store.watch(prefix=self._prefix, on_compaction="resync")
        await watcher.__aenter__()
        try:
            found = await self._store.range(prefix=self._prefix)
        except BaseException:  # a cancellation too: nothing else would end the watch
            await watcher.aclose()
            raise
        self._news.append(self._candidates.listed(found.kvs, found.revision))
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the watch. Safe to repeat."""
        if self._watcher is not None:
            await self._watcher.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Leader | None:
        if self._watcher is None:
            raise ClientUsageError(_NOT_ENTERED)
        while not self._news:
            batch = await self._watcher.next_batch()
            self._news.extend(self._candidates.changed(batch.events, batch.revision))
        return self._news.popleft()
