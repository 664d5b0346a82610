"""Makes TLS contexts from the files of a `TLS`, and again when the files have changed.

A client has one `CertificateFiles`, and each dial asks it for a context. It reads the files in a thread, since a file
system may be slow and decrypting a key takes time, and compares their contents with those of the last context.
Modification times are too coarse for files that are replaced twice. A new context is made only if the contents differ.
If it cannot be made, a warning is logged and the last context stays in use: certificate and key are two files, and do
not fit each other while they are being replaced. So it does while a file system hangs.

With `TLS(reconnect=True)`, each connection has a source of its own, see `connection_certificates.py`.
"""

import asyncio
import logging
import os
import ssl
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from etcd_aio.base.logs import Log, log_of
from etcd_aio.base.threads import in_thread
from etcd_aio.config.tls import TLS, is_pem
from etcd_aio.errors import ConfigError

if TYPE_CHECKING:
    from etcd_aio.transport import ConnectionCertificates

logger = logging.getLogger("etcd_aio.tls")

_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----", b"-----BEGIN TRUSTED CERTIFICATE-----"
_PRIVATE_KEY: Final = b"PRIVATE KEY-----"
_READABLE_BY_OTHERS: Final = 0o044
_PATIENCE: Final = 0.5  # seconds for a reading, where there is a context already; within the timeout of a dial
_LATE: Final = "the certificate files were not read in time; the last certificates stay in use"


class Loaded(NamedTuple):
    """The context that was made from the files.

    Attributes:
        context: the TLS context.
        version: a number that changes whenever the contents of the files do.
        not_after: when the client's own certificate expires, in seconds since 1970; infinity if that is not known.
    """

    context: ssl.SSLContext
    version: int
    not_after: float


class CertificateFiles:
    """The source of the TLS contexts of one client. See `transport.TLSSource`.

    Args:
        tls: the options.
        client: name of the client; empty if it has none.
        alpn: the versions of HTTP that are offered.
    """

    def __init__(self, tls: TLS, client: str = "", alpn: Sequence[str] = ("h2",)) -> None:
        self._tls = tls
        self._alpn = [*alpn]
        self._log = log_of(logger, client)
        self._loaded: Loaded | None = None
        self._digest = b""
        self._complaint = ""
        self._warned_of_mode = 0
        self._reading: asyncio.Future[Loaded] | None = None
        self._is_late = False  # a warning tells it

    @property
    def server_name(self) -> str:
        """The name that every member must have; empty for the host name of each endpoint."""
        return self._tls.server_name or ""

    def check(self) -> None:
        """Read the files now, to find mistakes. It takes about 2 ms, or 20 ms with the system's authorities.

        Raises:
            ConfigError: a file cannot be read, has the wrong content, or does not fit the others.
        """
        if self.has_files:
            self._read()

    async def context(self) -> ssl.SSLContext:
        """See `transport.TLSSource`; raises what `load` does."""
        return (await self.load()).context

    def on_handshake(self, tls: ssl.SSLObject) -> None:
        """See `transport.TLSSource`."""
        # The sources of single connections remember it.

    async def read(self) -> None:
        """See `transport.CertificateRenewal`. Files that cannot be used are told by a warning."""
        if self.has_files:
            await self.load()

    def for_connection(self) -> "ConnectionCertificates":
        """See `transport.CertificateRenewal`."""
        from etcd_aio.config.connection_certificates import RememberedCertificates  # for `TLS(reconnect=True)` alone

        return RememberedCertificates(self.load, lambda: self.version, self.server_name)

    @property
    def version(self) -> int:
        """The version of the files that were read last; 0 if none were."""
        return 0 if self._loaded is None else self._loaded.version

    async def load(self) -> Loaded:
        """The context of the current files, or of the last good ones, with its version.

        Simultaneous callers share one reading; cancelling one of them does not disturb the others.

        Raises:
            ConfigError: the files cannot be used, and there were no good ones before.
        """
        if self._loaded is not None and not self.has_files:
            return self._loaded  # there are no files that could change
        if self._reading is None:
            self._reading = in_thread(self._read, "etcd_aio certificates")
            self._reading.add_done_callback(self._was_read)
        reading = self._reading
        if self._loaded is not None:
            await asyncio.wait([reading], timeout=_PATIENCE)
            if not reading.done():  # a file system hangs; the next dial has the use of what is read until then
                if not self._is_late:
                    self._log.warning(_LATE)
                self._is_late = True
                return self._loaded
        return await asyncio.shield(reading)

    @property
    def has_files(self) -> bool:
        """Whether there are files that may change."""
        return self._tls.ca is not None or self._tls.cert is not None

    def _was_read(self, reading: "asyncio.Future[Loaded]") -> None:
        self._reading = None
        self._is_late = False

    # In a thread; never two at once.

    def _read(self) -> Loaded:
        try:
            contents = dict(_contents(self._tls))
            digest = _digest(contents)
            if self._loaded is not None and digest == self._digest:
                self._complaint = ""
                return self._loaded
            context = _build(self._tls, contents, self._log)
            context.set_alpn_protocols(self._alpn)
        except ConfigError as error:
            if self._loaded is None:
                raise
            if error.message != self._complaint:  # one warning, not one for every dial
                self._complaint = error.message
                self._log.warning(
                    "certificate files have changed and cannot be used; the last certificates stay in use: %s", error
                )
            return self._loaded
        if self._loaded is not None:
            self._log.info("certificate files have changed; new connections use them")
        self._loaded = loaded = Loaded(context, self.version + 1, self._own_end(contents))
        self._digest, self._complaint = digest, ""
        self._warn_of_mode()
        return loaded

    def _own_end(self, contents: dict[str, bytes]) -> float:
        if not self._tls.reconnect or "cert" not in contents:
            return inf
        from etcd_aio.config.validity import not_after_of_pem  # for this option alone

        end = not_after_of_pem(contents["cert"])
        return inf if end is None else end

    def _warn_of_mode(self) -> None:
        if self._tls.key is None or os.name != "posix":
            return
        try:
            mode = Path(self._tls.key).stat().st_mode & 0o777
        except OSError:
            return  # it is being replaced, and the next dial reads it
        if mode & _READABLE_BY_OTHERS and mode != self._warned_of_mode:
            self._warned_of_mode = mode
            self._log.warning("other users can read the private key %s: mode %03o", self._tls.key, mode)


