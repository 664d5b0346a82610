"""The conversation with a proxy before it is a tunnel, as a generator without IO.

It yields the bytes to send, perhaps none, and gets the next bytes that the proxy has sent. It returns those that came
behind the proxy's last word: they are the endpoint's.
"""

from collections.abc import Generator
from typing import TypeAlias

from etcd_aio.errors import ProxyError

Conversation: TypeAlias = Generator[bytes, bytes, bytes]


def exactly(size: int, received: bytes, send: bytes = b"") -> Generator[bytes, bytes, tuple[bytes, bytes]]:
    """Wait for so many bytes; returns them, and what came behind them.

    Args:
        size: the number of bytes.
        received: what has come already.
        send: what to send first.

    Raises:
        ProxyError: the answer to `send` has come before it.
    """
    if send and received:
        raise ProxyError("the proxy answers before it is asked: it does not follow its protocol")
    while send or len(received) < size:
        received += yield send
        send = b""
    return received[:size], received[size:]
