"""Directory: the endpoints of a service for clients of HTTP and gRPC, which go on with the last ones in an outage."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from functools import partial
from types import TracebackType
from typing import ClassVar, Final, Protocol, Self

from etcd_aio import EtcdError, EtcdTimeoutError, KeyLike
from etcd_aio.arguments import encode_key, finite_seconds, flag, whole_number
from etcd_aio.base import (
    NEVER,
    PATIENT,
    NotAwaitable,
    Pauses,
    Waiters,
    deadline_after,
    log_for,
    resolve,
    start_background_task,
    start_timer_at,
    when_constructed,
)
from etcd_aio.contrib.discovery.last_list import DirectoryChange, LastList, change_between
from etcd_aio.errors import CacheError, ClientUsageError
from etcd_aio.services import Endpoints, ServiceEndpoint
from etcd_aio.types import shown_key

logger: Final = logging.getLogger("etcd_aio.discovery")

DEFAULT_EMPTY_GRACE: Final = 30.0
"""Seconds: three times the default TTL of a registration, in which servers register again after an outage."""


class ServiceStore(Protocol):
    """What a directory reads from: a client, or a namespace of it."""

    def resolve(self, target: KeyLike) -> Endpoints:
        """See `Client.resolve`."""
        ...


class Directory(NotAwaitable):
    """The endpoints of a service: `async with Directory(client, "svc/api") as directory:`.

    Entering reads them; from then on they follow etcd. It is `client.resolve()` for those who send requests to the
    endpoints, and must not stop:

    - While etcd cannot be reached, the last endpoints are kept, for any time.
    - If etcd suddenly has no endpoint any more, the last ones stay for `empty_grace` seconds, which is logged.
    - If the user may not read the service any more, the last ones stay too, and it is tried again until it may.

    The clients of `etcd_aio.contrib.discovery` share a directory, and each follows it as long as the client is open.

    Args:
        client: a client, or a namespace of it. It must stay open as long as the directory.
        target: the service. Its keys are `<target>/<name>`.
        keep_last: whether the last endpoints stay for a while when etcd has none any more.
        empty_grace: seconds for which they stay. Default: 30, three times the default TTL of a registration.

    Raises:
        InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
    """

    usage: ClassVar[str] = "a directory cannot be awaited: write `async with Directory(...) as directory:`"

    def __init__(
        self,
        client: ServiceStore,
        target: KeyLike,
        *,
        keep_last: bool = True,
        empty_grace: float = DEFAULT_EMPTY_GRACE,
    ) -> None:
        client.resolve(target)  # raises if the target is invalid
        grace = finite_seconds(empty_grace, "empty_grace")
        self._client = client
        self._log = log_for(logger, client)
        self._target = target
        self._shown = shown_key(encode_key(target, "target"))
        self._list = LastList(grace if flag(keep_last, "keep_last") else 0.0)
        self._service: Endpoints | None = None
        self._error: EtcdError | None = None
        self._listeners: list[Callable[[DirectoryChange], None]] = []
        self._waiters = Waiters()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._has_ended = False

    @when_constructed
    def __repr__(self) -> str:
        return f"<Directory {self._shown} with {len(self._list.endpoints)} endpoints>"

    # The block.

    async def __aenter__(self) -> Self:
        """Read the endpoints.

        Raises:
            EtcdError: they could not be read.
            ClientUsageError: it was entered before, or the client is closed.

        Cancellation leaves nothing behind.
        """
        if self._task is not None:
            raise ClientUsageError("a directory can only be entered once: make another one")
        entered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = task = start_background_task(self._follow(entered), name=f"etcd_aio directory of {self._shown}")
        try:
            await asyncio.wait([entered, task], return_when=asyncio.FIRST_COMPLETED)
            if not entered.done():
                task.result()
            entered.result()
        except BaseException:  # a cancellation too
            await self.aclose()
            raise
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the watch. The last endpoints stay, and never change again. Leaving does this. Safe to repeat."""
        self._end()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    def _end(self) -> None:
        self._has_ended = True
        self._stop_timer()
        self._waiters.wake()

    # State.

    @property
    def endpoints(self) -> tuple[ServiceEndpoint, ...]:
        """The endpoints to use now, in the order of their keys. It is a plain read from memory.

        Raises:
            ClientUsageError: the block was not entered.
        """
        if self._task is None:
            raise ClientUsageError("not entered: write `async with Directory(...) as directory:`")
        return self._list.endpoints

    @property
    def is_kept(self) -> bool:
        """Whether etcd has no endpoint any more, and these are the last ones that it had."""
        return self._list.empty_since is not None

    @property
    def has_ended(self) -> bool:
        """Whether the block was left, or the client is closed: the endpoints never change again."""
        return self._has_ended

    @property
    def error(self) -> EtcdError | None:
        """Why the service cannot be followed now, though etcd can be reached, or the client is closed."""
        return self._error

    @property
    def age(self) -> float:
        """Seconds: every change that was made longer ago is seen. See `Endpoints.age`."""
        return float("inf") if self._service is None else self._service.age

    @property
    def revision(self) -> int:
        """The revision of etcd at which it was read last; 0 before that."""
        return 0 if self._service is None else self._service.revision

    # Followers.

    def changes(self) -> "DirectoryChanges":
        """Follow the endpoints: `async for change in directory.changes():`.

        The present ones come at once, if there are any, as a change that adds them. All changes of one revision are one
        change; a consumer that is slower than the changes gets the difference to what it has seen. The iteration ends
        when the block is left.

        Raises:
            ClientUsageError: the block was not entered.
        """
        return DirectoryChanges(self)

    async def wait(self, *, at_least: int = 1, timeout: float | None = None) -> tuple[ServiceEndpoint, ...]:
        """Wait until there are so many endpoints.

        Args:
            at_least: how many.
            timeout: seconds. Default: None, no limit.

        Returns:
            The endpoints.

        Raises:
            EtcdTimeoutError: there were fewer for so long.
            ClientUsageError: the block was not entered, or was left.

        Cancellation leaves nothing behind.
        """
        whole_number(at_least, "at_least")
        deadline = deadline_after(timeout, asyncio.get_running_loop().time())
        while len(self.endpoints) < at_least:
            if self._has_ended:
                raise ClientUsageError("the block of the directory has ended")
            if not await self.wait_change(deadline):
                raise EtcdTimeoutError(f"there were fewer than {at_least} endpoints of {self._shown} in time")
        return self.endpoints

    def subscribe(self, listener: Callable[[DirectoryChange], None]) -> Callable[[], None]:
        """Call a function right after each change, in the event loop, until the subscription is ended.

        Args:
            listener: the function. It must return at once.

        Returns:
            A function that ends the subscription.
        """
        self._listeners.append(listener)
        return partial(self._unsubscribe, listener)

    def _unsubscribe(self, listener: Callable[[DirectoryChange], None]) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)

    async def wait_change(self, deadline: float = NEVER) -> bool:
        """Wait for the next change, or the end of the block.

        Args:
            deadline: an instant of the loop's clock.

        Returns:
            False if the deadline came first.
        """
        return self._has_ended or await self._waiters.wait(deadline)

    # The task.

    async def _follow(self, entered: "asyncio.Future[None]") -> None:
        """Follow the service until the block is left."""
        pauses = Pauses(PATIENT)
        while True:
            error: Exception | None = None
            try:
                async with self._client.resolve(self._target) as service:
                    async for endpoints in service.changes():
                        self._service = service
                        pauses.reset()
                        if self._error is not None:
                            self._log.info("the endpoints of %s are read from etcd again", self._shown)
                            self._error = None
                        self._take(endpoints)
                        resolve(entered, None)
            except Exception as raised:  # also of the application's policy, which may be right the next time
                error = raised
            if error is not None:
                if not entered.done():
                    entered.set_exception(error)
                    return
                self._report(error)
                if isinstance(error, ClientUsageError):
                    self._end()
                    return
                await pauses.wait()

    def _report(self, raised: Exception) -> None:
        """Log why the service cannot be followed, unless that was so before."""
        error = raised if isinstance(raised, EtcdError) else EtcdError(f"unexpected {type(raised).__name__}")
        if isinstance(error, CacheError) and isinstance(error.__cause__, EtcdError):
            error = error.__cause__  # why the cache that the endpoints are read from has ended
        if type(error) is not type(self._error):
            self._log.warning(
                "the endpoints of %s cannot be read from etcd; the last ones are kept: %s", self._shown, error
            )
        self._error = error

    def _take(self, endpoints: tuple[ServiceEndpoint, ...]) -> None:
        """Etcd has these endpoints."""
        loop = asyncio.get_running_loop()
        before, was_kept = self._list.endpoints, self.is_kept
        self._list.take(endpoints, loop.time())
        due = self._list.due
        if due is not None and not was_kept:
            count, seconds = len(self._list.endpoints), due - loop.time()
            self._log.warning("%s has no endpoint; the last %d are kept for %.0f s", self._shown, count, seconds)
            self._timer = start_timer_at(due, self._give_up)
        elif due is None and was_kept:
            self._log.info("%s has %d endpoints again", self._shown, len(endpoints))
            self._stop_timer()
        self._tell(before)

    def _give_up(self) -> None:
        self._timer = None
        before = self._list.endpoints
        self._list.give_up()
        self._log.warning("%s still has no endpoint; the last ones are no longer used", self._shown)
        self._tell(before)

    def _tell(self, before: tuple[ServiceEndpoint, ...]) -> None:
        """Tell those who follow what has changed."""
        if self._list.endpoints == before:
            return
        change = change_between(before, self._list.endpoints)
        for listener in tuple(self._listeners):
            try:
                listener(change)
            except Exception:  # of the application; the other functions are called
                self._log.exception("a function that is called for changes of %s has failed", self._shown)
        self._waiters.wake()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class DirectoryChanges(AsyncIterator[DirectoryChange]):
    """The changes of a directory; made by `Directory.changes`. Cancelling a step loses nothing."""

    def __init__(self, owner: Directory) -> None:
        owner.endpoints  # noqa: B018 - raises if it was not entered
        self._owner = owner
        self._told: tuple[ServiceEndpoint, ...] = ()
        self._is_closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> DirectoryChange:
        owner = self._owner
        while not self._is_closed:
            if owner.endpoints != self._told:
                change = change_between(self._told, owner.endpoints)
                self._told = owner.endpoints
                return change
            if owner.has_ended:
                break
            await owner.wait_change()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the iteration from the next step on. Safe to repeat."""
        self._is_closed = True
