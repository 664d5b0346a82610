"""Free ports: where the next server or proxy may listen.

Knows: one random choice. Never knows: who takes it; a choice is no reservation, so a starter tries again elsewhere.

A port that the kernel hands out for "port 0" lies in the range it also takes for outgoing connections: while a killed
server is down, any client of the machine may sit on its port. So we choose below that range, where only listeners are.
"""

import errno
import random
import socket
from contextlib import closing

_LOWEST, _HIGHEST = 10_000, 32_767  # Linux's outgoing range begins at 32 768, that of others later
_TRIES = 1_000

_chosen: set[int] = set()
_random = random.Random()  # of its own: a test that seeds the common one must not make all processes choose alike


def free_ports(count: int, host: str = "127.0.0.1") -> tuple[int, ...]:
    """Ports on which nobody listens now, and which this process has not been given before.

    Raises:
        OSError: `host` is no address of this machine, or no free port was found.
    """
    found: list[int] = []
    for _ in range(_TRIES):
        if len(found) == count:
            break
        port = _random.randint(_LOWEST, _HIGHEST)
        if port not in _chosen and _is_free(port, host):
            _chosen.add(port)
            found.append(port)
    if len(found) < count:
        raise OSError(f"no {count} free ports between {_LOWEST} and {_HIGHEST} on {host}")
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
