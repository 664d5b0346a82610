"""config/endpoints.py: the default, lists, names of DNS, and options that contradict each other."""

import ssl
import sys

import pytest

from etcd_aio.balancer import Source
from etcd_aio.config import TLS, EndpointSecurity, sources_from, srv_resolver_from, with_resolvers
from etcd_aio.discovery import NameResolver, SrvResolver
from etcd_aio.errors import ConfigError


def resolver(
    endpoints: tuple[Source, ...] = (), domain: str = "", name: str = "", tls: TLS | ssl.SSLContext | None = None
) -> object:
    security = EndpointSecurity(tls, has_credentials=False, allow_insecure_auth=False)
    return srv_resolver_from(endpoints, domain, name, security)


def test_the_default_endpoint_is_etcds_own() -> None:
    assert [endpoint.name for endpoint in sources_from(None)] == ["127.0.0.1:2379"]
    assert [endpoint.name for endpoint in sources_from("m1,m2")] == ["m1:2379", "m2:2379"]
    with pytest.raises(ConfigError):
        sources_from([])


def test_endpoints_that_are_named_need_no_dns() -> None:
    assert resolver(sources_from("m1")) is None


def test_names_of_dns_are_looked_up_in_lower_case() -> None:
    pytest.importorskip("dns", reason="dnspython is an extra")
    found = resolver(domain="Example.com.", name="Dev")
    assert isinstance(found, SrvResolver)
    assert found.name == "_etcd-client-ssl-dev._tcp.example.com"


@pytest.mark.parametrize(
    ("tls", "may_leave"),
    [(None, False), (TLS(), False), (TLS(server_name="etcd"), True), (ssl.create_default_context(), True)],
    ids=["none", "a TLS", "a TLS with a name", "a context"],
)
def test_which_clients_take_srv_targets_outside_of_the_domain(
    tls: TLS | ssl.SSLContext | None, may_leave: bool
) -> None:
    pytest.importorskip("dns", reason="dnspython is an extra")
    found = resolver(domain="example.com", tls=tls)
    assert isinstance(found, SrvResolver)
    assert found._within == ("" if may_leave else "example.com")
    assert found._has_tls == (tls is not None)


@pytest.mark.parametrize("domain", ["a b", "a..b", ".", "a" * 64, "a." * 101, "a\n", None, 1])
def test_what_is_no_domain_is_refused(domain: str) -> None:
    with pytest.raises(ConfigError, match="discovery_srv must be a DNS name"):
        resolver(domain=domain)


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match="either endpoints or discovery_srv"):
        resolver(sources_from("m1"), "example.com")
    with pytest.raises(ConfigError, match="needs discovery_srv"):
        resolver(sources_from("m1"), name="dev")


def test_a_dns_name_gets_a_resolver_and_endpoints_stay() -> None:
    pytest.importorskip("dns", reason="dnspython is an extra")
    first, resolver, last = with_resolvers(sources_from("http://m1,https+dns://Etcd,unix:/x"))
    assert isinstance(resolver, NameResolver)
    assert (first.name, resolver.name, last.name) == ("http://m1:2379", "https+dns://etcd:2379", "unix:///x")


def test_a_dns_name_needs_dnspython(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    for name in [name for name in sys.modules if name == "dns" or name.startswith("dns.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ConfigError, match=r"dns:///etcd:2379 needs dnspython: pip install 'etcd_aio\[dns\]'"):
        with_resolvers(sources_from("dns:///etcd"))


def test_dns_names_and_records_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="either endpoints or discovery_srv"):
        resolver(sources_from("dns:///etcd"), "example.com")
