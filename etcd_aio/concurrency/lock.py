"""Lock: mutual exclusion between tasks, processes and machines, in the order of arrival.

The keys are those of Go's `Mutex`, `etcdctl lock` and the server's own lock service, so all of them exclude each other.
"""

import asyncio
import logging
import os
import socket
import sys
from functools import lru_cache
from types import TracebackType
from typing import ClassVar, Final, Self, TypeAlias, get_args

from etcd_aio import Compare, Key
from etcd_aio.arguments import encode_key, flag, to_bytes, whole_number
from etcd_aio.base import NotAwaitable, log_for, when_constructed
from etcd_aio.calls import StoreCalls, Writer
from etcd_aio.concurrency.fenced import FencedWriter
from etcd_aio.concurrency.held import Held, OnLost, Subject, check_timeout, checked_margin
from etcd_aio.concurrency.line import Line
from etcd_aio.concurrency.place import LineKeys, lock_keys
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import (
    ClientUsageError,
    ForkedError,
    InvalidRequestError,
    LockLostError,
    LockTimeoutError,
    NotHeldError,
)
from etcd_aio.lease import LeaseSource
from etcd_aio.types import KeyLike, ValueLike, shown_key

logger: Final = logging.getLogger("etcd_aio.locks")

_HOST: Final = socket.gethostname()


_Tenure: TypeAlias = tuple[Line[LockLostError], Held[LockLostError]]
_Block: TypeAlias = "tuple[asyncio.Task[object] | None, _Tenure | None]"
"""The task that has entered it, and what was held then."""


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


