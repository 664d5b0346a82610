"""Endpoints that are not what the engine needs, on real servers and proxies: the error names the way out."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from etcd_aio import TLS, Client
from etcd_aio.errors import (
    EtcdError,
    LeaseExpiredError,
    MalformedReplyError,
    NoAvailableEndpointsError,
    NotSupportedByServerError,
)
from etcd_aio.testing import EtcdServer, ServerTLS
from etcd_aio.transport import ENGINES, EngineName
from tests.support.certificates import for_servers_only, write_ca, write_leaf
from tests.support.http1_proxies import ProxyName, http1_proxy
from tests.support.stream_server import stream_server
from tests.support.versions import is_at_least

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

HTTP2: tuple[EngineName, ...] = ("native", "grpclib")
HTTP1: tuple[EngineName, ...] = ("gateway", "auto")
FOREIGN: tuple[ProxyName, ...] = ("nginx", "haproxy")
NO_GATEWAY = r"does not answer as etcd's JSON gateway does: .*peer port.*--enable-grpc-gateway=false.*another service"


def need_peer_port_without_grpc() -> None:
    """Skip the test on servers that serve their RPCs at the peer port too."""
    if not is_at_least("3.6"):
        pytest.skip("its peer port speaks gRPC")


async def refusal(endpoint: str, engine: EngineName, tls: TLS | None = None) -> str:
    """What the error says of an endpoint that cannot be connected to."""
    async with Client(endpoint, engine=engine, tls=tls, fail_fast=True, timeout=20) as client:
        with pytest.raises(NoAvailableEndpointsError) as caught:
            await client.get("k")
    assert endpoint in str(caught.value)
    return str(caught.value)


@asynccontextmanager
async def web_server() -> AsyncIterator[str]:
    """A server of pages, which serves one at every path."""
    page = b"<html><body>Welcome</body></html>"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(2**16):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(page) + page)

    async with stream_server(serve) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("proxy", ["ours", *FOREIGN])
@pytest.mark.parametrize("engine", HTTP2)
async def test_http2_at_a_proxy_of_http1_names_the_engines_that_pass_it(
    shared_server: EtcdServer, proxy: ProxyName, engine: EngineName
) -> None:
    async with http1_proxy(proxy, shared_server.endpoint) as endpoint:
        said = await refusal(endpoint, engine)
    assert 'engine="gateway" or engine="auto"' in said


@pytest.mark.parametrize("engine", HTTP2)
async def test_http2_at_a_proxy_that_turns_it_into_http1_names_the_gateway(
    shared_server: EtcdServer, prefix: str, engine: EngineName
) -> None:
    async with http1_proxy("haproxy", shared_server.endpoint, listen="") as endpoint:
        async with Client(endpoint, engine=engine, timeout=2) as client:
            with pytest.raises(MalformedReplyError, match='engine="gateway"'):
                await client.put(prefix + "a", "1")
        async with Client(endpoint, engine="gateway", timeout=20) as client:
            await client.put(prefix + "a", "1")


@pytest.mark.parametrize("engine", HTTP1)
async def test_the_peer_port_has_no_gateway(shared_server: EtcdServer, engine: EngineName) -> None:
    if engine == "auto":
        need_peer_port_without_grpc()
    said = await refusal(shared_server.peer_url, engine)
    assert re.search(NO_GATEWAY, said)


async def test_an_etcd_without_its_gateway_says_so_and_auto_needs_none() -> None:
    async with EtcdServer(flags=["--enable-grpc-gateway=false"]) as server:
        assert "--enable-grpc-gateway=false" in await refusal(server.endpoint, "gateway")
        async with Client(server.endpoint, engine="auto") as client:
            await client.put("k", "v")


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_server_of_pages_is_another_service(engine: EngineName) -> None:
    async with web_server() as endpoint:
        assert "another service" in await refusal(endpoint, engine)


async def test_auto_says_that_both_were_tried_and_what_each_met(shared_server: EtcdServer) -> None:
    need_peer_port_without_grpc()
    said = await refusal(shared_server.peer_url, "auto")
    http2, _, gateway = said.partition("over HTTP/1")
    assert "neither HTTP/2 (the peer answered in HTTP/1, not HTTP/2) nor etcd's JSON gateway works" in http2
    assert "does not answer as etcd's JSON gateway does" in gateway
    assert "engine=" not in said, "the advice has been followed"


@pytest.mark.parametrize("proxy", FOREIGN)
@pytest.mark.parametrize("engine", HTTP1)
async def test_a_proxy_without_websockets_is_named_by_watches_and_leases(
    shared_server: EtcdServer, prefix: str, proxy: ProxyName, engine: EngineName
) -> None:
    if not is_at_least("3.5"):
        pytest.skip("its gateway has no streams")
    words = "a proxy on the way blocks WebSockets"
    async with (
        http1_proxy(proxy, shared_server.endpoint, passes_websockets=False) as endpoint,
        Client(endpoint, engine=engine, timeout=20) as client,
    ):
        await client.put(prefix + "a", "1")
        with pytest.raises(NotSupportedByServerError, match=words):
            async with client.watch(prefix + "a"):
                pass
        with pytest.raises(NotSupportedByServerError, match=words):
            await client.leases.keep_alive_once(await client.leases.grant(60))


async def test_a_lease_that_no_websocket_renews_says_why_it_was_lost(shared_server: EtcdServer) -> None:
    if not is_at_least("3.5"):
        pytest.skip("its gateway has no streams")
    async with (
        http1_proxy("nginx", shared_server.endpoint, passes_websockets=False) as endpoint,
        Client(endpoint, engine="gateway", timeout=20) as client,
    ):
        with pytest.raises(LeaseExpiredError) as caught:
            async with client.lease(ttl=4) as lease:
                await lease.lost()
    assert "blocks WebSockets" in str(caught.value.__cause__)


# --- what etcd's gateway makes of certificates ---


async def test_a_server_certificate_that_its_gateway_cannot_show_is_named(tmp_path: Path) -> None:
    """With `--client-cert-auth` the gateway, which is a client of its own member, shows the server's certificate."""
    if not is_at_least("3.5"):
        pytest.skip("its gateway does not pass on why")
    authority = trustme.CA()
    ca = write_ca(authority, tmp_path / "ca.pem")
    good = authority.issue_cert("127.0.0.1", "localhost")
    own = write_leaf(good, tmp_path, "own")
    files = write_leaf(for_servers_only(authority, good), tmp_path, "server")

    class ShowingOwn(ServerTLS):
        def probe_context(self) -> ssl.SSLContext:
            return ServerTLS(own["cert"], own["key"]).probe_context()

    async with EtcdServer(tls=ShowingOwn(files["cert"], files["key"], client_ca=ca)) as server:
        tls = TLS(ca=ca, cert=own["cert"], key=own["key"])
        async with Client(server.endpoint, tls=tls) as client:
            await client.put("k", "v")
        async with Client(server.endpoint, engine="gateway", tls=tls, timeout=2) as client:
            with pytest.raises(EtcdError, match="must be valid for clientAuth too"):
                await client.get("k")


