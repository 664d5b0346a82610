"""A fake in a thread of its own, served over sockets, for applications that run in loops of their own."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from anyio.from_thread import BlockingPortal, start_blocking_portal

from etcd_aio.fake import FakeEtcd


class Served:
    """The fake.

    Attributes:
        fake: it belongs to its thread.
        endpoint: where it is served.
    """

    def __init__(self, fake: FakeEtcd, endpoint: str, portal: BlockingPortal) -> None:
        self.fake = fake
        self.endpoint = endpoint
        self.keys = fake.keys
        self._portal = portal

    def is_clean(self) -> bool:
        """Whether clients have left nothing."""
        leases = self._portal.call(lambda: self.fake.leases)
        return not leases and not self.fake.watchers and not any(member.connections for member in self.fake.members)


@asynccontextmanager
async def _serving() -> AsyncIterator[tuple[FakeEtcd, str]]:
    async with FakeEtcd() as fake, fake.serve() as endpoint:
        yield fake, endpoint


@contextmanager
def serving() -> Iterator[Served]:
    """Serve a fake in the block."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(_serving()) as (fake, endpoint):
        yield Served(fake, endpoint, portal)
