"""Databases that a real etcd writes: snapshots in many states, and what a data directory has, also after a kill."""

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from benchmarks.environments import default_cache
from etcd_aio import Client, op
from etcd_aio.testing import EtcdServer

MINORS: Final = ("3.4", "3.5", "3.6", "3.7")
PASSWORD: Final = "secret"
_BATCH: Final = 100
_SECONDS: Final = 120


@cache
def etcdutl() -> Path | None:
    """That on PATH, or the newest that `nox -s etcdctl-suite` has built; None if there is none.

    Before 3.6 etcdutl counted the entries of all buckets as keys, so an older one cannot be compared with.
    """
    built = sorted((default_cache().parent / "etcdctl-suite").glob("3.[67].*/etcdctl/etcdutl"))
    named = [Path(found) for found in (shutil.which("etcdutl"), os.environ.get("ETCDUTL")) if found]
    return next(filter(_counts_keys, named + built[::-1]), None)


def _counts_keys(tool: Path) -> bool:
    shown = subprocess.run([tool, "version"], capture_output=True, text=True, timeout=_SECONDS, check=False).stdout
    found = re.match(r"etcdutl version: 3\.(\d+)\.", shown)
    return found is not None and int(found[1]) >= 6


def run_etcdutl(*words: str | Path) -> subprocess.CompletedProcess[str]:
    tool = etcdutl()
    assert tool is not None
    return subprocess.run([tool, *words], capture_output=True, text=True, timeout=_SECONDS, check=False)


async def many(client: Client, count: int, prefix: str = "many/") -> None:
    """Put so many keys, a hundred in a transaction."""
    for first in range(0, count, _BATCH):
        names = range(first, min(first + _BATCH, count))
        puts = [op.put(f"{prefix}{number:06}", f"value {number}" * 3) for number in names]
        await client.do(op.txn(then=puts))


async def files_of(minor: str, directory: Path, keys: int) -> AsyncIterator[Path]:
    """Files of one release, one for each state. The server is a cluster of one."""
    settings = {"version": minor, "directory": directory / f"member-{minor}"}
    async with EtcdServer(**settings) as server, Client(server.endpoint) as client:  # type: ignore[arg-type]

        async def saved(state: str, client: Client = client) -> Path:
            path = directory / f"{minor}-{state}.db"
            await client.maintenance.save_snapshot(path)
            return path

        yield await saved("empty")
        await client.put("one", "1")
        yield await saved("one-key")
        await many(client, keys)
        yield await saved("many-keys")
        for number in range(0, keys, 3):
            await client.delete(prefix=f"many/{number:06}"[:-1])
            if number > keys // 20:
                break
        yield await saved("deletes")
        revision = (await client.put("one", "2")).header.revision
        await client.compact(revision - 5, physical=True)
        yield await saved("compacted")
        await client.maintenance.defragment(server.endpoint)
        yield await saved("defragmented")
        for number in range(5):
            lease = await client.leases.grant(600)
            await client.put(f"leased/{number}", "x", lease=lease.id)
        yield await saved("leases")
        for number in range(3):
            await client.put(f"big/{number}", os.urandom(1_000_000))
        await client.put("x" * 2000, b"")
        yield await saved("large-values")
        await client.delete(prefix="big/")
        yield await saved("large-values-deleted")
        await client.auth.user_add("root", PASSWORD)
        await client.auth.role_add("root")
        await client.auth.role_add("reader")
        await client.auth.role_grant_permission("reader", permission="read", prefix="many/")
        await client.auth.user_grant_role("root", "root")
        yield await saved("users")
        await client.auth.enable()
        async with Client(server.endpoint, auth=("root", PASSWORD), allow_insecure_auth=True) as root:
            yield await saved("auth", root)
            await root.auth.disable()
        await server.terminate()
        stopped = directory / f"{minor}-data-directory.db"
        shutil.copy(server.data_dir / "member" / "snap" / "db", stopped)
        yield stopped
        await server.restart()
        await many(client, 300, "later/")
        await server.kill()
        killed = directory / f"{minor}-killed.db"
        shutil.copy(server.data_dir / "member" / "snap" / "db", killed)
        yield killed


def restored(snapshot: Path, directory: Path, *flags: str) -> Path:
    """The database of a data directory that etcdutl makes of a snapshot."""
    found = run_etcdutl("snapshot", "restore", snapshot, "--data-dir", directory, *flags)
    assert found.returncode == 0, found.stderr
    return directory / "member" / "snap" / "db"


async def downgraded(minor: str, to: str, directory: Path) -> Path:
    """A snapshot after a downgrade to the release before, which then runs."""
    folder = directory / f"member-{minor}-{to}"
    async with EtcdServer(version=minor, directory=folder) as server, Client(server.endpoint) as client:
        await many(client, 500)
        await client.maintenance.downgrade("enable", f"{to}.0")
        done = ("", f"{to}.0")
        while (await client.maintenance.status(server.endpoint)).storage_version not in done:  # noqa: ASYNC110 - polled
            await asyncio.sleep(0.1)
        path = directory / f"{minor}-downgraded-{to}.db"
        await client.maintenance.save_snapshot(path)
        return path


def flags_of_bump() -> Sequence[str]:
    return ("--bump-revision", "1000000", "--mark-compacted")
