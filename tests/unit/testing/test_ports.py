"""How a host stands in a URL; choosing a port needs sockets."""

import pytest

from etcd_aio.testing.ports import url_host


@pytest.mark.parametrize(
    ("host", "expected"), [("127.0.0.1", "127.0.0.1"), ("localhost", "localhost"), ("::1", "[::1]")]
)
def test_an_ipv6_address_stands_in_brackets(host: str, expected: str) -> None:
    assert url_host(host) == expected
