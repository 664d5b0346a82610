"""Leadership: the block of a leader, and the place in line before it.

What the leader has proclaimed is the value of its key. Each proclamation compares the `mod_revision` that the last one
has left, so a copy that arrives late can never replace a newer value: that revision does not come back.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import ClassVar, Final, Self

from etcd_aio import Compare, Key, KeyValue, op
from etcd_aio.arguments import to_bytes
from etcd_aio.base import UNSET, NotAwaitable, Timeout, log_for, when_constructed
from etcd_aio.calls import StoreCalls, Writer
from etcd_aio.concurrency.fenced import FencedWriter
from etcd_aio.concurrency.held import Held, Subject
from etcd_aio.concurrency.line import Line
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import ClientUsageError, LeadershipLostError, NotLeaderError
from etcd_aio.types import ValueLike

logger: Final = logging.getLogger("etcd_aio.elections")


@dataclass(frozen=True, slots=True)
class Candidacy:
    """How a leadership comes to be.

    Attributes:
        store: carries out the calls.
        new_line: makes the place in line, with the value of its key.
        margin: seconds before the local deadline of the lease at which the leadership is lost.
        cancels: whether a loss cancels the task in the block.
        stand: waits until the line holds.
        subject: the election.
    """

    store: StoreCalls
    new_line: Callable[[bytes], Line[LeadershipLostError]]
    margin: float
    cancels: bool
    stand: Callable[[Line[LeadershipLostError]], Awaitable[None]]
    subject: Subject[LeadershipLostError]


class Leadership(NotAwaitable):
    """A leadership: `async with election.lead(value="host-1") as leadership:`.

    Entering waits until this candidate leads, leaving resigns. If the leadership is lost in between, the task that
    entered is cancelled before etcd lets another candidate lead, and leaving raises `LeadershipLostError`. A process
    that does not run cannot be told, so writes that must not overlap are made through `fenced`, or carry the
    `fencing_token`.
    """

    usage: ClassVar[str] = "a leadership cannot be awaited: write `async with election.lead(...) as leadership:`"

    def __init__(self, candidacy: Candidacy, value: ValueLike) -> None:
        self._candidacy = candidacy
        self._value = to_bytes(value, "value")
        self._tenure: tuple[Line[LeadershipLostError], Held[LeadershipLostError]] | None = None
        self._is_used = False
        self._has_resigned = False
        self._revision = 0  # the `mod_revision` of the key, as far as it is known
        self._proclaiming = asyncio.Lock()

    @when_constructed
    def __repr__(self) -> str:
        if self._tenure is None:
            state = "a candidate" if self._is_used else "not entered"
        else:
            state = "lost" if self.is_lost else "resigned" if self._has_resigned else "leading"
        return f"<Leadership {self._candidacy.subject.what} {state}>"

    # The block.

    async def __aenter__(self) -> Self:
        if self._is_used:
            raise ClientUsageError("a leadership can only be entered once: call `lead` for another one")
        self._is_used = True
        candidacy = self._candidacy
        line = candidacy.new_line(self._value)
        await candidacy.stand(line)
        held = line.hold(margin=candidacy.margin, cancels=candidacy.cancels, watch_after=0.0)
        self._tenure = line, held
        self._revision = held.revision
        if held.is_lost:  # the wait took until the end of the lease
            await self._leave(None)
        self._say(held, "this process leads")
        if line.present is not None and line.present.value != self._value:
            await self._replace_value(self._value)
        return self

    async def _replace_value(self, value: bytes) -> None:
        """Proclaim the value in place of that of an earlier process with the same lease."""
        try:
            await self.proclaim(value)
        except BaseException as raised:  # a cancellation too: the block is not entered
            await self._leave(raised)
            raise

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._has_resigned:
            await self._leave(exc)

    async def resign(self) -> None:
        """Give the leadership up before the block ends. If etcd does not answer, that goes on in the background.

        Raises:
            NotLeaderError: the block was not entered, or has resigned.
            LeadershipLostError: the leadership was lost before.

        Cancellation: it resigns all the same.
        """
        self._led()
        await self._leave(None)

    async def _leave(self, raised: BaseException | None) -> None:
        line, held = self._led()
        self._has_resigned = True
        held.stop()
        if held.error is not None:
            self._say(held, "this process has lost the leadership")
            line.leave_lost()
            held.leave_with(raised)
        else:
            self._say(held, "this process resigns")
            await line.leave(is_cancelled=isinstance(raised, asyncio.CancelledError))

    def _say(self, held: Held[LeadershipLostError], what: str) -> None:
        """Log who leads; without the value, which may be secret."""
        candidacy = self._candidacy
        log_for(logger, candidacy.store).info(
            "%s: %s, with fencing token %d", candidacy.subject.what, what, held.revision
        )

    def _led(self) -> tuple[Line[LeadershipLostError], Held[LeadershipLostError]]:
        if self._tenure is None or self._has_resigned:
            raise self._not_leading()
        return self._tenure

    def _not_leading(self) -> NotLeaderError:
        return NotLeaderError(f"{self._candidacy.subject.what}: this candidate does not lead")

    @property
    def _held(self) -> Held[LeadershipLostError]:
        return self._led()[1]

    # State.

    @property
    def is_entered(self) -> bool:
        """Whether this candidate has come to lead, whatever happened since."""
        return self._tenure is not None

    @property
    def is_lost(self) -> bool:
        """Whether the leadership was lost while it was held. Thread-safe.

        It looks at the clock, so it is right at once when the event loop, the process or the machine was stopped.
        """
        return self._tenure is not None and self._tenure[1].is_lost

    @property
    def remaining(self) -> float:
        """Seconds until the leadership is lost, unless a renewal is acknowledged before; 0 if it is over."""
        return 0.0 if self._tenure is None else self._tenure[1].remaining

    @property
    def fencing_token(self) -> int:
        """A number that grows from one leader to the next: the `create_revision` of the leader's key.

        Raises:
            NotLeaderError: this candidate does not lead.
        """
        return self._held.revision

    @property
    def key(self) -> bytes:
        """The leader's key in etcd.

        Raises:
            NotLeaderError: this candidate does not lead.
        """
        return self._held.key

    @property
    def fenced(self) -> Writer:
        """Writes that etcd applies only while this candidate leads.

        Raises:
            NotLeaderError: this candidate does not lead.
        """
        return self.fenced_by(self._candidacy.store)

    def fenced_by(self, writer: Writer) -> Writer:
        """As `fenced`, with the writes of another writer, such as `client.exactly_once()`.

        Raises:
            InvalidRequestError: the writer is of another namespace or client than the election.
            NotLeaderError: this candidate does not lead.
        """
        return FencedWriter(self._candidacy.store, writer, self._held)

    def is_leader(self) -> Compare:
        """The condition that this candidate leads, for the `when` of a txn.

        Raises:
            NotLeaderError: this candidate does not lead.
        """
        held = self._held
        return Key(held.key).create_revision == held.revision

    async def lost(self) -> LeadershipLostError | None:
        """Wait until the leadership is over. Returns why it was lost; None if this candidate has resigned.

        Raises:
            NotLeaderError: this candidate has never led.

        Cancelling the wait changes nothing.
        """
        if self._tenure is None:
            raise self._not_leading()
        return await self._tenure[1].lost()

    # Proclaiming.

    async def proclaim(self, value: ValueLike, *, timeout: Timeout = UNSET) -> None:
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
        held, new = self._held, to_bytes(value, "value")
        async with self._proclaiming:
            while True:
                kv = await self._propose(held, new, timeout)
                if kv is None or not held.is_own(kv):
                    raise held.lose("its key is gone: etcd has refused a proclamation")
                # An earlier proclamation that was not answered has been applied: this one's copy, or the one before.
                self._revision = kv.mod_revision
                if kv.value == new:
                    return

    async def _propose(self, held: Held[LeadershipLostError], new: bytes, timeout: Timeout) -> KeyValue | None:
        """Put the value if the key is as it was last; returns the key as it is now."""
        if held.is_lost:
            raise held.loss()
        present = op.get(held.key)
        txn = op.txn(
            when=[Key(held.key).mod_revision == self._revision],
            then=[op.put(held.key, new, ignore_lease=True), present],
            otherwise=[present],
        )
        return (await self._candidacy.store.do(txn, timeout=timeout, retry="always"))[present]
