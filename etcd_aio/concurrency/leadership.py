"""Leadership: the block of a leader, and the place in line before it.

What the leader has proclaimed is the value of its key. Each proclamation compares the `mod_revision` that the last one
has left, so a copy that arrives late can never replace a newer value: that revision does not come back.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import ClassVar, Final, Self

from etcd_aio import Key, KeyValue, op
from etcd_aio.arguments import to_bytes
from etcd_aio.base import UNSET, Timeout, when_constructed
from etcd_aio.concurrency.held import Held
from etcd_aio.concurrency.holding import Holding
from etcd_aio.concurrency.line import Line
from etcd_aio.concurrency.options import HoldOptions
from etcd_aio.concurrency.place import lock_keys
from etcd_aio.errors import ClientUsageError, EtcdError, LeadershipLostError, NotLeaderError
from etcd_aio.types import ValueLike

logger: Final = logging.getLogger("etcd_aio.elections")


class Leadership(Holding[LeadershipLostError]):
    """A leadership: `async with election.lead(value="host-1") as leadership:`.

    Entering waits until this candidate leads, leaving resigns. If the leadership is lost in between, the task that
    entered is cancelled before etcd lets another candidate lead, and leaving raises `LeadershipLostError`. A process
    that does not run cannot be told, so writes that must not overlap are made through `fenced`, or carry the
    `fencing_token`.
    """

    usage: ClassVar[str] = "a leadership cannot be awaited: write `async with election.lead(...) as leadership:`"

    _log_to: ClassVar[logging.Logger] = logger
    _log_level: ClassVar[int] = logging.INFO
    _log_texts: ClassVar[tuple[str, str, str]] = (
        "%s: this process leads",
        "%s: this process has lost the leadership",
        "%s: this process resigns",
    )

    def __init__(
        self,
        options: HoldOptions[LeadershipLostError],
        value: ValueLike,
        stand: Callable[[Line[LeadershipLostError]], Awaitable[bool]],
    ) -> None:
        super().__init__(options)
        self._value = to_bytes(value, "value")
        self._line = Line(options, lock_keys(options.name))
        self._line.value = self._value
        self._stand = stand
        self._is_used = False
        self._revision = 0  # the `mod_revision` of the key, as far as it is known
        self._proclaiming = asyncio.Lock()

    @when_constructed
    def __repr__(self) -> str:
        if self._guard is None:
            state = "a candidate" if self._is_used else "not entered"
        else:
            state = "lost" if self.is_lost else "resigned" if self._guard.is_over else "leading"
        return f"<Leadership {self._subject.what} {state}>"

    # The block.

    async def __aenter__(self) -> Self:
        if self._is_used:
            raise ClientUsageError("a leadership can only be entered once: call `lead` for another one")
        self._is_used = True
        await self._stand(self._line)
        held = self._begin(self._line, watch_after=0.0)
        self._revision = held.revision
        if held.is_lost:  # the wait took until the end of the lease
            await self._leave(None)
        present = self._line.present
        if present is not None and present.value != self._value:  # of an earlier process with the same lease
            try:
                await self.proclaim(self._value)
            except BaseException as raised:  # a cancellation too: the block is not entered
                await self._leave(raised)
                raise
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._guard is not None and not self._guard.is_over:
            await self._leave(exc)

    async def resign(self) -> None:
        """Give the leadership up before the block ends. If etcd does not answer, that goes on in the background.

        Raises:
            NotLeaderError: the block was not entered, or has resigned.
            LeadershipLostError: the leadership was lost before.

        Cancellation: it resigns all the same.
        """
        await self._leave(None)

    async def _leave(self, raised: BaseException | None) -> None:
        await self._end(self._line, self._held, raised)

    def _not_held(self) -> EtcdError:
        return NotLeaderError(f"{self._subject.what}: this candidate does not lead")

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
        return (await self._store.do(txn, timeout=timeout, retry="always"))[present]
