"""The client before it has met anybody: what it accepts, shows and refuses. The rest needs servers."""

import asyncio
import pickle

import pytest

from etcd_aio import Client, ClientClosedError, ConfigError
from etcd_aio.error_handler.credentials import Password

pytestmark = pytest.mark.anyio


async def test_the_endpoints_are_shown_in_one_spelling_and_in_order() -> None:
    client = Client("m1, http://m2:1,[::1]")
    assert client.endpoints == ("m1:2379", "http://m2:1", "[::1]:2379")
    assert Client(["http://a", "http://b"]).endpoints == ("http://a:2379", "http://b:2379")
    assert Client().endpoints == ("127.0.0.1:2379",)


async def test_an_unused_client_has_no_state_and_says_so() -> None:
    client = Client(["http://a", "http://b"])
    assert client.statistics() == ()
    assert client.streams() == ()
    assert repr(client) == "<Client http://a:2379 IDLE, http://b:2379 IDLE>"
    await client.aclose()
    await client.aclose()
    assert repr(client) == "<Client closed>"


async def test_endpoints_can_be_replaced_before_the_first_use() -> None:
    client = Client("http://a")
    client.set_endpoints(["http://b", "http://c"])
    assert client.endpoints == ("http://b:2379", "http://c:2379")
    with pytest.raises(ConfigError):
        client.set_endpoints([])
    with pytest.raises(ConfigError):
        client.set_endpoints("http://d, ftp://e")
    assert client.endpoints == ("http://b:2379", "http://c:2379"), "a wrong list changes nothing"
    await client.aclose()
    with pytest.raises(ClientClosedError):
        client.set_endpoints("http://a")


@pytest.mark.parametrize(
    "options",
    [
        {"endpoints": []},
        {"endpoints": ""},
        {"endpoints": "http://name:secret@m1"},
        {"timeout": 0},
        {"auth": ("root", "c4n4ry")},
        {"token": "c4n4ry"},
        {"endpoints": "https://m1", "auth": ("root", "c4n4ry"), "token": "c4n4ry"},
        {"endpoints": "https://m1", "auth": ("root", "")},
        {"endpoints": "https://m1", "token": ""},
        {"connect_timeout": -1},
        {"policy": "first"},
        {"engine": "curl"},
        {"retry": "sometimes"},
        {"keepalive_time": 4.9},
        {"max_send_bytes": 0},
        {"tls": True},
    ],
    ids=str,
)
def test_an_option_that_cannot_work_is_refused_at_once(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        Client(**options)  # type: ignore[arg-type]  # wrong on purpose
    assert "secret" not in str(caught.value)


async def test_a_client_can_be_made_outside_of_a_loop() -> None:
    client = await asyncio.to_thread(Client, "http://a")
    assert client.endpoints == ("http://a:2379",)


async def test_credentials_never_go_in_the_clear_unless_that_is_allowed() -> None:
    client = Client("https://m1", auth=("root", "pw-c4n4ry"))
    for wrong in ("m1", "http://m1", "https://m1,http://m2"):
        with pytest.raises(ConfigError, match="in the clear"):
            client.set_endpoints(wrong)
    assert client.endpoints == ("https://m1:2379",)
    client.set_endpoints("https://m2,unix:/run/etcd")
    assert "c4n4ry" not in repr(client)
    open_one = Client("m1", token="c4n4ry", allow_insecure_auth=True)
    open_one.set_endpoints("http://m2")
    for one in (client, open_one):
        with pytest.raises(TypeError):
            pickle.dumps(one)
        await one.aclose()


async def test_a_closed_client_knows_no_secret_any_more() -> None:
    client = Client("https://m1", auth=("root", "pw-c4n4ry"))
    credentials = client._config.credentials
    assert isinstance(credentials, Password)
    await client.aclose()
    assert credentials.password == ""
