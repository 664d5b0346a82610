"""Connection URLs: whatever goes in comes out, hostile ones are refused cleanly, and no error holds a secret."""

import contextlib
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from etcd_aio import Client
from etcd_aio.balancer import parse_sources
from etcd_aio.config import PREFIX, parse_url, read_environment
from etcd_aio.errors import ConfigError, EtcdError

SECRET = "c4n4ry"

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)
hosts = st.one_of(
    st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(lambda address: f"[{address}]"),
)
places = st.tuples(hosts, st.none() | st.integers(1, 65535)).map(
    lambda place: place[0] if place[1] is None else f"{place[0]}:{place[1]}"
)
secrets = st.tuples(texts, texts).map(lambda around: f"{around[0]}{SECRET}{around[1]}")
raw_secrets = st.tuples(
    st.text(st.sampled_from("ab1:/?#@&=%,[] +"), max_size=8),
    st.text(st.sampled_from("ab1:/?#@&=%,[] +\n\u2100"), max_size=8),
).map(lambda around: f"{around[0]}{SECRET}{around[1]}")


def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        yield from chain(error.__cause__)
        error = error.__context__


def assert_silent(error: BaseException) -> None:
    for one in chain(error):
        assert SECRET not in f"{one} {one!r} {one.__dict__} {getattr(one, '__notes__', '')}"


@given(
    is_tls=st.booleans(),
    where=st.lists(places, min_size=1, max_size=4),
    auth=st.none() | st.tuples(texts, texts),
    timeout=st.none() | st.integers(1, 10**6),
    ca=st.none() | texts,
    slash=st.booleans(),
)
def test_what_goes_in_comes_out(
    is_tls: bool,
    where: list[str],
    auth: tuple[str, str] | None,
    timeout: int | None,
    ca: str | None,
    slash: bool,
) -> None:
    credentials = "" if auth is None else f"{quote(auth[0], safe='')}:{quote(auth[1], safe='')}@"
    query = [] if timeout is None else [f"timeout={timeout}ms"]
    if is_tls and ca is not None:
        query.append(f"ca={quote(ca, safe='')}")
    url = f"etcd{'s' if is_tls else ''}://{credentials}{','.join(where)}{'/' if slash else ''}?{'&'.join(query)}"
    found = parse_url(url)
    assert found.endpoints == tuple(f"{'https' if is_tls else 'http'}://{place}" for place in where)
    assert found.auth == auth
    assert found.options == ({} if timeout is None else {"timeout": pytest.approx(timeout / 1000)})
    assert (found.tls.get("ca") if found.tls else None) == (ca if is_tls else None)


@given(secret=secrets, raw=raw_secrets, is_raw=st.booleans(), rest=st.text(max_size=10))
@example(secret=SECRET, raw=f"1234?{SECRET}", is_raw=True, rest="")
@example(secret=SECRET, raw=f"1?{SECRET}=1&{SECRET}=1", is_raw=True, rest="")
@example(secret=SECRET, raw=f"{SECRET}\u2100", is_raw=True, rest="m1")
def test_no_error_holds_a_password(secret: str, raw: str, is_raw: bool, rest: str) -> None:
    password = raw if is_raw else quote(secret, safe="")
    for url in (f"etcds://root:{password}@{rest}", f"etcd://{password}@m1/{rest}", f"etcd://root:{password}{rest}"):
        try:
            found = parse_url(url)
        except ConfigError as error:
            assert_silent(error)
        else:
            if "@" in url:
                assert SECRET not in repr(found)


@given(url=st.text(max_size=60) | st.text(st.sampled_from("etcds+unixrv:/?#@&=%,[]0127.m"), max_size=60))
def test_hostile_urls_are_refused_cleanly(url: str) -> None:
    for text in (
        url,
        f"etcd://{url}",
        f"etcds://m1/?{url}",
        f"etcd+unix://{url}",
        f"etcds+srv://{url}",
        f"etcd+dns://{url}",
    ):
        endpoints: tuple[str, ...] | None = None
        with contextlib.suppress(ConfigError):
            endpoints = parse_url(text).endpoints
        if endpoints is not None:
            assert parse_sources(endpoints), "what is passed on is taken"


@given(
    password=raw_secrets | secrets,
    user=st.text(max_size=5),
    other=st.text(max_size=10),
    name=st.sampled_from(
        [
            "ENDPOINTS",
            "COMMAND_TIMEOUT",
            "DIAL_TIMEOUT",
            "KEEPALIVE_TIME",
            "MAX_RECV_BYTES",
            "CERT",
            "INSECURE_TRANSPORT",
            "DISCOVERY_SRV",
            "DISCOVERY_SRV_NAME",
            "INSECURE_SKIP_TLS_VERIFY",
        ]
    ),
)
def test_no_error_about_the_environment_holds_a_password(password: str, user: str, other: str, name: str) -> None:
    for variables in (
        {"USER": f"{user}:{password}", name: other},
        {"USER": user, "PASSWORD": password, name: other},
        {"AUTH_JWT_TOKEN": password, name: other},
        {"USER": password, name: other},
    ):
        environ = {PREFIX + key: value for key, value in variables.items()}
        try:
            assert SECRET not in repr(read_environment(environ))
            Client.from_env(environ)
        except EtcdError as error:
            assert_silent(error)
