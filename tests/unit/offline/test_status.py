"""offline/file.py, offline/status.py: the file is left as it is, locked, and read beside the loop."""

import asyncio
import fcntl
import hashlib
import os
import threading
import time
from pathlib import Path

import pytest

from etcd_aio.errors import DatabaseFileError, DatabaseFileInUseError
from etcd_aio.offline import SnapshotStatus, read_snapshot_status, snapshot_status, status
from etcd_aio.offline.file import LockedFile
from tests.support.bolt_files import database, key_value, revision

# ruff: noqa: ASYNC240 - small files
# In real time: threads have no other.
pytestmark = pytest.mark.anyio

DATA = database({b"key": {revision(number): key_value(b"k%d" % number, b"v" * 3000) for number in range(2, 60)}})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "db"
    made.write_bytes(DATA)
    return made


async def test_the_status_of_a_database_and_of_a_snapshot_of_it(path: Path) -> None:
    found = await snapshot_status(path)
    assert found == SnapshotStatus(found.hash, 59, 58, len(DATA), "3.7.0", None)
    path.write_bytes(DATA + hashlib.sha256(DATA).digest())
    assert (await snapshot_status(f"{path}")).hash_matches is True
    assert read_snapshot_status(f"{path}") == await snapshot_status(path)
    path.write_bytes(DATA + bytes(32))
    assert await snapshot_status(path) == SnapshotStatus(found.hash, 59, 58, len(DATA), "3.7.0", False)


async def test_pages_that_are_not_in_use_do_not_count(path: Path) -> None:
    path.write_bytes(DATA + bytes(16 * 4096))
    assert (await snapshot_status(path)).total_size == len(DATA)


async def test_the_file_is_not_changed_and_needs_no_right_to_write(path: Path) -> None:
    path.chmod(0o400)
    before = path.stat()
    await snapshot_status(path)
    after = path.stat()
    assert (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, before.st_size)
    assert path.read_bytes() == DATA


@pytest.mark.parametrize("kind", ["directory", "pipe", "device"])
async def test_what_is_no_file_is_told_as_such_at_once(kind: str, tmp_path: Path) -> None:
    path = tmp_path if kind == "directory" else tmp_path / "pipe" if kind == "pipe" else Path(os.devnull)
    if kind == "pipe":
        os.mkfifo(path)
    async with asyncio.timeout(60):
        with pytest.raises(DatabaseFileError, match="a directory" if kind == "directory" else "no regular file"):
            await snapshot_status(path)


async def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await snapshot_status(tmp_path / "db")


async def test_a_path_is_that_of_the_system(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await snapshot_status("")
    with pytest.raises(NotADirectoryError):
        await snapshot_status(f"{path}/")
    with pytest.raises(NotADirectoryError):
        read_snapshot_status(f"{path}/")


async def test_a_file_that_another_process_has_locked(path: Path) -> None:
    with path.open("r+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(DatabaseFileInUseError) as caught:
            await snapshot_status(path, lock_timeout=0.2)
        assert caught.value.retryable
        assert "Save a snapshot" in (DatabaseFileInUseError.__doc__ or "")
        waiting = asyncio.create_task(snapshot_status(path, lock_timeout=60))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        fcntl.flock(other, fcntl.LOCK_UN)
        assert (await waiting).total_keys == 58
        fcntl.flock(other, fcntl.LOCK_SH)  # another reader
        assert (await snapshot_status(path, lock_timeout=0)).total_keys == 58


def test_other_readers_may_have_it_open_and_a_writer_may_not(path: Path) -> None:
    with LockedFile(path, 0, lambda: None), path.open("r+b") as other:
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("change", ["grow", "shrink", "rewrite"])
def test_a_file_that_is_changed_meanwhile_gives_no_result(change: str, path: Path) -> None:
    def meanwhile() -> None:
        with path.open("r+b") as file:
            if change == "shrink":
                file.truncate(len(DATA) // 2)
            else:
                file.seek(0, os.SEEK_END if change == "grow" else os.SEEK_SET)
                file.write(DATA[:4096])
        os.utime(path, ns=(1, 1))

    with pytest.raises(DatabaseFileError, match="changed while it was read"):
        status.read_status(path, 0, meanwhile)


def test_a_read_that_fails_leaves_no_descriptor_open(path: Path) -> None:
    before = len([*Path("/proc/self/fd").iterdir()])
    for data in (b"", b"x" * 9000, DATA[:9000], DATA[:20_000]):
        path.write_bytes(data)
        with pytest.raises(DatabaseFileError):
            status.read_status(path, 0, lambda: None)
    with pytest.raises(DatabaseFileError):
        status.read_status(path.parent, 0, lambda: None)
    assert len([*Path("/proc/self/fd").iterdir()]) <= before  # those of other tests may be collected meanwhile


async def test_a_cancelled_read_ends_its_thread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, ended = threading.Event(), threading.Event()
    read_status = status.read_status

    def slow(path: Path, lock_timeout: float, go_on: object) -> SnapshotStatus:
        def step() -> None:
            began.set()
            time.sleep(0.01)
            go_on()  # type: ignore[operator]

        try:
            while True:
                read_status(path, lock_timeout, step)
        finally:
            ended.set()

    monkeypatch.setattr(status, "read_status", slow)
    reading = asyncio.create_task(snapshot_status(path))
    assert await asyncio.to_thread(began.wait, 60)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await asyncio.to_thread(ended.wait, 60)
