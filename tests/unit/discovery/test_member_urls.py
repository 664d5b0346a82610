"""discovery/member_urls.py: which advertised URLs become endpoints, and which would weaken TLS."""

import pytest

from etcd_aio.balancer import parse_endpoints
from etcd_aio.discovery import Advertised, advertised_endpoints


def judged(urls: str, configured: str, in_use: str = "", *, has_tls: bool = False) -> Advertised:
    given = parse_endpoints(configured)
    used = parse_endpoints(in_use) if in_use else given
    return advertised_endpoints(urls.split(","), configured=given, in_use=used, has_tls=has_tls)


def names(found: Advertised) -> list[str]:
    return [endpoint.name for endpoint in found.endpoints]


def test_what_members_advertise_is_believed_those_in_use_first() -> None:
    found = judged("http://m3:2379,http://m2:2379,http://m1:2379", "http://m1,http://m2")
    assert names(found) == ["http://m1:2379", "http://m2:2379", "http://m3:2379"]
    assert not found.refused


@pytest.mark.parametrize(
    ("configured", "url", "has_tls"),
    [
        ("m1", "http://m1:2379", False),
        ("m1", "https://m1:2379", True),
        ("https://M1", "https://m1:2379", False),
        ("unix:/run/e.sock", "unix:///run/e.sock", False),
    ],
)
def test_an_endpoint_keeps_its_spelling_and_with_it_its_connection(configured: str, url: str, has_tls: bool) -> None:
    found = judged(url, configured, has_tls=has_tls)
    assert names(found) == [endpoint.name for endpoint in parse_endpoints(configured)]


def test_the_same_place_spoken_to_in_another_way_is_another_endpoint() -> None:
    assert names(judged("https://m1:2379", "m1")) == ["https://m1:2379"]


@pytest.mark.parametrize(
    ("configured", "has_tls"), [("https://m1", False), ("unixs:/run/e.sock", False), ("m1", True), ("http://m1", True)]
)
def test_a_client_that_speaks_tls_learns_no_plaintext(configured: str, has_tls: bool) -> None:
    found = judged("http://m2:2379,unix:///run/m2.sock,https://m3:2379", configured, has_tls=has_tls)
    assert names(found) == ["https://m3:2379"]
    assert len(found.refused) == 2
    assert all("plaintext" in reason for reason in found.refused)


def test_not_even_from_what_an_earlier_sync_has_taught() -> None:
    found = judged("http://m2:2379", "https://m1", in_use="http://m2:2379")
    assert not found.endpoints


def test_plaintext_that_the_user_has_named_himself_is_believed() -> None:
    assert names(judged("http://m1:2379,http://m2:2379", "http://m1,https://m3")) == ["http://m1:2379"]
    assert names(judged("http://m1:2379,http://m2:2379", "http://m1", has_tls=True)) == ["http://m1:2379"]


@pytest.mark.parametrize(
    "url",
    ["http://localhost:2379", "http://127.0.0.1:2379", "http://[::1]:2379", "unix:///e.sock", "http://a.localhost:1"],
)
def test_the_members_own_machine_is_ours_only_if_we_were_told_so(url: str) -> None:
    found = judged(url, "http://m1")
    assert not found.endpoints
    assert "local address" in found.refused[0]
    assert names(judged(url, "http://127.0.0.1:9"))
    assert names(judged(url, "unix:/tmp/x.sock"))


@pytest.mark.parametrize("url", ["http://0.0.0.0:2379", "http://[::]:2379"])
def test_an_address_to_listen_on_is_none_to_connect_to(url: str) -> None:
    found = judged(url, "http://127.0.0.1")
    assert not found.endpoints
    assert "listen" in found.refused[0]


@pytest.mark.parametrize(
    "url",
    ["", "m2:2379", "ftp://m2", "http://m2:0", "http://m2:99999", "http://m 2:1", "http://\x00", "http://u:c4n4ry@m2"],
)
def test_what_is_no_url_is_refused_and_credentials_are_not_repeated(url: str) -> None:
    found = judged(url, "http://m1")
    assert not found.endpoints
    assert len(found.refused) == 1
    assert "c4n4ry" not in found.refused[0]
