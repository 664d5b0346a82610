"""arguments/host_port.py: the grammar of host and port."""

import pytest

from etcd_aio.arguments import join_host_port, split_host_port


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("m1", "m1", None),
        ("M1.Example:2379", "m1.example", 2379),
        ("a_b-c:1", "a_b-c", 1),
        ("10.0.0.1:65535", "10.0.0.1", 65535),
        ("[::1]", "::1", None),
        ("[0:0::1]:2380", "::1", 2380),
    ],
)
def test_host_and_port(text: str, host: str, port: int | None) -> None:
    assert split_host_port(text) == (host, port)
    assert port is None or split_host_port(join_host_port(host, port)) == (host, port)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no host"),
        (":2379", "no host"),
        ("m1:", "no port"),
        ("m1:0", "no port"),
        ("m1:65536", "no port"),
        ("m1:x", "no port"),
        ("m1:२३८०", "no port"),
        ("[::1]:", "no port"),
        ("::1:2380", "without brackets"),
        ("[::1:2380", "unfinished"),
        ("[::1]2380", "unfinished"),
        ("[::g]:2380", "malformed"),
        ("m1/path", "other characters"),
        ("c4n4ry@m1", "other characters"),
    ],
)
def test_other_texts_are_refused_and_not_repeated(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        split_host_port(text)
    assert "c4n4ry" not in str(caught.value)
    assert caught.value.__cause__ is None
