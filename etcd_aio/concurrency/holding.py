"""Holding: the state of something that is held by a key with a lease: a lock, a permit, a leadership."""

import asyncio
import logging
from typing import ClassVar, Final, Generic, TypeVar

from etcd_aio import Compare, Key
from etcd_aio.base import NotAwaitable, log_for
from etcd_aio.calls import Writer
from etcd_aio.concurrency.fenced import FencedWriter
from etcd_aio.concurrency.held import Held
from etcd_aio.concurrency.options import HoldOptions
from etcd_aio.concurrency.own_key import OwnKey
from etcd_aio.errors import EtcdError, NotHeldError

LostError = TypeVar("LostError", bound=EtcdError)

_LOCKS: Final = logging.getLogger("etcd_aio.locks")


class Holding(NotAwaitable, Generic[LostError]):
    """Something that is held by a key with a lease. The docstrings of the subclasses say how it is entered.

    Args:
        options: how it is held.
    """

    _log_to: ClassVar[logging.Logger] = _LOCKS
    _log_level: ClassVar[int] = logging.DEBUG
    _log_texts: ClassVar[tuple[str, str, str]] = ("%s is held", "%s is lost", "%s is released")

    def __init__(self, options: HoldOptions[LostError]) -> None:
        self._options = options
        self._store = options.store
        self._subject = options.subject
        self._guard: Held[LostError] | None = None  # from entering on

    def _say(self, text: str, held: Held[LostError]) -> None:
        """Log a change; without the value of the key, which may be secret."""
        if self._log_to.isEnabledFor(self._log_level):
            line = f"{text}, with fencing token %d"
            log_for(self._log_to, self._store).log(self._log_level, line, self._subject.what, held.revision)

    def _begin(self, own: OwnKey[LostError], *, watch_after: float | None = None) -> Held[LostError]:
        """The key is held: guard the block from now on."""
        self._guard = held = own.hold(watch_after=watch_after)
        self._say(self._log_texts[0], held)
        return held

    async def _end(self, own: OwnKey[LostError], held: Held[LostError], raised: BaseException | None) -> None:
        """Leave, and raise the error of a loss, unless the block ends by an exception of its own."""
        held.stop()
        if held.error is not None:
            self._say(self._log_texts[1], held)
            own.leave_lost()
            held.leave_with(raised)
        else:
            self._say(self._log_texts[2], held)
            await own.leave(is_cancelled=isinstance(raised, asyncio.CancelledError))

    def _not_held(self) -> EtcdError:
        return NotHeldError(f"{self._subject.what} is not held")

    @property
    def _held(self) -> Held[LostError]:
        if self._guard is None or self._guard.is_over:
            raise self._not_held()
        return self._guard

    # State.

    @property
    def name(self) -> bytes:
        """The name."""
        return self._options.name

    @property
    def ttl(self) -> int:
        """The seconds that it outlives a crash of this process; while it is held, as etcd has granted them."""
        return self._options.ttl if self._guard is None else self._guard.ttl

    @property
    def is_held(self) -> bool:
        """Whether it is held now. Thread-safe."""
        guard = self._guard
        return guard is not None and not guard.is_over and not guard.is_lost

    @property
    def is_lost(self) -> bool:
        """Whether it was lost while it was held. Thread-safe.

        It looks at the clock, so it is right at once when the event loop, the process or the machine was stopped.
        """
        guard = self._guard
        return guard is not None and guard.is_lost

    @property
    def remaining(self) -> float:
        """Seconds until it is lost, unless a renewal is acknowledged before; 0 if it is not held.

        While renewals are acknowledged it stays above about two thirds of the TTL, less the margin. In an outage it
        shrinks.
        """
        guard = self._guard
        return 0.0 if guard is None else guard.remaining

    @property
    def fencing_token(self) -> int:
        """A number that grows from one holder to the next: the `create_revision` of the holder's key.

        Raises:
            NotHeldError, NotLeaderError: it is not held.
        """
        return self._held.revision

    @property
    def key(self) -> bytes:
        """The holder's key in etcd.

        Raises:
            NotHeldError, NotLeaderError: it is not held.
        """
        return self._held.key

    @property
    def fenced(self) -> Writer:
        """Writes that etcd applies only while this is held.

        Raises:
            NotHeldError, NotLeaderError: it is not held.
        """
        return self.fenced_by(self._store)

    def fenced_by(self, writer: Writer) -> Writer:
        """As `fenced`, with the writes of another writer, such as `client.exactly_once()`.

        Raises:
            InvalidRequestError: the writer is of another namespace or client.
            NotHeldError, NotLeaderError: it is not held.
        """
        return FencedWriter(self._store, writer, self._held)

    def held_condition(self) -> Compare:
        """The condition that this is held, for the `when` of a txn.

        Raises:
            NotHeldError, NotLeaderError: it is not held.
        """
        held = self._held
        return Key(held.key).create_revision == held.revision

    async def lost(self, *, timeout: float | None = None) -> LostError | None:
        """Wait until it is lost or left. Returns why it was lost; None if it was left.

        Args:
            timeout: seconds to wait; 0 looks once. Default: None, no limit.

        Raises:
            EtcdTimeoutError: it was neither in time.
            NotHeldError, NotLeaderError: it is not held.

        Cancelling the wait changes nothing.
        """
        if self._guard is None:
            raise self._not_held()
        return await self._guard.lost(timeout)
