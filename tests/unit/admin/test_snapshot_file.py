"""admin/snapshot_file.py: saving a snapshot: all of it or nothing, whatever fails, and whenever it is cancelled."""

import asyncio
import errno
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from etcd_aio.admin import snapshot_file
from etcd_aio.admin.snapshot import Snapshot
from etcd_aio.admin.snapshot_file import SnapshotFile, save
from etcd_aio.base.call_options import UNSET
from etcd_aio.errors import ConnectionLostError, SnapshotChecksumError
from tests.support.calls import Calls, unknown
from tests.support.fake_engine import FakeStream
from tests.support.snapshots import messages, sends, trailer

# In real time: threads have no other.
pytestmark = pytest.mark.anyio

DATABASE = os.urandom(3 << 20)
WHOLE = messages(DATABASE, chunk=1 << 16)
CONTENT = DATABASE + trailer(DATABASE)


def left_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


async def begun(on_stream: Callable[[FakeStream], None]) -> tuple[Calls, Snapshot]:
    calls = Calls(members=1)
    calls["m1"].on_stream = on_stream
    return calls, Snapshot(calls.invoker, None, UNSET, None)


async def test_the_file_is_complete_and_private_and_the_only_one(tmp_path: Path) -> None:
    calls, snapshot = await begun(sends(*WHOLE))
    progress: list[tuple[int, int]] = []
    saved = await save(snapshot, tmp_path / "db", lambda done, size: progress.append((done, size)))
    assert (tmp_path / "db").read_bytes() == CONTENT
    assert stat.S_IMODE((tmp_path / "db").stat().st_mode) == 0o600
    assert left_in(tmp_path) == ["db"]
    assert (saved.size, saved.sha256) == (len(CONTENT), trailer(DATABASE).hex())
    assert (saved.endpoint, saved.version) == ("m1:2379", "3.7.0")
    assert progress == [(1 << 20, len(CONTENT)), (2 << 20, len(CONTENT)), (3 << 20, len(CONTENT)), (len(CONTENT),) * 2]
    await calls.aclose()


async def test_an_existing_file_is_replaced_only_by_a_complete_one(tmp_path: Path) -> None:
    path = tmp_path / "db"
    path.write_bytes(b"yesterday's")
    calls, snapshot = await begun(sends(*WHOLE[:-1]))
    with pytest.raises(SnapshotChecksumError):
        await save(snapshot, path)
    assert path.read_bytes() == b"yesterday's"
    assert left_in(tmp_path) == ["db"]
    calls["m1"].on_stream = sends(*WHOLE)
    await save(Snapshot(calls.invoker, None, UNSET, None), path)
    assert path.read_bytes() == CONTENT
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    await calls.aclose()


async def test_a_lost_connection_leaves_no_file(tmp_path: Path) -> None:
    calls, snapshot = await begun(sends(*WHOLE[:30], then=unknown()))
    with pytest.raises(ConnectionLostError):
        await save(snapshot, tmp_path / "db")
    assert not left_in(tmp_path)
    await calls.aclose()


async def test_nothing_is_requested_if_the_file_cannot_be_created(tmp_path: Path) -> None:
    calls, snapshot = await begun(sends(*WHOLE))
    with pytest.raises(FileNotFoundError):
        await save(snapshot, tmp_path / "no such directory" / "db")
    with pytest.raises(IsADirectoryError, match="is a directory"):
        await save(snapshot, tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        await save(snapshot, tmp_path / "file" / "db")
    assert not calls.engine.streams
    assert left_in(tmp_path) == ["file"]
    await calls.aclose()


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
async def test_a_full_disk_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    calls, snapshot = await begun(sends(*WHOLE))
    monkeypatch.setattr(Path if step == "replace" else os, step, fail)
    with pytest.raises(OSError, match="No space left") as caught:
        await save(snapshot, tmp_path / "db")
    assert caught.value.errno == errno.ENOSPC
    assert not left_in(tmp_path)
    assert calls["m1"].stream.is_over
    await calls.aclose()


async def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:300]))
    calls, snapshot = await begun(sends(*WHOLE[-4:-1], WHOLE[-1]))
    with pytest.raises(SnapshotChecksumError):  # a part of it is enough here
        await save(snapshot, tmp_path / "db")
    calls["m1"].on_stream = sends(*messages(DATABASE[:5500]))
    await save(Snapshot(calls.invoker, None, UNSET, None), tmp_path / "db")
    assert (tmp_path / "db").read_bytes() == DATABASE[:5500] + trailer(DATABASE[:5500])
    await calls.aclose()


