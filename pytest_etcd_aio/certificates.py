"""Certificates for servers with TLS, made for one run by trustme."""

from pathlib import Path

from etcd_aio import TLS
from etcd_aio.testing import ServerTLS
from pytest_etcd_aio.wanted import unusable


def issue(folder: Path) -> tuple[ServerTLS, TLS]:
    """Make an authority and a certificate for this machine. The test fails if trustme is not installed.

    Args:
        folder: takes the files.

    Returns:
        tuple[ServerTLS, TLS]: for the server and for its clients.
    """
    try:
        import trustme
    except ModuleNotFoundError:
        unusable("etcd(tls=True) makes certificates with trustme: `pip install trustme`")
    authority = trustme.CA()
    own = authority.issue_cert("127.0.0.1", "::1", "localhost")
    certificate, key = folder / "server.pem", folder / "server.key"
    for part in own.cert_chain_pems:
        part.write_to_path(str(certificate), append=True)
    key.touch(0o600)
    own.private_key_pem.write_to_path(str(key))
    return ServerTLS(certificate, key), TLS(ca=authority.cert_pem.bytes())
