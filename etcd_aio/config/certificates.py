"""Certificate files: from what a user said to a context, read again when they have changed.

Knows: PEM files, OpenSSL's contexts and its complaints. Never knows: endpoints, connections, retries.

Theory of operation. A client has one `CertificateFiles`. Each dial asks it for a context. It reads the files in a
thread, since a file may lie on a network and an encrypted key takes what its owner wanted it to take, and compares them
with those of the last context: contents, not times of change, which are too coarse for files that are replaced twice.
Only if they differ a context is built. What cannot be built is a complaint in the log, and the last context stays:
certificate and key are two files, and between their replacements they do not fit together.
"""

import asyncio
import hashlib
import logging
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from etcd_aio.config.tls import TLS, is_pem
from etcd_aio.errors import ConfigError
from etcd_aio.threads import in_thread

logger = logging.getLogger("etcd_aio.tls")

_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----", b"-----BEGIN TRUSTED CERTIFICATE-----"
_PRIVATE_KEY: Final = b"PRIVATE KEY-----"
_READABLE_BY_OTHERS: Final = 0o044


class CertificateFiles:
    """The contexts of one client. See `transport.TLSSource`.

    Args:
        tls: what the user said.
    """

    def __init__(self, tls: TLS) -> None:
        self._tls = tls
        self._context: ssl.SSLContext | None = None
        self._digest = b""
        self._complaint = ""
        self._warned_of_mode = 0
        self._reading: asyncio.Future[ssl.SSLContext] | None = None

    @property
    def server_name(self) -> str:
        """The name to verify instead of each endpoint's own; empty for their own."""
        return self._tls.server_name or ""

    def check(self) -> None:
        """Read all files now, if there are any, to find mistakes: some 2 ms, or 20 with the system's authorities.

        Raises:
            ConfigError: a file cannot be read, is not what it should be, or does not fit the others.
        """
        if self._has_files:
            self._read()

    async def context(self) -> ssl.SSLContext:
        """The context of what the files hold now, or of what they held when they last fitted together.

        Those who ask at the same time share one reading; cancelling one of them does not disturb the others.

        Raises:
            ConfigError: nothing was ever read.
        """
        if self._context is not None and not self._has_files:
            return self._context  # nothing that could change
        if self._reading is None:
            self._reading = in_thread(self._read, "etcd_aio certificates")
            self._reading.add_done_callback(self._was_read)
        return await asyncio.shield(self._reading)

    @property
    def _has_files(self) -> bool:
        return self._tls.ca is not None or self._tls.cert is not None

    def _was_read(self, reading: "asyncio.Future[ssl.SSLContext]") -> None:
        self._reading = None

    # In a thread; never two at once.

    def _read(self) -> ssl.SSLContext:
        try:
            contents = dict(_contents(self._tls))
            digest = _digest(contents)
            if self._context is not None and digest == self._digest:
                self._complaint = ""
                return self._context
            context = _build(self._tls, contents)
        except ConfigError as error:
            if self._context is None:
                raise
            if error.message != self._complaint:  # once, and not for every dial of an outage
                self._complaint = error.message
                logger.warning("certificates have changed and cannot be used, the last ones stay: %s", error)
            return self._context
        if self._context is not None:
            logger.info("certificates have changed: new connections use them")
        self._context, self._digest, self._complaint = context, digest, ""
        self._warn_of_mode()
        return context

    def _warn_of_mode(self) -> None:
        if self._tls.key is None or os.name != "posix":
            return
        try:
            mode = Path(self._tls.key).stat().st_mode & 0o777
        except OSError:
            return  # it was replaced this moment, and the next dial reads it
        if mode & _READABLE_BY_OTHERS and mode != self._warned_of_mode:
            self._warned_of_mode = mode
            logger.warning("the private key %s can be read by others than its owner: mode %03o", self._tls.key, mode)


def _contents(tls: TLS) -> Iterator[tuple[str, bytes]]:
    """What there is to read, each with its name: the option, and the file in it."""
    ca = tls.ca
    if isinstance(ca, bytes):
        yield "ca", ca
    elif isinstance(ca, str) and is_pem(ca):
        yield "ca", ca.encode()
    elif ca is not None:
        yield from _authorities(Path(ca))
    for option, path in (("cert", tls.cert), ("key", tls.key)):
        if path is not None:
            yield option, _file(option, Path(path))


