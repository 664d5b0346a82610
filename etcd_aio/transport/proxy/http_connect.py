"""The method CONNECT of HTTP proxies (RFC 9110, 9.3.6), without IO."""

import re
from base64 import b64encode
from typing import Final

from etcd_aio.arguments import join_host_port
from etcd_aio.errors import ProxyAuthenticationError, ProxyError
from etcd_aio.transport.interface import Proxy
from etcd_aio.transport.proxy.conversation import Conversation

_MOST_BYTES: Final = 1 << 14  # of all that comes before the tunnel; usual are 100
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])(?: [^\r\n]*)?\r?\n")
_BEGINNING: Final = b"HTTP/1."
_END: Final = re.compile(rb"\n\r?\n")
_TLS_RECORDS: Final = (b"\x15\x03", b"\x16\x03")


def http_connect(proxy: Proxy, host: str, port: int, user_agent: str = "etcd_aio") -> Conversation:
    """Ask for a tunnel.

    Args:
        proxy: which proxy.
        host: the endpoint's host.
        port: the endpoint's port.
        user_agent: names this client.

    Raises:
        ProxyAuthenticationError: the proxy wants other credentials.
        ProxyError: there is no tunnel.
    """
    place = join_host_port(host, port)
    lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}", f"User-Agent: {user_agent}"]
    if proxy.user:
        credentials = b64encode(f"{proxy.user}:{proxy.password}".encode()).decode()
        lines.append(f"Proxy-Authorization: Basic {credentials}")
    send = "".join(f"{line}\r\n" for line in (*lines, "")).encode()
    received = b""
    left = _MOST_BYTES
    while True:  # an interim answer (1xx) may come before the answer
        while (end := _END.search(received, 0, left)) is None:
            _check_beginning(proxy, received)
            if len(received) >= left:
                raise ProxyError(f"the proxy {proxy.name} has answered CONNECT with more than {_MOST_BYTES} bytes")
            received += yield send
            send = b""
        status = _status(proxy, received)
        received = received[end.end() :]
        if status >= 200:
            break
        left -= end.end()
    _judge(proxy, place, status)
    return received


def _check_beginning(proxy: Proxy, received: bytes) -> None:
    if received.startswith(_BEGINNING[: len(received)]):
        return
    if received[:2] in _TLS_RECORDS:
        raise ProxyError(f"the proxy {proxy.name} answered in TLS: is it https:// ?")
    raise ProxyError(f"{proxy.name} does not answer CONNECT in HTTP: is it an HTTP proxy?")


def _status(proxy: Proxy, received: bytes) -> int:
    found = _STATUS.match(received)
    if found is None:
        raise ProxyError(f"{proxy.name} does not answer CONNECT in HTTP: is it an HTTP proxy?")
    return int(found[1])


def _judge(proxy: Proxy, place: str, status: int) -> None:
    """Raise what a status means. The words of the proxy are not repeated: they may contain the credentials."""
    if status < 300:
        return
    told = f"(HTTP status {status})"
    if status in (401, 407):  # tinyproxy answers 401 to what is wrong, and 407 to what is missing
        if proxy.user:
            raise ProxyAuthenticationError(f"the proxy {proxy.name} refused the name and password {told}")
        raise ProxyAuthenticationError(f"the proxy {proxy.name} wants a name and password, and got none {told}")
    if status >= 500:
        raise ProxyError(f"the proxy {proxy.name} cannot connect to {place} {told}")
    if status in (403, 451):
        raise ProxyError(f"the proxy {proxy.name} does not allow connections to {place} {told}")
    raise ProxyError(f"the proxy {proxy.name} did not open a tunnel to {place} {told}: is it an HTTP proxy?")
