import inspect
import ssl

import pytest

from etcd_aio import TLS, Client
from etcd_aio.config import OPTIONS, ClientOptions, Settings, TLSFiles, client_options, read_option
from etcd_aio.errors import ConfigError


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
    ],
)
def test_options_as_texts(option: str, text: str, value: object) -> None:
    found = read_option(option, text)
    assert found == value
    assert type(found) is type(value)


WORDS = {"policy", "engine", "retry", "discovery_srv_name"}  # the client judges them


@pytest.mark.parametrize(
    ("option", "text"), [(one, "") for one in sorted(OPTIONS)] + [(one, "c4n4ry!") for one in sorted(OPTIONS - WORDS)]
)
def test_what_cannot_be_read_is_refused_by_name_and_not_repeated(option: str, text: str) -> None:
    with pytest.raises(ConfigError, match="THE_NAME") as caught:
        read_option(option, text, "THE_NAME")
    assert "c4n4ry" not in str(caught.value)


def test_every_option_that_a_text_can_give_is_one_of_the_clients() -> None:
    assert set(ClientOptions.__annotations__) >= OPTIONS


def test_the_options_are_those_of_the_client() -> None:
    own = set(inspect.signature(Client).parameters) - {"endpoints", "discovery_srv"}
    assert set(ClientOptions.__annotations__) == own


def test_what_is_given_wins() -> None:
    settings = Settings(options={"timeout": 3.0, "retry": "never"})
    assert client_options(settings, {"timeout": None}) == {"timeout": None, "retry": "never"}


def test_files_become_a_tls_configuration() -> None:
    found = client_options(Settings(tls=TLSFiles("ca.pem", "c.pem", "k.pem", "etcd")), {}).get("tls")
    assert repr(found) == repr(TLS(ca="ca.pem", cert="c.pem", key="k.pem", server_name="etcd"))
    assert repr(client_options(Settings(tls=TLSFiles()), {}).get("tls")) == repr(TLS())
    with pytest.raises(ConfigError, match="belong together"):
        client_options(Settings(tls=TLSFiles(cert="c.pem")), {})
    mine = ssl.create_default_context()
    assert client_options(Settings(tls=TLSFiles("nowhere")), {"tls": mine}).get("tls") is mine


def test_credentials_are_passed_on_unless_there_are_others() -> None:
    said = Settings(auth=("name", "c4n4ry"))
    assert client_options(said, {}) == {"auth": ("name", "c4n4ry")}
    assert client_options(Settings(token="c4n4ry"), {}) == {"token": "c4n4ry"}
    assert client_options(said, {"token": "other"}) == {"token": "other"}
    assert client_options(said, {"auth": None}) == {"auth": None}


def test_nothing_secret_is_shown() -> None:
    assert "c4n4ry" not in repr(Settings(auth=("name", "c4n4ry"), token="c4n4ry"))
