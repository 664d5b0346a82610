"""config/options.py: the options are those of the client; wrong values are refused by the name of the option."""

import inspect
import math
from typing import Any

import pytest

from etcd_aio import Client, ConfigError, RetryPolicy
from etcd_aio.config import TEXT_OPTIONS, ClientOptions, check_options, read_option
from etcd_aio.observing import Observer
from tests.support.fake_engine import FakeEngine

DEFAULTS = {name: parameter.default for name, parameter in inspect.signature(Client).parameters.items()}


def test_the_options_are_those_of_the_client() -> None:
    assert set(ClientOptions.__annotations__) == DEFAULTS.keys() - {"endpoints", "discovery_srv"}


def test_every_option_is_checked_by_its_type_or_where_it_is_used() -> None:
    assert ClientOptions.__annotations__.keys() - TEXT_OPTIONS == {
        "tls",
        "auth",
        "token",
        "retry_policy",
        "observers",
    }


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"timeout": None},
        {"timeout": 1},
        {"timeout": math.inf},
        {"connect_timeout": 0.001},
        {"keepalive_time": 5},
        {"hedge_after": 0.1, "auto_sync": 30},
        {"retry": "never"},
        {"retry": "always"},
        {"retry_policy": RetryPolicy()},
        {"policy": lambda offered: offered[0]},
        {"engine": lambda options: FakeEngine()},
        {"max_send_bytes": 1, "max_receive_bytes": 2**31 - 1},
        {"allow_insecure_auth": True},
        {"discovery_srv_name": "dev-1"},
        {"namespace": "app/"},
        {"namespace": b"\xff"},
        {"observers": [Observer()]},
        {"proxy": "http://me:c4n4ry@p:3128"},
        {"proxy": "socks5h://p"},
        {"proxy": "environment"},
        {"name": "orders"},
        {"name": "a.b_c-d:e/F9" + "0" * 52},
    ],
)
def test_what_can_work_is_taken(changes: dict[str, Any]) -> None:
    check_options(**DEFAULTS | changes)


WRONG: dict[str, tuple[object, ...]] = {
    "timeout": (0, -1, math.nan, "5", True, 1e10),
    "connect_timeout": (0, -1, math.nan, None, "2", True),
    "keepalive_time": (4.999, 0, -1, math.nan, None, "10", True),
    "keepalive_timeout": (0, -1, math.nan, None, "3"),
    "hedge_after": (0, -1, math.nan, "1", True),
    "auto_sync": (0, -1, math.nan, "1", True),
    "allow_insecure_auth": (None, 1, "no"),
    "require_leader": (None, 1, "no"),
    "reject_old_cluster": (None, 1, "no"),
    "fail_fast": (None, 1, "no"),
    "namespace": ("", b"", 1, True, "\ud800"),
    "observers": (None, Observer(), [print], [Observer]),
    "engine": ("", "grpcio", None, ["grpclib"]),
    "retry": ("", "sometimes", None, True),
    "policy": ("", "least_busy", None, 1),
    "retry_policy": ("safe", 3),
    "max_send_bytes": (0, -1, 2**31, 1.5, None, True),
    "max_receive_bytes": (0, -1, 2**31, 1.5, None, True),
    "proxy": ("", 1, b"http://p", "p:3128", "none", "ftp://p", "http://me:c4n4ry@@p"),
    "name": (None, 1, True, b"a", "a b", "50%", "a\n", "\u00e9", "a" * 65),
    "discovery_srv_name": (None, 1, "a.b", "-a", "a\n", "a" * 43),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_what_cannot_work_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        check_options(**DEFAULTS | {name: value})


def test_every_option_that_is_checked_here_has_a_wrong_value_above() -> None:
    assert WRONG.keys() == TEXT_OPTIONS | {"retry_policy", "observers"}


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        ("timeout", "3s", 3.0),
        ("timeout", "none", None),
        ("connect_timeout", "500ms", 0.5),
        ("keepalive_time", "1m", 60.0),
        ("keepalive_timeout", "4", 4.0),
        ("auto_sync", "30", 30.0),
        ("auto_sync", "none", None),
        ("policy", "round_robin", "round_robin"),
        ("engine", "grpclib", "grpclib"),
        ("retry", "never", "never"),
        ("require_leader", "false", False),
        ("require_leader", "1", True),
        ("reject_old_cluster", "True", True),
        ("fail_fast", "true", True),
        ("max_send_bytes", "4096", 4096),
        ("discovery_srv_name", "dev", "dev"),
        ("name", "orders/eu-1", "orders/eu-1"),
    ],
)
def test_options_as_texts(option: str, text: str, value: object) -> None:
    found = read_option(option, text)
    assert found == value
    assert type(found) is type(value)


WORDS = {"policy", "engine", "retry", "discovery_srv_name", "name", "namespace"}  # the client judges them


@pytest.mark.parametrize(
    ("option", "text"),
    [(one, "") for one in sorted(TEXT_OPTIONS)] + [(one, "c4n4ry!") for one in sorted(TEXT_OPTIONS - WORDS)],
)
def test_what_cannot_be_read_is_refused_by_name_and_not_repeated(option: str, text: str) -> None:
    with pytest.raises(ConfigError, match="THE_NAME") as caught:
        read_option(option, text, "THE_NAME")
    assert "c4n4ry" not in str(caught.value)
