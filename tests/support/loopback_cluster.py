"""Real members of one cluster, on one client port of several addresses of loopback, as pods of Kubernetes are."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from etcd_aio.testing import EtcdServer, ServerTLS
from etcd_aio.testing.options import Membership
from etcd_aio.testing.ports import free_ports
from tests.support.servers import QUICK_ELECTIONS


@asynccontextmanager
async def loopback_cluster(
    addresses: Sequence[str], tls: ServerTLS | None = None
) -> AsyncIterator[dict[str, EtcdServer]]:
    """Start a member at each address; skips the test where loopback has one address only.

    Args:
        addresses: such as 127.0.0.2.
        tls: that of the servers; None for plaintext.
    """
    try:
        client_port, peer_port = free_ports(2, addresses[0])
    except OSError:
        pytest.skip(f"this machine has no address {addresses[0]}")
    membership = Membership({f"m{address}": f"http://{address}:{peer_port}" for address in addresses})
    servers = {
        address: EtcdServer(
            f"m{address}",
            ports=(client_port, peer_port),
            membership=membership,
            host=address,
            tls=tls,
            **QUICK_ELECTIONS,
        )
        for address in addresses
    }
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(server) for server in servers.values()))
        yield servers
