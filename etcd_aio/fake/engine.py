"""FakeEngine: the fake as an engine of a client in the same process, without sockets.

Encoded messages travel both ways. A process that is frozen or gone, and a connection on which nothing is answered, are
imitated; HTTP/2 is not.
"""

import asyncio
import errno
from collections.abc import Callable

from etcd_aio.errors import ConnectError
from etcd_aio.fake.connection import FakeConnection
from etcd_aio.fake.link import Link
from etcd_aio.fake.server import FakeServer
from etcd_aio.transport import ConnectionOwner, Target, TransportOptions, check_document


class FakeEngine:
    """Opens connections to the members of a fake cluster. See `transport.Engine`.

    Args:
        link_to: returns the way to an authority, or to the path of a unix socket; None if there is none.
        server: answers.
        options: limits and times.
    """

    def __init__(self, link_to: Callable[[str], Link | None], server: FakeServer, options: TransportOptions) -> None:
        self._link_to = link_to
        self._server = server
        self._options = options

    async def connect(self, target: Target, owner: ConnectionOwner) -> "FakeConnection":
        link = await self._reach(target)
        return FakeConnection(link, self._server, self._options, owner)

    async def http_get(self, target: Target, path: str) -> bytes:
        link = await self._reach(target)
        document = self._server.document(link.host.node, path)
        check_document(path, document.status)
        return document.body

    async def _reach(self, target: Target) -> Link:
        await asyncio.sleep(0)
        place = target.path or target.dialled
        link = self._link_to(place)
        if link is None:
            raise OSError(errno.EHOSTUNREACH, f"the fake etcd has no member {place}")
        link.host.inbox.enter()
        try:
            async with asyncio.timeout(self._options.connect_timeout):
                await link.answering()
        except TimeoutError:
            raise ConnectError("the peer did not answer in time") from None
        if not link.is_up:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        return link
