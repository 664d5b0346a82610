"""Endpoints on real servers: with Go's naming, and servers that are killed or told to end."""

import asyncio
import json
import signal
import sys
from contextlib import AsyncExitStack

import pytest

from etcd_aio import Client
from etcd_aio.services import Endpoints
from etcd_aio.testing import EtcdServer
from tests.examples.paths import ROOT
from tests.support.recipes import golayers
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

TTL = 2  # seconds: the least that etcd grants


async def until_addresses(service: Endpoints, *wanted: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while [endpoint.address for endpoint in service.endpoints] != list(wanted):
            await service.wait_change()


async def test_endpoints_of_go_and_what_go_thinks_of_an_op(
    shared_server: EtcdServer, client: Client, prefix: str
) -> None:
    """Go's `Manager` is read; both take an entry with `Op: 1` for one, and pass over what is no JSON."""
    target = f"{prefix}api"
    await client.put(f"{prefix}api2/z:1", '{"Op":0,"Addr":"z:1","Metadata":null}')
    async with client.resolve(target) as service:
        metadata = json.dumps({"zone": "a", "weight": 2})
        async with golayers(
            "register", shared_server.endpoint, target, "-address", "a:1", "-metadata", metadata
        ) as registered:
            await until_addresses(service, "a:1")
            assert service.endpoints[0].metadata == {"zone": "a", "weight": 2}
            await client.put(f"{target}/b:1", '{"Op":1,"Addr":"b:1","Metadata":[1,"x",{"y":null}]}')
            await client.put(f"{target}/c:1", "no JSON")
            await until_addresses(service, "a:1", "b:1")
            assert service.endpoints[1].metadata == [1, "x", {"y": None}]
            async with golayers("follow", shared_server.endpoint, target) as following:
                while True:
                    line = await following.line()
                    assert line, following.said
                    if "a:1" in line and "b:1" in line:
                        break
                assert "z:1" not in line
                assert "c:1" not in line
            await registered.let_go()
        await until_addresses(service, "b:1")


SERVE = """
import asyncio, signal, sys
from etcd_aio import Client

async def main():
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with Client(sys.argv[1]) as client, server:
        async with client.register(sys.argv[2], f"127.0.0.1:{port}", ttl=2, drain=600):
            print(port, flush=True)
            await stopped.wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_a_server_that_ends_is_out_of_the_list(
    shared_server: EtcdServer, client: Client, prefix: str, how: signal.Signals
) -> None:
    """Killed: by its TTL and a second, as etcd looks for expired leases twice a second. Told to: before its socket."""
    loop = asyncio.get_running_loop()
    target = f"{prefix}api"
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(client.resolve(target))
        command = [sys.executable, "-c", SERVE, shared_server.endpoint, target]
        server = await asyncio.create_subprocess_exec(
            *command, env={"PYTHONPATH": str(ROOT)}, stdout=asyncio.subprocess.PIPE
        )
        assert server.stdout is not None
        port = int(await server.stdout.readline())
        await until_addresses(service, f"127.0.0.1:{port}")
        server.send_signal(how)
        ended = loop.time()
        await until_addresses(service)
        if how is signal.SIGTERM:
            _, writer = await asyncio.open_connection("127.0.0.1", port)  # the socket is still there
            writer.close()
            server.kill()
        else:
            print(f"out of the list {loop.time() - ended:.2f} s after it was killed, with a TTL of {TTL} s")
            assert loop.time() - ended < 20  # on a quiet machine below 3
        await server.wait()
