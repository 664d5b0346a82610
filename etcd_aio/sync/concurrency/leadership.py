"""Leadership, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.concurrency.leadership`: do not edit.
"""

from typing import Self

from etcd_aio.arguments import ValueLike
from etcd_aio.base import UNSET, Timeout
from etcd_aio.errors import LeadershipLostError
from etcd_aio.kv import Compare
from etcd_aio.portal import Losable
from etcd_aio.sync.calls.writer import Writer


class Leadership(Losable):
    """A leadership: `with election.lead(value="host-1") as leadership:`.

    Entering waits until this candidate leads, leaving resigns. A thread cannot be cancelled: if the leadership is lost
    in between, `is_held` is False and `check()` raises before etcd lets another candidate lead, `on_lost` is called,
    and leaving raises `LeadershipLostError`. A process that does not run cannot be told, so writes that must not
    overlap are made through `fenced`, or carry the `fencing_token`.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def resign(self) -> None:
        """Give the leadership up before the block ends. If etcd does not answer, that goes on in the background.

        Raises:
            NotLeaderError: the block was not entered, or has resigned.
            LeadershipLostError: the leadership was lost before.

        Ctrl-C: it resigns all the same.
        """
        self._run(self._aio.resign)

    def proclaim(self, value: ValueLike, *, timeout: Timeout = UNSET) -> None:
        """Change the value that observers see.

        It is repeated until etcd has answered, also on other members, and is applied once. Proclamations of one
        leadership wait for each other.

        Args:
            value: the new value.
            timeout: seconds for the txn.

        Raises:
            LeadershipLostError: the leadership is lost. If that is found only now, the block is told too.
            NotLeaderError: this candidate does not lead.
            NoSpaceError: the store has no space; this candidate leads on.
            EtcdError: as every call. If `maybe_applied` is True, the value may still change, until the next
                proclamation or the end of the leadership.
        """
        self._run(self._aio.proclaim, value, timeout=timeout)

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

    def lost(self, *, timeout: float | None = None) -> LeadershipLostError | None:
        """Wait until it is lost or left. Returns why it was lost; None if it was left.

        Args:
            timeout: seconds to wait; 0 looks once. Default: None, no limit.

        Raises:
            EtcdTimeoutError: it was neither in time.
            NotHeldError, NotLeaderError: it is not held.

        Ctrl-C changes nothing.
        """
        return self._run(self._aio.lost, timeout=timeout)
