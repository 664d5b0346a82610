"""Other programs in the same line: the official Go client, etcdctl, and etcd's own lock and election services.

    async with go_member(endpoint, "lock", name) as member:
        await member.holds()              waits until it has acquired the lock, or leads
        await member.let_go()             and has released it, or resigned

The programs are built from their Go modules, once, into the cache of the benchmarks; without Go a test is skipped.
"""

import asyncio
import fcntl
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import pytest

from benchmarks.environments import GoProgram, UnavailableError, default_cache

_SECONDS: Final = 120.0


def built(source: str) -> list[str]:
    """The command of a Go program of this repository; skips the test if it cannot be built."""
    cache = default_cache()
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "making").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes of a test run
        try:
            return GoProgram(source).prepare(cache)
        except UnavailableError as error:
            pytest.skip(f"no {source}: {error}")


class Member:
    """A process that stands in a line; it holds when it has printed a line that says so."""

    def __init__(self, child: asyncio.subprocess.Process, says: bytes, ends_by: bytes | None) -> None:
        self._child, self._says, self._ends_by = child, says, ends_by
        self.said: list[str] = []

    async def line(self) -> str:
        """The next line that it prints; empty at its end."""
        stdout = self._child.stdout
        assert stdout is not None
        async with asyncio.timeout(_SECONDS):
            text = (await stdout.readline()).decode().rstrip("\n")
        self.said.append(text)
        return text

    async def holds(self) -> str:
        """Wait until it holds. Returns what it says."""
        while True:
            text = await self.line()
            if self._says in text.encode():
                return text
            if not text:
                raise AssertionError(f"it has ended: {self.said}")

    async def let_go(self) -> None:
        """Make it release or resign, and wait for its end."""
        stdin = self._child.stdin
        assert stdin is not None
        if self._ends_by is None:
            self._child.terminate()
        else:
            stdin.write(self._ends_by)
        async with asyncio.timeout(_SECONDS):
            await self._child.wait()

    def kill(self) -> None:
        """Kill it: its key stays until its lease expires."""
        self._child.kill()


@asynccontextmanager
async def _member(command: Sequence[str], says: bytes, ends_by: bytes | None) -> AsyncIterator[Member]:
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    try:
        yield Member(child, says, ends_by)
    finally:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()


@asynccontextmanager
async def go_member(endpoint: str, kind: str, name: str, value: str = "", ttl: int = 10) -> AsyncIterator[Member]:
    """`Mutex` ("lock"), `RWMutex` ("read", "write") or `Election` ("election") of the official Go client."""
    command = [*await asyncio.to_thread(built, "benchmarks/go"), "-endpoints", endpoint, "-member", kind]
    async with _member([*command, "-name", name, "-value", value, "-ttl", f"{ttl}"], b'"holds"', b"\n") as member:
        yield member


@asynccontextmanager
async def golayers(do: str, endpoint: str, target: str, *options: str) -> AsyncIterator[Member]:
    """What the Go client has above the client, such as "register", "follow" or "enqueue"; see its source."""
    command = [*await asyncio.to_thread(built, "tests/support/golayers"), "-do", do, "-endpoint", endpoint]
    async with _member([*command, "-target", target, *options], b"", b"\n") as member:
        yield member


@asynccontextmanager
async def etcdctl(endpoint: str, *arguments: str, says: str) -> AsyncIterator[Member]:
    """A command of etcdctl that holds until it is terminated; it holds when it prints a line with `says`."""
    command = [*await asyncio.to_thread(built, "tests/support/etcdctl"), f"--endpoints={endpoint}", *arguments]
    async with _member(command, says.encode(), None) as member:
        yield member


def token_of(said: str) -> int:
    """The fencing token in what a Go member says."""
    return int(json.loads(said)["token"])
