"""Collectors of messages that arrive in pieces, as the owner of a call or a stream would give them to an engine."""


class Kept:
    """A collector that keeps what it gets.

    Attributes:
        pieces: what it was fed.
        has_ended: whether it was told that this is all.
        has_part: whether its owner can take a part.
    """

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.has_ended = False
        self.has_part = False

    def feed(self, piece: bytes) -> None:
        self.pieces.append(piece)

    def work(self) -> bool:
        return False

    def end(self) -> None:
        self.has_ended = True


class Worked(Kept):
    """A collector that counts its steps; each piece is one."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0

    def work(self) -> bool:
        self.steps += self.steps < len(self.pieces)
        return self.steps < len(self.pieces)


class Parted(Kept):
    """A collector that has a part whenever it has worked on so many bytes.

    Args:
        part: bytes.
    """

    def __init__(self, part: int) -> None:
        super().__init__()
        self._part = part
        self._worked = 0  # pieces
        self._size = 0  # bytes of the part that is here

    def work(self) -> bool:
        assert not self.has_part, "its owner has not taken the part yet"
        if self._worked < len(self.pieces):
            self._size += len(self.pieces[self._worked])
            self._worked += 1
            self.has_part = self._size >= self._part
        return self._worked < len(self.pieces)

    def take(self) -> None:
        """Take the part."""
        self.has_part = False
        self._size = 0
