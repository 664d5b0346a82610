"""config/settings.py: values that are given win, files become a TLS configuration, and nothing secret is shown."""

import ssl

import pytest

from etcd_aio import TLS
from etcd_aio.config import Settings, client_options
from etcd_aio.errors import ConfigError


def test_what_is_given_wins() -> None:
    settings = Settings(options={"timeout": 3.0, "retry": "never"})
    assert client_options(settings, {"timeout": None}) == {"timeout": None, "retry": "never"}


def test_files_become_a_tls_configuration() -> None:
    settings = Settings(tls={"ca": "ca.pem", "cert": "c.pem", "key": "k.pem", "server_name": "etcd"})
    expected = TLS(ca="ca.pem", cert="c.pem", key="k.pem", server_name="etcd")
    assert repr(client_options(settings, {}).get("tls")) == repr(expected)
    assert repr(client_options(Settings(tls={}), {}).get("tls")) == repr(TLS())
    with pytest.raises(ConfigError, match="belong together"):
        client_options(Settings(tls={"cert": "c.pem"}), {})
    mine = ssl.create_default_context()
    assert client_options(Settings(tls={"ca": "nowhere"}), {"tls": mine}).get("tls") is mine


def test_credentials_are_passed_on_unless_there_are_others() -> None:
    said = Settings(auth=("name", "c4n4ry"))
    assert client_options(said, {}) == {"auth": ("name", "c4n4ry")}
    assert client_options(Settings(token="c4n4ry"), {}) == {"token": "c4n4ry"}
    assert client_options(said, {"token": "other"}) == {"token": "other"}
    assert client_options(said, {"auth": None}) == {"auth": None}


def test_nothing_secret_is_shown() -> None:
    assert "c4n4ry" not in repr(Settings(auth=("name", "c4n4ry"), token="c4n4ry"))
