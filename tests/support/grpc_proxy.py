"""etcd's grpc-proxy, a command of the etcd binary, which serves watches from its own watch on the server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from etcd_aio.testing import EtcdServer
from etcd_aio.testing.ports import free_ports
from etcd_aio.testing.process import ChildProcess


@asynccontextmanager
async def grpc_proxy(server: EtcdServer, directory: Path) -> AsyncIterator[str]:
    """A proxy in front of a server, for as long as the block runs; yields its endpoint."""
    (port,) = free_ports(1)
    command = [
        str(server.binary.path),
        "grpc-proxy",
        "start",
        f"--endpoints={server.endpoint.removeprefix('http://')}",
        f"--listen-addr=127.0.0.1:{port}",
        f"--advertise-client-url=127.0.0.1:{port}",
    ]
    log = directory / "grpc-proxy.log"
    process = ChildProcess.spawn(command, environment={}, log=log)
    try:
        async with asyncio.timeout(30):
            while not await _is_listening(port):  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill_now()


async def _is_listening(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
