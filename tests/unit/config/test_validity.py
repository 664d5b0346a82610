"""config/validity.py: the end of certificates of every kind, as `cryptography` tells it, and bytes that are none."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.config.validity import not_after, not_after_of_pem

KEY = ec.generate_private_key(ec.SECP256R1())
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def certificate(end: datetime, *, name: str = "a", serial: int = 1) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder(subject, subject, KEY.public_key(), serial)
    return builder.not_valid_before(min(EPOCH, end - timedelta(days=1))).not_valid_after(end).sign(KEY, SHA256())


@given(
    end=st.datetimes(datetime(1951, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)),
    name=st.text("abc", min_size=1, max_size=64),
    serial=st.integers(1, 2**158),
)
def test_the_end_is_that_of_the_certificate(end: datetime, name: str, serial: int) -> None:
    """Times before 2050 have two digits for the year, later ones four."""
    made = certificate(end, name=name, serial=serial)
    assert not_after(made.public_bytes(Encoding.DER)) == made.not_valid_after_utc.timestamp()


def test_an_end_that_is_never_meant_to_come() -> None:
    """The last instant that can be written stands for no end (RFC 5280, 4.1.2.5)."""
    assert not_after(certificate(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)).public_bytes(Encoding.DER)) is not None


def test_the_first_certificate_of_a_file_counts() -> None:
    """The key may come before it, with text in between, and the intermediate ones after it."""
    end = datetime.now(UTC).replace(microsecond=0) + timedelta(days=3)
    authority = trustme.CA().create_child_ca()
    leaf = authority.issue_cert("a", not_after=end)
    pem = b"".join(part.bytes() for part in leaf.cert_chain_pems)
    assert len(leaf.cert_chain_pems) == 2
    assert not_after_of_pem(b"Bag: \xc3\xa4\n" + leaf.private_key_pem.bytes() + b"subject=a\n" + pem) == end.timestamp()
    assert not_after_of_pem(pem.replace(b"\n", b"\r\n")) == end.timestamp()
    assert not_after(ssl.PEM_cert_to_DER_cert(leaf.cert_chain_pems[0].bytes().decode())) == end.timestamp()


@pytest.mark.parametrize("pem", [b"", b"-----BEGIN CERTIFICATE-----\n", b"no certificate"])
def test_a_file_without_a_certificate(pem: bytes) -> None:
    assert not_after_of_pem(pem) is None


def test_a_certificate_that_is_damaged() -> None:
    assert not_after_of_pem(b"-----BEGIN CERTIFICATE-----\nQUJDR\n-----END CERTIFICATE-----") is None


@given(st.integers(0, 400), st.binary(max_size=8))
def test_other_bytes_raise_nothing(cut: int, put: bytes) -> None:
    der = certificate(datetime(2030, 1, 1, tzinfo=UTC)).public_bytes(Encoding.DER)
    for damaged in (der[:cut], der[:cut] + put, der[:cut] + put + der[cut + len(put) :], put):
        found = not_after(damaged)
        assert found is None or isinstance(found, float)
    assert not_after(der[:40]) is None
