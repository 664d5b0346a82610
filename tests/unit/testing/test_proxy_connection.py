"""How a link ends when it is told to before it began; moving bytes needs sockets that are connected."""

import socket
from collections.abc import Iterator

import pytest

from etcd_aio.testing.proxy_connection import Link, Weather


@pytest.fixture
def client() -> Iterator[socket.socket]:
    with socket.socket() as client:
        yield client


@pytest.fixture
def link(client: socket.socket) -> Iterator[Link]:
    link = Link(client, socket.AF_INET, ("127.0.0.1", 1), {"to_server": Weather(), "to_client": Weather()}, {})
    yield link
    link.close()


@pytest.mark.anyio
@pytest.mark.parametrize("end", [Link.finish, Link.reset])
async def test_told_to_end_before_it_began_it_closes_without_connecting(
    link: Link, client: socket.socket, end: object
) -> None:
    assert callable(end)
    assert not link.is_ending
    end(link)
    assert link.is_ending
    await link.run()
    assert client.fileno() == -1


def test_only_the_first_end_counts(link: Link, client: socket.socket) -> None:
    link.finish()
    link.reset()
    linger = client.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)
    assert linger == bytes(8), "a connection that ends with FIN is not reset half-way"


def test_a_reset_makes_close_send_rst(link: Link, client: socket.socket) -> None:
    link.reset()
    assert client.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)[0] == 1
