"""contrib/discovery/picking.py, contrib/discovery/addresses.py, services/last_list.py: picking, and the list
that a service offers: their pure parts.
"""

from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.contrib.discovery.addresses import by_host, dialable, server_name_of
from etcd_aio.contrib.discovery.picking import Picker, eligible
from etcd_aio.errors import InvalidRequestError
from etcd_aio.services import ServiceEndpoint
from etcd_aio.services.endpoint_json import JSONValue
from etcd_aio.services.last_list import LastList, change_between


@dataclass(eq=False)
class One:
    endpoint: ServiceEndpoint
    running: int = 0
    ejected_until: float = 0.0


def ones(count: int) -> list[One]:
    return [One(endpoint(f"{number}:1")) for number in range(count)]


def endpoint(address: str, metadata: JSONValue = None, revision: int = 1) -> ServiceEndpoint:
    return ServiceEndpoint(f"svc/{address}".encode(), address, metadata, revision)


def test_in_turn() -> None:
    candidates = ones(3)
    picker: Picker[One] = Picker("round_robin", Random(1).randrange)
    assert [candidates.index(picker.pick(candidates)) for _ in range(6)] == [0, 1, 2, 0, 1, 2]
    assert picker.pick(candidates[:1]) is candidates[0]


def test_any() -> None:
    candidates = ones(3)
    picker: Picker[One] = Picker("random", Random(1).randrange)
    assert {candidates.index(picker.pick(candidates)) for _ in range(50)} == {0, 1, 2}


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.integers(0, 1000))
def test_of_two_different_ones_that_with_fewer_requests(running: list[int], seed: int) -> None:
    candidates = ones(len(running))
    for one, count in zip(candidates, running, strict=True):
        one.running = count
    picker: Picker[One] = Picker("power_of_two", Random(seed).randrange)
    picked = [picker.pick(candidates) for _ in range(100)]
    busiest = [one for one in candidates if one.running == max(running)]
    if len(busiest) == 1 < len(candidates):
        assert busiest[0] not in picked
    if len(candidates) == 2 and running[0] == running[1]:
        assert set(picked) == set(candidates)


@pytest.mark.parametrize("chosen", [None, "0:1", endpoint("9:1")])
def test_a_function_that_returns_something_else(chosen: object) -> None:
    picker: Picker[One] = Picker(lambda _: chosen, Random(1).randrange)  # type: ignore[arg-type, return-value] # on purpose
    with pytest.raises(InvalidRequestError, match=f"one of the endpoints that it gets, not {type(chosen).__name__}"):
        picker.pick(ones(2))


@pytest.mark.parametrize("host", ["http://api", "api:80", "api/", ""])
def test_a_service_that_no_url_has_as_its_host(host: str) -> None:
    with pytest.raises(InvalidRequestError, match="not a host name of a URL"):
        by_host({"b": 2, host: 1})
    assert by_host({"API": 1, "b.c": 2, "d_e": 3}) == {"api": 1, "b.c": 2, "d_e": 3}


def test_a_function() -> None:
    candidates = ones(3)
    picker: Picker[One] = Picker(lambda endpoints: endpoints[-1], Random(1).randrange)
    assert picker.pick(candidates) is candidates[2]
    with pytest.raises(InvalidRequestError):
        Picker("best", Random(1).randrange)  # type: ignore[arg-type]


def test_those_that_have_failed_come_last() -> None:
    a, b, c = candidates = ones(3)
    a.ejected_until = 5.0
    assert list(eligible(candidates, 1.0, [])) == [b, c]
    assert list(eligible(candidates, 5.0, [])) == [a, b, c]
    assert list(eligible(candidates, 1.0, [b])) == [c]
    assert list(eligible(candidates, 1.0, [b, c])) == [a]
    assert list(eligible(candidates, 1.0, [a, b, c])) == []


def test_addresses_that_are_sockets_each_once() -> None:
    names = ["10.0.0.1:80", "unix:/run/api", "node", "[::1]:1", "[fe80::1%eth0]:1", "http://a:1", "a b:1", "u@h:1"]
    found = [one.address for one in dialable([*map(endpoint, names), endpoint("node")])]
    assert found == ["10.0.0.1:80", "node", "[::1]:1", "[fe80::1%eth0]:1"]


MALFORMED = [
    "10.0.0.1:99999",
    ":80",
    "node:",
    "::g:1",
    "foo..bar:80",
    ".:1",
    "..:1",
    "x" * 64 + ":1",
    "a." * 130 + "a:1",
]


@pytest.mark.parametrize("address", MALFORMED)
def test_what_can_be_no_host_is_no_socket(address: str) -> None:
    assert list(dialable([endpoint(address), endpoint("a.b.:1"), endpoint("b\u00fccher:1")])) == [
        endpoint("a.b.:1"),
        endpoint("b\u00fccher:1"),
    ]


@pytest.mark.parametrize(
    ("metadata", "name"),
    [({"server_name": "a"}, "a"), ({"server_name": ""}, None), ({"server_name": 1}, None), (None, None), (["a"], None)],
)
def test_the_name_in_the_metadata(metadata: JSONValue, name: str | None) -> None:
    assert server_name_of(endpoint("a:1", metadata)) == name


endpoint_lists = st.lists(
    st.builds(endpoint, st.sampled_from("abcd"), revision=st.integers(1, 2)), unique_by=lambda one: one.key
).map(tuple)


@given(endpoint_lists, endpoint_lists)
def test_a_change_leads_from_one_list_to_the_other(
    before: tuple[ServiceEndpoint, ...], after: tuple[ServiceEndpoint, ...]
) -> None:
    change = change_between(before, after)
    old, new, added, removed = map(content, (before, after, change.added, change.removed))
    assert (old - removed) | added == new == content(change.endpoints)
    assert not added & old
    assert not removed & new
    assert change.endpoints == after


def content(endpoints: tuple[ServiceEndpoint, ...]) -> set[tuple[bytes, str]]:
    """What a change is about: an equal entry of another revision is none."""
    return {(endpoint.key, endpoint.address) for endpoint in endpoints}


@given(st.lists(st.tuples(st.integers(0, 20), endpoint_lists), max_size=20))
def test_the_last_list_is_never_empty_within_the_grace(steps: list[tuple[int, tuple[ServiceEndpoint, ...]]]) -> None:
    """Against a model that looks at the whole history."""
    offered, now = LastList(30.0), 0
    empty_since: int | None = None
    last: tuple[ServiceEndpoint, ...] = ()
    for seconds, endpoints in steps:
        now += seconds
        if offered.due is not None and offered.due <= now:
            offered.give_up()
        if empty_since is not None and now - empty_since >= 30:
            empty_since, last = None, ()
        offered.take(endpoints, now)
        if endpoints:
            empty_since, last = None, endpoints
        elif last and empty_since is None:
            empty_since = now
        assert offered.endpoints == last
        assert (offered.empty_since is None) == (empty_since is None)