async def test_an_exception_of_the_progress_function_ends_the_call(tmp_path: Path) -> None:
    calls, snapshot = await begun(sends(*WHOLE))

    def stop(done: int, size: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        await save(snapshot, tmp_path / "db", stop)
    assert not left_in(tmp_path)
    await calls.aclose()


class Gate:
    """Holds a step of the file until it is let through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()
        original = getattr(SnapshotFile, step)

        def held(file: SnapshotFile, *arguments: object) -> None:
            self.reached.set()
            assert self.opened.wait(3)
            original(file, *arguments)

        monkeypatch.setattr(SnapshotFile, step, held)

    async def wait(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, 3)


@pytest.mark.parametrize("by", ["task.cancel()", "an anyio scope"])
@pytest.mark.parametrize("step", ["open", "write", "sync"])
async def test_a_cancellation_during_a_step_in_a_thread_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, by: str
) -> None:
    gate = Gate(monkeypatch, step)
    calls, snapshot = await begun(sends(*WHOLE))
    scope = anyio.CancelScope()

    async def saving() -> None:
        with scope:
            await save(snapshot, tmp_path / "db")

    task = asyncio.create_task(saving())
    await gate.wait()
    if by == "task.cancel()":
        task.cancel()
    else:
        scope.cancel()
    await asyncio.sleep(0.05)
    gate.opened.set()
    (outcome,) = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(outcome, asyncio.CancelledError) is (by == "task.cancel()")
    assert not snapshot.sha256 or step == "sync"
    # A thread that nothing waits for may still be in its step.
    async with asyncio.timeout(5):
        while left_in(tmp_path):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    assert not left_in(tmp_path)
    await calls.aclose()


async def test_a_second_cancellation_leaves_no_file_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, snapshot = await begun(sends(*WHOLE[:20], hangs=True))
    task = asyncio.create_task(save(snapshot, tmp_path / "db"))
    async with asyncio.timeout(5):
        while not any((tmp_path / name).stat().st_size for name in left_in(tmp_path)):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.005)
    monkeypatch.setattr(snapshot_file, "run_sync", _cancelled_again)
    task.cancel()
    (outcome,) = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(outcome, asyncio.CancelledError)
    assert not left_in(tmp_path)
    assert calls["m1"].stream.is_cancelled
    await calls.aclose()


async def _cancelled_again(step: Callable[[], None]) -> None:
    raise asyncio.CancelledError


def test_a_late_step_of_a_discarded_file_does_nothing(tmp_path: Path) -> None:
    file = SnapshotFile(tmp_path / "db")
    file.discard()
    file.open()
    file.write([b"x"])
    file.sync()
    file.publish()
    assert not left_in(tmp_path)


def test_a_published_file_is_not_discarded(tmp_path: Path) -> None:
    file = SnapshotFile(tmp_path / "db")
    file.open()
    file.write([b"x", b"", b"y"])
    file.publish()
    for _ in range(2):
        file.discard()
    assert (tmp_path / "db").read_bytes() == b"xy"


@pytest.mark.parametrize("name", ["", ".", "/", ".."])
def test_a_path_that_names_no_file_is_an_os_error(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = SnapshotFile(Path(name))
    with pytest.raises(IsADirectoryError):
        file.open()
    file.discard()
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("length", [241, 255])
def test_a_name_may_be_as_long_as_the_system_allows(length: int, tmp_path: Path) -> None:
    file = SnapshotFile(tmp_path / ("n" * length))
    file.open()
    file.write([b"x"])
    file.publish()
    assert left_in(tmp_path) == ["n" * length]
