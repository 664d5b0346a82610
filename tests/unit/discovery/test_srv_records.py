"""discovery/srv_records.py: names of services, priorities, weights, and records that cannot be used."""

import random
from collections import Counter
from collections.abc import Callable

import pytest

from etcd_aio.discovery.srv_records import SrvAnswer, SrvRecord, endpoints_of_answer, service_name
from etcd_aio.errors import DiscoveryError


def zero() -> float:
    return 0.0


def resolved(
    *records: SrvRecord, is_tls: bool = False, within: str = "", chance: Callable[[], float] = zero
) -> list[str]:
    found = endpoints_of_answer(SrvAnswer(records, 7.0), "_svc", is_tls=is_tls, within=within, random=chance)
    assert found.ttl == 7.0
    return [endpoint.name for endpoint in found.endpoints]


def test_the_names_of_the_services() -> None:
    assert service_name("example.com", "", is_tls=True) == "_etcd-client-ssl._tcp.example.com"
    assert service_name("example.com", "", is_tls=False) == "_etcd-client._tcp.example.com"
    assert service_name("example.com", "dev", is_tls=True) == "_etcd-client-ssl-dev._tcp.example.com"
    assert service_name("example.com", "dev", is_tls=False) == "_etcd-client-dev._tcp.example.com"


def test_a_record_becomes_an_endpoint_of_its_services_scheme() -> None:
    record = SrvRecord(0, 0, 2379, "M1.example.com.")
    assert resolved(record) == ["http://m1.example.com:2379"]
    assert resolved(record, is_tls=True) == ["https://m1.example.com:2379"]


def test_lower_priorities_come_first_and_repeated_records_count_once() -> None:
    records = [SrvRecord(2, 0, 1, "c"), SrvRecord(0, 0, 1, "a"), SrvRecord(1, 9, 1, "b"), SrvRecord(3, 0, 1, "a")]
    assert resolved(*records) == ["http://a:1", "http://b:1", "http://c:1"]


def test_weights_say_how_often_a_record_comes_first() -> None:
    chance = random.Random(1)
    records = [SrvRecord(0, 30, 1, "heavy"), SrvRecord(0, 10, 1, "light"), SrvRecord(0, 0, 1, "none")]
    firsts = Counter(resolved(*records, chance=chance.random)[0] for _ in range(4000))
    assert 0.68 < firsts["http://heavy:1"] / 4000 < 0.80
    assert 0.18 < firsts["http://light:1"] / 4000 < 0.31
    assert 0 < firsts["http://none:1"] / 4000 < 0.06, "seldom, but not never"


def test_each_of_several_small_weights_may_come_first() -> None:
    records = [SrvRecord(0, 1, 1, "a"), SrvRecord(0, 1, 1, "b")]
    assert resolved(*records)[0] == "http://a:1"
    assert resolved(*records, chance=lambda: 0.99)[0] == "http://b:1"


def test_the_largest_chance_finds_a_record_too() -> None:
    assert len(resolved(SrvRecord(0, 5, 1, "a"), SrvRecord(0, 0, 1, "b"), chance=lambda: 0.999999999)) == 2


def test_targets_outside_of_the_domain_are_refused_where_it_counts() -> None:
    inside, outside = SrvRecord(0, 0, 1, "m1.example.com"), SrvRecord(0, 0, 1, "m1.evilexample.com")
    assert resolved(inside, outside, within="example.com") == ["http://m1.example.com:1"]
    assert resolved(SrvRecord(0, 0, 1, "example.com"), within="example.com") == ["http://example.com:1"]
    assert len(resolved(inside, outside)) == 2
    with pytest.raises(DiscoveryError, match=r"outside of example\.com"):
        resolved(outside, within="example.com")


@pytest.mark.parametrize(
    ("records", "says"),
    [
        ([], "the answer is empty"),
        ([SrvRecord(0, 0, 0, "a")], "no port"),
        ([SrvRecord(0, 0, 0, ".")], "not available"),
        ([SrvRecord(0, 0, 2379, "a b")], "white space"),
        ([SrvRecord(0, 0, 2379, "a@b")], "credentials"),
        ([SrvRecord(0, 0, 2379, "a/b")], "must be host or host:port"),
    ],
)
def test_records_that_cannot_be_used(records: list[SrvRecord], says: str) -> None:
    with pytest.raises(DiscoveryError, match=says):
        resolved(*records)
