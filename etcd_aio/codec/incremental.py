"""Decoding of messages that are not complete yet.

An `IncrementalDecoder` takes a message in pieces that may end anywhere, and decodes it in steps. A step decodes the
fields that are complete; the rest waits for the next pieces. Pieces are joined only as far as the next field or a step
needs, so the cost of copying does not grow with the size of the message.
"""

from collections import deque
from traceback import clear_frames
from typing import Final, Generic, cast

from etcd_aio.codec.compiled import DECODE_FAILURES, malformed, reason_of, steps_of
from etcd_aio.codec.decodable import Decodable

PIECE: Final = 1 << 18
"""Bytes that are joined for one step, if they are there: most steps end with them, and not in their middle."""


class IncrementalDecoder(Generic[Decodable]):
    """Decodes one message from pieces.

    `feed` the pieces, `work` a step at a time, then `finish`, which does the remaining work and raises if the message
    is malformed. After `end`, `work` does that work too, so that `finish` has nothing left to do.

    Any exception in a step ends the decoding, also one that says nothing about the message, such as `MemoryError`: what
    was decoded so far is not known any more. `work` keeps it, and `finish` raises it.

    A subclass may have parts: what is decoded of a message that still arrives, as a message of its own.

    Args:
        decodable: as for `decode`.
    """

    __slots__ = (
        "_data",
        "_decodable",
        "_decoded",
        "_failure",
        "_has_ended",
        "_is_paused",
        "_message",
        "_needed",
        "_pieces",
        "_size",
        "_steps",
    )

    def __init__(self, decodable: type[Decodable]) -> None:
        self._decodable = decodable
        self._has_ended = False  # whether all pieces were fed
        self.restart()

    def restart(self) -> None:
        """Forget all that was fed: what is fed next is the beginning of the message."""
        self._steps = steps_of(self._decodable)
        self._decoded = 0  # bytes of the whole fields that the stepwise decoder has read
        self._pieces: deque[bytes] = deque()  # not yet sent to the stepwise decoder, or returned by it
        self._size = 0  # of the pieces, in bytes
        self._needed = 1  # bytes that the next step needs at least
        self._data = b""  # what the stepwise decoder reads
        self._is_paused = False  # whether the stepwise decoder has more to do with `_data`
        self._message: Decodable | None = None
        self._failure: BaseException | None = None  # that has ended the decoding

    def feed(self, piece: bytes) -> None:
        """Add the next piece, without decoding it."""
        if self._failure is None:
            self._pieces.append(piece)
            self._size += len(piece)

    def work(self) -> bool:
        """Decode one step, which takes about 2 ms at most. Returns whether more can be done at once."""
        try:
            self._work()
        except Exception as failure:
            self._break(failure)
        except BaseException as failure:  # such as a KeyboardInterrupt, which is not the message's alone
            self._break(failure)
            raise
        return self._has_work

    def end(self) -> None:
        """All pieces were fed."""
        self._has_ended = True

    @property
    def has_ended(self) -> bool:
        """Whether all pieces were fed."""
        return self._has_ended

    @property
    def has_part(self) -> bool:
        """Whether `take_part` has something to take, until the next step."""
        return False

    def take_part(self) -> Decodable | None:
        """Remove what is decoded, and return it; None if there is no part. `finish` returns the rest."""
        return None

    def finish(self) -> Decodable:
        """The message, after all its pieces were fed.

        Raises:
            MalformedReplyError: as for `decode`.
            Exception: another one, that a step has raised.
        """
        self.end()
        while self.work():
            pass
        if self._failure is not None:
            raise self._failure
        return cast("Decodable", self._message)  # without work and without a failure there is one

    @property
    def _has_work(self) -> bool:
        if self._failure is not None or self._message is not None:
            return False
        return self._is_paused or self._has_ended or self._size >= self._needed

    def _break(self, failure: BaseException) -> None:
        """Decode no more, and keep nothing of the message."""
        self._failure = failure
        self._message = None
        self._pieces.clear()
        self._data = b""
        self._is_paused = False
        self._steps.close()
        # The exception is kept with its frames: of these, the last has this decoder, the others what was decoded.
        clear_frames(failure.__traceback__)
        failure.__traceback__ = failure.__traceback__ and failure.__traceback__.tb_next

    def _work(self) -> None:
        """Do what `work` does. Any exception ends the decoding."""
        if self._has_work:
            self._step()

    def _step(self) -> None:
        """Run the stepwise decoder until its next pause, or its end.

        Raises:
            MalformedReplyError: the message is malformed.
            Exception: any other; then nothing is known of the message any more.
        """
        failure: Exception | None = None
        reached: tuple[int, int] | None = None
        try:
            if self._is_paused:
                reached = self._steps.send(None)
            else:
                self._data = data = self._taken()
                is_whole = self._has_ended and not self._pieces
                reached = self._steps.send((data, 0, len(data), is_whole))
        except StopIteration as end:
            self._message = end.value
            self._is_paused = False
            self._data = b""
            return
        except DECODE_FAILURES as error:
            failure = malformed(self._decodable, reason_of(error))
        if failure is not None:
            raise failure  # here it has no context: a UnicodeDecodeError contains the text
        self._is_paused = reached is None
        if reached is not None:
            position, missing = reached
            self._decoded += position
            rest = self._data[position:]
            self._data = b""
            self._needed = len(rest) + missing
            if rest:
                self._pieces.appendleft(rest)
                self._size += len(rest)

    def _cut(self, ending: bytes, beginning: bytes) -> Decodable:
        """Divide the message behind its last whole field, while the stepwise decoder waits for more.

        Args:
            ending: the last fields of the first part.
            beginning: the first fields of the rest.

        Raises:
            Exception: any, and the decoding has ended.
        """
        try:
            steps, self._steps = self._steps, steps_of(self._decodable)
            self._pieces.appendleft(beginning)
            self._size += len(beginning)
            self._needed += len(beginning)
            self._decoded = 0
            steps.send((ending, 0, len(ending), True))
            while True:  # a list of more than `FREED` items is freed in steps
                next(steps)
        except StopIteration as end:
            return cast("Decodable", end.value)
        except BaseException as failure:
            self._break(failure)
            raise

    def _taken(self) -> bytes:
        """Remove the pieces for one step, joined."""
        wanted = max(self._needed, PIECE)
        taken: list[bytes] = []
        size = 0
        while self._pieces and size < wanted:
            taken.append(self._pieces.popleft())
            size += len(taken[-1])
        self._size -= size
        return taken[0] if len(taken) == 1 else b"".join(taken)
