"""lease/keepalive_schedule.py: when it sends a renewal, which answers count, when it gives a stream up."""

import random
from math import inf

import pytest

from etcd_aio.errors import (
    ClientClosedError,
    ConnectionLostError,
    EtcdError,
    LeaseExpiredError,
    LeaseLostError,
    NoLeaderError,
    PermissionDeniedError,
    UnknownServerError,
)
from etcd_aio.lease.keepalive_schedule import WINDOW, KeepAliveSchedule, LeaseState, ScheduledLease
from etcd_aio.types import Header, LeaseKeepAliveResult


class Listener:
    def __init__(self) -> None:
        self.renewed: list[float] = []
        self.missing: list[ScheduledLease] = []
        self.lost: list[EtcdError] = []
        self.refusals: list[int] = []

    def on_renewed(self, reply: LeaseKeepAliveResult, deadline: float) -> None:
        self.renewed.append(deadline)

    def on_missing(self, lease: ScheduledLease) -> None:
        self.missing.append(lease)

    def on_refused(self, error: EtcdError, refusals: int) -> None:
        self.refusals.append(refusals)

    def on_lost(self, error: EtcdError) -> None:
        self.lost.append(error)


class Schedule:
    """A schedule, and the stalls that it reported."""

    def __init__(self, *, is_open: bool = True) -> None:
        self.stalls: list[float] = []
        self.keepalive = KeepAliveSchedule(self.stalls.append)
        if is_open:
            self.keepalive.on_open("m1", 0.0)

    def hold(self, ttl: int = 10, now: float = 0.0, lease_id: int = 7) -> tuple[ScheduledLease, Listener]:
        listener = Listener()
        return self.keepalive.hold(lease_id, ttl, now + ttl, listener, now), listener

    def ids(self, now: float) -> list[int]:
        """What it asks for at this instant."""
        if self.keepalive.due <= now:
            assert self.keepalive.on_time(now) is None
        return [request.id for request in self.keepalive.requests(now)]

    def answer(self, now: float, lease_id: int = 7, ttl: int = 10) -> None:
        self.keepalive.on_reply(LeaseKeepAliveResult(Header(), lease_id, ttl), now)


def test_a_renewal_is_due_after_a_quarter_of_the_ttl_and_counts_from_the_instant_of_sending() -> None:
    schedule = Schedule()
    lease, listener = schedule.hold()
    assert schedule.keepalive.due == 2.5
    assert schedule.ids(2.4) == []
    assert schedule.ids(2.5) == [7]
    assert schedule.ids(2.6) == [], "one request at a time"
    schedule.answer(3.0)
    assert listener.renewed == [12.5], "sent at 2.5, not answered at 3"
    assert lease.state is LeaseState.WAITING
    assert schedule.keepalive.due == 5.0


def test_after_a_late_answer_it_is_renewed_at_once() -> None:
    schedule = Schedule()
    schedule.hold(ttl=20)
    assert schedule.ids(5.0) == [7]
    schedule.answer(6.0, ttl=20)
    assert schedule.keepalive.due == 10.0
    assert schedule.ids(10.0) == [7]
    schedule.answer(12.9, ttl=8)  # until 18, and a quarter of the 8 seconds has passed
    assert schedule.keepalive.due == 12.9
    assert schedule.ids(12.9) == [7]
    schedule.answer(13.0, ttl=8)
    assert schedule.keepalive.due == pytest.approx(14.9, abs=8 / 64)


@pytest.mark.parametrize("left", [4.9, 1.0, 0.0, -7.0])
def test_a_lease_with_little_time_left_is_due_at_once_which_is_no_stall(left: float) -> None:
    schedule = Schedule()
    listener = Listener()
    schedule.keepalive.hold(7, 10, 100.0 + left, listener, 100.0)
    assert schedule.keepalive.due == 100.0
    assert schedule.ids(100.0) == ([7] if left > 0 else [])
    assert len(listener.lost) == (left <= 0)
    assert schedule.stalls == [], "the loop was not blocked"


