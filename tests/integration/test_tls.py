"""TLS with real servers: the whole API through it, client certificates and who they stand for, refusals, rotation."""

import asyncio
import hashlib
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme

from etcd_aio import TLS, Client, NoAvailableEndpointsError
from etcd_aio.errors import PermissionDeniedError, TLSError
from etcd_aio.testing import EtcdServer, ServerTLS
from tests.support.auth import enable_auth
from tests.support.canary import secret
from tests.support.certificates import write_ca, write_leaf

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca(authority: trustme.CA, tmp_path: Path) -> Path:
    return write_ca(authority, tmp_path / "ca.pem")


@pytest.fixture
def own(authority: trustme.CA, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """A client's certificate and key, as arguments for `TLS`."""

    def make(name: str, issuer: trustme.CA = authority, password: str | None = None, **options: Any) -> dict[str, Any]:
        leaf = issuer.issue_cert(f"{name}@example.org", common_name=name, **options)
        return write_leaf(leaf, tmp_path, name, password=password)

    return make


async def dialled(client: Client, number: int) -> None:
    """Wait until an endpoint was dialled for the first time, with whatever result."""
    async with asyncio.timeout(10):
        while (one := client.statistics()[number]).connects == 0 and one.last_error is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def server_tls(authority: trustme.CA, folder: Path, client_ca: Path | None = None) -> ServerTLS:
    files = write_leaf(authority.issue_cert("127.0.0.1", "localhost"), folder, "server")
    return ServerTLS(files["cert"], files["key"], client_ca)


@pytest.mark.both_engines
@pytest.mark.usefixtures("each_engine")
async def test_the_whole_api_with_a_client_certificate_whose_key_has_a_password(
    authority: trustme.CA, ca: Path, own: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    password = secret("key password")
    tls = TLS(ca=ca, key_password=password, **own("client", password=password))
    async with (
        EtcdServer(tls=server_tls(authority, tmp_path, ca)) as server,
        Client(server.endpoint, tls=tls) as client,
    ):
        async with client.watch("k") as watcher, client.lease(10) as lease:
            await client.put("k", "v", lease=lease)
            async for event in watcher:
                assert event.value == b"v"
                break
        await client.put("k", "v")
        assert [kv.key async for kv in client.scan(prefix="k")] == [b"k"]
        metrics = await client.maintenance.metrics(client.endpoints[0])
        assert "etcd_disk_wal_fsync_duration_seconds_bucket" in metrics
        members = await client.cluster.members()
        assert [member.client_urls for member in members] == [(server.endpoint,)]
        status = await client.maintenance.status(server.endpoint)
        assert status.version == server.version
        assert not await client.maintenance.alarms()
        await client.maintenance.save_snapshot(tmp_path / "snapshot.db")
        content = (tmp_path / "snapshot.db").read_bytes()
        assert hashlib.sha256(content[:-32]).digest() == content[-32:]


@pytest.mark.http2_only
@pytest.mark.usefixtures("each_engine")
async def test_the_common_name_of_a_certificate_is_the_user_without_a_token(
    authority: trustme.CA, ca: Path, own: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    async with EtcdServer(tls=server_tls(authority, tmp_path, ca)) as server:
        await enable_auth(server, reader="k")  # "k"
        async with (
            Client(server.endpoint, tls=TLS(ca=ca, **own("root"))) as root,
            Client(server.endpoint, tls=TLS(ca=ca, **own("reader"))) as reader,
            root.lease(10) as lease,
            reader.watch("k") as watcher,
        ):
            await root.put("k", "v", lease=lease)
            async for event in watcher:
                assert event.value == b"v"
                break
            assert (await root.leases.keep_alive_once(lease)).ttl > 0
            kv = await reader.get("k")
            assert kv is not None
            assert kv.text() == "v"
            with pytest.raises(PermissionDeniedError):
                await reader.put("k", "w")
            with pytest.raises(PermissionDeniedError):
                async with reader.watch("other"):
                    pass


@pytest.mark.http2_only
@pytest.mark.both_engines
@pytest.mark.usefixtures("each_engine")
async def test_a_server_that_refuses_us_and_one_that_we_refuse_are_told_apart(
    authority: trustme.CA, ca: Path, own: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    other = trustme.CA()
    yesterday = datetime.now(UTC) - timedelta(days=1)
    (tmp_path / "other").mkdir()
    other_ca = write_ca(other, tmp_path / "other" / "ca.pem")
    cases: list[tuple[TLS, type[Exception], str]] = [
        (TLS(ca=ca), TLSError, "client certificate"),
        (TLS(ca=ca, **own("stranger", other)), TLSError, "client certificate"),
        (TLS(ca=ca, **own("late", not_after=yesterday)), TLSError, "client certificate"),
        (TLS(ca=other_ca, **own("client")), ssl.SSLCertVerificationError, "unable to get local issuer"),
        (TLS(ca=ca, server_name="m1.test", **own("client")), ssl.SSLCertVerificationError, "m1.test"),
    ]
    async with EtcdServer(tls=server_tls(authority, tmp_path, ca)) as server:
        for tls, kind, text in cases:
            async with Client(server.endpoint, tls=tls) as client:
                await dialled(client, 0)
                with pytest.raises(NoAvailableEndpointsError, match=text) as caught:
                    await client.put("k", "v", timeout=0.1)
                assert type(caught.value.errors[server.endpoint]) is kind
                assert not caught.value.maybe_applied
        plain = server.endpoint.replace("https", "http")
        async with Client(plain, tls=TLS(ca=ca, **own("client"))) as client:
            await dialled(client, 0)
            with pytest.raises(NoAvailableEndpointsError, match=r"in TLS|did not begin HTTP/2"):
                await client.get("k", timeout=0.1)


@pytest.mark.usefixtures("each_engine")
async def test_a_plaintext_server_gets_nothing_from_a_tls_endpoint(shared_server: EtcdServer, ca: Path) -> None:
    async with Client(shared_server.endpoint.replace("http", "https"), tls=TLS(ca=ca)) as client:
        await dialled(client, 0)
        with pytest.raises(NoAvailableEndpointsError, match=r"does not speak TLS|it does not serve TLS"):
            await client.get("k", timeout=0.1)


async def test_rotation_with_a_watch_open(authority: trustme.CA, ca: Path, tmp_path: Path) -> None:
    """The servers' authority changes: etcd shows a new certificate to new connections, which trust it."""
    async with (
        EtcdServer(tls=server_tls(authority, tmp_path)) as server,
        Client(server.endpoint, tls=TLS(ca=ca)) as client,
        client.watch("k") as watcher,
    ):
        new = trustme.CA()
        server_tls(new, tmp_path)
        write_ca(new, ca)
        again = server.endpoint.replace("127.0.0.1", "localhost")
        client.set_endpoints([server.endpoint, again])
        await dialled(client, 1)
        await client.put("k", "v")
        async for event in watcher:
            assert event.value == b"v"
            break
        assert [one.connects for one in client.statistics()] == [1, 1], "the connection that was open stays open"
