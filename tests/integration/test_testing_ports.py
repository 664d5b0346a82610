"""Choosing ports on real addresses."""

import socket

import pytest

from etcd_aio.testing import ports
from etcd_aio.testing.ports import free_ports


def test_ports_are_free_distinct_and_given_once() -> None:
    first, second = free_ports(5), free_ports(5)
    assert len({*first, *second}) == 10
    for port in (*first, *second):
        socket.create_server(("127.0.0.1", port)).close()  # as servers do: last connections may still be fading


def test_a_port_with_a_listener_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        monkeypatch.setattr(ports, "port_range", lambda environment: (taken, taken))
        with pytest.raises(OSError, match="no 1 free ports"):
            free_ports(1)


def test_an_address_of_another_machine_is_an_error_and_not_a_long_search() -> None:
    with pytest.raises(OSError, match="assign requested address"):
        free_ports(1, "192.0.2.1")