def refuse(schedule: Schedule, now: float) -> PermissionDeniedError:
    """The server ends the stream: it refuses the oldest request without an answer. Another stream is opened at once."""
    error = PermissionDeniedError()
    assert schedule.keepalive.on_lost(error, now), "no member is at fault"
    schedule.keepalive.on_open("m1", now)
    return error


def test_a_refused_lease_is_put_off_and_the_others_are_renewed_at_once() -> None:
    schedule = Schedule()
    leases = {lease_id: schedule.hold(lease_id=lease_id) for lease_id in (1, 2, 3, 4)}
    assert schedule.ids(2.5) == [1, 2, 3, 4]
    schedule.answer(2.6, lease_id=1)
    error = refuse(schedule, 2.6)
    assert schedule.ids(2.6) == [3], "one request, until an answer comes"
    schedule.answer(2.7, lease_id=3)
    assert schedule.ids(2.7) == [4]
    schedule.answer(2.7, lease_id=4)
    assert [len(listener.renewed) for _, listener in leases.values()] == [1, 0, 1, 1]
    assert [listener.refusals for _, listener in leases.values()] == [[], [1], [], []]
    assert [lease.refusal for lease, _ in leases.values()] == [None, error, None, None]


def test_a_refused_lease_is_sent_again_ever_more_seldom_and_expires_with_the_refusal() -> None:
    schedule = Schedule()
    _, listener = schedule.hold(ttl=16)
    assert schedule.ids(4.0) == [7]
    error = refuse(schedule, 4.0)
    for now in (5.0, 7.0, 11.0, 13.5, 14.75):
        assert schedule.ids(now - 0.01) == []
        assert schedule.ids(now) == [7]
        error = refuse(schedule, now)
    schedule.keepalive.on_time(16.0)
    (lost,) = listener.lost
    assert isinstance(lost, LeaseExpiredError)
    assert lost.__cause__ is error
    assert "permission denied" in lost.message
    assert listener.refusals == [1, 2, 3, 4, 5, 6]
    assert not schedule.keepalive._refused


def test_a_refused_lease_is_sent_after_all_others() -> None:
    schedule = Schedule()
    schedule.hold(lease_id=1)
    assert schedule.ids(2.5) == [1]
    refuse(schedule, 2.5)
    for lease_id in (2, 3, 4):
        schedule.hold(ttl=12, now=0.75, lease_id=lease_id)
    schedule.keepalive.on_time(4.0)
    schedule.keepalive._window = WINDOW
    assert schedule.ids(4.0) == [2, 3, 4, 1], "though the first one has the nearest deadline"


def test_a_lease_that_is_renewed_again_brings_back_all_that_were_refused() -> None:
    schedule = Schedule()
    leases = [schedule.hold(ttl=60, lease_id=lease_id)[0] for lease_id in (1, 2, 3)]
    assert schedule.ids(15.0) == [1, 2, 3]
    refuse(schedule, 15.0)
    assert schedule.ids(15.0) == [2]
    refuse(schedule, 15.0)
    assert schedule.ids(15.0) == [3]
    refuse(schedule, 15.0)
    assert schedule.ids(15.9) == []
    assert schedule.ids(16.0) == [1]
    schedule.answer(16.1, lease_id=1, ttl=60)
    assert schedule.ids(16.1) == [2, 3]
    schedule.answer(16.2, lease_id=2, ttl=60)
    schedule.answer(16.2, lease_id=3, ttl=60)
    assert [(lease.refusal, lease.refusals) for lease in leases] == [(None, 0)] * 3
    assert not schedule.keepalive._refused


