"""transport/proxy/socks5.py: what is sent, and what each answer means."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.errors import ProxyAuthenticationError, ProxyError
from etcd_aio.transport import Proxy
from etcd_aio.transport.proxy.socks5 import socks5

PLAIN = Proxy("socks5h", "p", 1080)
SECRET = Proxy("socks5h", "p", 1080, "me", "c4n4ry")
OPEN = b"\x05\x00"
PASSWORD = b"\x05\x02"
DONE = b"\x05\x00\x00\x01\x7f\x00\x00\x01\x12\x34"


def spoken(proxy: Proxy, *answers: bytes, host: str = "m1", piece: int = 1) -> tuple[list[bytes], bytes | None]:
    """All that is sent while the proxy sends this, in pieces; and what is behind, None if it waits for more."""
    conversation = socks5(proxy, host, 2379)
    sent = [next(conversation)]
    for answer in answers:
        for start in range(0, len(answer), piece):
            try:
                said = conversation.send(answer[start : start + piece])
            except StopIteration as end:
                return sent, end.value + answer[start + piece :]
            if said:
                sent.append(said)
    return sent, None


def test_what_is_sent() -> None:
    assert spoken(PLAIN, OPEN)[0] == [b"\x05\x01\x00", b"\x05\x01\x00\x03\x02m1\x09\x4b"]
    assert spoken(PLAIN, OPEN, host="127.0.0.1")[0][1] == b"\x05\x01\x00\x01\x7f\x00\x00\x01\x09\x4b"
    assert spoken(PLAIN, OPEN, host="::1")[0][1] == b"\x05\x01\x00\x04" + bytes(15) + b"\x01\x09\x4b"
    assert spoken(SECRET, PASSWORD, b"\x01\x00")[0] == [
        b"\x05\x02\x00\x02",
        b"\x01\x02me\x06c4n4ry",
        b"\x05\x01\x00\x03\x02m1\x09\x4b",
    ]
    assert len(spoken(SECRET, OPEN)[0]) == 2  # a proxy that wants no password gets none


@pytest.mark.parametrize(
    "done", [DONE, b"\x05\x00\x00\x03\x02ab\x12\x34", b"\x05\x00\x00\x03\x00\x12\x34", b"\x05\x00\x00\x04" + bytes(18)]
)
@given(behind=st.binary(max_size=30), piece=st.integers(1, 50))
def test_an_answer_in_any_pieces_loses_no_byte_behind_it(done: bytes, behind: bytes, piece: int) -> None:
    assert spoken(PLAIN, OPEN, done + behind, piece=piece)[1] == behind
    assert spoken(SECRET, PASSWORD, b"\x01\x00", done + behind, piece=piece)[1] == behind


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        *(
            (1, "it failed"),
            (2, "its rules do not allow it"),
            (3, "network is unreachable"),
            (4, "host is unreachable"),
        ),
        *((5, "connection was refused"), (6, "time to live"), (7, "command"), (8, "type of address")),
        (99, "for an unknown reason"),
    ],
)
def test_refusals(code: int, reason: str) -> None:
    with pytest.raises(ProxyError, match=rf"socks5h://p:1080 cannot connect to m1:2379: .*{reason}.*reply {code}"):
        spoken(PLAIN, OPEN, bytes([5, code]))  # some send no more than three bytes then


def test_credentials_that_are_wrong_or_missing() -> None:
    for refused in (b"\x01\x01", b"\x01\xff"):
        with pytest.raises(ProxyAuthenticationError, match=r"socks5h://p:1080 refused the name and password$"):
            spoken(SECRET, PASSWORD, refused)
    with pytest.raises(ProxyAuthenticationError, match=r"wants a name and password, and got none"):
        spoken(PLAIN, b"\x05\xff")
    with pytest.raises(ProxyAuthenticationError, match=r"takes no name and password"):
        spoken(SECRET, b"\x05\xff")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"HTTP/1.1 400", "does not answer in SOCKS 5"),
        (b"\x00\x5b", "does not answer in SOCKS 5"),
        (b"\x05\x01", "that was not offered"),
        (b"\x05\x02", "that was not offered"),
        (b"\x05\x00\x05", "before it is asked"),
    ],
)
def test_what_is_no_proxy(data: bytes, text: str) -> None:
    with pytest.raises(ProxyError, match=text):
        spoken(PLAIN, data, piece=3)


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"\x04\x00\x00\x01", "does not answer in SOCKS 5"), (b"\x05\x00\x00\x07", "unknown type of address")],
)
def test_what_is_no_answer_to_the_request(data: bytes, text: str) -> None:
    with pytest.raises(ProxyError, match=text):
        spoken(PLAIN, OPEN, data)


def test_a_name_that_socks_cannot_send() -> None:
    with pytest.raises(ProxyError, match="at most 255"):
        spoken(PLAIN, OPEN, host="a" * 256)


@given(data=st.binary(max_size=100), is_open=st.booleans())
def test_any_bytes_are_an_answer_or_a_proxy_error(data: bytes, is_open: bool) -> None:
    with suppress(ProxyError):
        spoken(SECRET, *([OPEN] if is_open else []), data)
