"""Pieces: how a large message arrives, as in HTTP/2."""

from collections.abc import Iterator
from typing import Final

PIECE: Final = 2**14
"""Bytes; a message of more arrives in pieces."""


def pieces_of(message: bytes) -> Iterator[bytes]:
    """The pieces of a message."""
    for start in range(0, len(message), PIECE):
        yield message[start : start + PIECE]
