"""lease/clock.py: the lease clock. The tests suspend a machine by changing a number."""

from math import inf

import pytest

from etcd_aio import pb
from etcd_aio.errors import ConnectionLostError, PermissionDeniedError
from etcd_aio.lease.clock import LOOK_EVERY, LeaseClock, LeaseClockAdapter
from etcd_aio.types import Header, LeaseKeepAliveResult
from tests.support.conversations import Recorder


class Machine:
    def __init__(self) -> None:
        self.awake = 100.0
        self.suspended = 5000.0
        self.clock = LeaseClock(lambda: self.awake, lambda: self.suspended)


def test_the_lease_clock_counts_awake_and_suspended_time() -> None:
    machine = Machine()
    begun = machine.clock.now()
    machine.awake += 3
    assert machine.clock.now() == begun + 3
    machine.suspended += 3600
    assert machine.clock.now() == begun + 3603


@pytest.mark.skipif(inf == LOOK_EVERY, reason="this system does not count how long it is suspended")
def test_a_timer_is_set_for_the_due_instant_or_the_next_reading_of_the_clock() -> None:
    machine = Machine()
    now = machine.clock.now()
    assert machine.clock.on_loop(inf) == inf
    assert machine.clock.on_loop(now + 0.3) == pytest.approx(machine.awake + 0.3)
    assert machine.clock.on_loop(now + 60) == machine.awake + LOOK_EVERY
    machine.suspended += 61
    assert machine.clock.on_loop(now + 60) <= machine.awake


def test_the_last_suspension_is_remembered() -> None:
    machine = Machine()
    assert machine.clock.slept_within(inf) == 0.0, "what was before it was first asked does not count"
    machine.suspended += 60
    machine.clock.now()
    machine.awake += 3
    machine.suspended += 0.00001  # as much as lies between two readings
    assert machine.clock.slept_within(2.0) == 0.0
    assert machine.clock.slept_within(4.0) == 60.0


def test_a_handler_gets_lease_time_and_its_supervisor_the_time_of_the_loop() -> None:
    machine = Machine()
    request = pb.LeaseKeepAliveRequest(id=7)
    talk: Recorder[pb.LeaseKeepAliveRequest, LeaseKeepAliveResult] = Recorder(request)
    timed = LeaseClockAdapter(talk, machine.clock)
    assert timed.is_needed
    assert timed.due == inf
    timed.on_open("m1", 0.0)
    assert list(timed.requests(0.0)) == [request]
    timed.on_reply(LeaseKeepAliveResult(Header(), 7, 10), 0.0)
    assert talk.instants == [5100.0]
    talk.due = 5100.5
    assert timed.due == 100.5
    machine.awake = 101.0
    assert timed.on_time(0.0) is None
    assert talk.instants == [5100.0, 5101.0]
    assert timed.on_lost(ConnectionLostError("lost"), 0.0) is talk.will_retry_differently
    assert timed.on_refused(PermissionDeniedError(), 0.0) is talk.persists
    timed.on_end(ConnectionLostError("closed"))
    assert talk.heard == ["open", "reply", "time", "lost", "refused", "end"]
    assert not timed.is_needed
