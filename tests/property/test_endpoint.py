"""Endpoints: any text is an endpoint or one clean error, and a name means itself."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from etcd_aio.balancer import DnsName, Endpoint, parse_endpoint, parse_endpoints
from etcd_aio.balancer.endpoint import parse_source
from etcd_aio.errors import ConfigError

PIECES = st.sampled_from(
    [
        "http",
        "https",
        "unix",
        "unixs",
        "dns",
        "http+dns",
        "HTTP",
        ":",
        "//",
        "/",
        "[",
        "]",
        "@",
        "m1",
        "2379",
        "0",
        "::1",
        "%",
        "%2F",
        "?",
        "#",
        ".",
    ]
)
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=8).map("".join))


@given(TEXTS)
@example("unix:a://b")
@example("unix:///a%2525b")
@example("m1:" + "1" * 5000)
def test_any_text_parses_or_is_refused_and_its_name_means_itself(text: str) -> None:
    try:
        endpoint = parse_endpoint(text)
    except ConfigError:
        return
    assert parse_endpoint(endpoint.name) == endpoint
    assert bool(endpoint.host) != bool(endpoint.path)
    assert (0 < endpoint.port < 65536) == bool(endpoint.host)
    assert endpoint.authority
    assert endpoint.server_name
    assert endpoint.name.isprintable()


@given(TEXTS)
@example("dns://a./")
@example("http+dns://a#::1")
def test_any_text_is_a_source_or_is_refused_and_its_name_means_itself(text: str) -> None:
    try:
        source = parse_source(text)
    except ConfigError:
        return
    assert parse_source(source.name) == source
    if isinstance(source, DnsName):
        for address in ("10.0.0.7", "fd00::7"):
            endpoint = source.at(address)
            assert parse_endpoint(endpoint.name) == endpoint
            assert (endpoint.security, endpoint.port) == (source.security, source.port)


@given(st.lists(TEXTS, max_size=4))
def test_any_list_parses_without_repetitions_or_is_refused(texts: list[str]) -> None:
    try:
        endpoints = parse_endpoints(texts)
    except ConfigError:
        return
    names = [endpoint.name for endpoint in endpoints]
    assert len(names) == len(set(names))
    assert all(isinstance(endpoint, Endpoint) for endpoint in endpoints)


PASSWORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=4, max_size=12).map("Se".__add__)


@given(password=PASSWORDS, before=st.sampled_from(["http://root:", "https://root:", "root:"]))
def test_no_part_of_a_password_is_repeated(password: str, before: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_endpoints(f"{before}{password}@m1:2379")
    assert password[:3] not in str(caught.value)
