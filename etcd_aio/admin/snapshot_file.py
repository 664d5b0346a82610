"""Saves a snapshot as a file, which appears under its name only when it is complete.

The bytes go to a temporary file in the same directory, readable only by its owner. Once they are on disk, the file is
renamed, in one atomic step. All of this blocks, so it runs in threads, and a thread cannot be cancelled: it may still
write when the task that waits for it is gone. So every step holds a lock and checks whether the file was discarded
meanwhile: then it writes nothing and creates nothing.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final, TypeAlias

import anyio
from anyio.to_thread import run_sync

from etcd_aio.admin.snapshot import Snapshot
from etcd_aio.types import SavedSnapshot

OnProgress: TypeAlias = Callable[[int, int], object]
"""Called with the number of bytes of a snapshot that are written, and the number in all."""

_WRITE_SIZE: Final = 1 << 20  # bytes for one visit to a thread, which then costs less than writing them
_MODE: Final = 0o600  # the database holds every secret of the cluster


async def save(snapshot: Snapshot, path: Path, on_progress: OnProgress | None = None) -> SavedSnapshot:
    """Save a snapshot that was not begun. See `Maintenance.save_snapshot`."""
    file = SnapshotFile(path)
    try:
        await run_sync(file.open)
        await _fill(file, snapshot, on_progress)
        await run_sync(file.sync)
        await run_sync(file.publish)
    except BaseException:  # a cancellation too
        await snapshot.aclose()
        await _discard(file)
        raise
    return SavedSnapshot(snapshot.received, snapshot.sha256, snapshot.endpoint, snapshot.version)


async def _fill(file: "SnapshotFile", snapshot: Snapshot, on_progress: OnProgress | None) -> None:
    pieces: list[bytes] = []
    size = written = 0
    async for chunk in snapshot:
        pieces.append(chunk)
        size += len(chunk)
        if size >= _WRITE_SIZE:
            await run_sync(file.write, pieces)
            written += size
            pieces, size = [], 0
            if on_progress is not None:
                on_progress(written, snapshot.size)
    await run_sync(file.write, pieces)
    if on_progress is not None:
        on_progress(snapshot.received, snapshot.size)


async def _discard(file: "SnapshotFile") -> None:
    try:
        with anyio.CancelScope(shield=True):
            await run_sync(file.discard)
    finally:
        file.discard()  # cancelled once more: the thread may not have begun


class SnapshotFile:
    """A file that is being written. Every method blocks, may be called from any thread, and may raise OSError.

    Args:
        path: the final name; a file of that name is replaced.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # Not named after the path, which may be a directory, or have the longest possible name.
        self._part = path.parent / f".snapshot-{os.urandom(8).hex()}.part"
        self._lock = Lock()
        self._descriptor: int | None = None
        self._is_over = False

    def open(self) -> None:
        """Create the empty temporary file. If `path` is a directory, an error is raised now."""
        with self._lock:
            if self._is_over:
                return
            if self._path.is_dir():
                raise IsADirectoryError(f"a snapshot cannot be saved as {self._path}: it is a directory")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            self._descriptor = os.open(self._part, flags, _MODE)

    def write(self, pieces: list[bytes]) -> None:
        """Append the pieces."""
        with self._lock:
            if self._descriptor is None:
                return
            for piece in pieces:
                rest = memoryview(piece)
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]

    def sync(self) -> None:
        """Wait until all that was written is on disk."""
        with self._lock:
            if self._descriptor is not None:
                os.fsync(self._descriptor)

    def publish(self) -> None:
        """Close the file and rename it to its final name. After this, `discard` does nothing."""
        with self._lock:
            if self._descriptor is None:
                return
            self._close()
            self._part.replace(self._path)
            self._is_over = True
            # The name is on disk when its directory is; not every system lets a directory be opened for that.
            with suppress(OSError):
                directory = os.open(self._path.parent, os.O_RDONLY)
                try:
                    os.fsync(directory)
                finally:
                    os.close(directory)

    def discard(self) -> None:
        """Remove the file, unless it was published. Safe to repeat; waits for a step in progress."""
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
            with suppress(OSError):  # the file is discarded anyway
                self._close()
            self._part.unlink(missing_ok=True)

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
