"""Databases of real servers, and damaged copies: the same status as that of etcdutl, in every format, or an error."""

import asyncio
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from etcd_aio import Client
from etcd_aio.errors import DatabaseFileError, DatabaseFileInUseError
from etcd_aio.offline import SnapshotStatus, snapshot_status
from etcd_aio.testing import EtcdNotFoundError, EtcdServer, find_etcd
from tests.support.bolt_files import BoltFile, database, key_value, revision
from tests.support.command_line import run
from tests.support.database_files import (
    MINORS,
    downgraded,
    etcdutl,
    files_of,
    flags_of_bump,
    many,
    restored,
    run_etcdutl,
)

# ruff: noqa: ASYNC240 - small files
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        etcdutl() is None, reason="there is no etcdutl on PATH, nor one that `nox -s etcdctl-suite` has built"
    ),
]


def needs(minor: str) -> None:
    try:
        find_etcd(minor)
    except EtcdNotFoundError:
        pytest.skip(f"there is no etcd {minor}: `nox -s servers` gets it")


def judged(path: Path) -> dict[str, object] | str:
    """What etcdutl says: the status, or the error."""
    found = run_etcdutl("snapshot", "status", path, "-w", "json")
    return json.loads(found.stdout) if found.returncode == 0 else found.stderr


def shown(found: SnapshotStatus) -> dict[str, object]:
    numbers = {"hash": found.hash, "revision": found.revision, "totalKey": found.total_keys}
    return {**numbers, "totalSize": found.total_size, "version": found.version}


async def same(path: Path) -> SnapshotStatus:
    found = await snapshot_status(path)
    assert shown(found) == judged(path), path.name
    return found


