"""error_handler/credentials.py: what is taken, and that they show nothing and go nowhere."""

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from etcd_aio.error_handler.credentials import (
    Credentials,
    Password,
    StaticToken,
    TokenSource,
    credentials_from,
    is_token,
)
from etcd_aio.errors import ConfigError


async def give() -> str:
    return "given-c4n4ry"


ALL: tuple[Credentials, ...] = (Password("root", "pw-c4n4ry"), StaticToken("jwt-c4n4ry"), TokenSource(give))


def test_the_arguments_decide_the_kind_of_credentials() -> None:
    assert credentials_from(None, None) is None
    password = credentials_from(("root", "pw-c4n4ry"), None)
    assert isinstance(password, Password)
    assert (password.name, password.password) == ("root", "pw-c4n4ry")
    static = credentials_from(None, "jwt-c4n4ry")
    assert isinstance(static, StaticToken)
    assert static.token == "jwt-c4n4ry"
    source = credentials_from(None, give)
    assert isinstance(source, TokenSource)
    assert source.function is give


WRONG: list[tuple[Any, Any]] = [
    (("root", "c4n4ry"), "c4n4ry"),
    (("root", "c4n4ry"), give),
    (("c4n4ry", ""), None),
    (("", "c4n4ry"), None),
    (("root", b"c4n4ry"), None),
    ((None, "c4n4ry"), None),
    (("root", "c4n4ry\ud800"), None),
    (("root", "c4n4ry", "more"), None),
    ("root:c4n4ry", None),
    (None, ""),
    (None, b"c4n4ry"),
    (None, "c4n4ry c4n4ry"),
    (None, "c4n4ry\r\nhasleader: x"),
    (None, "c4n4ry-ü"),
    (None, 5),
]


@pytest.mark.parametrize(("auth", "token"), WRONG)
def test_what_cannot_work_is_refused_and_not_repeated(auth: Any, token: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        credentials_from(auth, token)
    assert "c4n4ry" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("credentials", ALL, ids=repr)
def test_they_show_nothing_and_go_nowhere(credentials: Credentials) -> None:
    @dataclasses.dataclass
    class Holder:
        inside: Credentials

    shown = [
        repr(credentials),
        str(credentials),
        repr(Holder(credentials)),
        repr(dataclasses.asdict(Holder(credentials))),
    ]
    assert not any("c4n4ry" in text or "root" in text for text in shown)
    assert copy.copy(credentials) is credentials
    assert copy.deepcopy(credentials) is credentials
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(credentials, protocol)


def test_they_are_forgotten() -> None:
    password, static = Password("root", "pw-c4n4ry"), StaticToken("jwt-c4n4ry")
    for one in (password, static, TokenSource(give)):
        one.forget()
    assert (password.password, static.token) == ("", "")


def test_what_a_header_can_carry() -> None:
    assert is_token("")
    assert is_token("QWxhZGRpbg.17~-_=")
    assert not any(is_token(text) for text in ("a b", "a\n", "ü", None, b"a"))
