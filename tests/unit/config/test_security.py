"""config/security.py: which endpoints get TLS, which members are trusted, and where credentials may go."""

import asyncio
import pickle
import ssl
from pathlib import Path

import pytest

from etcd_aio.balancer import parse_endpoint
from etcd_aio.config import TLS, CertificateFiles, EndpointSecurity, sources_from
from etcd_aio.errors import ConfigError


def security(
    tls: TLS | ssl.SSLContext | None = None, *, has_credentials: bool = False, allow_insecure_auth: bool = False
) -> EndpointSecurity:
    return EndpointSecurity(tls, has_credentials=has_credentials, allow_insecure_auth=allow_insecure_auth)


@pytest.mark.parametrize(
    "tls", [True, "ca.pem", ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)], ids=["a flag", "a path", "a context"]
)
def test_what_is_no_tls_configuration_is_refused(tls: object) -> None:
    with pytest.raises(ConfigError, match="tls must be"):
        security(tls)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tls", "has_own"),
    [
        (None, False),
        (TLS(), False),
        (TLS(server_name="etcd"), True),
        (ssl.create_default_context(), True),
    ],
    ids=["none", "the system's", "one name for all", "a context"],
)
def test_whose_authorities_or_names_decide_which_members_are_trusted(
    tls: TLS | ssl.SSLContext | None, has_own: bool
) -> None:
    assert security(tls).has_own_authorities is has_own


@pytest.mark.parametrize(
    ("text", "with_context", "without"),
    [
        ("m1", True, False),
        ("http://m1", False, False),
        ("https://m1", True, True),
        ("unix:e.sock", True, False),
        ("unixs:e.sock", True, True),
    ],
)
def test_who_gets_tls(text: str, with_context: bool, without: bool) -> None:
    context = ssl.create_default_context()
    endpoint = parse_endpoint(text)
    assert (security(context).tls_for(endpoint) is context) == with_context
    assert (security(TLS()).tls_for(endpoint) is not None) == with_context
    assert (security().tls_for(endpoint) is not None) == without


@pytest.mark.parametrize("tls", [None, TLS()])
def test_without_files_the_systems_roots_verify_and_are_read_once_and_not_before_they_are_needed(
    tls: TLS | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ssl.SSLContext] = []
    create = ssl.create_default_context

    def counted() -> ssl.SSLContext:
        made.append(create())
        return made[-1]

    monkeypatch.setattr(ssl, "create_default_context", counted)
    options = security(tls)
    source = options.tls_for(parse_endpoint("https://m1"))
    assert isinstance(source, CertificateFiles)
    assert options.tls_for(parse_endpoint("https://m2")) is source
    assert made == []

    async def ask() -> None:
        context = await source.context()
        assert made == [context]
        assert await source.context() is context
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.check_hostname

    asyncio.run(ask())


def test_wrong_files_are_found_before_anything_is_dialled(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ca: .*nowhere\.pem: No such file"):
        security(TLS(ca=tmp_path / "nowhere.pem"))


def test_a_context_of_the_users_gets_alpn_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    class Watched(ssl.SSLContext):
        def __setattr__(self, name: str, value: object) -> None:
            told.append(name)

        def __getattribute__(self, name: str) -> object:
            if name.startswith(("load_", "set_")):
                told.append(name)
            return super().__getattribute__(name)

    context = ssl.SSLContext.__new__(Watched, ssl.PROTOCOL_TLS_CLIENT)
    security(context)
    assert told == ["set_alpn_protocols"]


def test_nothing_of_it_can_be_shown_or_pickled() -> None:
    made = security(TLS())
    assert "CertificateFiles" not in repr(made)
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(made)


@pytest.mark.parametrize(
    ("endpoints", "has_context", "is_allowed"),
    [
        ("https://m1,unix:/run/etcd,unixs:/run/etcd", False, False),
        ("https+dns://m1", False, False),
        ("dns:///m1", True, False),
        ("m1", True, False),
        ("m1,http://m2", False, True),
    ],
)
def test_credentials_may_go_where_nobody_listens_and_where_that_is_allowed(
    endpoints: str, has_context: bool, is_allowed: bool
) -> None:
    tls = ssl.create_default_context() if has_context else None
    security(tls, has_credentials=True, allow_insecure_auth=is_allowed).check(sources_from(endpoints))


@pytest.mark.parametrize("endpoint", ["m1:2379", "127.0.0.1", "http://m1", "dns:///m1", "http+dns://m1"])
def test_credentials_do_not_cross_a_network_in_the_clear(endpoint: str) -> None:
    made = security(ssl.create_default_context() if endpoint == "http://m1" else None, has_credentials=True)
    with pytest.raises(ConfigError, match="in plain text") as caught:
        made.check(sources_from(f"https://m0,{endpoint}"))
    assert endpoint in str(caught.value)
    security().check(sources_from(endpoint))