# --- TLS here, plain text there ---


@pytest.fixture
def certificates(tmp_path: Path) -> tuple[TLS, ServerTLS, Path]:
    """What a client trusts, a server's own, and the server's key with its certificate in one file."""
    authority = trustme.CA()
    leaf = authority.issue_cert("127.0.0.1", "localhost")
    files = write_leaf(leaf, tmp_path, "server")
    both = tmp_path / "both.pem"
    leaf.private_key_and_cert_chain_pem.write_to_path(both)
    return TLS(ca=write_ca(authority, tmp_path / "ca.pem")), ServerTLS(files["cert"], files["key"]), both


Certificates = tuple[TLS, ServerTLS, Path]


@pytest.mark.parametrize("engine", ENGINES)
async def test_https_at_a_port_in_plain_text(
    shared_server: EtcdServer, certificates: Certificates, engine: EngineName
) -> None:
    said = await refusal(shared_server.endpoint.replace("http:", "https:"), engine, certificates[0])
    assert "does not serve TLS" in said
    async with http1_proxy("nginx", shared_server.endpoint) as endpoint:
        said = await refusal(endpoint.replace("http:", "https:"), engine, certificates[0])
    assert "does not speak TLS: is the endpoint http:// ?" in said


async def test_plain_text_at_a_port_of_etcd_with_tls(certificates: Certificates) -> None:
    async with EtcdServer(tls=certificates[1]) as server:
        for engine in ENGINES:
            said = await refusal(server.endpoint.replace("https:", "http:"), engine)
            assert "or it serves TLS (then https://)" in said, engine


@pytest.mark.parametrize("engine", ENGINES)
async def test_plain_text_at_a_port_of_nginx_with_tls(
    shared_server: EtcdServer, certificates: Certificates, engine: EngineName
) -> None:
    both = certificates[2]
    listen = f"ssl; ssl_certificate {both}; ssl_certificate_key {both}"
    async with http1_proxy("nginx", shared_server.endpoint, listen=listen) as endpoint:
        said = await refusal(endpoint, engine)
    assert "https:// ?" in said or "a port with TLS (then https://)" in said


@pytest.mark.parametrize(
    ("proxy", "listen"), [("nginx", "ssl"), ("haproxy", "ssl crt {0} alpn http/1.1"), ("haproxy", "ssl crt {0}")]
)
async def test_a_proxy_of_http1_with_tls(
    shared_server: EtcdServer, prefix: str, certificates: Certificates, proxy: ProxyName, listen: str
) -> None:
    tls, _, both = certificates
    if proxy == "nginx":
        listen += f"; ssl_certificate {both}; ssl_certificate_key {both}"
    async with http1_proxy(proxy, shared_server.endpoint, listen=listen.format(both)) as plain:
        endpoint = plain.replace("http:", "https:")
        for engine in HTTP2:
            assert 'by ALPN (it chose nothing): perhaps a proxy passes HTTP/1 only (then use engine="gateway"' in (
                await refusal(endpoint, engine, tls)
            )
        for engine in HTTP1:
            async with Client(endpoint, engine=engine, tls=tls, timeout=20) as client:
                await client.put(prefix + engine, "1")
                assert [one.engine for one in client.statistics()] == ["gateway"]
