"""Security list 5.1, a test a line: what every engine makes of certificates and peers that are not as they should."""

import asyncio
import ssl
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme

from etcd_aio import TLS, Client, NoAvailableEndpointsError
from etcd_aio.balancer import parse_endpoint
from etcd_aio.config import CertificateFiles
from etcd_aio.errors import ConnectError, TLSError
from etcd_aio.transport import OF_CLIENT, OF_MEMBER, EngineName, TLSContext
from tests.support.canary import secret
from tests.support.certificates import refusing_server, server_context, without_chain, write_ca, write_leaf
from tests.support.scripted import Wire, scripted
from tests.support.transport import Owner, engine, example_server, soon, target
from tests.support.until import PATIENCE

pytestmark = pytest.mark.anyio

NAME = "member.test"
YESTERDAY = datetime.now(UTC) - timedelta(days=1)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def files(authority: trustme.CA, tmp_path: Path) -> CertificateFiles:
    return CertificateFiles(TLS(ca=write_ca(authority, tmp_path / "ca.pem")))


async def echo(name: EngineName, port: int, tls: TLSContext, server_name: str = NAME, **changes: Any) -> None:
    """Dial, and have one call answered."""
    # In debug mode asyncio reports what a server makes of clients that hang up; it is no news here.
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    connection = await engine(name).connect(target(port, tls=tls, server_name=server_name, **changes), Owner())
    try:
        assert await connection.unary("/x/Echo", b"hello", (), soon()) == b"hello"
    finally:
        await connection.aclose()


async def refusal(name: EngineName, port: int, tls: TLSContext, server_name: str = NAME) -> BaseException:
    with pytest.raises((OSError, ConnectError)) as caught:
        await echo(name, port, tls, server_name)
    return caught.value


async def verification(name: EngineName, leaf: trustme.LeafCert, tls: TLSContext, server_name: str = NAME) -> str:
    """What is said against a server that shows `leaf`."""
    async with example_server(tls=server_context(leaf)) as (port, _):
        error = await refusal(name, port, tls, server_name)
    assert isinstance(error, ssl.SSLCertVerificationError)
    return error.verify_message


async def test_a_good_certificate(name: EngineName, authority: trustme.CA, files: CertificateFiles) -> None:
    async with example_server(tls=server_context(authority.issue_cert(NAME))) as (port, _):
        await echo(name, port, files)


async def test_the_certificates_of_a_connection_are_remembered(
    name: EngineName, authority: trustme.CA, tmp_path: Path
) -> None:
    """Those of both sides, over every engine: for `TLS(reconnect=True)`."""
    now = datetime.now(UTC).replace(microsecond=0)
    own = write_leaf(authority.issue_cert("client", not_after=now + timedelta(days=9)), tmp_path, "client")
    files = CertificateFiles(TLS(ca=write_ca(authority, tmp_path / "ca.pem"), reconnect=True, **own))
    for days, whose in ((5, OF_MEMBER), (30, OF_CLIENT)):
        certificates = files.for_connection()
        leaf = authority.issue_cert(NAME, not_after=now + timedelta(days))
        async with example_server(tls=server_context(leaf)) as (port, _):
            await echo(name, port, certificates)
        assert certificates.expiry == ((now + timedelta(min(days, 9))).timestamp(), whose)


async def test_expired(name: EngineName, authority: trustme.CA, files: CertificateFiles) -> None:
    leaf = authority.issue_cert(NAME, not_after=YESTERDAY)
    assert await verification(name, leaf, files) == "certificate has expired"


async def test_not_yet_valid(name: EngineName, authority: trustme.CA, files: CertificateFiles) -> None:
    leaf = authority.issue_cert(NAME, not_before=datetime.now(UTC) + timedelta(days=1))
    assert await verification(name, leaf, files) == "certificate is not yet valid"


async def test_wrong_host(name: EngineName, authority: trustme.CA, files: CertificateFiles) -> None:
    assert "member.test" in await verification(name, authority.issue_cert("other.test"), files)


