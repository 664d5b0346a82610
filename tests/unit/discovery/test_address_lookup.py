"""discovery/address_lookup.py: DNS answers of a server on loopback, search domains, aliases, and the hosts file."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("dns", reason="dnspython is an extra")

import dns.asyncresolver
import dns.name
from dns.rcode import Rcode

from etcd_aio.discovery import address_lookup as module
from etcd_aio.discovery.address_lookup import HOSTS_TTL, address_lookup, hosts_file
from etcd_aio.errors import DiscoveryError
from tests.support.dns_stub import DnsStub

pytestmark = pytest.mark.anyio


@pytest.fixture
async def stub() -> AsyncIterator[DnsStub]:
    async with DnsStub() as stub:
        yield stub


@pytest.fixture(autouse=True)
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "hosts"
    path.write_text("10.1.1.1 listed\nfd00::1 listed\n")
    monkeypatch.setattr(module, "hosts_file", lambda: path)
    return path


def searching(*domains: str) -> None:
    """Let the lookups search these domains, as in a pod."""
    resolver = dns.asyncresolver.default_resolver
    assert resolver is not None
    resolver.search = [dns.name.from_text(domain) for domain in domains]
    resolver.ndots = 5


async def test_both_families_are_asked_for(stub: DnsStub) -> None:
    stub.says("etcd.test", "10.0.0.1", "10.0.0.2", "fd00::1", ttl=7)
    answer = await address_lookup("etcd.test", 2.0)
    assert sorted(answer.addresses) == ["10.0.0.1", "10.0.0.2", "fd00::1"]
    assert (answer.ttl, answer.error) == (7.0, "")
    assert {kind for _, kind, _ in stub.queries} == {"A", "AAAA"}


async def test_aliases_are_followed_and_the_shortest_ttl_counts(stub: DnsStub) -> None:
    stub.says("www.test", "CNAME alias.test", ttl=50)
    stub.says("alias.test", "CNAME etcd.test", ttl=3)
    stub.says("etcd.test", "10.0.0.1", ttl=60)
    answer = await address_lookup("www.test", 2.0)
    assert (answer.addresses, answer.ttl) == (("10.0.0.1",), 3.0)


async def test_a_name_that_does_not_exist_has_no_address(stub: DnsStub) -> None:
    stub.says("text.test", "CNAME nowhere.test")
    for name in ("nowhere.test", "text.test"):
        answer = await address_lookup(name, 2.0)
        assert (answer.addresses, answer.error) == ((), "")


async def test_search_domains_go_on_after_names_without_addresses(stub: DnsStub) -> None:
    searching("ns.svc.test.", "svc.test.")
    stub.says("etcd.ns.ns.svc.test", "CNAME nowhere.test")
    stub.says("etcd.ns.svc.test", "10.0.0.1")
    assert (await address_lookup("etcd.ns", 2.0)).addresses == ("10.0.0.1",)
    assert list(dict.fromkeys(stub.asked)) == ["etcd.ns.ns.svc.test", "etcd.ns.svc.test"]
    stub.queries.clear()
    assert (await address_lookup("etcd.ns.", 2.0)).addresses == ()
    assert set(stub.asked) == {"etcd.ns"}


@pytest.mark.parametrize("rcode", [Rcode.SERVFAIL, Rcode.REFUSED])
async def test_a_search_goes_on_after_a_name_that_is_not_answered(stub: DnsStub, rcode: Rcode) -> None:
    """A name server answers SERVFAIL for a search domain whose own servers it cannot reach; so Go and glibc go on."""
    searching("gone.test.", "svc.test.")
    stub.fails_for["etcd.gone.test"] = rcode
    stub.says("etcd.svc.test", "10.0.0.1")
    answer = await address_lookup("etcd", 5.0)
    assert (answer.addresses, answer.error) == (("10.0.0.1",), "")
    assert list(dict.fromkeys(stub.asked)) == ["etcd.gone.test", "etcd.svc.test"]


async def test_a_name_that_is_not_answered_is_an_error_if_no_other_is_there(stub: DnsStub) -> None:
    """It may have addresses, so those that are known stay."""
    searching("gone.test.", "svc.test.")
    stub.fails_for["etcd.gone.test"] = Rcode.SERVFAIL
    answer = await address_lookup("etcd", 5.0)
    assert "SERVFAIL" in answer.error
    assert answer.addresses == ()
    assert set(stub.asked) == {"etcd.gone.test", "etcd.svc.test", "etcd"}


async def test_silence_ends_a_search_at_the_timeout(stub: DnsStub) -> None:
    searching("gone.test.", "svc.test.")
    stub.is_silent = True
    answer = await address_lookup("etcd", 0.2)
    assert "Timeout" in answer.error
    assert set(stub.asked) == {"etcd.gone.test"}


async def test_a_failure_of_one_family_leaves_the_other(stub: DnsStub) -> None:
    stub.says("etcd.test", "10.0.0.1", "fd00::1")
    stub.fails(Rcode.SERVFAIL, "AAAA")
    answer = await address_lookup("etcd.test", 2.0)
    assert answer.addresses == ("10.0.0.1",)
    assert "SERVFAIL" in answer.v6.error
    assert not answer.v4.error


async def test_silence_about_one_family_does_not_hold_up_the_other(
    stub: DnsStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SECOND_FAMILY", 0.05)
    stub.says("etcd.test", "10.0.0.1", "fd00::1")
    stub.silent_about = "AAAA"
    async with asyncio.timeout(20):
        answer = await address_lookup("etcd.test", 1000.0)
    assert (answer.addresses, answer.v6.error) == (("10.0.0.1",), "the answer is late")


async def test_silence_is_an_error_after_the_timeout(stub: DnsStub) -> None:
    stub.is_silent = True
    answer = await address_lookup("etcd.test", 0.2)
    assert "Timeout" in answer.error


async def test_the_hosts_file_comes_first(stub: DnsStub, hosts: Path) -> None:
    stub.says("listed", "10.0.0.1")
    answer = await address_lookup("listed", 2.0)
    assert (answer.addresses, answer.ttl, stub.asked) == (("10.1.1.1", "fd00::1"), HOSTS_TTL, [])
    hosts.rename(hosts.with_name("gone"))  # noqa: ASYNC240 - it does not wait
    assert (await address_lookup("listed", 2.0)).addresses == ("10.0.0.1",)


async def test_a_machine_without_name_servers_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("no nameservers")

    monkeypatch.setattr(dns.asyncresolver, "default_resolver", None)
    monkeypatch.setattr(dns.asyncresolver, "Resolver", fail)
    with pytest.raises(DiscoveryError, match="no nameservers"):
        await address_lookup("etcd.test", 1.0)


def test_where_the_hosts_file_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert hosts_file().name == "hosts"


@pytest.mark.parametrize("is_silent", [False, True])
async def test_a_name_that_does_not_exist_in_one_family_ends_no_search(
    stub: DnsStub, is_silent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some networks answer nothing, or an error, to each question for IPv6."""
    monkeypatch.setattr(module, "_SECOND_FAMILY", 0.1)
    searching("ns.svc.test.", "svc.test.")
    stub.says("etcd.svc.test", "10.0.0.1")
    if is_silent:
        stub.silent_about = "AAAA"
    else:
        stub.fails(Rcode.SERVFAIL, "AAAA")
    assert (await address_lookup("etcd", 5.0)).addresses == ("10.0.0.1",)
    assert "etcd.ns.svc.test" in stub.asked


async def test_jobs_of_the_application_do_not_delay_a_lookup(stub: DnsStub) -> None:
    """The default executor of a loop is the application's, and all its threads may be busy."""
    loop, released = asyncio.get_running_loop(), threading.Event()
    executor = ThreadPoolExecutor(1)
    loop.set_default_executor(executor)
    job = loop.run_in_executor(None, released.wait)
    try:
        async with asyncio.timeout(10):
            assert (await address_lookup("listed", 2.0)).addresses == ("10.1.1.1", "fd00::1")
    finally:
        released.set()
        await job


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
async def test_a_hosts_file_that_is_not_read_in_time_is_a_failure(
    stub: DnsStub, hosts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = hosts.with_name("pipe")
    os.mkfifo(pipe)  # to open it for reading waits for a writer
    monkeypatch.setattr(module, "hosts_file", lambda: pipe)
    stub.says("etcd.test", "10.0.0.1")
    try:
        async with asyncio.timeout(10):
            with pytest.raises(DiscoveryError, match=r"pipe was not read in time"):
                await address_lookup("etcd.test", 0.1)
    finally:
        os.close(os.open(pipe, os.O_RDWR))  # ends the wait
