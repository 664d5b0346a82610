"""balancer/endpoint.py: every form of an address, what is refused, and what the transport dials."""

import ssl

import pytest

from etcd_aio.balancer.endpoint import (
    DEFAULT_PORT,
    DnsName,
    Endpoint,
    Security,
    parse_endpoint,
    parse_endpoints,
    parse_source,
    parse_sources,
)
from etcd_aio.errors import ConfigError

OPTIONAL, PLAINTEXT, TLS = Security.OPTIONAL, Security.PLAINTEXT, Security.TLS

# text, canonical name, host, port, path, security, authority, server name
FORMS = [
    ("m1", "m1:2379", "m1", 2379, "", OPTIONAL, "m1:2379", "m1"),
    ("m1:2381", "m1:2381", "m1", 2381, "", OPTIONAL, "m1:2381", "m1"),
    (
        "M1.Example.ORG",
        "m1.example.org:2379",
        "m1.example.org",
        2379,
        "",
        OPTIONAL,
        "m1.example.org:2379",
        "m1.example.org",
    ),
    ("etcd_1:2379", "etcd_1:2379", "etcd_1", 2379, "", OPTIONAL, "etcd_1:2379", "etcd_1"),
    ("1.2.3.4", "1.2.3.4:2379", "1.2.3.4", 2379, "", OPTIONAL, "1.2.3.4:2379", "1.2.3.4"),
    ("1.2.3.4:1", "1.2.3.4:1", "1.2.3.4", 1, "", OPTIONAL, "1.2.3.4:1", "1.2.3.4"),
    ("[::1]", "[::1]:2379", "::1", 2379, "", OPTIONAL, "[::1]:2379", "::1"),
    ("[::1]:65535", "[::1]:65535", "::1", 65535, "", OPTIONAL, "[::1]:65535", "::1"),
    ("[0:0::0001]:2379", "[::1]:2379", "::1", 2379, "", OPTIONAL, "[::1]:2379", "::1"),
    ("[FE80::A]", "[fe80::a]:2379", "fe80::a", 2379, "", OPTIONAL, "[fe80::a]:2379", "fe80::a"),
    ("http://m1", "http://m1:2379", "m1", 2379, "", PLAINTEXT, "m1:2379", "m1"),
    ("HTTP://M1:02379", "http://m1:2379", "m1", 2379, "", PLAINTEXT, "m1:2379", "m1"),
    ("http://m1:2381/", "http://m1:2381", "m1", 2381, "", PLAINTEXT, "m1:2381", "m1"),
    ("http://[::1]:2379/", "http://[::1]:2379", "::1", 2379, "", PLAINTEXT, "[::1]:2379", "::1"),
    ("https://m1:2381", "https://m1:2381", "m1", 2381, "", TLS, "m1:2381", "m1"),
    ("https://[::1]/", "https://[::1]:2379", "::1", 2379, "", TLS, "[::1]:2379", "::1"),
    ("  m1:2379\n", "m1:2379", "m1", 2379, "", OPTIONAL, "m1:2379", "m1"),
    ("unix:etcd.sock", "unix:etcd.sock", "", 0, "etcd.sock", OPTIONAL, "etcd.sock", "etcd.sock"),
    (
        "unix:localhost:2379",
        "unix:localhost:2379",
        "",
        0,
        "localhost:2379",
        OPTIONAL,
        "localhost:2379",
        "localhost",
    ),
    ("unix://run/etcd.sock", "unix:run/etcd.sock", "", 0, "run/etcd.sock", OPTIONAL, "etcd.sock", "etcd.sock"),
    ("unix:/run/etcd.sock", "unix:///run/etcd.sock", "", 0, "/run/etcd.sock", OPTIONAL, "etcd.sock", "etcd.sock"),
    ("unix:///run/etcd.sock", "unix:///run/etcd.sock", "", 0, "/run/etcd.sock", OPTIONAL, "etcd.sock", "etcd.sock"),
    ("UNIX:///Run/E.sock", "unix:///Run/E.sock", "", 0, "/Run/E.sock", OPTIONAL, "E.sock", "E.sock"),
    ("unix:a://b", "unix:a://b", "", 0, "a://b", OPTIONAL, "b", "b"),
    ("unix:///a%2Fb", "unix:///a%2Fb", "", 0, "/a%2Fb", OPTIONAL, "a%2Fb", "a%2Fb"),
    ("unix:/run/a@b", "unix:///run/a@b", "", 0, "/run/a@b", OPTIONAL, "a@b", "a@b"),
    ("unixs:etcd.sock", "unixs:etcd.sock", "", 0, "etcd.sock", TLS, "etcd.sock", "etcd.sock"),
    ("unixs://etcd.sock", "unixs:etcd.sock", "", 0, "etcd.sock", TLS, "etcd.sock", "etcd.sock"),
    ("unixs:///run/etcd.sock", "unixs:///run/etcd.sock", "", 0, "/run/etcd.sock", TLS, "etcd.sock", "etcd.sock"),
]


