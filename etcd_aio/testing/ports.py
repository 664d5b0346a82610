"""Free ports for the next server or proxy.

A choice is no reservation: between the choice and the start another process may take the port, so a starter tries again
with others. The workers of pytest-xdist start servers at the same time; each chooses from a range of its own.

A port that the kernel hands out for "port 0" lies in the range it also takes for outgoing connections: while a killed
server is down, any client of the machine may sit on its port. So ports are chosen below that range, where only
listeners are.
"""

import errno
import os
import random
import socket
from collections.abc import Mapping
from contextlib import closing

_LOWEST, _HIGHEST = 10_000, 32_767  # Linux's outgoing range begins at 32 768, that of others later
_TRIES = 1_000

_chosen: set[int] = set()
_random = random.Random()  # of its own: a test that seeds the common one must not make all processes choose alike


def port_range(environment: Mapping[str, str]) -> tuple[int, int]:
    """The lowest and the highest port that this process chooses: its part, if it is a worker of pytest-xdist."""
    worker, count = environment.get("PYTEST_XDIST_WORKER", ""), environment.get("PYTEST_XDIST_WORKER_COUNT", "")
    number = worker.removeprefix("gw")
    if not number.isdecimal() or not count.isdecimal() or int(number) >= int(count):
        return _LOWEST, _HIGHEST
    size = (_HIGHEST - _LOWEST + 1) // int(count)
    lowest = _LOWEST + int(number) * size
    return lowest, lowest + size - 1


def free_ports(count: int, host: str = "127.0.0.1") -> tuple[int, ...]:
    """Ports on which no process listens now, and which this process has not been given before.

    Raises:
        OSError: `host` is not an address of this machine, or no free port was found.
    """
    lowest, highest = port_range(os.environ)
    found: list[int] = []
    for _ in range(_TRIES):
        if len(found) == count:
            break
        port = _random.randint(lowest, highest)
        if port not in _chosen and _is_free(port, host):
            _chosen.add(port)
            found.append(port)
    if len(found) < count:
        raise OSError(f"no {count} free ports between {lowest} and {highest} on {host}")
    return tuple(found)


def url_host(host: str) -> str:
    """The host as it stands in a URL: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def _is_free(port: int, host: str) -> bool:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with closing(socket.socket(family, kind, protocol)) as probe:
        # As servers do, or a port whose last connections are still fading would seem taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True
