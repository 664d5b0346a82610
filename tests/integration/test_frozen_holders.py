"""A process that holds locks is stopped for three times their TTL, and others hold them meanwhile."""

import asyncio
import json
import signal
import sys
from contextlib import AsyncExitStack

import pytest

from etcd_aio import Client
from etcd_aio.testing import EtcdServer
from tests.support.holders import HOLDERS, TTL
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.slow, pytest.mark.nightly]


async def test_a_stopped_process_finds_all_its_locks_lost_at_the_first_look() -> None:
    """Its bodies are cancelled, and no fenced write is applied: of all holders."""
    async with EtcdServer() as server, Client(server.endpoint) as client, AsyncExitStack() as stack:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.holders", server.endpoint), stdout=asyncio.subprocess.PIPE
        )
        assert child.stdout is not None
        try:
            assert await asyncio.wait_for(child.stdout.readline(), PATIENCE) == b"held\n"
            child.send_signal(signal.SIGSTOP)
            stopped = asyncio.create_task(asyncio.sleep(3 * TTL))
            for number in range(HOLDERS):
                lock = client.lock(f"lock/{number}", ttl=10, timeout=PATIENCE)
                await stack.enter_async_context(lock)
                await lock.fenced.put(f"data/{number}", "new")
            await stopped
            child.send_signal(signal.SIGCONT)
            said, _ = await asyncio.wait_for(child.communicate(), PATIENCE)
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        found = [json.loads(line) for line in said.splitlines()]
        expected = {"is_lost": True, "fenced": "refused", "ended": "cancelled", "raised": "LockLostError"}
        assert found == [expected] * HOLDERS
        data = await client.range(prefix="data/")
        assert [(kv.text(), kv.version) for kv in data] == [("new", 1)] * HOLDERS
