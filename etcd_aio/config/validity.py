"""The end of a certificate's validity, from its bytes. Pure.

The standard library tells it of a peer whose certificate was verified, and of no other: `ssl.SSLContext.get_ca_certs`
leaves out what is no authority, such as the client's own, and its parser for files is private. But the instant has a
fixed place, so it is read from there (RFC 5280, 4.1):

    Certificate     SEQUENCE: TBSCertificate, ...
    TBSCertificate  SEQUENCE: [0] version (may be absent), serialNumber, signature, issuer, validity, ...
    validity        SEQUENCE: notBefore, notAfter; each UTCTime or GeneralizedTime, in UTC and to the second

OpenSSL has accepted the certificate before. If the instant cannot be read all the same, the answer is None.
"""

import re
from base64 import b64decode
from datetime import UTC, datetime
from typing import Final

_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18


def not_after_of_pem(pem: bytes) -> float | None:
    """The seconds since 1970 at which the first certificate of a file ends; None if they cannot be read."""
    found = _PEM.search(pem)
    if found is None:
        return None
    try:
        der = b64decode(found.group(1))
    except ValueError:
        return None
    return not_after(der)


def not_after(der: bytes) -> float | None:
    """The seconds since 1970 at which a certificate ends; None if they cannot be read."""
    try:
        fields = _Fields(_Fields(_Fields(der).take(_SEQUENCE)).take(_SEQUENCE))
        fields.skip_if(_VERSION)
        for _ in ("serialNumber", "signature", "issuer"):
            fields.take()
        validity = _Fields(fields.take(_SEQUENCE))
        validity.take()
        return _instant(*validity.take_any())
    except (ValueError, IndexError, OverflowError):
        return None


class _Fields:
    """The fields of a value in DER, one after the other."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take_any(self) -> tuple[int, bytes]:
        """The tag and the content of the next field."""
        content, at = self._content, self._at
        tag, length = content[at], content[at + 1]
        at += 2
        if length >= 0x80:  # the number of the bytes that have it
            size = length - 0x80
            length = int.from_bytes(content[at : at + size])
            at += size
        self._at = at + length
        if self._at > len(content):
            raise ValueError("a field is cut off")
        return tag, content[at : self._at]

    def take(self, expected: int | None = None) -> bytes:
        """The content of the next field, which must have this tag."""
        tag, content = self.take_any()
        if expected is not None and tag != expected:
            raise ValueError("another field was expected")
        return content

    def skip_if(self, tag: int) -> None:
        """Skip the next field if it has this tag."""
        if self._content[self._at] == tag:
            self.take_any()


def _instant(tag: int, content: bytes) -> float:
    text = content.decode("ascii")
    if tag == _UTC_TIME:
        text = ("19" if int(text[:2]) >= 50 else "20") + text
    elif tag != _GENERALIZED_TIME:
        raise ValueError("a time was expected")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