@pytest.mark.parametrize(("text", "name", "host", "port", "path", "security", "authority", "server_name"), FORMS)
def test_every_form(
    text: str, name: str, host: str, port: int, path: str, security: Security, authority: str, server_name: str
) -> None:
    endpoint = parse_endpoint(text)
    assert endpoint == Endpoint(name, host, port, path, security)
    assert (endpoint.authority, endpoint.server_name, str(endpoint)) == (authority, server_name, name)
    assert parse_endpoint(name) == endpoint


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        ":2379",
        "http://",
        "http:///path",
        "https://:2379",
        "m1:",
        "m1:0",
        "m1:65536",
        "m1:-1",
        "m1:+1",
        "m1:2379x",
        "m1:٢٣٧٩",  # digits, but not ours
        "m1:" + "9" * 5000,
        "m1/path",
        "http:/m1",
        "::1",
        "::1:2379",
        "http://::1",
        "[::1",
        "[::1]2379",
        "[]:2379",
        "[m1]:2379",
        "[1.2.3.4]:2379",
        "m1 :2379",
        "m1\n:2379",
        "m1\x00",
        "m1\x1b[31m",
        'm"1',
        "m1\\",
        "m%31",
        "*",
        "m1;m2",
        "mü1:2379",
        "ftp://m1:2379",
        "://m1",
        "unix:",
        "unix://",
        "unix:///",
        "unixs:",
    ],
)
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_endpoint(text)


@pytest.mark.parametrize(
    "text",
    [
        "http://root:c4n4ry@m1:2379",
        "https://root:c4n4ry@m1",
        "root:c4n4ry@m1:2379",
        "root:c4n4ry@https://m1",
        "http://root:c4n4ry/x@m1:2379",
        "http://root:c4n4ry?x@m1:2379",
        "http://root:c4n4ry#x@m1:2379",
        "c4n4ry://m1@m2",
        "http://m1/c4n4ry",
        "http://m1:1/?c4n4ry",
        "etcd://root:c4n4ry@m1",
        "http://root:c4n4ry,x@m1:2379",
        "http://root:x,c4n4ry@m1:2379",
        "http://root:x c4n4ry@m1",
        "unix:,c4n4ry@",
        "http://root:c4n4ry\n@m1",
    ],
)
def test_credentials_are_refused_and_never_repeated(text: str) -> None:
    for parse in (parse_endpoints, lambda one: parse_endpoints([one])):
        try:
            parse(text)
        except ConfigError as error:
            shown = f"{error} {error!r} {error.__cause__!r}"
            assert "c4n4ry" not in shown
        else:
            assert text.startswith("unix:")  # there it is a part of a path


def test_an_error_names_the_endpoint_that_is_wrong() -> None:
    with pytest.raises(ConfigError, match="m2:x"):
        parse_endpoints("m1:2379,m2:x")


def test_a_list_keeps_its_order_and_counts_repetitions_once() -> None:
    assert [one.name for one in parse_endpoints("m2, m1:2379 ,M2:2379")] == ["m2:2379", "m1:2379"]
    assert [one.name for one in parse_endpoints(iter(["m2", "m1"]))] == ["m2:2379", "m1:2379"]


@pytest.mark.parametrize("endpoints", ["", ",", "m1,,m2", [], [""]])
def test_a_list_without_an_endpoint_or_with_a_hole_is_refused(endpoints: str | list[str]) -> None:
    with pytest.raises(ConfigError):
        parse_endpoints(endpoints)


