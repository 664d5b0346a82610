"""config/proxy_environment.py: the variable that counts for an endpoint, and every form of NO_PROXY."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.config.proxy_environment import NoProxy, proxies_of_environment
from etcd_aio.errors import ConfigError

ALL = {"HTTPS_PROXY": "http://s:1", "HTTP_PROXY": "http://h:1", "ALL_PROXY": "socks5://a:1"}


def name(environ: dict[str, str], host: str = "m1", port: int = 2379, *, tls: bool = False) -> str:
    proxy = proxies_of_environment(environ)(host, port, tls)
    return "" if proxy is None else proxy.name


def test_the_variable_that_counts() -> None:
    assert name({}) == name({}, tls=True) == name({"HTTP_PROXY": ""}) == ""
    assert (name(ALL), name(ALL, tls=True)) == ("http://h:1", "http://s:1")
    only = {"ALL_PROXY": "socks5://a:1"}
    assert name(only) == name(only, tls=True) == "socks5://a:1"
    assert name({"HTTPS_PROXY": "http://s:1"}) == ""
    assert name({"HTTP_PROXY": "http://s:1"}, tls=True) == ""
    assert name({**ALL, "http_proxy": "http://small:1"}) == "http://small:1"
    assert name({**ALL, "http_proxy": ""}) == "http://h:1"
    assert name({"HTTP_PROXY": "p:3128"}) == "http://p:3128"
    assert name({**ALL, "REQUEST_METHOD": "GET"}) == "socks5://a:1"
    assert name({"http_proxy": "p:1", "REQUEST_METHOD": "GET"}) == "http://p:1"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "127.0.0.1", "127.1.2.3", "::1"])
def test_this_machine_is_dialled_directly(host: str) -> None:
    assert name(ALL, host) == ""


def test_a_variable_that_is_no_proxy_is_named_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match="HTTPS_PROXY must begin") as caught:
        proxies_of_environment({"HTTPS_PROXY": "c4n4ry://p"})
    assert "c4n4ry" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "host", "port", "expected"),
    [
        ("*", "m1.example.com", 1, True),
        ("example.com", "example.com", 1, True),
        ("example.com", "EXAMPLE.com.", 1, True),
        ("example.com", "m1.example.com", 1, True),
        ("example.com", "m1example.com", 1, False),
        (".example.com", "m1.example.com", 1, True),
        (".example.com", "example.com", 1, True),
        ("*.example.com", "m1.example.com", 1, True),
        ("Example.com.", "m1.example.com", 1, True),
        ("example.com:2379", "m1.example.com", 2379, True),
        ("example.com:2379", "m1.example.com", 2380, False),
        ("a,b example.com", "example.com", 1, True),
        (" , a,,", "example.com", 1, False),
        ("10.0.0.1", "10.0.0.1", 1, True),
        ("10.0.0.1", "10.0.0.11", 1, False),
        ("0.0.1", "10.0.0.1", 1, False),
        ("10.0.0.1:1", "10.0.0.1", 1, True),
        ("10.0.0.1:1", "10.0.0.1", 2, False),
        ("10.0.0.0/8", "10.9.9.9", 1, True),
        ("10.0.0.7/8", "10.9.9.9", 1, True),
        ("10.0.0.0/8", "11.9.9.9", 1, False),
        ("10.0.0.0/8", "m1", 1, False),
        ("2001:db8::1", "2001:db8::1", 1, True),
        ("[2001:db8::1]", "2001:db8:0::1", 1, True),
        ("[2001:db8::1]:1", "2001:db8::1", 1, True),
        ("[2001:db8::1]:1", "2001:db8::1", 2, False),
        ("2001:db8::/32", "2001:db8:9::1", 1, True),
        ("2001:db8::/32", "10.0.0.1", 1, False),
        ("10.0.0.0/99", "10.0.0.1", 1, False),
        (".", "m1", 1, False),
        ("", "m1", 1, False),
    ],
)
def test_no_proxy(text: str, host: str, port: int, expected: bool) -> None:
    assert NoProxy(text).covers(host, port) == expected
    assert NoProxy(f"other.test,{text}").covers(host, port) == expected
    assert name({**ALL, "NO_PROXY": text}, host, port) == ("" if expected else "http://h:1")
    assert name({**ALL, "NO_PROXY": "*", "no_proxy": text or "-"}, host, port) == ("" if expected else "http://h:1")


@given(address=st.ip_addresses(), bits=st.integers(0, 32))
def test_networks_are_those_of_python(address: object, bits: int) -> None:
    network = ip_network(f"{address}/{bits}", strict=False)
    for host in (network[0], network[-1], ip_address("8.8.8.8"), ip_address("2001:db8::8")):
        assert NoProxy(f"{address}/{bits}").covers(str(host), 1) == (host in network)


@given(text=st.text(), host=st.sampled_from(["m1", "10.0.0.1", "::1"]))
def test_any_text_is_taken(text: str, host: str) -> None:
    NoProxy(text).covers(host, 1)
