"""Door A: the fake behind the interface of an engine, without sockets.

Encoded messages travel both ways. What a process does that is frozen or gone, and what a connection is on which nothing
is answered, is imitated; HTTP/2 is not.
"""

import asyncio
import errno
from collections.abc import Mapping

from etcd_aio.errors import ConnectError
from etcd_aio.fake.connection import FakeConnection
from etcd_aio.fake.host import Host
from etcd_aio.fake.server import Server
from etcd_aio.transport import ConnectionOwner, Target, TransportOptions


class FakeEngine:
    """Opens connections to the hosts of a fake cluster. See `transport.Engine`.

    Args:
        hosts: the hosts, by authority, or by the path of a unix socket.
        server: answers.
        options: limits and times.
    """

    def __init__(self, hosts: Mapping[str, Host], server: Server, options: TransportOptions) -> None:
        self._hosts = hosts
        self._server = server
        self._options = options

    async def connect(self, target: Target, owner: ConnectionOwner) -> "FakeConnection":
        host = await self._reach(target)
        return FakeConnection(host, self._server, self._options, owner)

    async def http_get(self, target: Target, path: str) -> bytes:
        host = await self._reach(target)
        document = self._server.document(host.node, path)
        if document.status != 200:
            raise ConnectError(f"the peer does not serve {path}: HTTP status {document.status}")
        return document.body

    async def _reach(self, target: Target) -> Host:
        await asyncio.sleep(0)
        host = self._hosts.get(target.path or target.authority)
        if host is None:
            raise OSError(errno.EHOSTUNREACH, f"the fake etcd has no member {target.path or target.authority}")
        try:
            async with asyncio.timeout(self._options.connect_timeout):
                await host.running()
        except TimeoutError:
            raise ConnectError("the peer did not answer in time") from None
        if not host.is_up:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        return host
