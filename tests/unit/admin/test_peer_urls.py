"""admin/cluster.py: peer URLs are checked before they are sent, and sent as they are."""

import pytest

from etcd_aio.admin.cluster import check_peer_urls
from etcd_aio.errors import InvalidRequestError


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("http://m1:2380", ["http://m1:2380"]),
        ("https://10.0.0.1:2380", ["https://10.0.0.1:2380"]),
        ("http://[::1]:2380", ["http://[::1]:2380"]),
        ("unix://m1.sock", ["unix://m1.sock"]),
        ("unixs:///run/m1", ["unixs:///run/m1"]),
        (" http://a:1 , http://b:65535", ["http://a:1", "http://b:65535"]),
        (["http://a:1", " http://b:2"], ["http://a:1", "http://b:2"]),
        (("http://a:1", "http://a:1"), ["http://a:1"]),
    ],
)
def test_valid_urls_are_sent_unchanged(given: str | list[str], sent: list[str]) -> None:
    assert check_peer_urls(given) == sent


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([], "at least one"),
        ("", "must not be empty"),
        ("http://a:1,", "must not be empty"),
        ("m1:2380", "begins with http://"),
        ("m1", "begins with http://"),
        ("ftp://m1:2380", "begins with http://"),
        ("http:m1:2380", "begins with http://"),
        ("http://m1", "no port"),
        ("http://m1:", "no port"),
        ("http://m1:0", "no port"),
        ("http://m1:65536", "no port"),
        ("http://m1:port", "no port"),
        ("http://m1:२३८०", "no port"),
        ("http://:2380", "no host"),
        ("http://::1:2380", "without brackets"),
        ("http://[::1]", "no port"),
        ("http://[::1]2380", "unfinished"),
        ("http://[::g]:2380", "malformed"),
        ("http://[::1:2380", "unfinished"),
        ("http://m1:2380/", "more than host and port"),
        ("http://m1:2380/path", "more than host and port"),
        ("http://m1:2380?q", "more than host and port"),
        ("http://m 1:2380", "white space"),
        ("http://m1:2380\n\n2", "white space"),
        ("unix://", "no path"),
        (["http://a:1", "b"], "begins with http://"),
    ],
)
def test_invalid_urls_are_refused_with_a_reason(given: str | list[str], reason: str) -> None:
    with pytest.raises(InvalidRequestError, match=reason):
        check_peer_urls(given)


def test_credentials_are_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidRequestError, match="credentials") as caught:
        check_peer_urls("http://root:c4n4ry@m1:2380")
    assert "c4n4ry" not in str(caught.value)


@pytest.mark.parametrize("given", [[7], [None], [b"http://a:1"]])
def test_a_url_that_is_not_a_str_is_a_type_error(given: list[str]) -> None:
    with pytest.raises(TypeError, match="must be str"):
        check_peer_urls(given)
