"""discovery/addresses.py: search domains, hosts files, and answers of which a part is missing."""

import pytest

from etcd_aio.discovery.addresses import (
    AddressAnswer,
    FamilyAnswer,
    can_be_dialled,
    kept_addresses,
    listed_addresses,
    search_names,
)

KUBERNETES = ("ns.svc.cluster.local", "svc.cluster.local.", "cluster.local")


@pytest.mark.parametrize(
    ("name", "domains", "ndots", "asks"),
    [
        ("etcd", (), 1, ["etcd."]),
        ("etcd.", KUBERNETES, 5, ["etcd."]),
        (
            "etcd.ns",
            KUBERNETES,
            5,
            ["etcd.ns.ns.svc.cluster.local.", "etcd.ns.svc.cluster.local.", "etcd.ns.cluster.local.", "etcd.ns."],
        ),
        ("etcd.ns", ("a.example",), 1, ["etcd.ns.", "etcd.ns.a.example."]),
        ("etcd", ("a.example",), 1, ["etcd.a.example.", "etcd."]),
        ("etcd", (".", ""), 1, ["etcd."]),
    ],
)
def test_search_domains(name: str, domains: tuple[str, ...], ndots: int, asks: list[str]) -> None:
    assert list(search_names(name, domains, ndots)) == asks


HOSTS = """
# 10.9.9.9 etcd
127.0.0.1\tlocalhost
10.0.0.1  a.example Etcd  # etcd2
10.0.0.2 etcd.
fd00::0:1 etcd
wrong etcd
fe80::1%lo0 etcd
10.0.0.1 etcd
10.0.0.3 etcd2x
"""


def test_a_hosts_file_has_every_address_of_a_name() -> None:
    lines = HOSTS.splitlines()
    assert listed_addresses(lines, "etcd") == ("10.0.0.1", "10.0.0.2", "fd00::1")
    assert listed_addresses(lines, "localhost.") == ("127.0.0.1",)
    assert listed_addresses(lines, "etcd2") == ()
    assert listed_addresses(lines, "10.0.0.3") == ()


V4, V6 = FamilyAnswer(("10.0.0.1",), 30.0), FamilyAnswer(("fd00::1",), 20.0)
MISSING, NONE = FamilyAnswer(error="SERVFAIL"), FamilyAnswer()


def test_a_family_without_an_answer_keeps_its_addresses() -> None:
    known = AddressAnswer(V4, V6)
    other = FamilyAnswer(("10.0.0.2",), 5.0)
    assert kept_addresses(known, AddressAnswer(other, MISSING)).addresses == ("10.0.0.2", "fd00::1")
    assert kept_addresses(known, AddressAnswer(MISSING, V6)).addresses == ("10.0.0.1", "fd00::1")
    assert kept_addresses(known, AddressAnswer(other, NONE)).addresses == ("10.0.0.2",)


def test_the_ttl_is_the_shorter_one_of_those_with_addresses() -> None:
    assert AddressAnswer(V4, V6).ttl == 20.0
    assert AddressAnswer(V4, FamilyAnswer((), 1.0)).ttl == 30.0
    assert AddressAnswer(V4, MISSING).error == "SERVFAIL"
    assert AddressAnswer(V4, V6).error == ""


def test_unspecified_addresses_are_no_servers() -> None:
    assert [can_be_dialled(one) for one in ("0.0.0.0", "::", "127.0.0.2", "fd00::1")] == [False, False, True, True]
