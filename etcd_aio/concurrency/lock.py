"""Lock: mutual exclusion between tasks, processes and machines, in the order of arrival.

The keys are those of Go's `Mutex`, `etcdctl lock` and the server's own lock service, so all of them exclude each other.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeAlias

from etcd_aio.arguments import flag, to_bytes
from etcd_aio.base import UNSET, Timeout, User, check_timeout, current_user, user_name, when_constructed
from etcd_aio.calls import StoreCalls
from etcd_aio.concurrency.holding import Holding
from etcd_aio.concurrency.line import Line
from etcd_aio.concurrency.options import HoldOptions
from etcd_aio.concurrency.place import LineKeys, lock_keys
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import ClientUsageError, ForkedError, LockLostError, LockTimeoutError
from etcd_aio.lease import LeaseSource, OnLost
from etcd_aio.types import KeyLike, ValueLike, shown_key

if TYPE_CHECKING:
    from etcd_aio.concurrency.held import Held

_HOST: Final = socket.gethostname()
_NO_WAIT: Final = "try_acquire() does not wait"


_Block: TypeAlias = "tuple[User | None, Held[LockLostError] | None]"
"""The task that has entered it, and the guard of that time."""


@lru_cache(maxsize=64)
def _description(task: str, process: int) -> bytes:
    """The default value of a key."""
    return f"{_HOST} {process} {task}".encode(errors="replace")


@dataclass(frozen=True, slots=True, repr=False)
class Contender:
    """A key in the line of a lock.

    Attributes:
        key: the key.
        value: its value; of this library by default the host, the process and the task, of Go's clients empty.
        lease: the id of its lease; the key is gone when that ends.
        create_revision: its place: the smallest holds. It is the holder's fencing token.
    """

    key: bytes
    value: bytes
    lease: int
    create_revision: int

    def __repr__(self) -> str:
        return f"<Contender {shown_key(self.key)} lease={self.lease:#x} create_revision={self.create_revision}>"


class Lock(Holding[LockLostError]):
    """A lock: `async with client.lock("jobs/42", ttl=10) as lock:`.

    Entering waits until the lock is held, leaving releases it. If it is lost in between, the task that entered is
    cancelled before etcd lets another contender in, and leaving raises `LockLostError`. A lock cannot stop a process
    that does not run, so writes that must not overlap are made through `fenced`, or carry `fencing_token`.

    A `Lock` may be used again after it was released, but by one task at a time.
    """

    usage: ClassVar[str] = "a lock cannot be awaited: write `async with client.lock(...) as lock:`"

    _kind: ClassVar[str] = "lock"

    def __init__(
        self,
        store: StoreCalls,
        source: LeaseSource,
        name: KeyLike,
        *,
        ttl: int,
        timeout: float | None = None,
        value: ValueLike | None = None,
        margin: float | None = None,
        on_lost: OnLost = "cancel",
        reentrant: bool = False,
    ) -> None:
        check_timeout(timeout, _NO_WAIT)
        options = HoldOptions.checked(
            store, source, name, ttl, margin, on_lost, kind=self._kind, lost=LockLostError, late=LockTimeoutError
        )
        super().__init__(options)
        self._timeout = timeout
        self._value = None if value is None else to_bytes(value, "value")
        self._is_reentrant = flag(reentrant, "reentrant")
        self._keys = self._line_keys(options.name)
        self._is_entering = False
        self._line: Line[LockLostError] | None = None
        self._owner: User | None = None
        self._depth = 0
        self._blocks: list[_Block] = []  # that are entered, the youngest last
        self._process = 0  # of the holder

    def _line_keys(self, name: bytes) -> LineKeys:
        return lock_keys(name)

    def _all_keys(self, name: bytes) -> LineKeys:
        """The keys of all contenders."""
        return self._line_keys(name)

    def _new_line(self) -> Line[LockLostError]:
        return Line(self._options, self._keys)

    def _key_value(self) -> bytes:
        if self._value is not None:
            return self._value
        return _description(user_name(), os.getpid())

    @when_constructed
    def __repr__(self) -> str:
        state = "lost" if self.is_lost else "held" if self.is_held else "not held"
        return f"<{type(self).__name__} {self._subject.what} {state}>"

    # The block.

    async def __aenter__(self) -> Self:
        await self.acquire()
        self._blocks.append((current_user(), self._guard))
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        user, blocks = current_user(), self._blocks[::-1]
        # The block that this task leaves: its youngest; if it has entered none, the one that holds.
        left = next((block for block in blocks if block[0] is user), None)
        left = left or next((block for block in blocks if block[1] is self._guard), None)
        if left is not None:
            self._blocks.remove(left)
        # Otherwise it was released within the block, and another task may have acquired it since.
        if self._guard is not None and (self._owner is user or (left is not None and self._guard is left[1])):
            await self._leave(exc)

    async def acquire(self, *, timeout: Timeout = UNSET) -> None:
        """Wait until the lock is held. `async with` does this on entering, and releases the lock whatever happens.

        Where a framework enters and leaves in different tasks, use `on_lost="signal"`: a loss cancels the task that
        has acquired.

        Args:
            timeout: seconds to wait at most, above 0; None for no limit. Default: the lock's own.

        Raises:
            LockTimeoutError: the lock was not acquired within `timeout`.
            LockLostError: the lease was lost, or the key deleted, while this waited: a deleted key is noticed when the
                contender before it leaves. Or this task holds the lock, and it is lost.
            ClientUsageError: this object is in use, by another task, or by this one and it is not `reentrant`.
            EtcdError: no lease was granted, or the key could not be created.

        Cancellation: the key is deleted within half a second, or in the background.
        """
        if timeout is not UNSET:
            check_timeout(timeout, _NO_WAIT)
        seconds = self._timeout if timeout is UNSET else timeout
        await self._acquire(lambda line: line.stand(seconds))

    async def try_acquire(self) -> bool:
        """Acquire the lock if it is free; if it is taken, nothing is written. Returns whether it is held now.

        Raises:
            LockLostError, ClientUsageError, EtcdError: as `acquire`.

        Cancellation: as of `acquire`.
        """
        return await self._acquire(lambda line: line.try_stand())

    async def release(self) -> None:
        """Release the lock. If etcd does not answer, that goes on in the background.

        Raises:
            NotHeldError: the lock is not held.
            LockLostError: the lock was lost before.
            ForkedError: this process is a fork of the one that holds the lock, which goes on to hold it.

        Cancellation: the lock is released all the same.
        """
        raised = sys.exc_info()[1]  # a cancellation goes on, also if the lock was lost meanwhile
        await self._leave(raised if isinstance(raised, asyncio.CancelledError) else None)

    def _enter_again(self) -> bool:
        if self._guard is None and not self._is_entering:
            return False
        if self._owner is not current_user() or self._is_entering:
            text = f"this object for {self._subject.what} is in use by another task: make one for each task"
            raise ClientUsageError(text)
        if not self._is_reentrant:
            text = f"{self._subject.what} is held by this task already: make it with reentrant=True to enter it again"
            raise ClientUsageError(text)
        if self.is_lost:
            raise self._held.loss()
        self._depth += 1
        return True

    async def _acquire(self, stand: Callable[[Line[LockLostError]], Awaitable[bool]]) -> bool:
        if self._enter_again():
            return True
        line = self._line = self._line or self._new_line()
        line.value = self._key_value()
        self._is_entering = True
        try:
            is_held = await stand(line)
        finally:
            self._is_entering = False
        if is_held:
            held = self._begin(line)
            self._owner, self._depth, self._process = current_user(), 1, os.getpid()
            if held.is_late:  # the wait took until the end of the lease
                await self._leave(None)
        return is_held

    async def _leave(self, raised: BaseException | None) -> None:
        held, line = self._held, self._line
        if self._process != os.getpid():
            if raised is None:
                raise ForkedError
            return
        self._depth -= 1
        if self._depth:
            return
        self._guard = self._owner = None
        if line is not None:
            await self._end(line, held, raised)

    async def contenders(self) -> tuple[Contender, ...]:
        """List the holder of the lock and the contenders that wait for it, the holder first.

        Raises:
            EtcdError: as every read.
        """
        keys = self._all_keys(self.name)
        found = await self._store.range(prefix=keys.before, sort_by="create_revision")
        return tuple(Contender(kv.key, kv.value, kv.lease, kv.create_revision) for kv in found.kvs if keys.has(kv))
