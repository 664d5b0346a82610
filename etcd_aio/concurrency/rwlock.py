"""RWLock: many readers or one writer, in the order of arrival, so that neither readers nor writers starve.

A reader waits for the writers that came before it, a writer for everything that came before it. The prefixes of the
keys are those of the `RWMutex` among the recipes of Go's client, so the two exclude each other.
"""

from typing import TYPE_CHECKING, ClassVar, NoReturn, TypeVar

from etcd_aio.base import NotAwaitable, when_constructed
from etcd_aio.calls import StoreCalls
from etcd_aio.concurrency.lock import Contender, Lock
from etcd_aio.concurrency.place import LineKeys, reader_keys, writer_keys
from etcd_aio.lease import LeaseSource, OnLost
from etcd_aio.types import KeyLike, ValueLike

L = TypeVar("L", bound=Lock)


class ReadLock(Lock):
    """A lock that other readers may hold at the same time; made by `RWLock.reading()`.

    It is a `Lock`. Its fencing token is larger than those of all writers that held before it, and smaller than those of
    all that hold after it.
    """

    _kind: ClassVar[str] = "read lock"

    def _line_keys(self, name: bytes) -> LineKeys:
        return reader_keys(name)

    def _all_keys(self, name: bytes) -> LineKeys:
        return writer_keys(name)


class WriteLock(Lock):
    """A lock that excludes all readers and other writers; made by `RWLock.writing()`. It is a `Lock`."""

    _kind: ClassVar[str] = "write lock"

    def _line_keys(self, name: bytes) -> LineKeys:
        return writer_keys(name)


class RWLock(NotAwaitable):
    """A read-write lock: `async with client.rwlock("catalog").reading() as lock:`, or `.writing()`.

    Each call of `reading` and `writing` makes a `Lock` of its own, so one object serves many tasks.

    A reader cannot become a writer, since two that wait for each other would wait for ever; and a writer cannot become
    a reader without standing behind the writers that wait. Take the write lock for as long as it is needed.
    """

    usage: ClassVar[str] = "a read-write lock cannot be awaited: write `async with lock.reading():` or `.writing()`"

    def __init__(
        self,
        store: StoreCalls,
        source: LeaseSource,
        name: KeyLike,
        *,
        ttl: int,
        value: ValueLike | None = None,
        margin: float | None = None,
        on_lost: OnLost = "cancel",
    ) -> None:
        self._store = store
        self._source = source
        self._name = name
        self._ttl = ttl
        self._value = value
        self._margin = margin
        self._on_lost: OnLost = on_lost
        self._any = self.writing()  # checks the arguments

    @when_constructed
    def __repr__(self) -> str:
        return f"<RWLock {self._any.name!r}>"

    @property
    def name(self) -> bytes:
        """The name."""
        return self._any.name

    if not TYPE_CHECKING:  # type checkers refuse `async with` on a read-write lock by themselves

        async def __aenter__(self) -> NoReturn:
            raise TypeError("a read-write lock is not a block: enter what .reading() or .writing() returns")

        async def __aexit__(self, *exc_info: object) -> None:
            """Python looks for it before it enters."""

    def reading(self, *, timeout: float | None = None) -> ReadLock:
        """A lock for one reader.

        Args:
            timeout: seconds to wait for it, above 0; None for no limit.
        """
        return self._make(ReadLock, timeout)

    def writing(self, *, timeout: float | None = None) -> WriteLock:
        """A lock for one writer.

        Args:
            timeout: seconds to wait for it, above 0; None for no limit.
        """
        return self._make(WriteLock, timeout)

    async def contenders(self) -> tuple[Contender, ...]:
        """List the readers and writers that hold or wait, in their order; see `Lock.contenders`."""
        return await self._any.contenders()

    def _make(self, kind: type[L], timeout: float | None) -> L:
        return kind(
            self._store,
            self._source,
            self._name,
            ttl=self._ttl,
            timeout=timeout,
            value=self._value,
            margin=self._margin,
            on_lost=self._on_lost,
        )
