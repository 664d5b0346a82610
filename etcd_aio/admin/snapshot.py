"""A member's whole database as a stream of chunks, verified at its end.

etcd sends the database in chunks, followed by its SHA-256. These 32 bytes belong to the snapshot: `etcdutl snapshot
restore` takes a file of all chunks. The databases of two members differ in their bytes, so a call may move to another
member only before the first chunk. The hash is computed on the way; a snapshot without the right hash at its end was
cut short or damaged.
"""

from typing import TYPE_CHECKING, Final, Self

from etcd_aio import methods, pb
from etcd_aio.base.call_options import RetryMode, Timeout
from etcd_aio.base.reprs import when_constructed
from etcd_aio.error_handler import StreamedReply
from etcd_aio.errors import ClientUsageError, EtcdError, SnapshotChecksumError

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

TRAILER_SIZE: Final = 32  # bytes: one SHA-256


class Snapshot:
    """The chunks of one snapshot: `async for chunk in client.maintenance.snapshot(): ...`.

    Nothing is sent before the iteration begins, and the member sends only a few MiB ahead. After the last chunk the
    snapshot is verified: the iteration ends if it is complete, and raises `SnapshotChecksumError` if it is not. Only
    one task may iterate at a time.

    A snapshot cannot be resumed: after an error, or a cancelled step, there are no more chunks. `await aclose()` ends
    it early, and so does dropping it.

    Attributes:
        received: the number of bytes received, including the hash at the end.
        size: the number of bytes in all; 0 before the first chunk.
        version: the storage version, which is the release to restore it with; empty before the first chunk, and from
            servers before etcd 3.6.
        sha256: the hash of the database, in hexadecimal; empty before the end.
    """

    def __init__(self, invoker: "Invoker", endpoint: str | None, timeout: Timeout, retry: RetryMode | None) -> None:
        self._invoker = invoker
        self._only = endpoint
        self._timeout: Timeout = timeout
        self._retry: RetryMode | None = retry
        self._reading = StreamedReply(methods.SNAPSHOT, resumes=False)
        self._check = TrailingHash()
        self._failure: EtcdError | None = None
        self._is_over = False
        self._is_reading = False
        self.received = 0
        self.size = 0
        self.version = ""
        self.sha256 = ""

    @when_constructed
    def __repr__(self) -> str:
        return f"<Snapshot {self.received} of {self.size} bytes from {self.endpoint or 'no member yet'}>"

    @property
    def endpoint(self) -> str:
        """The endpoint that sends the snapshot; empty before the first chunk."""
        return self._reading.endpoint

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._is_reading:
            raise ClientUsageError("two tasks read one snapshot: give each its own")
        if self._failure is not None:
            raise self._failure
        if self._is_over:
            raise StopAsyncIteration
        self._is_reading = True
        try:
            return await self._next()
        finally:
            self._is_reading = False

    async def aclose(self) -> None:
        """End the snapshot; the member stops sending. Safe to repeat."""
        self._is_over = True
        self._reading.cancel()

    async def _next(self) -> bytes:
        while True:
            chunk = await self._invoker.read(
                self._reading,
                pb.SnapshotRequest(),
                timeout=self._timeout,
                retry=self._retry,
                needs_leader=False,  # a member that has lost its leader still has its data
                endpoint=self._only,
            )
            if chunk is None:
                self._end()
                raise StopAsyncIteration
            self.received += len(chunk.blob)
            self.version = chunk.version or self.version
            if not self.size:
                self.size = len(chunk.blob) + chunk.remaining_bytes + TRAILER_SIZE
            if chunk.blob:
                self._check.feed(chunk.blob)
                return chunk.blob

    def _end(self) -> None:
        if self._is_over:  # closed by another task meanwhile
            return
        self._is_over = True
        if self._check.is_sound:
            self.sha256 = self._check.hexdigest
            return
        text = f"{SnapshotChecksumError.default_message} ({self.received} of {self.size} bytes came)"
        self._failure = SnapshotChecksumError(text)
        self._failure.endpoint = self.endpoint
        raise self._failure


class TrailingHash:
    """Verifies bytes that end with the SHA-256 of all bytes before it, in pieces of any size."""

    __slots__ = ("_hash", "_tail")

    def __init__(self) -> None:
        import hashlib  # with the first snapshot

        self._hash = hashlib.sha256()
        self._tail = b""  # may be the trailer

    def feed(self, piece: bytes) -> None:
        """Add the next piece."""
        if len(piece) < TRAILER_SIZE:
            piece = self._tail + piece
            self._hash.update(piece[:-TRAILER_SIZE])
        else:
            self._hash.update(self._tail)
            self._hash.update(memoryview(piece)[:-TRAILER_SIZE])
        self._tail = piece[-TRAILER_SIZE:]

    @property
    def hexdigest(self) -> str:
        """The hash of all but the last 32 bytes."""
        return self._hash.hexdigest()

    @property
    def is_sound(self) -> bool:
        """Whether the last 32 bytes are that hash."""
        return self._tail == self._hash.digest()
