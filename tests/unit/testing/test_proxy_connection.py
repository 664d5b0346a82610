"""testing/proxy_connection.py: an end that comes before the begin; moving bytes needs real sockets."""

import socket
from collections.abc import Iterator

import pytest

from etcd_aio.testing.proxy_connection import Faults, ProxyConnection


@pytest.fixture
def client() -> Iterator[socket.socket]:
    with socket.socket() as client:
        yield client


@pytest.fixture
def connection(client: socket.socket) -> Iterator[ProxyConnection]:
    connection = ProxyConnection(
        client, socket.AF_INET, ("127.0.0.1", 1), {"to_server": Faults(), "to_client": Faults()}, {}
    )
    yield connection
    connection.close()


@pytest.mark.anyio
@pytest.mark.parametrize("end", [ProxyConnection.finish, ProxyConnection.reset])
async def test_told_to_end_before_it_began_it_closes_without_connecting(
    connection: ProxyConnection, client: socket.socket, end: object
) -> None:
    assert callable(end)
    assert not connection.is_ending
    end(connection)
    assert connection.is_ending
    await connection.run()
    assert client.fileno() == -1


def test_only_the_first_end_counts(connection: ProxyConnection, client: socket.socket) -> None:
    connection.finish()
    connection.reset()
    linger = client.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)
    assert linger == bytes(8), "a connection that ends with FIN is not reset half-way"


def test_a_reset_makes_close_send_rst(connection: ProxyConnection, client: socket.socket) -> None:
    connection.reset()
    assert client.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)[0] == 1
