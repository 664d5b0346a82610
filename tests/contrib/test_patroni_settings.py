"""contrib/patroni/settings.py, contrib/patroni/wakes.py: the configuration, and the reasons to run the loop."""

import json
from typing import Any

import pytest

from etcd_aio.contrib.patroni.settings import SettingsError, settings_of
from etcd_aio.contrib.patroni.wakes import wakes


@pytest.mark.parametrize(
    ("section", "endpoints"),
    [
        ({"host": "m1"}, ["http://m1:2379"]),
        ({"host": "m1:1", "port": 2}, ["http://m1:1"]),
        ({"host": "m1", "port": "2"}, ["http://m1:2"]),
        ({"hosts": "m1:1, m2,"}, ["http://m1:1", "http://m2:2379"]),
        ({"hosts": ["m1:1", "[::1]:2", "[::2]"]}, ["http://m1:1", "http://[::1]:2", "http://[::2]:2379"]),
        ({"hosts": "m1,m2", "protocol": "https"}, ["https://m1:2379", "https://m2:2379"]),
        ({"host": "m1", "cacert": "ca.pem"}, ["https://m1:2379"]),
        ({"host": "m1", "cacert": "ca.pem", "protocol": "http"}, ["http://m1:2379"]),
        ({"url": "https://m1"}, ["https://m1:2379"]),
        ({"proxy": "http://u:p@proxy:80"}, ["http://proxy:80"]),
        ({"hosts": ["https://m1:5"]}, ["https://m1:5"]),
    ],
)
def test_the_members(section: dict[str, Any], endpoints: list[str]) -> None:
    assert list(settings_of(section).endpoints) == endpoints


def test_dns_names_the_members() -> None:
    options = settings_of({"srv": "example.com", "srv_suffix": "pg", "host": "m1"})
    assert options.endpoints == ()
    assert options.options()["discovery_srv"] == "example.com"
    assert options.options()["discovery_srv_name"] == "pg"


@pytest.mark.parametrize(
    ("section", "user"),
    [
        ({"username": "u", "password": "p"}, ("u", "p")),
        ({"username": "u"}, None),
        ({"url": "http://a:b@m1"}, ("a", "b")),
    ],
)
def test_the_user(section: dict[str, Any], user: tuple[str, str] | None) -> None:
    assert settings_of({"host": "m1", **section}).user == user


def test_tls_and_plain_text() -> None:
    plain = settings_of({"host": "m1"}).options()
    assert plain["tls"] is None
    assert plain["allow_insecure_auth"] is True
    secured = settings_of({"host": "m1", "cacert": "ca.pem", "cert": "both.pem"}).options()
    assert (secured["tls"].ca, secured["tls"].cert, secured["tls"].key) == ("ca.pem", "both.pem", "both.pem")
    assert secured["allow_insecure_auth"] is False
    assert settings_of({"host": "m1", "protocol": "HTTPS"}).options()["tls"] is not None


@pytest.mark.parametrize(
    ("section", "is_allowed"),
    [
        ({"host": "m1", "protocol": "http", "cacert": "ca.pem"}, True),
        ({"url": "http://m1", "cacert": "ca.pem"}, True),
        ({"srv": "example.com"}, True),
        ({"srv": "example.com", "protocol": "https"}, False),
        ({"srv": "example.com", "cacert": "ca.pem"}, False),
        ({"hosts": ["https://m1"]}, False),
    ],
)
def test_a_password_may_be_sent_in_plain_text_if_the_protocol_is_http(
    section: dict[str, Any], is_allowed: bool
) -> None:
    assert settings_of(section).options()["allow_insecure_auth"] is is_allowed


@pytest.mark.parametrize("section", [{"proxy": "http://p"}, {"host": "m1", "use_proxies": True}])
def test_behind_a_proxy_members_are_not_searched_for(section: dict[str, Any]) -> None:
    assert settings_of({"host": "m1"}).options()["auto_sync"] is not None
    assert settings_of(section).options()["auto_sync"] is None


@pytest.mark.parametrize(
    "section",
    [
        {},
        {"hosts": ""},
        {"host": "m1", "key": "k.pem"},
        {"hosts": "m1:x"},
        {"hosts": "m1:99999"},
        {"hosts": "::1"},
        {"host": "m1", "port": "x"},
        {"url": "http://m1:x"},
    ],
)
def test_a_section_that_cannot_be_used(section: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        settings_of(section)


def test_an_error_does_not_show_a_password() -> None:
    with pytest.raises(SettingsError) as caught:
        settings_of({"url": "http://web:secret/x@m1"})
    assert "secret" not in f"{caught.value!r} {caught.value.__cause__!r}"
    assert "secret" not in repr(settings_of({"url": "http://web:secret@m1"}))


def member(state: str, **more: object) -> str:
    return json.dumps({"state": state, "role": "replica", **more})


BEFORE = {"leader": "n1", "members/n1": member("running"), "members/n2": member("running"), "status": "1"}


@pytest.mark.parametrize(
    ("changed", "wakes_leader", "wakes_replica"),
    [
        ({}, False, False),
        ({"leader": "n1"}, False, False),  # another lease
        ({"leader": None}, True, True),
        ({"leader": "n2"}, True, True),
        ({"failover": "{}"}, True, True),
        ({"config": "{}"}, True, True),
        ({"status": "2"}, False, True),
        ({"sync": "{}"}, False, True),
        ({"history": "[]"}, False, False),
        ({"members/n3": member("running")}, True, True),
        ({"members/n3": None}, False, False),  # it was not there
        ({"members/n2": member("running", xlog_location=2)}, False, False),
        ({"members/n2": member("stopped")}, True, False),  # its own
        ({"members/n2": None}, True, False),
        ({"members/n1": member("running", role="primary")}, False, True),
        ({"members/n1": "no json"}, False, True),
        ({"status": "2", "leader": None}, True, True),
    ],
)
def test_what_wakes_the_loop(changed: dict[str, str | None], wakes_leader: bool, wakes_replica: bool) -> None:
    assert wakes(changed, BEFORE, "n1") is wakes_leader
    assert wakes(changed, BEFORE, "n2") is wakes_replica