async def test_wrong_address(name: EngineName, authority: trustme.CA, files: CertificateFiles) -> None:
    assert "127.0.0.1" in await verification(name, authority.issue_cert("127.0.0.2"), files, "127.0.0.1")


async def test_no_common_name_fallback(name: EngineName, authority: trustme.CA, files: CertificateFiles) -> None:
    said = await verification(name, authority.issue_cert(common_name=NAME), files)
    assert "member.test" in said or "Empty Subject Alternative Name" in said  # Python 3.13 is stricter than OpenSSL


async def test_unknown_authority(name: EngineName, files: CertificateFiles) -> None:
    assert "unable to get local issuer" in await verification(name, trustme.CA().issue_cert(NAME), files)


async def test_missing_intermediate(name: EngineName, authority: trustme.CA, files: CertificateFiles) -> None:
    leaf = authority.create_child_ca().issue_cert(NAME)
    assert "unable to get" in await verification(name, without_chain(leaf), files)
    async with example_server(tls=server_context(leaf)) as (port, _):
        await echo(name, port, files)


async def test_self_signed(name: EngineName, files: CertificateFiles) -> None:
    own = trustme.CA()
    leaf = trustme.LeafCert(own.private_key_pem.bytes(), own.cert_pem.bytes(), [])
    assert "self" in await verification(name, leaf, files)


