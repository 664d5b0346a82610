"""Authentication, switched on by a server's HTTP gateway: the client has no calls for it.

Knows: the gateway. Never knows: the client.
"""

from etcd_aio.testing import EtcdServer
from etcd_aio.testing.probe import ask


async def enable_auth(server: EtcdServer, *, reader: str | None = None) -> None:
    """Root, and a user who may read `reader` and nothing else."""

    async def auth(path: str, **body: object) -> None:
        await ask(server.endpoint, f"/v3/auth/{path}", body=body, tls=server.probe_tls, timeout=5)

    await auth("user/add", name="root", password="c4n4ry")
    await auth("role/add", name="root")
    await auth("user/grant", user="root", role="root")
    if reader is not None:
        await auth("user/add", name="reader", options={"no_password": True})
        await auth("role/add", name="reads")
        # "aw==" is "k" as JSON spells bytes.
        await auth("role/grant", name="reads", perm={"permType": "READ", "key": reader})
        await auth("user/grant", user="reader", role="reads")
    await auth("enable")
