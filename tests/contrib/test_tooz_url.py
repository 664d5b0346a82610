"""contrib/tooz/url.py: what the URL of a coordinator says."""

import pytest

from etcd_aio import TLS
from etcd_aio.contrib.tooz.url import read_settings
from etcd_aio.errors import ConfigError


def test_the_defaults() -> None:
    settings = read_settings("m1,m2:2380", "", {})
    assert settings.url == "etcd://m1,m2:2380?timeout=10&namespace=tooz%2F"
    assert settings.options == {}
    assert (settings.membership_timeout, settings.lock_timeout, settings.call_timeout) == (30, 30, 10)


def test_without_a_host_it_is_this_machine() -> None:
    assert read_settings("", "", {}).url.startswith("etcd://127.0.0.1:2379?")


def test_timeout_is_that_of_members_and_locks_unless_they_have_their_own() -> None:
    settings = read_settings("m", "", {"timeout": "5", "lock_timeout": "8", "call_timeout": "3"})
    assert (settings.membership_timeout, settings.lock_timeout, settings.call_timeout) == (5, 8, 3)
    assert "timeout=3" in settings.url


@pytest.mark.parametrize("name", ["timeout", "membership_timeout", "lock_timeout", "call_timeout"])
@pytest.mark.parametrize("value", ["0", "-1", "half a minute", ""])
def test_times_are_whole_seconds(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"option {name} "):
        read_settings("m", "", {name: value})


def test_the_path_is_the_namespace() -> None:
    assert "namespace=jobs%2F" in read_settings("m", "/jobs", {}).url
    assert "namespace=jobs%2F" in read_settings("m", "/jobs/", {}).url
    assert "namespace=own" in read_settings("m", "/", {"namespace": "own"}).url
    with pytest.raises(ConfigError, match="two namespaces"):
        read_settings("m", "/jobs", {"namespace": "own"})


@pytest.mark.parametrize(
    ("options", "scheme"),
    [
        ({}, "etcd"),
        ({"tls": "false"}, "etcd"),
        ({"tls": "true"}, "etcds"),
        ({"tls": True}, "etcds"),
        ({"tls": "true", "ca_cert": "ca.pem"}, "etcds"),
        ({"ca": "/ca.pem"}, "etcds"),
        ({"ca_cert": "/ca.pem", "cert_cert": "/cert.pem", "cert_key": "/key.pem"}, "etcds"),
        ({"tls": TLS()}, "etcds"),
    ],
)
def test_tls(options: dict[str, object], scheme: str) -> None:
    settings = read_settings("m", "", options)
    assert settings.url.startswith(f"{scheme}://m?")
    assert "tls=" not in settings.url
    assert ("tls" in settings.options) is isinstance(options.get("tls"), TLS)


@pytest.mark.parametrize(
    ("options", "scheme"),
    [
        ({"dns": "true"}, "etcd+dns"),
        ({"dns": True, "ca": "/ca.pem"}, "etcds+dns"),
        ({"dns": "false"}, "etcd"),
        ({"dns": None, "tls": "true"}, "etcds"),
    ],
)
def test_names_of_dns(options: dict[str, object], scheme: str) -> None:
    settings = read_settings("m:2379", "", options)
    assert settings.url.startswith(f"{scheme}://m:2379?")
    assert "dns" not in settings.url.partition("?")[2]
    assert "dns" not in settings.options


def test_a_proxy_is_that_of_the_client() -> None:
    assert "proxy=http%3A%2F%2Fp%3A3128" in read_settings("m", "", {"proxy": "http://p:3128"}).url


@pytest.mark.parametrize(("name", "value"), [("dns", "perhaps"), ("dns", 1), ("tls", "perhaps")])
def test_flags_are_true_or_false(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"option {name} of the coordinator must be true or false"):
        read_settings("m", "", {name: value})


def test_the_files_may_have_the_names_of_the_driver_of_tooz() -> None:
    url = read_settings("m", "", {"ca_cert": "/a", "cert_cert": "/b", "cert_key": "/c"}).url
    assert "ca=%2Fa&cert=%2Fb&key=%2Fc&" in url


def test_what_is_no_text_goes_to_the_client_as_it_is() -> None:
    settings = read_settings("m", "", {"observers": [], "executor": "synchronous", "policy": "pinned"})
    assert settings.options == {"observers": []}
    assert "policy=pinned" in settings.url
    assert "executor" not in settings.url