def _authorities(path: Path) -> Iterator[tuple[str, bytes]]:
    if not path.is_dir():
        yield "ca", _file("ca", path)
        return
    found = False
    for file in sorted(_entries(path)):
        content = _file("ca", file)
        if any(begin in content for begin in _CERTIFICATE):
            found = True
            yield f"ca {file}", content
    if not found:
        raise ConfigError(f"ca: no file in {path} holds a PEM certificate")


def _entries(path: Path) -> list[Path]:
    try:
        return [entry for entry in path.iterdir() if entry.is_file()]
    except OSError as error:
        raise _unreadable("ca", path, error) from error


def _file(option: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(option, path, error) from error


def _unreadable(option: str, path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"{option}: {path}: {error.strerror or type(error).__name__}")


def _digest(contents: dict[str, bytes]) -> bytes:
    """Tells contents apart without keeping them: one of them is a key."""
    total = hashlib.sha256()
    for name, content in contents.items():
        total.update(f"{name}\n{len(content)}\n".encode())
        total.update(content)
    return total.digest()


def _build(tls: TLS, contents: dict[str, bytes]) -> ssl.SSLContext:
    context = _trusting(tls, b"\n".join(content for name, content in contents.items() if name.startswith("ca")))
    # What Python's own defaults may leave open, here or on another version of it.
    context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
    context.hostname_checks_common_name = False
    context.set_alpn_protocols(["h2"])
    if tls.insecure_skip_server_verification:
        logger.warning("members are not verified: insecure_skip_server_verification=True")
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert is not None and tls.key is not None:
        _present(context, tls, os.fspath(tls.cert), os.fspath(tls.key), contents)
    return context


def _trusting(tls: TLS, authorities: bytes) -> ssl.SSLContext:
    if tls.ca is None:
        return ssl.create_default_context()
    where = "what was given" if is_pem(tls.ca) else os.fspath(tls.ca)
    if not any(begin in authorities for begin in _CERTIFICATE):
        raise ConfigError(f"ca: {where!s} holds no PEM certificate")
    try:
        # OpenSSL takes ASCII only; what is beyond it can only be a comment.
        return ssl.create_default_context(cadata=authorities.decode("ascii", "replace").replace("\ufffd", "?"))
    except ssl.SSLError as error:
        raise ConfigError(f"ca: {where!s} holds a damaged certificate: {_reason(error)}") from error


def _present(context: ssl.SSLContext, tls: TLS, cert: str, key: str, contents: dict[str, bytes]) -> None:
    """Load our own certificate and key."""
    if _CERTIFICATE[0] not in contents["cert"]:
        raise ConfigError(f"cert: {cert} holds no PEM certificate")
    if _PRIVATE_KEY not in contents["key"]:
        raise ConfigError(f"key: {key} holds no PEM private key")
    ask = _Ask(tls)
    complaint = ""
    cause: BaseException | None = None
    try:
        context.load_cert_chain(cert, key, password=ask)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        reason = _reason(error)
        cause = error
        if reason == "KEY_VALUES_MISMATCH":
            complaint = f"key: {key} is not that of the certificate {cert}"
        elif ask.was_asked:
            complaint = f"key: {key} is encrypted, and key_password does not open it"
        else:
            complaint = f"cert or key: {cert} and {key} cannot be loaded: {reason}"
    if ask.complaint:
        raise ConfigError(f"key: {key} is encrypted, and {ask.complaint}")
    if complaint:
        raise ConfigError(complaint) from cause


def _reason(error: Exception) -> str:
    """OpenSSL's word for it, else the system's; never a whole text, which nobody vouches for."""
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__


class _Ask:
    """OpenSSL's question for the password. Without an answer of ours OpenSSL would ask on the terminal, and wait.

    What the user's function raises is told by its class alone: its text may hold the secret.
    """

    def __init__(self, tls: TLS) -> None:
        self._tls = tls
        self.was_asked = False
        self.complaint = ""

    def __call__(self) -> str | bytes:
        self.was_asked = True
        if not self._tls.has_key_password:
            self.complaint = "there is no key_password"
            return b""
        try:
            password = self._tls.ask_key_password()
        except Exception as error:  # it is a user's, and told as ours
            self.complaint = f"key_password() raised {type(error).__name__}"
            return b""
        if not isinstance(password, str | bytes):
            self.complaint = f"key_password() returned {type(password).__name__}, not str or bytes"
            return b""
        return password
