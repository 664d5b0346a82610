"""fake/leases.py: the leases of the fake: expiry, renewal and the keys that are attached."""

from math import inf

import pytest

from etcd_aio import pb
from etcd_aio.fake.leases import MOST_TTL, LeaseTable
from etcd_aio.fake.refusals import Reason, Refusal


def put(key: bytes, lease: int = 0) -> pb.KeyValue:
    return pb.KeyValue(key=key, version=1, lease=lease)


def run(table: LeaseTable, start: float, seconds: float) -> dict[int, float]:
    """When each lease is found expired, looking whenever the table asks for it."""
    found = {}
    while (now := table.next_look()) <= start + seconds:
        for number in table.expired(now):
            found[number] = now
            table.remove(number)
    return found


def test_a_lease_expires_late_by_half_a_second_at_most_and_never_early() -> None:
    table = LeaseTable()
    starts = {number: 100 + number * 0.13 for number in range(1, 50)}
    for number, now in starts.items():
        table.grant(number, 2 + number % 3, now)
    for number, at in run(table, 100, 60).items():
        assert 0 <= at - (starts[number] + 2 + number % 3) <= 0.5, number
    assert table.all() == []
    assert table.next_look() == inf


def test_many_leases_expire_at_a_limited_rate() -> None:
    table = LeaseTable()
    for number in range(1, 10_001):
        table.grant(number, 10, 0.0)
    found = run(table, 0.0, 60)
    assert len(found) == 10_000
    assert max(found.values()) - min(found.values()) >= 9.5
    assert min(found.values()) >= 10


def test_a_renewed_lease_lasts_for_its_whole_ttl_again() -> None:
    table = LeaseTable()
    table.grant(1, 10, 0.0)
    table.grant(2, 15, 0.0)
    assert [lease.id for lease in table.all()] == [1, 2]
    table.renew(1, 9.0)
    assert [lease.id for lease in table.all()] == [2, 1]
    assert run(table, 0, 60) == {2: 15.0, 1: 19.0}


def test_an_expired_lease_that_waits_for_its_end_cannot_be_renewed() -> None:
    table = LeaseTable()
    table.grant(1, 10, 0.0)
    with pytest.raises(Refusal) as caught:
        table.renew(1, 10.0)
    assert caught.value.text == Reason.LEASE_NOT_FOUND.text


def test_a_new_leader_renews_all() -> None:
    table = LeaseTable()
    table.grant(1, 10, 0.0)
    table.grant(2, 20, 0.0)
    table.renew_all(9.0)
    assert run(table, 0, 60) == {1: 19.0, 2: 29.0}


def test_grants_are_checked_and_a_short_ttl_is_raised() -> None:
    table = LeaseTable()
    assert [table.grant(number, ttl, 0.0).ttl for number, ttl in enumerate((-1, 0, 1, 2, 3, MOST_TTL), 1)] == [
        *(2, 2, 2, 2, 3, MOST_TTL)
    ]
    for number, ttl, reason in ((1, 5, Reason.LEASE_EXISTS), (9, MOST_TTL + 1, Reason.LEASE_TTL_TOO_LARGE)):
        with pytest.raises(Refusal) as caught:
            table.grant(number, ttl, 0.0)
        assert caught.value.text == reason.text


def test_a_key_belongs_to_the_lease_of_its_last_put() -> None:
    table = LeaseTable()
    table.grant(1, 10, 0.0)
    table.grant(2, 10, 0.0)
    table.follow([put(b"b", 1), put(b"a", 1), put(b"c", 1)])
    table.follow([put(b"a", 2), put(b"b"), put(b"a", 2)])
    assert (table.get(1).keys, table.get(2).keys) == ({b"c"}, {b"a"})
    table.follow([pb.KeyValue(key=b"c")])
    assert table.remove(1) == []
    table.follow([put(b"z", 2)])
    assert table.remove(2) == [b"a", b"z"]
    assert 2 not in table
    with pytest.raises(Refusal):
        table.remove(2)


def test_a_lease_that_was_renewed_twice_in_one_instant_expires_once() -> None:
    table = LeaseTable()
    table.grant(1, 5, 0.0)
    table.renew(1, 1.0)
    table.renew(1, 1.0)
    assert table.expired(6.0) == [1]
