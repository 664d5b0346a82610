"""Endpoints: any text is an endpoint or one clean error, and a name means itself."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from etcd_aio.balancer import Endpoint, parse_endpoint, parse_endpoints
from etcd_aio.errors import ConfigError

PIECES = st.sampled_from(
    [
        "http",
        "https",
        "unix",
        "unixs",
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
