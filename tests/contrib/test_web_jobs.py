"""contrib/web/jobs.py: one leader-only task runs, while leaders of two hosts are killed, stopped and cut off."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from etcd_aio.testing import EtcdServer, FaultProxy
from tests.examples.paths import ROOT
from tests.support.until import PATIENCE, until

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

WORKERS = 4  # of each host
TTL = 2


@dataclass(frozen=True)
class Stamp:
    at: float
    pid: int
    token: int


class Host:
    """Workers that reach etcd through one proxy."""

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        self.workers: dict[int, asyncio.subprocess.Process] = {}


def stamps(path: Path) -> list[Stamp]:
    if not path.exists():
        return []
    lines = path.read_text().splitlines()
    return [Stamp(float(at), int(pid), int(token)) for at, pid, token in map(str.split, lines)]


@asynccontextmanager
async def hosts(path: Path) -> AsyncIterator[list[Host]]:
    async with EtcdServer() as server, AsyncExitStack() as stack:
        made = [Host(await stack.enter_async_context(FaultProxy(server.endpoint))) for _ in range(2)]
        try:
            for host in made:
                for _ in range(WORKERS):
                    process = await asyncio.create_subprocess_exec(
                        *(sys.executable, "-W", "error", "-m", "tests.contrib.web_worker"),
                        *(host.proxy.endpoint, str(path), str(TTL)),
                        cwd=ROOT,
                        stdout=asyncio.subprocess.PIPE,
                    )
                    host.workers[process.pid] = process
            for host in made:
                for process in host.workers.values():
                    assert process.stdout is not None
                    async with asyncio.timeout(PATIENCE):
                        assert await process.stdout.readline() == b"stands\n"
            yield made
        finally:
            for host in made:
                for process in host.workers.values():
                    if process.returncode is None:
                        process.kill()
                    await process.wait()


async def test_one_worker_of_all_hosts_runs_it(tmp_path: Path) -> None:
    path = tmp_path / "stamps"

    async def next_leader(*before: int) -> Stamp:
        await until(lambda: bool(found := stamps(path)) and found[-1].pid not in before)
        return stamps(path)[-1]

    async with hosts(path) as made:
        by_pid = {pid: (host, process) for host in made for pid, process in host.workers.items()}
        first = await next_leader()

        _, process = by_pid[first.pid]
        process.kill()  # it cannot say goodbye: its lease ends
        await process.wait()
        second = await next_leader(first.pid)

        os.kill(second.pid, signal.SIGSTOP)  # it goes on when another one leads
        third = await next_leader(first.pid, second.pid)
        os.kill(second.pid, signal.SIGCONT)
        count = len(stamps(path))
        await until(lambda: len(stamps(path)) > count + 20)

        cut, _ = by_pid[third.pid]  # the host of the leader is cut off
        cut.proxy.black_hole()
        fourth = await next_leader(*cut.workers)
        assert by_pid[fourth.pid][0] is not cut
        cut.proxy.heal()

        leader = stamps(path)[-1]  # a shutdown hands over
        _, process = by_pid[leader.pid]
        process.terminate()
        async with asyncio.timeout(PATIENCE):
            assert await process.wait() == 0
        await next_leader(leader.pid)

        for _, process in by_pid.values():
            if process.returncode is None:
                process.terminate()
        for pid, (_, process) in by_pid.items():
            async with asyncio.timeout(PATIENCE):
                assert await process.wait() == (0 if pid != first.pid else -signal.SIGKILL)

    found = sorted(stamps(path), key=lambda stamp: stamp.at)
    tokens = [stamp.token for stamp in found]
    assert tokens == sorted(tokens)  # no earlier leader ran after it began
    assert len({(stamp.pid, stamp.token) for stamp in found}) == len(set(tokens)) >= 5
