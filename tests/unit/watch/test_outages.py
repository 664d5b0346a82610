"""watch/outages.py: when watches with a `max_outage` give up."""

from math import inf

from etcd_aio.types.keys import KeyRange
from etcd_aio.watch.outages import Outages
from etcd_aio.watch.state import STEP, WatchOptions, WatchState


def watch(max_outage: float | None = None) -> WatchState:
    return WatchState(WatchOptions(KeyRange.of("k"), max_outage=max_outage), 0, lambda: None)


def test_an_outage_without_a_bound_never_expires() -> None:
    outages, unbounded = Outages(), watch()
    outages.begin(unbounded, 10.0)
    assert (unbounded.outage_since, outages.due) == (10.0, inf)
    assert outages.expired(1e9) == ()
    outages.end(unbounded)
    assert unbounded.outage_since is None


def test_the_first_outage_to_expire_is_due_and_is_returned_once() -> None:
    outages, short, long = Outages(), watch(2.0), watch(5.0)
    for one in (long, short, watch(9.0)):
        outages.begin(one, 10.0)
    assert outages.due == 12.0
    assert outages.expired(12.0) == (short,)
    assert (outages.due, outages.expired(12.0)) == (15.0, ())
    outages.end(long)
    assert len(outages.expired(20.0)) == 1
    assert (outages.due, outages.expired(20.0)) == (inf, ())


def test_many_outages_expire_in_several_steps() -> None:
    outages = Outages()
    for _ in range(STEP + 9):
        outages.begin(watch(1.0), 10.0)
    assert [len(outages.expired(11.0)) for _ in range(3)] == [STEP, 9, 0]
    assert outages.due == inf
