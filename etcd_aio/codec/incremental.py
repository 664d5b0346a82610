"""Collector: a message that is decoded while it arrives.

Knows: pieces, which may end anywhere, and steps. Never knows: who brings the pieces, or what gives the time for a step.

A step reads what is there whole, and what is left of a field waits for the rest of it: pieces are joined only then, and
only as many as the next field needs or a step can read. So no byte is copied for its message's size.
"""

from collections import deque
from typing import Generic

from etcd_aio.codec.compiled import FAILURES, reason_of, refusal, steps_of
from etcd_aio.codec.decoder import STEP
from etcd_aio.codec.targets import Decodable


class Collector(Generic[Decodable]):
    """One message that comes in pieces.

    `feed` it the pieces, let it `work` a step at a time, and `finish` it. What is wrong with the message is said then.
    What is left to do is done then too, however long it takes.

    Args:
        decodable: as with `decode`.
    """

    __slots__ = ("_data", "_decodable", "_flaw", "_is_paused", "_needed", "_pieces", "_size", "_steps")

    def __init__(self, decodable: type[Decodable]) -> None:
        self._decodable = decodable
        self._steps = steps_of(decodable)
        self._pieces: deque[bytes] = deque()  # what the steps have not been sent, or gave back
        self._size = 0  # of the pieces
        self._needed = 1  # bytes without which the next step could do nothing
        self._data = b""  # what the steps read
        self._is_paused = False  # the steps have not done with it
        self._flaw = ""

    def feed(self, piece: bytes) -> None:
        """Take the next piece, and do nothing about it yet."""
        if not self._flaw:
            self._pieces.append(piece)
            self._size += len(piece)

    def work(self) -> bool:
        """Decode for one step, which takes some 2 ms at most; whether there is more to do at once."""
        if self._has_work:
            self._step(is_whole=False)
        return self._has_work

    def finish(self) -> Decodable:
        """The message, once all of it was fed.

        Raises:
            MalformedReplyError: as `decode` raises it.
        """
        while self.work():
            pass
        while not self._flaw:  # what is cut short may pause too
            found = self._step(is_whole=True)
            if found is not None:
                return found
        raise refusal(self._decodable, self._flaw)

    @property
    def _has_work(self) -> bool:
        return self._is_paused or (self._size >= self._needed and not self._flaw)

    def _step(self, *, is_whole: bool) -> Decodable | None:
        """Let the steps go on, with what they paused in or with more; the message, if this was the last one."""
        try:
            if self._is_paused:
                reached = self._steps.send(None)
            else:
                self._data = data = self._taken()
                reached = self._steps.send((data, 0, len(data), is_whole))
        except StopIteration as end:
            found: Decodable = end.value
            return found
        except FAILURES as failure:
            self._flaw = reason_of(failure)
            self._pieces.clear()
            self._is_paused = False
            self._data = b""
            return None
        self._is_paused = reached is None
        if reached is not None:
            position, missing = reached
            rest = self._data[position:]
            self._data = b""
            self._needed = len(rest) + missing
            if rest:
                self._pieces.appendleft(rest)
                self._size += len(rest)
        return None

    def _taken(self) -> bytes:
        """The pieces of one step, joined."""
        wanted = max(self._needed, STEP)
        taken: list[bytes] = []
        size = 0
        while self._pieces and size < wanted:
            taken.append(self._pieces.popleft())
            size += len(taken[-1])
        self._size -= size
        return taken[0] if len(taken) == 1 else b"".join(taken)
