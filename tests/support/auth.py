"""Users, roles and permissions on a real server. Every password contains the canary (see `canary`)."""

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from etcd_aio import Client
from etcd_aio.testing import EtcdServer

ROOT = ("root", "root-c4n4ry")
WEB = ("web", "web-c4n4ry")
QUICK_LOGINS = "--bcrypt-cost=4"  # the lowest cost: these passwords need not be safe


async def enable_auth(server: EtcdServer, *, reader: str | None = None, web: bool = False) -> None:
    """Add the user `root` and switch authentication on.

    Args:
        server: the server.
        reader: adds the user `reader`, without a password, who may read this key and nothing else.
        web: adds the user `web`, who may read and write the keys below `app/`.
    """
    # A context of its own: a client changes it to offer HTTP/2, and the kit's health checks speak HTTP/1.
    tls = server.settings.tls.probe_context() if server.settings.tls is not None else None
    async with Client(server.endpoint, tls=tls) as client:
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


def jwt_flag(folder: Path) -> str:
    """A server that signs its tokens, and keeps them for two seconds."""
    key = ec.generate_private_key(ec.SECP256R1())
    private, public = folder / "jwt.key", folder / "jwt.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return f"--auth-token=jwt,pub-key={public},priv-key={private},sign-method=ES256,ttl=2s"