def _contents(tls: TLS) -> Iterator[tuple[str, bytes]]:
    """The contents to read, each with a name: the option, and the file if there are several."""
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
    """A digest that tells contents apart; the contents are not kept, since they include the key."""
    import hashlib  # with the first certificate

    total = hashlib.sha256()
    for name, content in contents.items():
        total.update(f"{name}\n{len(content)}\n".encode())
        total.update(content)
    return total.digest()


def _build(tls: TLS, contents: dict[str, bytes], log: Log) -> ssl.SSLContext:
    context = _trusting(tls, b"\n".join(content for name, content in contents.items() if name.startswith("ca")))
    # Python's defaults differ between versions and systems.
    context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
    context.hostname_checks_common_name = False
    if tls.insecure_skip_server_verification:
        log.warning("TLS certificates of members are not verified: insecure_skip_server_verification=True")
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert is not None and tls.key is not None:
        _present(context, tls, os.fspath(tls.cert), os.fspath(tls.key), contents)
    return context


def _trusting(tls: TLS, authorities: bytes) -> ssl.SSLContext:
    if tls.ca is None:
        return ssl.create_default_context()
    where = "the PEM text" if is_pem(tls.ca) else os.fspath(tls.ca)
    if not any(begin in authorities for begin in _CERTIFICATE):
        raise ConfigError(f"ca: {where!s} holds no PEM certificate")
    try:
        # OpenSSL takes ASCII only; other characters can only be in comments.
        return ssl.create_default_context(cadata=authorities.decode("ascii", "replace").replace("\ufffd", "?"))
    except ssl.SSLError as error:
        raise ConfigError(f"ca: {where!s} holds a damaged certificate: {_reason(error)}") from error


def _present(context: ssl.SSLContext, tls: TLS, cert: str, key: str, contents: dict[str, bytes]) -> None:
    """Load the certificate and the key of the client."""
    if _CERTIFICATE[0] not in contents["cert"]:
        raise ConfigError(f"cert: {cert} holds no PEM certificate")
    if _PRIVATE_KEY not in contents["key"]:
        raise ConfigError(f"key: {key} holds no PEM private key")
    password = _PasswordCallback(tls)
    complaint = ""
    cause: BaseException | None = None
    try:
        context.load_cert_chain(cert, key, password=password)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        reason = _reason(error)
        cause = error
        if reason == "KEY_VALUES_MISMATCH":
            complaint = f"key: {key} is not the key of the certificate {cert}"
        elif password.was_asked:
            complaint = f"key: {key} is encrypted, and key_password is wrong"
        else:
            complaint = f"cert or key: {cert} and {key} cannot be loaded: {reason}"
    if password.complaint:
        raise ConfigError(f"key: {key} is encrypted, and {password.complaint}")
    if complaint:
        raise ConfigError(complaint) from cause


def _reason(error: Exception) -> str:
    """The reason in OpenSSL's or the system's words; never the whole message, which could contain a secret."""
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__


class _PasswordCallback:
    """The password callback for OpenSSL, which would otherwise prompt on the terminal.

    Only the class of an exception of the user's function is reported: its message may contain the secret.
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
        except Exception as error:  # from the user's function; it becomes a ConfigError
            self.complaint = f"key_password() raised {type(error).__name__}"
            return b""
        if not isinstance(password, str | bytes):
            self.complaint = f"key_password() returned {type(password).__name__}, not str or bytes"
            return b""
        return password
