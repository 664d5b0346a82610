"""A file that is read while it must not change: opened without waiting, locked as by bbolt, checked at the end."""

import hashlib
import os
import stat
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from etcd_aio.errors import DatabaseFileError, DatabaseFileInUseError

_SECTOR: Final = 512  # bytes; a database has a whole number of them
_HASH_SIZE: Final = 32  # bytes: one SHA-256
_PIECE: Final = 1 << 20
_LOCK_POLL: Final = 0.05  # seconds


class LockedFile:
    """A context manager that has the file open, with a shared lock. Everything blocks.

    Args:
        path: the file.
        lock_timeout: seconds to wait for a process that has it locked; None for no limit.
        go_on: is called while it waits, and may raise an exception to end that.

    Attributes:
        size: its size in bytes.

    Raises:
        DatabaseFileInUseError: it was locked all the time.
        DatabaseFileError: it is no regular file; at the end: it was changed.
        OSError: it cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], lock_timeout: float | None, go_on: Callable[[], None]) -> None:
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # a pipe would wait
        self._descriptor = os.open(path, flags)
        try:
            state = os.fstat(self._descriptor)
            if not stat.S_ISREG(state.st_mode):
                what = "a directory" if stat.S_ISDIR(state.st_mode) else "no regular file"
                raise DatabaseFileError(f"{path} is {what}, and not a database of etcd")
            _lock(self._descriptor, lock_timeout, go_on)
            self._state = _state(self._descriptor)
        except BaseException:  # also what `go_on` raises: the descriptor has no other owner yet
            os.close(self._descriptor)
            raise
        self.size = self._state[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            changed = self._state != _state(self._descriptor)
        finally:
            os.close(self._descriptor)
        if changed and (kind is None or issubclass(kind, DatabaseFileError)):
            raise DatabaseFileError("the file was changed while it was read")

    def read(self, offset: int, count: int) -> bytes:
        """Read so many bytes.

        Raises:
            DatabaseFileError: the file ends before.
        """
        data = self._some(offset, count)
        while len(data) < count:
            more = self._some(offset + len(data), count - len(data))
            if not more:
                raise DatabaseFileError(f"the file is cut short: it ends at {offset + len(data)} bytes")
            data += more
        return data

    def hash_matches(self, go_on: Callable[[], None]) -> bool | None:
        """Whether the SHA-256 at the end is that of all before it; None if the size says that there is none."""
        if self.size % _SECTOR != _HASH_SIZE:
            return None
        found = hashlib.sha256()
        end = self.size - _HASH_SIZE
        for start in range(0, end, _PIECE):
            go_on()
            found.update(self.read(start, min(_PIECE, end - start)))
        return self.read(end, _HASH_SIZE) == found.digest()

    def _some(self, offset: int, count: int) -> bytes:
        if sys.platform != "win32":
            return os.pread(self._descriptor, count, offset)
        os.lseek(self._descriptor, offset, os.SEEK_SET)
        return os.read(self._descriptor, count)


def _state(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_size, found.st_mtime_ns


def _lock(descriptor: int, timeout: float | None, go_on: Callable[[], None]) -> None:
    """Lock the file as a reader; where the system has no such locks, it is checked at the end only."""
    if sys.platform == "win32":
        return
    import fcntl

    until = None if timeout is None else time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            if until is not None and time.monotonic() >= until:
                raise DatabaseFileInUseError from None
        except OSError:  # file systems without locks
            return
        else:
            return
        go_on()
        time.sleep(_LOCK_POLL)
