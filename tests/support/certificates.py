"""Valid and invalid certificates, as contexts for servers and as files for clients."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID


def server_context(leaf: trustme.LeafCert, *protocols: str, client_ca: trustme.CA | None = None) -> ssl.SSLContext:
    """A server that shows `leaf`, offers HTTP/2 by default, and requires a certificate of `client_ca`."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    leaf.configure_cert(context)
    context.set_alpn_protocols(list(protocols or ("h2",)))
    if client_ca is not None:
        client_ca.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@contextmanager
def refusing_server(context: ssl.SSLContext) -> Iterator[int]:
    """A server whose handshakes fail as OpenSSL has it, with an alert; asyncio's aborts before that is sent."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    accepted, _ = listener.accept()
                except OSError:
                    return  # the test is over
                accepted.settimeout(5)
                try:
                    with context.wrap_socket(accepted, server_side=True) as talking:
                        talking.recv(1)
                except OSError:
                    accepted.close()

        thread = threading.Thread(target=serve, name="refusing server")
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def write_ca(authority: trustme.CA, path: Path) -> Path:
    """The authority's certificate as a file."""
    authority.cert_pem.write_to_path(str(path))
    return path


def write_leaf(leaf: trustme.LeafCert, folder: Path, name: str, *, password: str | None = None) -> dict[str, Any]:
    """Certificate and key as files, the key readable by its owner only: arguments for `TLS`."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    cert.write_bytes(b"".join(pem.bytes() for pem in leaf.cert_chain_pems))
    key.touch(0o600)
    key.write_bytes(leaf.private_key_pem.bytes() if password is None else encrypted(leaf, password))
    return {"cert": cert, "key": key}


def encrypted(leaf: trustme.LeafCert, password: str) -> bytes:
    """The key as PEM that only `password` opens."""
    key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))


def for_servers_only(authority: trustme.CA, leaf: trustme.LeafCert) -> trustme.LeafCert:
    """The same names in a certificate that is not valid for clients."""
    like = x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes())
    issuer = x509.load_pem_x509_certificate(authority.cert_pem.bytes())
    issuers_key = load_pem_private_key(authority.private_key_pem.bytes(), None)
    assert isinstance(issuers_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        x509.CertificateBuilder(like.issuer, like.subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(like.not_valid_before_utc)
        .not_valid_after(like.not_valid_after_utc)
        .add_extension(like.extensions.get_extension_for_class(x509.SubjectAlternativeName).value, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuers_key.public_key()), critical=False)
        .sign(issuers_key, SHA256())
    )
    assert certificate.issuer == issuer.subject
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return trustme.LeafCert(private, certificate.public_bytes(Encoding.PEM), [])


def without_chain(leaf: trustme.LeafCert) -> trustme.LeafCert:
    """The same certificate, shown without the intermediate ones."""
    return trustme.LeafCert(leaf.private_key_pem.bytes(), leaf.cert_chain_pems[0].bytes(), [])