@pytest.mark.parametrize("refused", [10, 1000])
def test_many_refused_leases_cost_one_message_each_and_one_stream_a_second_afterwards(refused: int) -> None:
    schedule = Schedule()
    listeners = [schedule.hold(ttl=60, lease_id=lease_id)[1] for lease_id in range(1, 1001)]
    schedule.keepalive.on_time(now := 20.0)
    streams = messages = 0

    def run() -> None:
        nonlocal streams, messages
        while asked := schedule.ids(now):
            messages += len(asked)
            for lease_id in asked:
                if lease_id % (1000 // refused) == 0:
                    streams += 1
                    refuse(schedule, now)
                    break
                schedule.answer(now, lease_id=lease_id, ttl=60)

    run()
    assert streams == refused
    assert sum(len(listener.renewed) for listener in listeners) == 1000 - refused
    assert messages <= 1000 + refused * WINDOW // 2, "few were sent in vain"
    if refused == 1000:
        assert messages == 1000 + WINDOW - 1
    streams = 0
    while now < 30.0:
        now = max(now, schedule.keepalive.due)
        run()
    assert streams <= 11


def test_a_single_renewal_that_is_refused_fails_alone() -> None:
    schedule = Schedule()
    asked, other = Listener(), Listener()
    schedule.keepalive.renew_once(8, asked, 0.0)
    schedule.keepalive.renew_once(9, other, 0.1)
    assert schedule.ids(0.2) == [8, 9]
    error = refuse(schedule, 0.3)
    assert asked.lost == [error]
    assert schedule.ids(0.3) == [9]
    schedule.answer(0.4, lease_id=9)
    assert other.renewed == [10.3]


def test_an_error_of_another_kind_lets_the_others_go_first() -> None:
    """The server may mean one request or all of them: so the error counts against no lease."""
    schedule = Schedule()
    (lease, listener), _ = schedule.hold(lease_id=1), schedule.hold(lease_id=2)
    assert schedule.ids(2.5) == [1, 2]
    assert not schedule.keepalive.on_lost(UnknownServerError("a text that this client does not know"), 2.6)
    schedule.keepalive.on_open("m2", 2.6)
    assert schedule.ids(2.6) == [2]
    schedule.answer(2.6, lease_id=2)
    assert schedule.ids(2.6) == [1]
    assert (lease.refusal, listener.refusals) == (None, [])
    assert not schedule.keepalive.on_lost(NoLeaderError(), 2.7), "a member without a leader refuses all"
    schedule.keepalive.on_open("m1", 2.8)
    assert schedule.ids(2.8) == [1]
    schedule.answer(2.9, lease_id=1)
    assert lease.refusals == 0


def test_the_refusal_of_a_lease_that_was_forgotten_puts_off_no_other() -> None:
    schedule = Schedule()
    lease, _ = schedule.hold()
    assert schedule.ids(2.5) == [7]
    schedule.keepalive.forget(lease)
    again, listener = schedule.hold(now=2.6)
    refuse(schedule, 2.7)
    assert (again.refusal, listener.refusals, listener.lost) == (None, [], [])


def test_a_refusal_of_the_stream_fails_single_renewals_and_held_leases_last_until_their_deadlines() -> None:
    schedule = Schedule()
    lease, listener = schedule.hold()
    asked = Listener()
    schedule.keepalive.renew_once(8, asked, 0.0)
    refusal = PermissionDeniedError()
    schedule.keepalive.on_lost(refusal, 1.0)
    assert schedule.keepalive.on_refused(refusal, 1.0), "for the lease that is held"
    assert asked.lost == [refusal]
    assert not listener.lost
    schedule.keepalive.on_open("m2", 5.0)
    assert schedule.ids(5.0) == [7]
    schedule.answer(5.1)
    assert lease.deadline == 15.0
    schedule.keepalive.on_lost(refusal, 6.0)
    assert schedule.keepalive.on_refused(refusal, 6.0)
    assert schedule.keepalive.on_time(15.0) is None
    (lost,) = listener.lost
    assert isinstance(lost, LeaseExpiredError)
    assert lost.__cause__ is refusal
    assert not schedule.keepalive.on_refused(refusal, 16.0), "for nothing"


def test_a_lease_is_lost_at_its_deadline_with_the_streams_error() -> None:
    schedule = Schedule()
    lease, listener = schedule.hold()
    schedule.keepalive.on_lost(cause := ConnectionLostError("reset"), 1.0)
    assert schedule.keepalive.on_time(5.0) is None
    assert schedule.keepalive.due == 10.0
    assert schedule.keepalive.on_time(9.999) is None
    assert not listener.lost
    schedule.keepalive.on_time(10.0)
    [error] = listener.lost
    assert isinstance(error, LeaseExpiredError)
    assert error.__cause__ is cause
    assert not schedule.keepalive.is_needed
    assert schedule.keepalive.due == inf
    schedule.keepalive.forget(lease)  # once more does nothing


def test_a_lease_that_its_holder_expired_is_lost_whatever_answer_comes() -> None:
    schedule = Schedule()
    lease, listener = schedule.hold()
    assert schedule.ids(5.0) == [7]
    schedule.keepalive.expire(lease)
    schedule.answer(11.0)
    schedule.keepalive.expire(lease)
    assert [type(error) for error in listener.lost] == [LeaseExpiredError]
    assert listener.renewed == []
    assert not schedule.keepalive.is_needed


def test_ten_thousand_losses_take_several_turns() -> None:
    schedule = Schedule(is_open=False)
    listeners = [schedule.hold(lease_id=number)[1] for number in range(1, 10_001)]
    lost = [0]
    while schedule.keepalive.is_needed:
        assert schedule.keepalive.due <= 10.0
        schedule.keepalive.on_time(10.0)
        lost.append(sum(len(one.lost) for one in listeners))
        assert lost[-2] < lost[-1] <= lost[-2] + 1024
    assert lost[-1] == 10_000
    assert schedule.keepalive.due == inf


def test_unanswered_renewals_and_no_others_are_repeated_on_the_next_stream() -> None:
    schedule = Schedule()
    schedule.hold(ttl=10, lease_id=1)
    schedule.hold(ttl=60, lease_id=2)
    assert schedule.ids(5.0) == [1]
    schedule.keepalive.on_lost(ConnectionLostError("reset"), 5.5)
    assert schedule.ids(5.6) == [], "no stream"
    schedule.keepalive.on_open("m2", 6.0)
    assert schedule.ids(6.0) == [1]
    schedule.answer(6.1, lease_id=1)
    schedule.keepalive.on_lost(ConnectionLostError("reset"), 7.0)
    schedule.keepalive.on_open("m3", 7.0)
    assert schedule.ids(7.0) == [], "answered, and not due"


def test_the_answer_of_an_earlier_stream_is_not_taken_for_one_of_this() -> None:
    schedule = Schedule()
    _, listener = schedule.hold()
    schedule.ids(5.0)
    schedule.keepalive.on_lost(ConnectionLostError("reset"), 5.5)
    schedule.answer(5.6)
    schedule.keepalive.on_open("m2", 6.0)
    schedule.answer(6.1)
    assert listener.renewed == [], "no request was sent on this stream"


def test_silent_streams_are_given_up_soon_and_then_with_more_patience() -> None:
    schedule = Schedule()
    schedule.hold(ttl=8, now=-2.0)
    assert schedule.ids(0.0) == [7]
    schedule.answer(0.01, ttl=8)
    assert schedule.ids(2.0) == [7]
    for given_up in (2.5, 3.0, 3.5, 4.0, 4.5, 6.5, 7.625, 7.90625):
        assert schedule.keepalive.due == pytest.approx(given_up)
        assert schedule.keepalive.on_time(given_up - 0.01) is None
        assert "no renewal was answered" in str(schedule.keepalive.on_time(given_up))
        assert schedule.keepalive.due > given_up, "reported once"
        assert schedule.keepalive.on_time(given_up + 0.001) is None
        assert list(schedule.keepalive.requests(given_up)) == []
        schedule.keepalive.on_lost(ConnectionLostError("silent"), given_up)
        schedule.keepalive.on_open("m2", given_up)
        assert schedule.ids(given_up) == [7]
    schedule.answer(7.95, ttl=8)
    assert schedule.keepalive.due == 9.875
    schedule.ids(9.875)
    assert schedule.keepalive.due == 10.375, "a single late answer changes nothing"


def test_a_stream_that_answers_others_is_not_silent() -> None:
    schedule = Schedule()
    for lease_id in range(1, 5):
        schedule.hold(ttl=4, lease_id=lease_id)
    assert schedule.ids(1.0) == [1, 2, 3, 4]
    for number, lease_id in enumerate((1, 2, 3), start=1):
        schedule.answer(1.0 + 0.2 * number, lease_id=lease_id, ttl=40)
    assert schedule.keepalive.on_time(1.6) is None
    assert schedule.keepalive.due == pytest.approx(1.85), "silent since the last answer"


def test_patience_has_bounds() -> None:
    schedule = Schedule()
    schedule.hold(ttl=1000, lease_id=1)
    schedule.ids(250.0)
    assert schedule.keepalive.due == 257.0
    schedule = Schedule()
    schedule.keepalive.renew_once(9, Listener(), 3.0)
    assert schedule.ids(3.0) == [9]
    for now, patience in ((3.0, 1.0), (4.0, 2.0), (6.0, 4.0), (10.0, 7.0), (17.0, 7.0)):
        assert schedule.keepalive.due == now + patience
        assert schedule.keepalive.on_time(now + patience)
        schedule.keepalive.on_lost(ConnectionLostError("silent"), now + patience)
        schedule.keepalive.on_open("m2", now + patience)
        assert schedule.ids(now + patience) == [9]


def test_the_most_urgent_leases_are_renewed_first_and_not_all_at_once() -> None:
    schedule = Schedule(is_open=False)
    numbers = list(range(1, 201))
    random.Random(4).shuffle(numbers)
    for number in numbers:
        schedule.hold(ttl=100 + number, lease_id=number)
    schedule.keepalive.on_time(150.0)  # those up to 50 are lost by now, and the others due
    schedule.keepalive.renew_once(999, Listener(), 90.0)
    schedule.keepalive.on_open("m1", 150.0)
    first = schedule.ids(150.0)
    assert first == [999, *range(51, 50 + WINDOW)], "the single renewal, then the nearest deadlines"
    assert schedule.ids(150.0) == []
    for lease_id in range(51, 50 + WINDOW // 2):
        schedule.answer(150.1, lease_id=lease_id, ttl=151)
    assert schedule.ids(150.1) == [], "it is filled up when half of it is answered"
    schedule.answer(150.1, lease_id=999, ttl=151)
    assert schedule.ids(150.1) == list(range(50 + WINDOW, 50 + WINDOW + WINDOW // 2))


def test_a_missing_lease_is_not_renewed_until_it_is_restored() -> None:
    schedule = Schedule()
    lease, listener = schedule.hold()
    schedule.ids(5.0)
    schedule.answer(5.1, ttl=0)
    assert lease.state is LeaseState.MISSING
    assert len(listener.missing) == 1
    assert not listener.lost
    assert schedule.ids(6.0) == []
    assert schedule.keepalive.due == 10.0, "its deadline holds"
    schedule.keepalive.restore(lease, 6.0)
    assert schedule.ids(6.25) == [7]
    schedule.keepalive.restore(lease, 6.3)  # nothing to restore
    assert lease.state.name == "SENT"
    schedule.answer(6.3)
    assert listener.renewed == [16.25]


def test_a_lease_is_missing_for_those_who_asked_and_once_for_each() -> None:
    schedule = Schedule()
    (_, early), (asking, once) = schedule.hold(), (Listener(), Listener())
    schedule.ids(5.0)
    schedule.answer(5.1, ttl=0)
    _, asking = schedule.hold(ttl=30, now=5.2)
    schedule.keepalive.renew_once(7, once, 5.25)
    assert schedule.ids(5.3) == [7]
    schedule.answer(5.4, ttl=0)
    assert [len(listener.missing) for listener in (early, asking, once)] == [1, 0, 1]


def test_a_missing_lease_is_lost_at_its_deadline_if_it_is_not_verified_in_time() -> None:
    schedule = Schedule()
    _, listener = schedule.hold()
    schedule.ids(5.0)
    schedule.answer(5.1, ttl=0)
    schedule.keepalive.on_time(10.0)
    assert isinstance(listener.lost[0], LeaseExpiredError)


def test_a_forgotten_lease_is_not_renewed_and_its_listener_not_called() -> None:
    schedule = Schedule()
    lease, listener = schedule.hold()
    schedule.keepalive.on_time(5.0)
    schedule.keepalive.forget(lease)
    assert schedule.ids(5.0) == []
    lease, listener = schedule.hold(now=6.0)
    assert schedule.ids(11.0) == [7]
    schedule.keepalive.forget(lease)
    schedule.answer(11.1)
    assert (listener.renewed, listener.missing, listener.lost) == ([], [], [])
    assert not schedule.keepalive.is_needed


def test_an_answer_to_a_request_from_before_a_lease_was_held_is_not_about_it() -> None:
    schedule = Schedule()
    lease, _ = schedule.hold()
    schedule.ids(5.0)
    schedule.keepalive.forget(lease)
    again, listener = schedule.hold(now=5.5)  # granted again, with the same id
    schedule.answer(5.6, ttl=0)
    assert again.state is LeaseState.WAITING
    schedule.ids(10.5)
    schedule.answer(10.6)
    assert listener.renewed == [20.5]


def test_an_answer_counts_although_the_clock_went_back_a_little_before_its_request_was_sent() -> None:
    schedule = Schedule()
    asker = Listener()
    schedule.keepalive.renew_once(7, asker, 3.0)
    assert schedule.ids(2.999) == [7]
    schedule.answer(3.1)
    assert asker.renewed == [12.999]


def test_a_single_renewal_is_sent_now_and_forgotten() -> None:
    schedule = Schedule()
    asker = Listener()
    schedule.keepalive.renew_once(7, asker, 3.0)
    assert schedule.ids(3.0) == [7]
    schedule.answer(3.1)
    assert asker.renewed == [13.0]
    assert not schedule.keepalive.is_needed


def test_a_single_renewal_also_renews_the_held_lease() -> None:
    schedule = Schedule()
    lease, holder = schedule.hold()
    asker = Listener()
    schedule.keepalive.renew_once(7, asker, 2.0)
    assert schedule.ids(2.0) == [7]
    schedule.answer(2.1)
    assert asker.renewed == holder.renewed == [12.0]
    assert lease.state is LeaseState.WAITING
    assert schedule.keepalive.due == pytest.approx(4.5, abs=10 / 64)


def test_two_requests_for_one_lease_are_answered_in_order() -> None:
    schedule = Schedule()
    _, holder = schedule.hold()
    asker = Listener()
    assert schedule.ids(5.0) == [7]
    schedule.keepalive.renew_once(7, asker, 5.5)
    assert schedule.ids(5.5) == [7]
    schedule.answer(5.6)
    assert (holder.renewed, asker.renewed) == ([15.0], []), "it asked after that"
    schedule.answer(5.7)
    assert (holder.renewed, asker.renewed) == ([15.0, 15.5], [15.5])


def test_an_answer_to_no_request_is_ignored() -> None:
    schedule = Schedule()
    _, listener = schedule.hold()
    schedule.answer(1.0)
    schedule.answer(1.0, lease_id=8, ttl=0)
    assert listener.renewed == []


def test_the_end_of_the_last_stream_loses_every_lease() -> None:
    schedule = Schedule()
    _, holder = schedule.hold()
    asker = Listener()
    schedule.keepalive.renew_once(9, asker, 1.0)
    end = ClientClosedError()
    schedule.keepalive.on_lost(end, 2.0)
    schedule.keepalive.on_end(end)
    [error] = holder.lost
    assert type(error) is LeaseLostError
    assert error.__cause__ is end
    assert asker.lost == [end]
    assert not schedule.keepalive.is_needed
    _, later = schedule.hold(now=3.0)
    schedule.keepalive.on_open("m1", 3.0)
    assert schedule.ids(8.0) == [7], "it may begin again"
    assert not later.lost


def test_the_close_of_a_stream_that_is_not_needed_explains_no_later_loss() -> None:
    schedule = Schedule()
    schedule.keepalive.on_lost(NoLeaderError(), 1.0)
    _, listener = schedule.hold(now=2.0)
    schedule.keepalive.on_time(7.0)
    schedule.keepalive.on_time(12.0)
    assert listener.lost[0].__cause__ is None


def test_an_answer_from_before_a_suspension_does_not_bring_a_lease_back() -> None:
    schedule = Schedule()
    lease, listener = schedule.hold()
    assert schedule.ids(5.0) == [7]
    schedule.answer(3600.0)  # it lay in the socket
    assert lease.deadline == 15.0
    assert schedule.keepalive.due <= 3600.0
    assert schedule.keepalive.on_time(3600.0) is None
    (lost,) = listener.lost
    assert isinstance(lost, LeaseExpiredError)


def test_a_stall_is_reported_once() -> None:
    schedule = Schedule()
    for lease_id in range(10):
        schedule.hold(ttl=10, lease_id=lease_id)
    schedule.keepalive.on_time(7.4)
    assert schedule.stalls == [], "4.9 s late is less than half the TTL"
    schedule = Schedule()
    for lease_id in range(10):
        schedule.hold(ttl=10, lease_id=lease_id)
    schedule.keepalive.on_time(7.6)
    assert schedule.stalls == [pytest.approx(5.1)]


def test_a_stall_is_reported_once_even_if_answers_were_waiting() -> None:
    schedule = Schedule()
    for lease_id in range(4):
        schedule.hold(ttl=10, lease_id=lease_id)
    schedule.hold(ttl=12, lease_id=9)
    listeners = schedule.ids(2.5)
    assert len(listeners) == 4
    for lease_id in range(4):
        schedule.answer(9.5, lease_id=lease_id, ttl=10)
    assert schedule.stalls == [pytest.approx(6.375)], "silence would have been judged at 3.125"
    schedule.keepalive.on_time(9.5)
    assert len(schedule.stalls) == 1


def test_a_listener_may_change_the_schedule() -> None:
    schedule = Schedule()

    class Forgetting(Listener):
        def on_renewed(self, reply: LeaseKeepAliveResult, deadline: float) -> None:
            super().on_renewed(reply, deadline)
            schedule.keepalive.forget(other)

    first = Forgetting()
    schedule.keepalive.hold(7, 10, 10.0, first, 0.0)
    other, second = schedule.hold()
    schedule.ids(5.0)
    schedule.answer(5.1)
    assert first.renewed == [15.0]
    assert second.renewed == []


def test_forgotten_leases_leave_no_trace() -> None:
    schedule = Schedule(is_open=False)
    kept, _ = schedule.hold(ttl=10**6, lease_id=1)
    for _ in range(10_000):
        schedule.keepalive.forget(schedule.hold(ttl=10**6)[0])
        schedule.keepalive.forget(schedule.keepalive.renew_once(8, Listener(), 0.0))
    assert len(schedule.keepalive._timers) + len(schedule.keepalive._ready) < 300
    assert schedule.keepalive.due == 10**6 / 4
    assert kept.state is LeaseState.WAITING