@pytest.mark.slow
@pytest.mark.parametrize("keys", [2000, pytest.param(100_000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("minor", MINORS)
async def test_every_state_of_a_database_has_the_status_that_etcdutl_has(minor: str, keys: int, tmp_path: Path) -> None:
    needs(minor)
    states: dict[str, SnapshotStatus] = {}
    last = None
    async for path in files_of(minor, tmp_path, keys):
        found = states[path.stem.removeprefix(f"{minor}-")] = await same(path)
        is_snapshot = path.stat().st_size % 512 == 32
        assert found.hash_matches is (True if is_snapshot else None)
        last = path if is_snapshot else last
    assert len(states) == 13
    assert states["empty"].total_keys == 0
    assert states["many-keys"].total_keys == keys + 1
    assert states["deletes"].total_keys < keys
    assert states["compacted"].total_keys == states["deletes"].total_keys
    assert len({found.hash for found in states.values()}) >= 9
    assert states["leases"].version == ("" if minor < "3.6" else f"{minor}.0")
    assert last is not None
    plain = restored(last, tmp_path / "restored")
    bumped = restored(last, tmp_path / "bumped", *flags_of_bump())
    assert (await same(bumped)).revision > (await same(plain)).revision + 900_000


@pytest.mark.slow
@pytest.mark.parametrize(("minor", "to"), [("3.6", "3.5"), ("3.7", "3.6")])
async def test_the_storage_version_after_a_downgrade(minor: str, to: str, tmp_path: Path) -> None:
    needs(minor)
    async with asyncio.timeout(120):
        path = await downgraded(minor, to, tmp_path)
    assert (await same(path)).version == ("" if to == "3.5" else f"{to}.0")


@pytest.fixture
async def snapshot(tmp_path: Path) -> Path:
    async with EtcdServer() as server, Client(server.endpoint) as client:
        await many(client, 500)
        await client.delete(prefix="many/0001")
        await client.put("large", b"x" * 100_000)
        await client.maintenance.save_snapshot(tmp_path / "snapshot.db")
    return tmp_path / "snapshot.db"


@pytest.mark.parametrize("word", ["simple", "fields", "json", "table", "protobuf"])
async def test_the_command_prints_what_etcdutl_prints(word: str, snapshot: Path) -> None:
    here = await run("snapshot", "status", f"{snapshot}", "-w", word)
    there = run_etcdutl("snapshot", "status", snapshot, "-w", word)
    assert (here.code, here.stdout.decode()) == (there.returncode, there.stdout)
    assert here.stderr == there.stderr


async def test_a_wrong_hash_at_the_end_is_warned_about(snapshot: Path) -> None:
    snapshot.write_bytes(snapshot.read_bytes()[:-1] + b"!")
    here = await run("snapshot", "status", f"{snapshot}")
    assert (here.code, here.stdout.decode()) == (0, run_etcdutl("snapshot", "status", snapshot).stdout)
    assert "does not match" in here.stderr
    refused = run_etcdutl("snapshot", "restore", snapshot, "--data-dir", snapshot.parent / "restored")
    assert refused.returncode


async def test_a_script_asks_for_the_hash_at_the_end(snapshot: Path) -> None:
    whole = snapshot.read_bytes()
    assert (await run("snapshot", "status", f"{snapshot}", "--verify")).code == 0
    for damaged, says in ((whole[:-1] + b"!", "does not match"), (whole[:-32], "no SHA-256")):
        snapshot.write_bytes(damaged)
        assert (await run("snapshot", "status", f"{snapshot}")).code == 0
        found = await run("snapshot", "status", f"{snapshot}", "--verify")
        assert (found.code, found.stderr.count("\n")) == (1, 1)
        assert says in found.stderr
        assert found.stdout  # the status, as without the flag


async def test_errors_of_the_command_have_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("no database" * 1000)
    for name, says in (
        ("empty", "is empty"),
        ("text", "no database of etcd"),
        ("", "a directory"),
        ("x", "No such file"),
    ):
        found = await run("snapshot", "status", f"{tmp_path / name}")
        assert (found.code, found.stdout) == (1, b"")
        assert says in found.stderr
        assert found.stderr.count("\n") == 1
    assert (await run("snapshot", "status")).code == 128


@pytest.mark.parametrize(("command", "code"), [("status", 1), ("save", 5)])
async def test_a_name_that_cannot_be_that_of_a_file(command: str, code: int, snapshot: Path) -> None:
    before = snapshot.read_bytes()
    for name, says in (("", "the filename is empty"), (f"{snapshot}/", f"{snapshot}/ is the name of a directory")):
        found = await run("snapshot", command, name)
        assert (found.code, found.stdout) == (code, b"")
        assert found.stderr == f"Error: {says}\n"
    assert snapshot.read_bytes() == before


async def test_the_database_of_a_running_member_is_in_use(tmp_path: Path) -> None:
    async with EtcdServer() as server:
        path = server.data_dir / "member" / "snap" / "db"
        with pytest.raises(DatabaseFileInUseError):
            await snapshot_status(path, lock_timeout=0.2)
        found = await run("snapshot", "status", f"{path}", "--command-timeout=200ms")
        assert found.code == 1
        assert "another process has the file locked" in found.stderr
        with pytest.raises(subprocess.TimeoutExpired):  # etcdutl waits
            await asyncio.to_thread(subprocess.run, [str(etcdutl()), "snapshot", "status", str(path)], timeout=1)


@pytest.mark.parametrize("page_size", [4096, 8192, 16384, 65536])
@pytest.mark.parametrize("free", [False, True])
async def test_made_files_are_read_as_etcdutl_reads_them(page_size: int, free: bool, tmp_path: Path) -> None:
    keys = {revision(number): key_value(b"k%d" % number, b"v" * number * 40) for number in range(2, 90)}
    path = tmp_path / "db"
    for most in (2, 20):
        file = BoltFile(page_size=page_size, most=most, is_inline=most == 20)
        root = file.tree({b"meta": {b"storageVersion": b"3.7.0"}, b"key": keys, b"b": {b"inner": {b"a": b"1"}}})
        path.write_bytes(file.written(root, free=[] if free else None))
        found = await same(path)
        assert found.total_keys == 88


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(4, 40))])
async def test_damaged_copies_give_an_error_or_what_etcdutl_gives(seed: int, snapshot: Path) -> None:
    rng = random.Random(seed)
    files = [snapshot.read_bytes(), database({b"key": {revision(2): key_value(b"k")}, b"x": {b"y": {b"z": b"1"}}})]
    results = 0
    for _ in range(40):
        data = bytearray(rng.choice(files))
        for _ in range(rng.choice((1, 1, 2, 4))):
            page = rng.randrange(len(data) // 4096)
            data[page * 4096 + rng.randrange(rng.choice((16, 120, 4096)))] ^= 1 << rng.randrange(8)
        path = snapshot.parent / "damaged.db"
        path.write_bytes(data)
        try:
            found = await snapshot_status(path)
        except DatabaseFileError:
            continue
        results += 1
        assert shown(found) == await asyncio.to_thread(judged, path)
    assert results


_MEASURE = """
import asyncio, resource, sys
from etcd_aio.offline import snapshot_status
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = asyncio.run(snapshot_status(sys.argv[1]))
print(found.total_keys, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
async def test_memory_is_that_of_the_keys_and_not_of_the_file(tmp_path: Path) -> None:
    """300 MiB in a few keys of any size: one value is in memory at a time."""
    size, count = 1 << 20, 300
    path = tmp_path / "db"
    path.write_bytes(
        database({b"key": {revision(number): key_value(b"k%d" % number, bytes(size)) for number in range(count)}})
    )
    assert path.stat().st_size > 300 << 20
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _MEASURE, path, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    stdout, _ = await child.communicate()
    keys, grown = map(int, stdout.split())
    assert keys == count
    assert grown * (1 if sys.platform == "darwin" else 1024) < 40 << 20
