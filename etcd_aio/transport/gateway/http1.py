"""HTTP/1.1, the client's side: a request's bytes, and a strict parser of responses. Sans-IO and pure.

Where the end of a response is doubtful, it is refused: a byte too many would be taken for the next answer (RFC 9112,
11.2, response splitting).
"""

import re
from collections.abc import Callable, Iterable
from typing import Final

MOST_HEAD: Final = 65_536
"""Bytes of a status line with its headers, or of trailers. Go's servers and clients allow a megabyte, nginx 32 KiB."""

_MOST_SIZE_LINE: Final = 256  # bytes of a chunk's size with its extensions
_PIECE: Final = 8192  # bytes that are looked at once: each step copies what is left of them
_MOST_SMALL: Final = 1000  # chunks and interim responses beyond one for so many bytes of the body:
_BYTES_FOR_CHUNK: Final = 32  # each costs some microseconds, however little is in it
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?")
_FIELD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*")
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?")


class Http1Error(Exception):
    """The peer broke HTTP/1."""


def request_bytes(method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes | None = None) -> bytes:
    """A whole request.

    Args:
        method: GET or POST.
        path: the path, of printable ASCII without spaces.
        headers: in sending order; `content-length` is added.
        body: None for a request without one.
    """
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
    return head if body is None else head + body


