"""TLS: what a user says about certificates, checked as far as the words go.

Knows: the options. Never knows: what is in the files, contexts, connections.
"""

import os
import re
import warnings
from collections.abc import Callable
from typing import Final, NoReturn, Self, TypeAlias

from etcd_aio.errors import ConfigError

PathText: TypeAlias = str | os.PathLike[str]
Password: TypeAlias = str | bytes | Callable[[], str | bytes]

_PEM: Final = "-----BEGIN"
_NAME: Final = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9._:-]*")


class TLS:
    """How members are verified, and who we are to them: `Client(..., tls=TLS(ca="ca.pem"))`.

    At least TLS 1.2, HTTP/2 agreed on by ALPN, and a certificate that names the endpoint are always required; a common
    name does not count as a name. The files are read when the client is made, so that a mistake is found there, and
    again before each dial: whoever replaces certificates replaces the files, and connections that are open stay open.
    Files that are half replaced are logged, and the last ones that fitted go on being used.

    It is immutable, may be shared by clients, and neither its repr nor anything else repeats a secret; hence it is not
    pickled either.

    Args:
        ca: the certificates of the authorities to trust: a file, a directory whose PEM files all count, or the PEM
            itself, as text or bytes. Default: those of the system, which are read once.
        cert: the PEM file of our own certificate, followed by the intermediate ones; needs `key`.
        key: the PEM file of its private key; it may be the same file. Readable by others, it is warned of.
        key_password: what the key is encrypted with, or a function that returns it: called, in a thread, whenever the
            key is read.
        server_name: the name that every member's certificate must carry, instead of its endpoint's own. Names no
            other endpoint: calls still say in `:authority` which one they mean, as with etcd's own client.
        insecure_skip_server_verification: take whatever certificate a member shows. Then whoever is in between reads
            and writes everything, so this warns; for experiments.

    Raises:
        ConfigError: the options contradict each other, or cannot be what they should be.
    """

    __slots__ = ("_key_password", "ca", "cert", "insecure_skip_server_verification", "key", "server_name")

    ca: PathText | bytes | None
    cert: PathText | None
    key: PathText | None
    server_name: str | None
    insecure_skip_server_verification: bool
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
    ) -> None:
        _check_ca(ca)
        _check_path("cert", cert)
        _check_path("key", key)
        if (cert is None) != (key is None):
            raise ConfigError("cert and key belong together; if one file holds both, name it twice")
        if key_password is not None:
            if key is None:
                raise ConfigError("key_password is given, but no key")
            if not isinstance(key_password, str | bytes) and not callable(key_password):
                raise ConfigError("key_password must be a str, bytes, or a function that returns one")
        if server_name is not None and not (isinstance(server_name, str) and _NAME.fullmatch(server_name)):
            raise ConfigError("server_name must be a host name (IDN as xn--...) or an IP address, without a port")
        if not isinstance(insecure_skip_server_verification, bool):
            raise ConfigError("insecure_skip_server_verification must be True or False")
        if insecure_skip_server_verification:
            text = "TLS without verification: anybody between us and etcd can read and change everything"
            warnings.warn(text, stacklevel=2)
        values = {
            "ca": ca,
            "cert": cert,
            "key": key,
            "server_name": server_name,
            "insecure_skip_server_verification": insecure_skip_server_verification,
            # A function even if it was a text: whatever prints or copies attributes finds no secret in it.
            "_key_password": _giving(key_password),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def has_key_password(self) -> bool:
        """Whether there is one."""
        return self._key_password is not None

    def ask_key_password(self) -> str | bytes | None:
        """The password of the key, None if none was given; whatever the user's function raises."""
        return None if self._key_password is None else self._key_password()

    def __repr__(self) -> str:
        shown = [f"{name}={_shown(getattr(self, name))}" for name in ("ca", "cert", "key", "server_name")]
        if self.has_key_password:
            shown.append("key_password=<hidden>")
        if self.insecure_skip_server_verification:
            shown.append("insecure_skip_server_verification=True")
        return f"TLS({', '.join(one for one in shown if not one.endswith('=None'))})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"TLS is immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"TLS is immutable: {name!r} cannot be deleted")

    def __reduce__(self) -> NoReturn:
        raise TypeError("TLS may hold secrets and is not pickled: make it anew where it is needed")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


def is_pem(ca: PathText | bytes) -> bool:
    """Whether `ca` is the certificates themselves and no path."""
    return isinstance(ca, bytes) or (isinstance(ca, str) and _PEM in ca)


def _check_ca(ca: object) -> None:
    if isinstance(ca, bytes):
        if _PEM.encode() not in ca:
            raise ConfigError("ca given as bytes must be PEM; a path is given as a str or a Path")
    elif ca is not None and not (isinstance(ca, str) and _PEM in ca):
        _check_path("ca", ca)


def _check_path(name: str, path: object) -> None:
    """The message must not repeat what is no path: it may be the key itself."""
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
