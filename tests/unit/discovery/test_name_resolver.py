"""discovery/name_resolver.py: endpoints of a DNS name, and answers that change nothing."""

import pytest

from etcd_aio.balancer import DnsName, Security, parse_sources
from etcd_aio.discovery import NameResolver
from etcd_aio.discovery.addresses import AddressAnswer, FamilyAnswer
from etcd_aio.errors import DiscoveryError

pytestmark = pytest.mark.anyio


class Resolving:
    """A resolver, and the answer that it gets."""

    def __init__(self, text: str = "dns:///etcd.ns") -> None:
        (source,) = parse_sources(text)
        assert isinstance(source, DnsName)
        self.resolver = NameResolver(source, self.lookup)
        self.asked: list[tuple[str, float]] = []
        self.answer = AddressAnswer()

    async def lookup(self, name: str, timeout: float) -> AddressAnswer:
        self.asked.append((name, timeout))
        return self.answer

    async def names(self) -> list[str]:
        return [endpoint.name for endpoint in (await self.resolver.resolve(3.0)).endpoints]


async def test_each_address_is_an_endpoint_that_names_the_dns_name() -> None:
    resolving = Resolving("https+dns://etcd.ns.:2381")
    resolving.answer = AddressAnswer(FamilyAnswer(("10.0.0.1", "10.0.0.2"), 9.0), FamilyAnswer(("fd00::1",), 7.0))
    found = await resolving.resolver.resolve(3.0)
    assert found.ttl == 7.0
    assert resolving.asked == [("etcd.ns.", 3.0)], "with the final dot"
    before = "https+dns://etcd.ns.:2381#"
    assert [one.name for one in found.endpoints] == [before + one for one in ("10.0.0.1", "10.0.0.2", "fd00::1")]
    assert {(one.security, one.server_name, one.authority) for one in found.endpoints} == {
        (Security.TLS, "etcd.ns", "etcd.ns:2381")
    }
    assert resolving.resolver.is_tls
    assert not Resolving("http+dns://etcd").resolver.is_tls


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (AddressAnswer(), "etcd.ns has no address"),
        (AddressAnswer(FamilyAnswer(), FamilyAnswer(error="SERVFAIL")), "SERVFAIL"),
        (AddressAnswer(FamilyAnswer(("0.0.0.0",), 1.0)), r"no address of a server: 0\.0\.0\.0"),
    ],
)
async def test_no_address_is_an_error_and_changes_nothing(answer: AddressAnswer, says: str) -> None:
    resolving = Resolving()
    resolving.answer = AddressAnswer(FamilyAnswer(("10.0.0.1",), 9.0))
    assert await resolving.names() == ["dns:///etcd.ns:2379#10.0.0.1"]
    resolving.answer = answer
    with pytest.raises(DiscoveryError, match=says):
        await resolving.resolver.resolve(3.0)
    resolving.answer = AddressAnswer(FamilyAnswer(error="SERVFAIL"), FamilyAnswer(("fd00::1",), 9.0))
    assert await resolving.names() == ["dns:///etcd.ns:2379#10.0.0.1", "dns:///etcd.ns:2379#fd00::1"]


async def test_an_address_to_listen_on_is_left_out() -> None:
    resolving = Resolving()
    resolving.answer = AddressAnswer(FamilyAnswer(("10.0.0.1", "0.0.0.0"), 9.0), FamilyAnswer(("::",), 9.0))
    assert await resolving.names() == ["dns:///etcd.ns:2379#10.0.0.1"]
