"""discovery/srv.py: which services are asked, what a missing one means, and dnspython on a name server of our own."""

import sys

import pytest

from etcd_aio.discovery import SrvResolver, require_dnspython
from etcd_aio.discovery.srv import dns_lookup
from etcd_aio.discovery.srv_records import SrvAnswer, SrvRecord
from etcd_aio.errors import ConfigError, DiscoveryError
from tests.support import loops

pytestmark = pytest.mark.anyio

TLS, PLAIN = "_etcd-client-ssl._tcp.example.com", "_etcd-client._tcp.example.com"


@pytest.fixture
def anyio_backend() -> loops.Backend:
    """Real sockets need real time."""
    return loops.DEFAULT


class Records:
    """A lookup that knows what it is told."""

    def __init__(self, **known: str | Exception) -> None:
        self.known = {TLS if kind == "tls" else PLAIN: value for kind, value in known.items()}
        self.asked: list[str] = []

    async def __call__(self, name: str, timeout: float) -> SrvAnswer:
        self.asked.append(name)
        found = self.known.get(name, "")
        if isinstance(found, Exception):
            raise found
        return SrvAnswer(tuple(SrvRecord(0, 0, 2379, target) for target in found.split()), 9.0)


async def resolved(records: Records, *, has_tls: bool = False, has_own_ca: bool = False) -> list[str]:
    resolver = SrvResolver("example.com", has_tls=has_tls, has_own_ca=has_own_ca, lookup=records, random=lambda: 0.0)
    assert resolver.name == TLS
    return [endpoint.name for endpoint in (await resolver.resolve(1.0)).endpoints]


async def test_the_service_with_tls_is_enough() -> None:
    records = Records(tls="m1.example.com m2.example.com", plain="m3.example.com")
    assert await resolved(records) == ["https://m1.example.com:2379", "https://m2.example.com:2379"]
    assert records.asked == [TLS]


async def test_the_service_without_is_taken_if_there_is_no_other() -> None:
    assert await resolved(Records(plain="m3.elsewhere.org")) == ["http://m3.elsewhere.org:2379"]


async def test_a_client_with_tls_takes_only_the_service_with_tls() -> None:
    records = Records(plain="m3.example.com")
    with pytest.raises(DiscoveryError, match="requires TLS"):
        await resolved(records, has_tls=True)
    assert records.asked == [TLS]


async def test_that_a_question_was_not_answered_is_no_reason_to_go_on_in_the_clear() -> None:
    records = Records(tls=DiscoveryError("silence"), plain="m3.example.com")
    with pytest.raises(DiscoveryError, match="silence"):
        await resolved(records)
    assert records.asked == [TLS]


async def test_who_has_spoken_tls_never_goes_back() -> None:
    records = Records(tls="m1.example.com", plain="m3.example.com")
    resolver = SrvResolver("example.com", has_tls=False, has_own_ca=False, lookup=records)
    await resolver.resolve(1.0)
    del records.known[TLS]
    with pytest.raises(DiscoveryError, match="requires TLS"):
        await resolver.resolve(1.0)


async def test_hosts_elsewhere_need_an_authority_of_the_users() -> None:
    records = Records(tls="m1.elsewhere.org")
    for has_tls in (False, True):
        with pytest.raises(DiscoveryError, match="outside of"):
            await resolved(records, has_tls=has_tls)
    assert await resolved(records, has_tls=True, has_own_ca=True) == ["https://m1.elsewhere.org:2379"]


async def test_neither_service() -> None:
    with pytest.raises(DiscoveryError, match="neither"):
        await resolved(Records())


async def test_dns_is_asked_and_what_it_says_is_told_apart() -> None:
    pytest.importorskip("dns", reason="dnspython is an extra")
    from dns.rcode import Rcode

    from tests.support.dns_stub import DnsStub, srv

    async with DnsStub() as stub:
        assert (await dns_lookup(TLS, 5.0)).records == ()
        stub.says(TLS, srv(1, 2, 3, "M1.example.com"), srv(0, 9, 4, "m2.example.com"), ttl=77)
        answer = await dns_lookup(TLS, 5.0)
        assert answer.ttl == 77.0
        assert set(answer.records) == {SrvRecord(1, 2, 3, "M1.example.com"), SrvRecord(0, 9, 4, "m2.example.com")}
        stub.fails(Rcode.SERVFAIL)
        with pytest.raises(DiscoveryError, match="SERVFAIL"):
            await dns_lookup(TLS, 2.0)
        stub.fails(None)
        stub.is_silent = True
        with pytest.raises(DiscoveryError, match="Timeout"):
            await dns_lookup(TLS, 0.2)
        assert set(stub.asked) == {TLS}


async def test_without_dnspython_the_user_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    for name in [name for name in sys.modules if name == "dns" or name.startswith("dns.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ConfigError, match=r"discovery_srv needs .*'etcd_aio\[dns\]'"):
        require_dnspython("discovery_srv")
