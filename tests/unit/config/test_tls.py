"""config/tls.py: which values are taken and refused; it cannot be changed or copied, and shows no secret."""

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

from etcd_aio.config import TLS, is_pem
from etcd_aio.errors import ConfigError
from tests.support.canary import CANARY, secret

PEM = f"-----BEGIN CERTIFICATE-----\n{CANARY}\n-----END CERTIFICATE-----\n"
KEY = f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ca": "ca.pem"},
        {"ca": Path("ca")},
        {"ca": PEM},
        {"ca": PEM.encode()},
        {"cert": "c.pem", "key": Path("k.pem")},
        {"cert": "c.pem", "key": "c.pem", "key_password": secret()},
        {"cert": "c.pem", "key": "c.pem", "key_password": secret().encode()},
        {"cert": "c.pem", "key": "c.pem", "key_password": secret},
        {"reconnect": True},
        *[{"server_name": name} for name in ("etcd", "m1.etcd.test", "xn--bcher-kva.test", "127.0.0.1", "::1", "a_b")],
    ],
)
def test_what_can_work_is_taken(options: dict[str, Any]) -> None:
    tls = TLS(**options)
    for name, value in options.items():
        if name != "key_password":
            assert getattr(tls, name) == value
    assert tls.has_key_password == ("key_password" in options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"ca": ""}, "ca must be"),
        ({"ca": 3}, "ca must be the path of a file, not int"),
        ({"ca": b"\0\1"}, "ca given as bytes must be PEM"),
        ({"cert": "c.pem"}, "cert and key belong together"),
        ({"key": "k.pem"}, "cert and key belong together"),
        ({"cert": PEM, "key": "k.pem"}, "cert must be the path"),
        ({"cert": "c.pem", "key": KEY}, "key must be the path of a file, not its content"),
        ({"cert": "c.pem", "key": KEY.encode()}, "key must be the path of a file, not bytes"),
        ({"cert": "c.pem", "key": f"{CANARY}\n"}, "key must be the path of a file, not its content"),
        ({"key_password": secret()}, "key_password is given, but no key"),
        ({"cert": "c.pem", "key": "k.pem", "key_password": 7}, "key_password must be"),
        *[({"server_name": name}, "server_name must be") for name in ("", ".a", "a b", "*.test", "b\xfc", 3, b"a")],
        ({"insecure_skip_server_verification": 1}, "must be True or False"),
        ({"reconnect": "true"}, "reconnect must be True or False"),
    ],
)
def test_what_cannot_work_is_refused_and_never_repeated(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        TLS(**options)
    assert CANARY not in str(caught.value)


def test_it_cannot_be_changed() -> None:
    tls = TLS(ca="ca.pem")
    with pytest.raises(AttributeError, match="immutable"):
        tls.ca = "other.pem"
    with pytest.raises(AttributeError, match="immutable"):
        tls.reconnect = True
    with pytest.raises(AttributeError, match="immutable"):
        del tls.ca
    with pytest.raises(AttributeError):
        tls.other = 1


def test_it_shows_paths_and_no_secret() -> None:
    tls = TLS(ca=Path("a/ca.pem"), cert="c.pem", key="k.pem", key_password=secret(), server_name="etcd")
    assert repr(tls) == "TLS(ca='a/ca.pem', cert='c.pem', key='k.pem', server_name='etcd', key_password=<hidden>)"
    assert str(tls) == repr(tls)
    assert repr(TLS(reconnect=True)) == "TLS(reconnect=True)"
    assert repr(TLS(ca=PEM)) == repr(TLS(ca=PEM.encode())) == "TLS(ca=<PEM>)"
    assert CANARY not in "".join(repr(getattr(tls, name)) for name in TLS.__slots__)
    assert tls.ask_key_password() == secret()


def test_it_is_shared_and_never_copied_or_pickled() -> None:
    tls = TLS(cert="c.pem", key="k.pem", key_password=secret())
    assert copy.copy(tls) is tls
    assert copy.deepcopy({"tls": tls})["tls"] is tls
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(tls)


def test_the_password_is_asked_for_when_it_is_needed() -> None:
    asked: list[int] = []

    def ask() -> str:
        asked.append(1)
        return secret()

    tls = TLS(cert="c.pem", key="k.pem", key_password=ask)
    assert asked == []
    assert tls.ask_key_password() == secret()
    assert TLS().ask_key_password() is None


def test_no_verification_is_warned_of_where_it_is_asked_for() -> None:
    with pytest.warns(UserWarning, match="TLS without verification") as caught:
        tls = TLS(insecure_skip_server_verification=True)
    assert caught[0].filename == __file__
    assert repr(tls) == "TLS(insecure_skip_server_verification=True)"


def test_certificates_are_told_from_paths() -> None:
    assert is_pem(PEM)
    assert is_pem(PEM.encode())
    assert not is_pem("ca.pem")
    assert not is_pem(Path("ca.pem"))