class Lock(NotAwaitable):
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
        if on_lost not in get_args(OnLost):
            words = ", ".join(map(repr, get_args(OnLost)))
            raise InvalidRequestError(f"on_lost must be one of {words}; got {on_lost!r}")
        check_timeout(timeout, "try_acquire() does not wait")
        self._store = store
        self._source = source
        self._name = encode_key(name, "name")
        self._ttl = whole_number(ttl, "ttl", minimum=1)
        self._timeout = timeout
        self._value = None if value is None else to_bytes(value, "value")
        self._margin = checked_margin(margin, ttl)
        self._cancels = on_lost == "cancel"
        self._is_reentrant = flag(reentrant, "reentrant")
        self._keys = self._line_keys(self._name)
        self._subject = Subject(f"{self._kind} {shown_key(self._name)[1:]}", LockLostError, LockTimeoutError)
        self._is_entering = False
        self._line: Line[LockLostError] | None = None
        self._tenure: _Tenure | None = None
        self._owner: asyncio.Task[object] | None = None
        self._depth = 0
        self._blocks: list[_Block] = []  # that are entered, the youngest last
        self._process = 0  # of the holder

    def _line_keys(self, name: bytes) -> LineKeys:
        return lock_keys(name)

    def _all_keys(self, name: bytes) -> LineKeys:
        """The keys of all contenders."""
        return self._line_keys(name)

    def _new_line(self) -> Line[LockLostError]:
        return Line(self._store, self._source, self._ttl, self._keys, self._key_value(), self._subject)

    def _key_value(self) -> bytes:
        if self._value is not None:
            return self._value
        task = asyncio.current_task()
        return _description("" if task is None else task.get_name(), os.getpid())

    def _next_acquisition(self) -> Line[LockLostError]:
        if self._line is None:
            self._line = self._new_line()
        else:
            self._line.value = self._key_value()
        return self._line

    @when_constructed
    def __repr__(self) -> str:
        state = "lost" if self.is_lost else "held" if self.is_held else "not held"
        return f"<{type(self).__name__} {self._subject.what} {state}>"

    # The block.

    async def __aenter__(self) -> Self:
        await self.acquire()
        self._blocks.append((asyncio.current_task(), self._tenure))
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        task = asyncio.current_task()
        tenure = self._block_of(task)[1]
        # Otherwise it was released within the block, and another task may have acquired it since.
        if self._tenure is not None and (self._tenure is tenure or self._owner is task):
            await self._leave(exc)

    def _block_of(self, task: "asyncio.Task[object] | None") -> "_Block":
        """Take the block that this task leaves: its youngest; if it has entered none, the one that holds."""
        blocks = self._blocks[::-1]
        found = next((block for block in blocks if block[0] is task), None)
        found = found or next((block for block in blocks if block[1] is self._tenure), None)
        if found is None:
            return (None, None)
        self._blocks.remove(found)
        return found

    async def acquire(self) -> None:
        """Wait until the lock is held. `async with` does this on entering, and releases the lock whatever happens.

        Where a framework enters and leaves in different tasks, use `on_lost="signal"`: a loss cancels the task that
        has acquired.

        Raises:
            LockTimeoutError: the lock was not acquired within `timeout`.
            LockLostError: the lease was lost, or the key deleted, while this waited: a deleted key is noticed when the
                contender before it leaves. Or this task holds the lock, and it is lost.
            ClientUsageError: this object is in use, by another task, or by this one and it is not `reentrant`.
            EtcdError: no lease was granted, or the key could not be created.

        Cancellation: the key is deleted within half a second, or in the background.
        """
        if self._enter_again():
            return
        line = self._next_acquisition()
        self._is_entering = True
        try:
            await line.stand(self._timeout)
        finally:
            self._is_entering = False
        await self._hold(line)

    async def try_acquire(self) -> bool:
        """Acquire the lock if it is free; if it is taken, nothing is written. Returns whether it is held now.

        Raises:
            LockLostError, ClientUsageError, EtcdError: as `acquire`.

        Cancellation: as of `acquire`.
        """
        if self._enter_again():
            return True
        line = self._next_acquisition()
        self._is_entering = True
        try:
            is_held = await line.try_stand()
        finally:
            self._is_entering = False
        if is_held:
            await self._hold(line)
        return is_held

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
        if self._tenure is None and not self._is_entering:
            return False
        if self._owner is not asyncio.current_task() or self._is_entering:
            text = f"this object for {self._subject.what} is in use by another task: make one for each task"
            raise ClientUsageError(text)
        if not self._is_reentrant:
            text = f"{self._subject.what} is held by this task already: make it with reentrant=True to enter it again"
            raise ClientUsageError(text)
        if self.is_lost:
            raise self._held.loss()
        self._depth += 1
        return True

    async def _hold(self, line: Line[LockLostError]) -> None:
        held = line.hold(margin=self._margin, cancels=self._cancels)
        self._tenure = line, held
        self._owner, self._depth, self._process = asyncio.current_task(), 1, os.getpid()
        self._say("is held", held)
        if held.is_late:  # the wait took until the end of the lease
            await self._leave(None)

    async def _leave(self, raised: BaseException | None) -> None:
        if self._tenure is None:
            raise NotHeldError(f"{self._subject.what} is not held")
        if self._process != os.getpid():
            if raised is None:
                raise ForkedError
            return
        self._depth -= 1
        if self._depth:
            return
        line, held = self._tenure
        self._tenure = self._owner = None
        held.stop()
        if held.error is not None:
            self._say("is lost", held)
            line.leave_lost()
            held.leave_with(raised)
        else:
            self._say("is released", held)
            await line.leave(is_cancelled=isinstance(raised, asyncio.CancelledError))

    def _say(self, what: str, held: Held[LockLostError]) -> None:
        if logger.isEnabledFor(logging.DEBUG):
            log_for(logger, self._store).debug("%s %s, with fencing token %d", self._subject.what, what, held.revision)

    # State.

    @property
    def name(self) -> bytes:
        """The name."""
        return self._name

    @property
    def ttl(self) -> int:
        """The seconds that the lock outlives a crash of this process; while it is held, as etcd has granted them."""
        return self._ttl if self._tenure is None else self._tenure[1].ttl

    @property
    def is_held(self) -> bool:
        """Whether the lock is held now. Thread-safe."""
        return self._tenure is not None and not self._tenure[1].is_lost

    @property
    def is_lost(self) -> bool:
        """Whether the lock was lost while it was held. Thread-safe.

        It looks at the clock, so it is right at once when the event loop, the process or the machine was stopped.
        """
        return self._tenure is not None and self._tenure[1].is_lost

    @property
    def remaining(self) -> float:
        """Seconds until the lock is lost, unless a renewal is acknowledged before; 0 if it is not held.

        While renewals are acknowledged it stays above about two thirds of the TTL, less the margin. In an outage it
        shrinks.
        """
        return 0.0 if self._tenure is None else self._tenure[1].remaining

    @property
    def fencing_token(self) -> int:
        """A number that grows from one holder to the next: the `create_revision` of the holder's key.

        Raises:
            NotHeldError: the lock is not held.
        """
        return self._held.revision

    @property
    def key(self) -> bytes:
        """The holder's key in etcd.

        Raises:
            NotHeldError: the lock is not held.
        """
        return self._held.key

    @property
    def fenced(self) -> Writer:
        """Writes that etcd applies only while this lock is held.

        Raises:
            NotHeldError: the lock is not held.
        """
        return self.fenced_by(self._store)

    def fenced_by(self, writer: Writer) -> Writer:
        """As `fenced`, with the writes of another writer, such as `client.exactly_once()`.

        Raises:
            InvalidRequestError: the writer is of another namespace or client than the lock.
            NotHeldError: the lock is not held.
        """
        return FencedWriter(self._store, writer, self._held)

    def is_owner(self) -> Compare:
        """The condition that this lock is held, for the `when` of a txn.

        Raises:
            NotHeldError: the lock is not held.
        """
        return Key(self.key).create_revision == self.fencing_token

    @property
    def _held(self) -> Held[LockLostError]:
        if self._tenure is None:
            raise NotHeldError(f"{self._subject.what} is not held")
        return self._tenure[1]

    async def lost(self) -> LockLostError | None:
        """Wait until the lock is lost or released. Returns why it was lost; None if it was released.

        Raises:
            NotHeldError: the lock is not held.

        Cancelling the wait changes nothing.
        """
        return await self._held.lost()

    async def contenders(self) -> tuple[Contender, ...]:
        """List who holds the lock and who waits for it, the holder first.

        Raises:
            EtcdError: as every read.
        """
        keys = self._all_keys(self._name)
        found = await self._store.range(prefix=keys.before, sort_by="create_revision")
        return tuple(Contender(kv.key, kv.value, kv.lease, kv.create_revision) for kv in found.kvs if keys.has(kv))
