"""DoubleBarrier, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.recipes.barrier.double_barrier`: do not edit.
"""

from collections.abc import Callable
from typing import ClassVar, Self

from etcd_aio.arguments import KeyLike
from etcd_aio.errors import EtcdError, LockLostError
from etcd_aio.kv import Compare
from etcd_aio.portal import Losable
from etcd_aio.recipes import DoubleBarrier as AsyncDoubleBarrier
from etcd_aio.sync.calls.store_calls import StoreCalls
from etcd_aio.sync.calls.writer import Writer


class DoubleBarrier(Losable):
    """A double barrier: `with DoubleBarrier(client, "phase-1", count=5):`.

    Entering waits until `count` participants are there, leaving until all of them leave. A participant that dies, or
    whose lease is lost, counts as gone. If the block ends by an exception, it is left without waiting for the others,
    which do not wait for it. If the lease is lost within the block, `check()` raises `LockLostError`, and so does
    leaving.

    The keys are `<name>/waiters/<lease>` and `<name>/ready`, as of Go's `DoubleBarrier`, so participants of both take
    part in one barrier. An object may be entered again after it was left.

    Args:
        client: the client, or a store that wraps one.
        name: its name.
        count: how many participants enter and leave together; all must name the same number.
        ttl: seconds until a participant counts as gone after a crash of its process, or in an outage. Default: 10, as
            of locks. etcd raises values below its minimum, 2 by default.
        timeout: seconds to wait on entering, and again on leaving. Default: None, no limit.
        margin: seconds before the end of the lease at which it counts as lost, as of locks.
        on_lost: a function that is called with the error of a loss, as of locks.

    Raises:
        InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
    """

    _survives_fork: ClassVar[bool] = True

    def __init__(
        self,
        client: StoreCalls,
        name: KeyLike,
        *,
        count: int,
        ttl: int = 10,
        timeout: float | None = None,
        margin: float | None = None,
        on_lost: Callable[[EtcdError], object] | None = None,
    ) -> None:
        self._construct(
            AsyncDoubleBarrier, client, name, count=count, ttl=ttl, timeout=timeout, margin=margin, on_lost="signal"
        )
        self._telling(on_lost)

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    @property
    def name(self) -> bytes:
        """The name."""
        return self._aio.name

    @property
    def ttl(self) -> int:
        """The seconds that it outlives a crash of this process; while it is held, as etcd has granted them."""
        return self._aio.ttl

    @property
    def is_held(self) -> bool:
        """Whether it is held now. Thread-safe."""
        return self._aio.is_held

    @property
    def is_lost(self) -> bool:
        """Whether it was lost while it was held. Thread-safe.

        It looks at the clock, so it is right at once when the process or the machine was stopped.
        """
        return self._aio.is_lost

    @property
    def remaining(self) -> float:
        """Seconds until it is lost, unless a renewal is acknowledged before; 0 if it is not held.

        While renewals are acknowledged it stays above about two thirds of the TTL, less the margin. In an outage it
        shrinks.
        """
        return self._aio.remaining

    @property
    def fencing_token(self) -> int:
        """A number that grows from one holder to the next: the `create_revision` of the holder's key.

        Raises:
            NotHeldError, NotLeaderError: it is not held.
        """
        return self._aio.fencing_token

    @property
    def key(self) -> bytes:
        """The holder's key in etcd.

        Raises:
            NotHeldError, NotLeaderError: it is not held.
        """
        return self._aio.key

    @property
    def fenced(self) -> Writer:
        """Writes that etcd applies only while this is held.

        Raises:
            NotHeldError, NotLeaderError: it is not held.
        """
        return self._wrap(self._aio.fenced)

    def fenced_by(self, writer: Writer) -> Writer:
        """As `fenced`, with the writes of another writer, such as `client.exactly_once()`.

        Raises:
            InvalidRequestError: the writer is of another namespace or client.
            NotHeldError, NotLeaderError: it is not held.
        """
        return self._made("fenced_by", writer)

    def held_condition(self) -> Compare:
        """The condition that this is held, for the `when` of a txn.

        Raises:
            NotHeldError, NotLeaderError: it is not held.
        """
        return self._aio.held_condition()

    def lost(self, *, timeout: float | None = None) -> LockLostError | None:
        """Wait until it is lost or left. Returns why it was lost; None if it was left.

        Args:
            timeout: seconds to wait; 0 looks once. Default: None, no limit.

        Raises:
            EtcdTimeoutError: it was neither in time.
            NotHeldError, NotLeaderError: it is not held.

        Ctrl-C changes nothing.
        """
        return self._run(self._aio.lost, timeout=timeout)
