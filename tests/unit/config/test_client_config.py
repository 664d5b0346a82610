import asyncio
import dataclasses
import math
import pickle
import ssl
from pathlib import Path
from typing import Any

import pytest

from etcd_aio.balancer import parse_endpoint
from etcd_aio.config import TLS, CertificateFiles, ClientConfig, endpoints_from
from etcd_aio.error_handler import RetryPolicy
from etcd_aio.error_handler.credentials import Password
from etcd_aio.errors import ConfigError

SOMEBODY = Password("web", "pw-c4n4ry")


def config(**changes: Any) -> ClientConfig:
    options: dict[str, Any] = {
        "endpoints": endpoints_from(None),
        "tls": None,
        "timeout": 5.0,
        "connect_timeout": 2.0,
        "policy": "round_robin",
        "engine": "grpclib",
        "retry": "safe",
        "retry_policy": RetryPolicy(),
        "require_leader": True,
        "keepalive_time": 10.0,
        "keepalive_timeout": 3.0,
        "max_send_bytes": 2 * 2**20,
        "max_receive_bytes": 64 * 2**20,
    }
    return ClientConfig(**(options | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"timeout": None},
        {"timeout": 1},
        {"timeout": math.inf},
        {"connect_timeout": 0.001},
        {"keepalive_time": 5},
        {"retry": "never"},
        {"retry": "always"},
        {"policy": lambda offered: offered[0]},
        {"max_send_bytes": 1, "max_receive_bytes": 2**31 - 1},
        {"tls": ssl.create_default_context()},
        {"credentials": SOMEBODY, "endpoints": endpoints_from("https://m1,unix:/run/etcd,unixs:/run/etcd")},
        {"credentials": SOMEBODY, "endpoints": endpoints_from("m1"), "tls": ssl.create_default_context()},
        {"credentials": SOMEBODY, "endpoints": endpoints_from("m1,http://m2"), "allow_insecure_auth": True},
        {"allow_insecure_auth": True},
    ],
)
def test_what_can_work_is_taken(changes: dict[str, Any]) -> None:
    config(**changes)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("timeout", value) for value in (0, -1, math.nan, "5", True)],
        *[("connect_timeout", value) for value in (0, -1, math.nan, None, "2", True)],
        *[("keepalive_time", value) for value in (4.999, 0, -1, math.nan, None, "10", True)],
        *[("keepalive_timeout", value) for value in (0, -1, math.nan, None, "3")],
        *[("allow_insecure_auth", value) for value in (None, 1, "no")],
        *[("engine", value) for value in ("", "grpcio", None, ["grpclib"])],
        *[("retry", value) for value in ("", "sometimes", None, True)],
        *[("policy", value) for value in ("", "least_busy", None, 1)],
        *[("retry_policy", value) for value in (None, 3)],
        *[("max_send_bytes", value) for value in (0, -1, 2**31, 1.5, None, True)],
        *[("max_receive_bytes", value) for value in (0, -1, 2**31, 1.5, None, True)],
        *[("tls", value) for value in (True, "ca.pem", ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))],
    ],
)
def test_what_cannot_work_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        config(**{name: value})


def test_the_default_endpoint_is_etcds_own() -> None:
    assert [endpoint.name for endpoint in endpoints_from(None)] == ["127.0.0.1:2379"]
    assert [endpoint.name for endpoint in endpoints_from("m1,m2")] == ["m1:2379", "m2:2379"]
    with pytest.raises(ConfigError):
        endpoints_from([])


def test_the_transport_gets_its_options() -> None:
    options = config(connect_timeout=1.0, keepalive_time=6.0, keepalive_timeout=4.0, max_receive_bytes=77)
    passed = options.transport_options("agent/1")
    assert (passed.connect_timeout, passed.keepalive_time, passed.keepalive_timeout) == (1.0, 6.0, 4.0)
    assert (passed.max_receive_bytes, passed.user_agent) == (77, "agent/1")


@pytest.mark.parametrize(
    ("text", "with_context", "without"),
    [
        ("m1", True, False),
        ("http://m1", False, False),
        ("https://m1", True, True),
        ("unix:e.sock", True, False),
        ("unixs:e.sock", True, True),
    ],
)
def test_who_gets_tls(text: str, with_context: bool, without: bool) -> None:
    context = ssl.create_default_context()
    endpoint = parse_endpoint(text)
    assert (config(tls=context).tls_for(endpoint) is context) == with_context
    assert (config(tls=TLS()).tls_for(endpoint) is not None) == with_context
    assert (config().tls_for(endpoint) is not None) == without


@pytest.mark.parametrize("tls", [None, TLS()])
def test_without_files_the_systems_roots_verify_and_are_read_once_and_not_before_they_are_needed(
    tls: TLS | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ssl.SSLContext] = []
    create = ssl.create_default_context

    def counted() -> ssl.SSLContext:
        made.append(create())
        return made[-1]

    monkeypatch.setattr(ssl, "create_default_context", counted)
    options = config(tls=tls)
    source = options.tls_for(parse_endpoint("https://m1"))
    assert isinstance(source, CertificateFiles)
    assert options.tls_for(parse_endpoint("https://m2")) is source
    assert made == []

    async def ask() -> None:
        context = await source.context()
        assert made == [context]
        assert await source.context() is context
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.check_hostname

    asyncio.run(ask())


def test_wrong_files_are_found_before_anything_is_dialled(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ca: .*nowhere\.pem: No such file"):
        config(tls=TLS(ca=tmp_path / "nowhere.pem"))


def test_a_context_of_the_users_gets_alpn_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    class Watched(ssl.SSLContext):
        def __setattr__(self, name: str, value: object) -> None:
            told.append(name)

        def __getattribute__(self, name: str) -> object:
            if name.startswith(("load_", "set_")):
                told.append(name)
            return super().__getattribute__(name)

    context = ssl.SSLContext.__new__(Watched, ssl.PROTOCOL_TLS_CLIENT)
    config(tls=context)
    assert told == ["set_alpn_protocols"]


def test_two_configurations_compare_by_their_options_and_show_no_context() -> None:
    assert config() == config()
    assert "SSLContext" not in repr(config(tls=ssl.create_default_context()))
    assert "CertificateFiles" not in repr(config(tls=TLS()))


@pytest.mark.parametrize("endpoint", ["m1:2379", "127.0.0.1", "http://m1"])
def test_credentials_do_not_cross_a_network_in_the_clear(endpoint: str) -> None:
    tls = ssl.create_default_context() if endpoint == "http://m1" else None
    with pytest.raises(ConfigError, match="in plain text") as caught:
        config(credentials=SOMEBODY, endpoints=endpoints_from(f"https://m0,{endpoint}"), tls=tls)
    assert "c4n4ry" not in str(caught.value)
    assert endpoint in str(caught.value)


def test_nothing_shows_the_credentials() -> None:
    made = config(credentials=SOMEBODY, allow_insecure_auth=True)
    assert "c4n4ry" not in repr(made) + repr(dataclasses.asdict(dataclasses.replace(made, tls=None)))
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(made)
