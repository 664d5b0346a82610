"""config/proxies.py: the proxy of each endpoint of a client, and no secret in what is shown of it."""

import os

import pytest

from etcd_aio import Client
from etcd_aio.balancer import parse_endpoint
from etcd_aio.config import parse_url, proxies_from, read_environment
from etcd_aio.errors import ConfigError
from etcd_aio.transport import Proxy, Target, TransportOptions

SECRET = "http://me:c4n4ry@p:3128"


def test_one_proxy_is_for_every_endpoint_but_unix_sockets() -> None:
    proxy_for = proxies_from(SECRET, {"NO_PROXY": "*"})
    for text in ("m1", "127.0.0.1", "[::1]:1"):
        assert parse_endpoint(text).target(None, proxy_for).proxy == Proxy("http", "p", 3128, "me", "c4n4ry")
    assert parse_endpoint("unix:///run/e.sock").target(None, proxy_for).proxy is None


def test_the_environment_counts_only_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", SECRET)
    monkeypatch.setenv("NO_PROXY", "m2")
    proxy_for = proxies_from("environment", os.environ)
    assert proxy_for("m1", 2379, False) == Proxy("http", "p", 3128, "me", "c4n4ry")
    assert proxy_for("m2", 2379, False) is None
    for option, expected in ((None, None), ("environment", "http://p:3128")):
        assert dialled(proxy=option) == expected


def dialled(**options: object) -> str | None:
    """The proxy that a client gives its engine."""
    client = Client("m1:2379", engine=unused, **options)  # type: ignore[arg-type]
    proxy = client._balancer.target("m1:2379").proxy
    return None if proxy is None else proxy.name


def unused(options: TransportOptions) -> object:
    return None


def test_a_proxy_with_tls_gets_the_authorities_of_the_system() -> None:
    for proxy_for in (proxies_from("https://p", {}), proxies_from("environment", {"HTTP_PROXY": "https://p"})):
        proxy = proxy_for("m1", 1, False)
        assert proxy is not None
        assert proxy.tls is not None
    proxy = proxies_from("http://p", {})("m1", 1, True)
    assert proxy is not None
    assert proxy.tls is None


def test_a_client_refuses_what_is_no_proxy_and_does_not_repeat_it() -> None:
    for text in ("c4n4ry", "ftp://me:c4n4ry@p", "", 5, "http://me:c4n4ry@p@q"):
        with pytest.raises(ConfigError, match="proxy") as caught:
            Client("m1", proxy=text)  # type: ignore[arg-type]
        assert "c4n4ry" not in str(caught.value)


def test_nothing_that_is_shown_has_the_password() -> None:
    url = "etcd://m1?proxy=http%3A%2F%2Fme%3Ac4n4ry%40p%3A3128"
    client = Client.from_url(url, engine=unused)  # type: ignore[arg-type]
    target = client._balancer.target("http://m1:2379")
    assert isinstance(target, Target)
    assert target.proxy == Proxy("http", "p", 3128, "me", "c4n4ry")
    shown = (parse_url(url), read_environment({"ETCD_PROXY": SECRET}), client, client.statistics(), target)
    for one in shown:
        assert "c4n4ry" not in repr(one)
