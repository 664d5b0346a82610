"""The client before it has met anybody: what it accepts, shows and refuses. The rest needs servers."""

import asyncio

import pytest

from etcd_aio import Client, ClientClosedError, ConfigError

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