class ResponseParser:
    """Reads one response, in pieces of any size.

    Args:
        on_body: called with every piece of the body.

    Attributes:
        status: the HTTP status; 0 until the head is read.
        headers: of the response, by lower-case name; repeated ones are joined by commas.
        is_complete: the response has ended.
        keeps_alive: the connection can be used again; only meaningful once it is complete.
        rest: bytes after the response.
    """

    __slots__ = (
        "_buffer", "_left", "_on_body", "_small_left", "_step",
        "headers", "is_complete", "keeps_alive", "rest", "status",
    )  # fmt: skip

    def __init__(self, on_body: Callable[[bytes], object]) -> None:
        self._on_body = on_body
        self._buffer = b""
        self._left = 0  # of the body, or of the chunk
        self._step: Callable[[], bool] = self._read_head
        self._small_left: float = _MOST_SMALL
        self.status = 0
        self.headers: dict[str, str] = {}
        self.is_complete = False
        self.keeps_alive = False
        self.rest = b""

    @property
    def has_begun(self) -> bool:
        """Whether the status was read."""
        return self.status > 0

    def feed(self, data: bytes) -> None:
        """Read the next bytes.

        Raises:
            Http1Error: they are not HTTP/1.
        """
        at = 0
        while at < len(data) and not self.is_complete:
            piece = data[at : at + _PIECE]
            at += _PIECE
            self._buffer = self._buffer + piece if self._buffer else piece
            while not self.is_complete and self._step():
                pass
        if self.is_complete:
            self.rest, self._buffer = self._buffer + data[at:], b""
            self.keeps_alive = self.keeps_alive and not self.rest

    def feed_end(self) -> bool:
        """The peer has closed the connection. Returns whether that is the end of the response."""
        if not self.is_complete and self._step == self._read_until_end:
            self.is_complete = True
        return self.is_complete

    # Each step returns whether it did something, so that another may follow.

    def _read_head(self) -> bool:
        head = self._block()
        if head is None:
            return False
        first, _, lines = head.partition(b"\r\n")
        found = _STATUS_LINE.fullmatch(first)
        if found is None:
            raise Http1Error("the peer's answer has no HTTP/1 status line")
        status = int(found[2])
        headers = _headers(lines)
        if status < 200 and status != 101:
            self._spend()
            return True  # an interim response, which means nothing
        self.status, self.headers = status, headers
        connection = {one.strip() for one in headers.get("connection", "").lower().split(",")}
        self.keeps_alive = "close" not in connection and (found[1] == b"1" or "keep-alive" in connection)
        self._begin_body()
        return True

    def _begin_body(self) -> None:
        encoding, length = self.headers.get("transfer-encoding"), self.headers.get("content-length")
        if self.status in (101, 204, 304):
            self.is_complete = True
        elif encoding is not None:
            if encoding.lower() != "chunked" or length is not None:
                raise Http1Error("the length of the peer's answer is ambiguous")
            self._step = self._read_size
        elif length is not None:
            sizes = {one.strip() for one in length.split(",")}
            size = sizes.pop()
            if sizes or not (size.isascii() and size.isdigit() and len(size) < 16):
                raise Http1Error("the length of the peer's answer is ambiguous")
            self._left = int(size)
            self._step = self._read_body
            self.is_complete = self._left == 0
        else:
            self.keeps_alive = False
            self._step = self._read_until_end

    def _read_body(self) -> bool:
        self.is_complete = self._take_body()
        return False

    def _read_until_end(self) -> bool:
        self._left = len(self._buffer)
        self._take_body()
        return False

    def _take_body(self) -> bool:
        """Hand over what has come; returns whether nothing is missing."""
        piece = self._buffer[: self._left] if len(self._buffer) > self._left else self._buffer
        self._buffer = self._buffer[len(piece) :]
        self._left -= len(piece)
        if piece:
            self._on_body(piece)
        return self._left == 0

    def _read_size(self) -> bool:
        line = self._line()
        if line is None:
            return False
        found = _CHUNK.fullmatch(line)
        if found is None:
            raise Http1Error("a chunk of the peer's answer has no size")
        self._left = int(found[1], 16)
        self._small_left += self._left / _BYTES_FOR_CHUNK
        self._spend()
        self._step = self._read_chunk if self._left else self._read_trailers
        return True

    def _read_chunk(self) -> bool:
        if not self._buffer or not self._take_body():
            return False
        self._step = self._read_end_of_chunk
        return True

    def _read_end_of_chunk(self) -> bool:
        if len(self._buffer) < 2:
            return False
        if self._buffer[:2] != b"\r\n":
            raise Http1Error("a chunk of the peer's answer does not end where it should")
        self._buffer = self._buffer[2:]
        self._step = self._read_size
        return True

    def _read_trailers(self) -> bool:
        if self._buffer[:2] == b"\r\n":
            self._buffer = self._buffer[2:]
        elif len(self._buffer) < 2:
            return False
        else:
            trailers = self._block()
            if trailers is None:
                return False
            for name, value in _headers(trailers).items():
                self.headers.setdefault(name, value)
        self.is_complete = True
        return False

    def _spend(self) -> None:
        self._small_left -= 1
        if self._small_left < 0:
            raise Http1Error("a flood of chunks without content")

    # Lines.

    def _block(self) -> bytes | None:
        """Everything before an empty line; None if that has not come yet."""
        end = self._buffer.find(b"\r\n\r\n")
        if end > MOST_HEAD or (end < 0 and len(self._buffer) > MOST_HEAD):
            raise Http1Error("the headers of the peer's answer are too long")
        if end < 0:
            if self._step == self._read_head and not b"HTTP/1.".startswith(self._buffer[:7]):
                raise Http1Error("the peer's answer has no HTTP/1 status line")
            return None
        block, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
        return block

    def _line(self) -> bytes | None:
        end = self._buffer.find(b"\r\n")
        if end > _MOST_SIZE_LINE or (end < 0 and len(self._buffer) > _MOST_SIZE_LINE):
            raise Http1Error("a chunk of the peer's answer has no size")
        if end < 0:
            return None
        line, self._buffer = self._buffer[:end], self._buffer[end + 2 :]
        return line


def _headers(lines: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines.split(b"\r\n") if lines else ():
        field = _FIELD.fullmatch(line)
        if field is None:
            raise Http1Error("a header of the peer's answer is malformed")
        name, value = field[1].decode("ascii").lower(), field[2].decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found