@pytest.mark.parametrize("protocols", [("http/1.1",), None])
async def test_no_alpn(
    name: EngineName, authority: trustme.CA, files: CertificateFiles, protocols: tuple[str, ...] | None
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(NAME).configure_cert(context)
    if protocols is not None:
        context.set_alpn_protocols(protocols)
    async with example_server(tls=context) as (port, _):
        error = await refusal(name, port, files)
    assert isinstance(error, TLSError)
    assert "ALPN" in str(error)


async def test_plaintext_peer(name: EngineName, files: CertificateFiles) -> None:
    async with example_server() as (port, _):
        error = await refusal(name, port, files)
    assert isinstance(error, TLSError)
    assert any(text in str(error) for text in ("does not speak TLS", "it does not serve TLS"))


async def test_tls_peer_of_a_plaintext_target(name: EngineName, authority: trustme.CA) -> None:
    async with example_server(tls=server_context(authority.issue_cert(NAME))) as (port, _):
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        with pytest.raises(ConnectError, match=r"in TLS|did not begin HTTP/2|closed"):
            await engine(name).connect(target(port), Owner())


async def test_a_peer_with_tls_1_1_only(name: EngineName, authority: trustme.CA, files: CertificateFiles) -> None:
    context = server_context(authority.issue_cert(NAME))
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with refusing_server(context) as port:
        error = await refusal(name, port, files)
    assert isinstance(error, TLSError)
    assert "1.2 or newer" in str(error)


async def test_handshake_stall(name: EngineName, files: CertificateFiles) -> None:
    async def stall(wire: Wire) -> None:
        await asyncio.sleep(3600)

    async with scripted(stall, speaks=False) as port:
        with pytest.raises(ConnectError, match=r"no answer within 0\.2 s"):
            await engine(name, connect_timeout=0.2).connect(target(port, tls=files, server_name=NAME), Owner())


async def test_settings_stall(name: EngineName, authority: trustme.CA, files: CertificateFiles) -> None:
    async def stall(wire: Wire) -> None:
        await asyncio.sleep(3600)

    async with scripted(stall, speaks=False, tls=server_context(authority.issue_cert(NAME))) as port:
        with pytest.raises(ConnectError, match=r"connected, but no answer within 0\.3 s"):
            await engine(name, connect_timeout=0.3).connect(target(port, tls=files, server_name=NAME), Owner())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("kind", ["none", "unknown authority", "expired"])
async def test_client_certificate_rejected(
    name: EngineName, authority: trustme.CA, tmp_path: Path, version: ssl.TLSVersion, kind: str
) -> None:
    """With TLS 1.3 the alert comes after the handshake has ended for the client."""
    context = server_context(authority.issue_cert(NAME), client_ca=authority)
    context.minimum_version = context.maximum_version = version
    own: dict[str, Any] = {}
    if kind == "unknown authority":
        own = write_leaf(trustme.CA().issue_cert("client"), tmp_path, "client")
    elif kind == "expired":
        own = write_leaf(authority.issue_cert("client", not_after=YESTERDAY), tmp_path, "client")
    tls = CertificateFiles(TLS(ca=write_ca(authority, tmp_path / "ca.pem"), **own))
    with refusing_server(context) as port:
        error = await refusal(name, port, tls)
    assert isinstance(error, TLSError)
    assert "client certificate" in str(error)
    assert error.__cause__ is not None


async def test_a_peer_that_hangs_up_after_the_handshake_without_a_word(
    name: EngineName, authority: trustme.CA, files: CertificateFiles
) -> None:
    """So does one whose alert is lost behind its own end."""

    async def hang_up(wire: Wire) -> None:
        wire.cut()

    async with scripted(hang_up, speaks=False, tls=server_context(authority.issue_cert(NAME))) as port:
        error = await refusal(name, port, files)
    assert isinstance(error, TLSError)
    assert "or it wants a client certificate" in str(error)


async def test_a_client_certificate_and_a_key_with_a_password(
    name: EngineName, authority: trustme.CA, tmp_path: Path
) -> None:
    password = secret("key password")
    own = write_leaf(authority.issue_cert("client"), tmp_path, "client", password=password)
    tls = TLS(ca=write_ca(authority, tmp_path / "ca.pem"), key_password=password, **own)
    async with example_server(tls=server_context(authority.issue_cert(NAME), client_ca=authority)) as (port, _):
        await echo(name, port, CertificateFiles(tls))


# --- names ---


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_each_endpoint_is_verified_as_itself(
    name: EngineName, authority: trustme.CA, files: CertificateFiles, host: str
) -> None:
    async with example_server(tls=server_context(authority.issue_cert(host))) as (port, _):
        right = parse_endpoint(f"https://{host}:{port}").target(files)
        await (await engine(name).connect(right, Owner())).aclose()
        wrong = parse_endpoint(f"https://{'localhost' if host == '127.0.0.1' else '127.0.0.1'}:{port}").target(files)
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        with pytest.raises(ssl.SSLCertVerificationError):
            await engine(name).connect(wrong, Owner())


async def test_a_unix_socket_is_verified_by_its_last_segment_without_a_port(
    name: EngineName, authority: trustme.CA, files: CertificateFiles, tmp_path: Path
) -> None:
    path = tmp_path / "localhost:m0"
    async with example_server(str(path), server_context(authority.issue_cert("localhost"))):
        to = parse_endpoint(f"unixs://{path}").target(files)
        assert to.authority == "localhost:m0"
        await (await engine(name).connect(to, Owner())).aclose()


async def test_a_server_name_of_the_users_replaces_every_endpoints_own(
    name: EngineName, authority: trustme.CA, tmp_path: Path
) -> None:
    shown: list[str | None] = []
    context = server_context(authority.issue_cert("etcd.test"))
    context.sni_callback = lambda ssl_object, server_name, own: shown.append(server_name)
    tls = CertificateFiles(TLS(ca=write_ca(authority, tmp_path / "ca.pem"), server_name="etcd.test"))
    async with example_server(tls=context) as (port, _):
        to = parse_endpoint(f"https://127.0.0.1:{port}").target(tls)
        assert to.authority == f"127.0.0.1:{port}", "as etcd's own client: the call still names its member"
        await (await engine(name).connect(to, Owner())).aclose()
    assert shown == ["etcd.test"]


async def test_skipping_verification_takes_what_is_long_and_warns(name: EngineName, authority: trustme.CA) -> None:
    with pytest.warns(UserWarning, match="without verification"):
        tls = TLS(insecure_skip_server_verification=True)
    async with example_server(tls=server_context(trustme.CA().issue_cert("other.test"))) as (port, _):
        await echo(name, port, CertificateFiles(tls))


async def test_a_context_of_the_users_stays_as_it_is(name: EngineName, authority: trustme.CA) -> None:
    """Apart from ALPN: who turns verification off in it means it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    async with (
        example_server(tls=server_context(authority.issue_cert("other.test"))) as (port, _),
        Client(f"https://127.0.0.1:{port}", tls=context, engine=name) as client,
    ):
        await client.wait_ready()
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_NONE)
    assert context.get_ca_certs() == []


# --- many endpoints ---


async def test_one_endpoint_that_is_not_to_be_trusted_is_told_and_the_others_serve(
    name: EngineName, authority: trustme.CA, tmp_path: Path
) -> None:
    ca = write_ca(authority, tmp_path / "ca.pem")
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    async with (
        example_server(tls=server_context(authority.issue_cert("127.0.0.1"))) as (good, _),
        example_server(tls=server_context(trustme.CA().issue_cert("127.0.0.1"))) as (bad, _),
        example_server() as (plain, _),
    ):
        endpoints = [f"https://127.0.0.1:{port}" for port in (good, bad, plain)]
        async with Client([*endpoints, f"http://127.0.0.1:{plain}"], tls=TLS(ca=ca), engine=name) as client:
            await client.wait_ready()
            async with asyncio.timeout(PATIENCE):
                while any(  # noqa: ASYNC110 - there is no event for it
                    one.connects == 0 and one.last_error is None for one in client.statistics()
                ):
                    await asyncio.sleep(0.01)
            states = client.statistics()
            assert [one.connects for one in states] == [1, 0, 0, 1], "plaintext only where it was asked for"
            assert isinstance(states[1].last_error, ssl.SSLCertVerificationError)
            assert isinstance(states[2].last_error, TLSError)
        async with Client(endpoints[1:], tls=TLS(ca=ca), engine=name) as client:
            with pytest.raises(NoAvailableEndpointsError, match="certificate verify failed") as caught:
                await client.wait_ready(timeout=2.0)
            assert set(caught.value.errors) == set(endpoints[1:])


# --- rotation ---


@asynccontextmanager
async def counted(context: ssl.SSLContext) -> AsyncIterator[tuple[int, list[str | None]]]:
    """A server, and a list that grows by every handshake."""
    shown: list[str | None] = []
    context.sni_callback = lambda ssl_object, server_name, own: shown.append(server_name)
    async with example_server(tls=context) as (port, _):
        yield port, shown


async def test_rotation_is_used_by_the_next_dial_and_leaves_live_connections_alone(
    name: EngineName, authority: trustme.CA, tmp_path: Path
) -> None:
    """The authority and our own certificate are both replaced."""
    new = trustme.CA()
    folder = tmp_path
    ca = write_ca(authority, folder / "ca.pem")
    own = write_leaf(authority.issue_cert("client"), folder, "client")
    tls = CertificateFiles(TLS(ca=ca, **own))
    async with (
        counted(server_context(authority.issue_cert(NAME), client_ca=authority)) as (old_port, handshakes),
        example_server(tls=server_context(new.issue_cert(NAME), client_ca=new)) as (new_port, _),
    ):
        live = await engine(name).connect(target(old_port, tls=tls, server_name=NAME), Owner())
        assert isinstance(await refusal(name, new_port, tls), ssl.SSLCertVerificationError)
        write_ca(new, ca)
        write_leaf(new.issue_cert("client"), folder, "client")
        await echo(name, new_port, tls)
        assert await live.unary("/x/Echo", b"still", (), soon()) == b"still"
        assert len(handshakes) == 1
        await live.aclose()
