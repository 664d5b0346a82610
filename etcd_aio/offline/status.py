"""Reads the status of a snapshot, or of the database of a data directory, from the file: no server is asked."""

import os
from collections.abc import Callable
from threading import Event as Flag

from anyio.to_thread import run_sync

from etcd_aio.offline.contents import contents_of
from etcd_aio.offline.file import LockedFile
from etcd_aio.offline.pages import DatabaseFile
from etcd_aio.types import SnapshotStatus


async def snapshot_status(path: str | os.PathLike[str], *, lock_timeout: float | None = 5.0) -> SnapshotStatus:
    """Read the status of a snapshot, or of the database of a data directory (`member/snap/db`).

    The file is read page by page in a thread, and checked as `etcdutl snapshot status` checks it. It is not changed.

    Args:
        path: the file.
        lock_timeout: seconds to wait for a process that has the file locked, as a running etcd has its database. None
            waits for as long as it takes, as etcdutl does.

    Raises:
        DatabaseFileInUseError: it was locked all the time.
        DatabaseFileError: it is no database of etcd, is damaged, or was changed meanwhile.
        OSError: it cannot be read.
    """
    cancelled = Flag()

    def go_on() -> None:
        if cancelled.is_set():
            raise _CancelledInThreadError

    try:
        return await run_sync(read_status, path, lock_timeout, go_on, abandon_on_cancel=True)
    finally:
        cancelled.set()  # the thread ends within a page


def read_snapshot_status(path: str | os.PathLike[str], *, lock_timeout: float | None = 5.0) -> SnapshotStatus:
    """Read the status of a snapshot, for code that blocks: see `snapshot_status`."""
    return read_status(path, lock_timeout, lambda: None)


def read_status(path: str | os.PathLike[str], lock_timeout: float | None, go_on: Callable[[], None]) -> SnapshotStatus:
    """Read the status while the caller waits; `go_on` is called now and then, and may raise an exception to end it."""
    with LockedFile(path, lock_timeout, go_on) as file:
        database = DatabaseFile(file.read, file.size)
        contents = contents_of(database, go_on)
        matches = file.hash_matches(go_on)
    size = database.meta.pages * database.meta.page_size
    return SnapshotStatus(contents.hash, contents.revision, contents.total_keys, size, contents.version, matches)


class _CancelledInThreadError(Exception):
    """The task that waited for the thread is gone. Not seen by users."""
