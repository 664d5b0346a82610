"""transport/names.py: one lookup for each host at a time, which outlives the dials that wait for it."""

import asyncio
import random
import socket
import threading
from collections import Counter
from collections.abc import Sequence

import pytest

from etcd_aio.errors import ConnectError
from etcd_aio.transport.names import _GIVEN_UP_AFTER, _HOLDS, Address, Names, _Lookup

pytestmark = pytest.mark.anyio

LONG = 30.0  # seconds, which nothing here takes


def found(host: str) -> Sequence[Address]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 0))]


class Resolver:
    """Looks names up once it may, and remembers which."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = threading.Event()
        self.error: OSError | None = None

    def __call__(self, host: str) -> Sequence[Address]:
        self.asked.append(host)
        assert self.may_answer.wait(LONG)
        if self.error is not None:
            raise self.error
        return found("192.0.2.1")


async def in_vain(names: Names, host: str) -> None:
    with pytest.raises(ConnectError, match=rf"the name '{host}' was not resolved in time.* 0 s"):
        await names.addresses(host, 1, 0.0)


@pytest.mark.parametrize(
    ("host", "where"),
    [("127.0.0.1", ("127.0.0.1", 2379)), ("::1", ("::1", 2379, 0, 0)), ("192.0.2.7", ("192.0.2.7", 2379))],
)
async def test_an_address_needs_no_thread(host: str, where: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(thread: threading.Thread) -> None:
        raise AssertionError("a thread was started")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    ((_, kind, _, _, found_there),) = await Names().addresses(host, 2379, 0.0)
    assert (kind, found_there) == (socket.SOCK_STREAM, where)


async def test_a_name_gets_the_port_of_each_who_asks() -> None:
    names = Names(found)
    (one,), (other,) = await asyncio.gather(names.addresses("m1", 1, LONG), names.addresses("m1", 2, LONG))
    assert (one[4], other[4]) == (("m1", 1), ("m1", 2))


async def test_real_names_are_found_or_not() -> None:
    assert {one[4][1] for one in await Names().addresses("localhost", 7, LONG)} == {7}
    with pytest.raises(UnicodeError):
        await Names().addresses("a" * 70 + ".invalid", 7, LONG)


async def test_dials_share_one_lookup_and_it_outlives_them() -> None:
    resolver = Resolver()
    names = Names(resolver)
    await in_vain(names, "m1")
    waiting = [asyncio.ensure_future(names.addresses("m1", 1, LONG)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.wait([waiting[0]])
    assert waiting[0].cancelled()
    resolver.may_answer.set()
    assert [one[0][4] for one in await asyncio.gather(*waiting[1:])] == [("192.0.2.1", 1)] * 2
    assert resolver.asked == ["m1"]
    await names.addresses("m1", 1, LONG)
    assert resolver.asked == ["m1", "m1"], "what was found holds for those who waited, and not for later dials"


async def test_a_host_that_is_slow_holds_up_no_other() -> None:
    resolver = Resolver()
    names = Names(lambda host: resolver(host) if host == "slow" else found(host))
    await in_vain(names, "slow")
    assert (await names.addresses("m2", 1, LONG))[0][4] == ("m2", 1)
    resolver.may_answer.set()


async def test_a_result_that_comes_between_two_dials_is_used_once() -> None:
    resolver = Resolver()
    names = Names(resolver)
    await in_vain(names, "m1")
    resolver.may_answer.set()
    await asyncio.wait([names._lookups["m1"].future])
    assert (await names.addresses("m1", 1, 0.0))[0][4] == ("192.0.2.1", 1)
    assert resolver.asked == ["m1"]
    await names.addresses("m1", 1, LONG)
    assert resolver.asked == ["m1", "m1"]


async def test_what_the_resolver_says_is_raised_and_asked_again() -> None:
    resolver = Resolver()
    resolver.may_answer.set()
    resolver.error = socket.gaierror(socket.EAI_AGAIN, "try again")
    names = Names(resolver)
    for _ in range(2):
        with pytest.raises(socket.gaierror, match="try again"):
            await names.addresses("m1", 1, LONG)
    assert resolver.asked == ["m1", "m1"]


async def test_when_a_lookup_or_its_result_is_too_old() -> None:
    now = asyncio.get_running_loop().time()
    go = threading.Event()

    def work() -> Sequence[Address]:
        go.wait()
        return found("m1")

    lookup = _Lookup(work, "m1", now)
    assert not lookup.is_stale(now + _GIVEN_UP_AFTER - 1)
    assert lookup.is_stale(now + _GIVEN_UP_AFTER + 1)
    go.set()
    await asyncio.wait([lookup.future])
    await asyncio.sleep(0)
    done = asyncio.get_running_loop().time()
    assert not lookup.is_stale(done)
    assert lookup.is_stale(done + _HOLDS + 1)


# One name with several addresses.


class Turning:
    """A resolver that turns the addresses of a name, as name servers do, or does not."""

    def __init__(self, *addresses: str, by: int = 0) -> None:
        self._addresses = addresses
        self._by = by
        self._asked = 0

    def __call__(self, host: str) -> Sequence[Address]:
        start = self._by * self._asked % len(self._addresses)
        self._asked += 1
        return [
            (socket.AF_INET6 if ":" in one else socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 0))
            for one in (*self._addresses[start:], *self._addresses[:start])
        ]


async def begins(names: Names, dials: int) -> list[str]:
    """The last figures of the addresses with which so many connections begin."""
    found = []
    for _ in range(dials):
        names.turn("etcd")
        found.append((await names.addresses("etcd", 2379, LONG))[0][4][0][-1])
    return found


@pytest.mark.parametrize("by", [-1, 0, 1])
async def test_connections_begin_with_one_address_after_the_other_however_the_resolver_turns_them(by: int) -> None:
    names = Names(Turning("192.0.2.1", "192.0.2.2", "192.0.2.3", by=by), lambda: 0.0)
    assert await begins(names, 7) == ["2", "3", "1", "2", "3", "1", "2"]


async def test_clients_are_spread_over_the_addresses() -> None:
    resolver, source = Turning("192.0.2.1", "192.0.2.2", "192.0.2.3"), random.Random(1)
    first = Counter([(await begins(Names(resolver, source.random), 1))[0] for _ in range(300)])
    assert set(first) == {"1", "2", "3"}
    assert min(first.values()) > 70


async def test_all_sockets_of_a_connection_begin_with_the_same_address() -> None:
    names = Names(Turning("192.0.2.1", "192.0.2.2", "192.0.2.3", by=1), lambda: 0.0)
    names.turn("etcd")
    assert len({(await names.addresses("etcd", 1, LONG))[0] for _ in range(6)}) == 1


async def test_the_resolver_decides_which_family_comes_first() -> None:
    addresses = ("2001:db8::2", "192.0.2.1", "2001:db8::1", "192.0.2.2")
    names = Names(Turning(*addresses), lambda: 0.0)
    for begin in ("2", "1"):
        names.turn("etcd")
        found = [one[4][0] for one in await names.addresses("etcd", 1, LONG)]
        assert found[0] == f"2001:db8::{begin}"
        assert sorted(found) == sorted(addresses)
