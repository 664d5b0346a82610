"""The TLS options of a client, checked without reading a file."""

import os
import re
import warnings
from collections.abc import Callable
from typing import Final, NoReturn, Self, TypeAlias

from etcd_aio.base.reprs import when_constructed
from etcd_aio.errors import ConfigError

PathText: TypeAlias = str | os.PathLike[str]
Password: TypeAlias = str | bytes | Callable[[], str | bytes]

_PEM: Final = "-----BEGIN"
_NAME: Final = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9._:-]*")


class TLS:
    """How members are verified, and the certificate of the client: `Client(..., tls=TLS(ca="ca.pem"))`.

    Always required are TLS 1.2 or newer, HTTP/2 negotiated by ALPN, and a certificate that names the endpoint; a common
    name does not count. The files are read when the client is made, so that mistakes are found there, and again before
    each dial. To replace certificates, replace the files; open connections stay open, unless `reconnect` is set. If new
    files do not fit each other, a warning is logged and the last good ones stay in use.

    Objects are immutable, can be shared by clients, and show no secret in their repr. They cannot be pickled.

    Args:
        ca: the certificates of the authorities to trust: a file, a directory of PEM files, or the PEM itself, as text
            or bytes. Default: those of the system, which are read once.
        cert: the PEM file with the client's certificate, followed by intermediate ones; needs `key`.
        key: the PEM file with its private key; it may be the same file. A warning is logged if other users can read
            it.
        key_password: the password of an encrypted key, or a function that returns it, which is called in a thread
            whenever the key is read.
        server_name: the name that every member's certificate must carry, instead of the host name of its endpoint.
            The `:authority` of calls still names the endpoint, as with etcd's own client.
        insecure_skip_server_verification: accept any certificate, for experiments. An attacker on the network path can
            then read and change everything, so this warns.
        reconnect: renew open connections, one after the other, when the contents of the files have changed, and before
            the certificate of the client or that of the member expires. The files are read every five seconds. Each new
            connection is dialled beside the old one: calls under way end on the old one, watches and lease renewals
            move. If the dial fails, or brings no other certificate, the old one stays in use, and a warning is logged.

    Raises:
        ConfigError: the options are invalid, or contradict each other.
    """

    __slots__ = ("_key_password", "ca", "cert", "insecure_skip_server_verification", "key", "reconnect", "server_name")

    ca: PathText | bytes | None
    cert: PathText | None
    key: PathText | None
    server_name: str | None
    insecure_skip_server_verification: bool
    reconnect: bool
    _key_password: Callable[[], str | bytes] | None

    def __init__(
        self,
        *,
        ca: PathText | bytes | None = None,
        cert: PathText | None = None,
        key: PathText | None = None,
        key_password: Password | None = None,
        server_name: str | None = None,
        insecure_skip_server_verification: bool = False,
        reconnect: bool = False,
    ) -> None:
        _check_ca(ca)
        _check_path("cert", cert)
        _check_path("key", key)
        if (cert is None) != (key is None):
            raise ConfigError("cert and key belong together; if one file holds both, pass it twice")
        if key_password is not None:
            if key is None:
                raise ConfigError("key_password is given, but no key")
            if not isinstance(key_password, str | bytes) and not callable(key_password):
                raise ConfigError("key_password must be a str, bytes, or a function that returns one")
        if server_name is not None and not (isinstance(server_name, str) and _NAME.fullmatch(server_name)):
            raise ConfigError("server_name must be a host name (IDN as xn--...) or an IP address, without a port")
        if not isinstance(insecure_skip_server_verification, bool):
            raise ConfigError("insecure_skip_server_verification must be True or False")
        if not isinstance(reconnect, bool):
            raise ConfigError("reconnect must be True or False")
        if insecure_skip_server_verification:
            text = "TLS without verification: an attacker on the network path can read and change everything"
            warnings.warn(text, stacklevel=2)
        values = {
            "ca": ca,
            "cert": cert,
            "key": key,
            "server_name": server_name,
            "insecure_skip_server_verification": insecure_skip_server_verification,
            "reconnect": reconnect,
            # Always a function, so that code that prints or copies attributes finds no secret.
            "_key_password": _giving(key_password),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def has_key_password(self) -> bool:
        """Whether a password was given."""
        return self._key_password is not None

    def ask_key_password(self) -> str | bytes | None:
        """The password of the key; None if none was given. An exception of the function passes through."""
        return None if self._key_password is None else self._key_password()

    @when_constructed
    def __repr__(self) -> str:
        shown = [f"{name}={_shown(getattr(self, name))}" for name in ("ca", "cert", "key", "server_name")]
        if self.has_key_password:
            shown.append("key_password=<hidden>")
        if self.insecure_skip_server_verification:
            shown.append("insecure_skip_server_verification=True")
        if self.reconnect:
            shown.append("reconnect=True")
        return f"TLS({', '.join(option for option in shown if not option.endswith('=None'))})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"TLS is immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"TLS is immutable: {name!r} cannot be deleted")

    def __reduce__(self) -> NoReturn:
        raise TypeError("TLS may hold secrets and cannot be pickled: make it where it is needed")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


def is_pem(ca: PathText | bytes) -> bool:
    """Whether `ca` is the certificates themselves, not a path."""
    return isinstance(ca, bytes) or (isinstance(ca, str) and _PEM in ca)


def _check_ca(ca: object) -> None:
    if isinstance(ca, bytes):
        if _PEM.encode() not in ca:
            raise ConfigError("ca given as bytes must be PEM; a path is given as a str or a Path")
    elif ca is not None and not (isinstance(ca, str) and _PEM in ca):
        _check_path("ca", ca)


def _check_path(name: str, path: object) -> None:
    """Check a path. The error does not repeat the value, which may be the key itself."""
    if path is None:
        return
    if not isinstance(path, str | os.PathLike):
        raise ConfigError(f"{name} must be the path of a file, not {type(path).__name__}")
    text = os.fspath(path)
    if not isinstance(text, str) or not text or not text.isprintable() or _PEM in text:
        raise ConfigError(f"{name} must be the path of a file, not its content")


def _giving(password: Password | None) -> Callable[[], str | bytes] | None:
    if isinstance(password, str | bytes):
        return lambda: password
    return password


def _shown(value: object) -> str:
    if isinstance(value, bytes) or (isinstance(value, str) and _PEM in value):
        return "<PEM>"
    return repr(os.fspath(value)) if isinstance(value, os.PathLike) else repr(value)
