"""Authentication on a real server: who there is, and what they may do.

Knows: the client's own calls for it. Never knows: what is tested. Every secret holds the word that must be in no log.
"""

from etcd_aio import Client
from etcd_aio.testing import EtcdServer

ROOT = ("root", "root-c4n4ry")
WEB = ("web", "web-c4n4ry")
QUICK_LOGINS = "--bcrypt-cost=4"  # of a server whose passwords need not be safe


async def enable_auth(server: EtcdServer, *, reader: str | None = None, web: bool = False) -> None:
    """Let in nobody but root and, if wanted, others.

    Args:
        server: where.
        reader: what the user `reader`, who has no password, may read and nothing else.
        web: add the user `web`, who may read and write whatever begins with `app/`.
    """
    async with Client(server.endpoint, tls=server.probe_tls) as client:
        auth = client.auth
        await auth.user_add(*ROOT)
        await auth.role_add("root")
        await auth.user_grant_role("root", "root")
        if reader is not None:
            await auth.user_add("reader")
            await auth.role_add("reads")
            await auth.role_grant_permission("reads", reader, permission="read")
            await auth.user_grant_role("reader", "reads")
        if web:
            await auth.user_add(*WEB)
            await auth.role_add("app")
            await auth.role_grant_permission("app", prefix="app/", permission="readwrite")
            await auth.user_grant_role("web", "app")
        await auth.enable()
