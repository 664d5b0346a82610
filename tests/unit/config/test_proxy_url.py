"""config/proxy_url.py: the proxy of each URL, and texts that are no URL, which errors do not repeat."""

import traceback
from contextlib import suppress
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.config.proxy_url import parse_proxy
from etcd_aio.errors import ConfigError
from etcd_aio.transport import Proxy


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://p:3128", Proxy("http", "p", 3128)),
        ("HTTP://P.example.com:3128/", Proxy("http", "p.example.com", 3128)),
        ("http://p", Proxy("http", "p", 80)),
        ("https://p", Proxy("https", "p", 443)),
        ("socks5://p", Proxy("socks5", "p", 1080)),
        ("socks5h://[::1]:9", Proxy("socks5h", "::1", 9)),
        ("http://me:c4n4ry@p:1", Proxy("http", "p", 1, "me", "c4n4ry")),
        ("http://m%40e:%2Fc4n4ry%3A%25@p:1", Proxy("http", "p", 1, "m@e", "/c4n4ry:%")),
        ("http://me@p:1", Proxy("http", "p", 1, "me", "")),
        ("http://me:@p:1", Proxy("http", "p", 1, "me", "")),
        ("socks5://m%3Ae:c4n4ry@p:1", Proxy("socks5", "p", 1, "m:e", "c4n4ry")),
    ],
)
def test_proxies(text: str, expected: Proxy) -> None:
    found = parse_proxy(text)
    assert found == expected
    assert "c4n4ry" not in repr(found)
    assert "c4n4ry" not in found.name


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must begin with http://, https://, socks5:// or socks5h://"),
        ("c4n4ry:3128", "must begin with"),
        ("socks4://c4n4ry", "must begin with"),
        ("c4n4ry://p", "must begin with"),
        ("http://", "needs host"),
        ("http://c4n4ry:c4n4ry", "needs host"),
        ("http://a/c4n4ry", "and nothing after it"),
        ("http://me:a/c4n4ry@p", "and nothing after it"),
        ("http://me:a?c4n4ry@p", "and nothing after it"),
        ("http://me:a#c4n4ry@p", "and nothing after it"),
        ("http://me:a@c4n4ry@p", "percent-encoded"),
        ("http://me:a:c4n4ry@p", "percent-encoded"),
        ("http://me:c4n4ry%@p", "percent-encoded text"),
        ("http://me:c4n4ry%ff@p", "percent-encoded text"),
        ("http://me:c4n4ry%0d%0a@p", "percent-encoded text"),
        ("http://me:c4n4ry%00@p", "percent-encoded text"),
        ("http://me:" + "c4n4ry" * 50 + "@p", "at most 255"),
        ("http://:c4n4ry@p", "a name"),
        ("socks5://c4n4ry@p", "both name and password"),
        ("http://m%3Ae:c4n4ry@p", "must not contain ':'"),
        ("http://me:c4n4ry @p", "white space"),
        ("http://me:c4n4ry@p\n", "white space"),
        ("http://c4n4ry:99999@p:99999", "needs host"),
        ("http://me:c4n4ry@p::1", "needs host"),
    ],
)
def test_texts_that_are_no_proxy(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        parse_proxy(text, "the option")
    shown = "".join(traceback.format_exception(caught.value))  # with every error that is its context
    assert "c4n4ry" not in shown
    assert "the option" in str(caught.value)


NAMES = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20).filter(
    lambda text: text.isprintable()
)


@given(user=NAMES.filter(lambda text: ":" not in text), password=NAMES, port=st.integers(1, 65535))
def test_every_name_and_password_can_be_written(user: str, password: str, port: int) -> None:
    for scheme in ("http", "https", "socks5", "socks5h"):
        found = parse_proxy(f"{scheme}://{quote(user, safe='')}:{quote(password, safe='')}@p:{port}")
        assert found == Proxy(scheme, "p", port, user, password)


@given(st.text() | st.text(max_size=40).map(lambda text: f"http://{text}"))
def test_every_text_is_a_proxy_or_a_config_error(text: str) -> None:
    with suppress(ConfigError):
        parse_proxy(text)