def test_an_endpoint_is_a_text() -> None:
    with pytest.raises(ConfigError, match="int"):
        parse_endpoints([2379])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match=r"'m1:2379,m2:2379', or several, not int"):
        parse_endpoints(2379)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="not bytes"):
        parse_endpoints(b"m1:2379")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="not bytes"):
        parse_endpoints([b"m1:2379"])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("http://m1:2379/v3", "endpoint http://m1:2379 must have no path"),
        ("http://m1:2379//", "must have no path"),
        ("https://m1?x=y", "must have no path and no query"),
        ("m1:2379;m2:2379", "separate endpoints by commas"),
        ("etcd://m1", r"use Client\.from_url"),
        ("etcds://root:c4n4ry@m1", r"use Client\.from_url"),
        ("etcd+srv://example.com", r"use Client\.from_url"),
        ("m1, ETCD://m2", r"use Client\.from_url"),
    ],
)
def test_a_common_mistake_is_named(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        parse_endpoints(text)
    assert "c4n4ry" not in str(caught.value)


def test_a_target_has_what_the_transport_dials() -> None:
    tls = ssl.create_default_context()
    target = parse_endpoint("https://m1:2381").target(tls)
    assert (target.host, target.port, target.path, target.authority) == ("m1", 2381, "", "m1:2381")
    assert target.tls is tls
    assert target.server_name == "m1"
    assert parse_endpoint("unix:/run/e.sock").target(None).path == "/run/e.sock"


def test_tls_is_never_added_or_dropped_silently() -> None:
    tls = ssl.create_default_context()
    with pytest.raises(ConfigError, match="without TLS"):
        parse_endpoint("https://m1").target(None)
    with pytest.raises(ConfigError, match="without TLS"):
        parse_endpoint("unixs:e.sock").target(None)
    with pytest.raises(ConfigError, match="with TLS"):
        parse_endpoint("http://m1").target(tls)
    assert parse_endpoint("m1").target(tls).tls is tls
    assert parse_endpoint("m1").target(None).tls is None


def test_the_default_port_is_etcds() -> None:
    assert DEFAULT_PORT == 2379


# DNS names: text, canonical name, host, port, security.
NAMES = [
    ("dns:///etcd-headless.ns:2379", "dns:///etcd-headless.ns:2379", "etcd-headless.ns", 2379, OPTIONAL),
    ("dns:///etcd", "dns:///etcd:2379", "etcd", 2379, OPTIONAL),
    ("dns://etcd:2381", "dns:///etcd:2381", "etcd", 2381, OPTIONAL),
    ("DNS:///Etcd.Example.ORG.", "dns:///etcd.example.org.:2379", "etcd.example.org.", 2379, OPTIONAL),
    ("http+dns://etcd:2379/", "http+dns://etcd:2379", "etcd", 2379, PLAINTEXT),
    ("https+dns://Etcd_1", "https+dns://etcd_1:2379", "etcd_1", 2379, TLS),
]


@pytest.mark.parametrize(("text", "name", "host", "port", "security"), NAMES)
def test_dns_names(text: str, name: str, host: str, port: int, security: Security) -> None:
    source = parse_source(text)
    assert source == DnsName(name, host, port, security)
    assert parse_source(name) == source
    with pytest.raises(ConfigError, match="any number of addresses"):
        parse_endpoint(text)


@pytest.mark.parametrize(("address", "dialled"), [("10.0.0.7", "10.0.0.7"), ("FD00::7", "fd00::7")])
def test_an_address_of_a_name_is_dialled_there_and_verified_by_the_name(address: str, dialled: str) -> None:
    text = "https+dns://etcd.example.org.:2381"
    name = parse_source(text)
    assert isinstance(name, DnsName)
    endpoint = parse_endpoint(f"{text}#{address}")
    assert endpoint == name.at(dialled)
    assert parse_endpoint(endpoint.name) == endpoint
    assert endpoint.name == f"https+dns://etcd.example.org.:2381#{dialled}"
    target = endpoint.target(ssl.create_default_context())
    assert (target.host, target.port, target.path) == (dialled, 2381, "")
    assert (target.authority, target.server_name) == ("etcd.example.org:2381", "etcd.example.org")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("dns:///10.0.0.7:2379", "10.0.0.7:2379"),
        ("dns://[FD00::7]", "[fd00::7]:2379"),
        ("http+dns://10.0.0.7", "http://10.0.0.7:2379"),
        ("https+dns://[::1]:1", "https://[::1]:1"),
    ],
)
def test_an_ip_address_needs_no_dns(text: str, name: str) -> None:
    assert parse_source(text) == parse_endpoint(name)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dns://10.0.0.53/etcd:2379", "DNS server"),
        ("dns://resolver:53/etcd", "DNS server"),
        ("dns://etcd:2379/", "DNS server"),
        ("dns:////etcd", "DNS server"),
        ("dns:///", "no host"),
        ("dns:///:2379", "no host"),
        ("dns:///etcd:0", "no port"),
        ("dns:///a..b", "needs a DNS name"),
        ("dns:///.etcd", "needs a DNS name"),
        ("dns:///" + "a" * 64, "needs a DNS name"),
        ("dns:///" + "a." * 127 + "a", "needs a DNS name"),
        ("dns:///etcd?x", "no path"),
        ("http+dns://etcd/x", "no path"),
        ("http+dns:///etcd", "no path"),
        ("dns:///m\u00fc:2379", "IDN as xn--"),
        ("dns:///etcd#", "after '#'"),
        ("dns:///etcd#m1", "after '#'"),
        ("dns:///etcd#fe80::1%eth0", "after '#'"),
        ("dns:///10.0.0.7#10.0.0.8", "IP address already"),
        ("dns+http://etcd", "unknown endpoint scheme"),
    ],
)
def test_what_is_no_dns_name_is_refused(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_source(text)


def test_dns_names_stand_beside_endpoints() -> None:
    found = parse_sources("http://m1,dns:///etcd,dns://etcd:2379,https+dns://etcd")
    assert [source.name for source in found] == ["http://m1:2379", "dns:///etcd:2379", "https+dns://etcd:2379"]
    with pytest.raises(ConfigError, match="credentials"):
        parse_sources("dns:///root:c4n4ry@etcd")
