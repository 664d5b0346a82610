"""The keepalive schedule against a model: members that answer late, not at all, or refuse; streams that break, stalls.

The invariants, for every lease that is not forgotten:

(a) it is reported lost at the first look at or after its local deadline (the sending of the last acknowledged request,
    plus the TTL), and not before it; and the server's own deadline is never before that one;
(b) it is never lost if answers take less than a quarter of the TTL and streams come back within a quarter of it;
(c) once it is forgotten or lost, nothing more is asked about it;
(d) it is told of a refusal only if the server has refused this very lease, and a refusal of others never loses it.
"""

from collections import deque
from dataclasses import dataclass, field
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.errors import ConnectionLostError, EtcdError, PermissionDeniedError
from etcd_aio.lease.keepalive_schedule import WINDOW, KeepAliveSchedule, LeaseState, ScheduledLease
from etcd_aio.types import Header, LeaseKeepAliveResult
from tests.support.tiers import nightly_examples


class Holder:
    """One lease: what the schedule says of it, and what is true."""

    def __init__(self, lease_id: int, ttl: int, now: float) -> None:
        self.id = lease_id
        self.ttl = ttl
        self.deadline = now + ttl  # what the schedule may believe at most
        self.expiry = now + ttl  # the server's
        self.lost_at = inf
        self.is_forgotten = False
        self.is_revoked = False
        self.is_denied = False  # the server refuses to renew it
        self.is_refusing = False  # and says so, now
        self.now = now
        self.scheduled: ScheduledLease | None = None

    def on_renewed(self, reply: LeaseKeepAliveResult, deadline: float) -> None:
        assert self.is_live
        assert reply.ttl == self.ttl
        assert deadline == self.deadline

    def on_missing(self, lease: ScheduledLease) -> None:
        assert self.is_live
        assert lease is self.scheduled

    def on_refused(self, error: EtcdError, refusals: int) -> None:
        assert self.is_live
        assert self.is_refusing, "(d)"

    def on_lost(self, error: EtcdError) -> None:
        assert self.is_live
        self.lost_at = self.now

    @property
    def is_live(self) -> bool:
        return not self.is_forgotten and self.lost_at == inf


@dataclass
class Model:
    """The schedule, its stream, and a server that renews what it is asked for, in order.

    A request that the server refuses ends the stream, after the answers to the requests before it.
    """

    now: float = 100.0
    is_open: bool = False
    reopens: bool = False  # a stream that is given up is followed by another one at once
    opened: int = 0
    refused: int | None = None  # the id of the request whose refusal is on its way
    holders: dict[int, Holder] = field(default_factory=dict)
    under_way: deque[tuple[int, float]] = field(default_factory=deque)  # id, sent
    answers: deque[tuple[LeaseKeepAliveResult, float]] = field(default_factory=deque)  # and sent
    stalls: list[float] = field(default_factory=list)
    asked: int = 0
    schedule: KeepAliveSchedule = field(init=False)

    def __post_init__(self) -> None:
        self.schedule = KeepAliveSchedule(self.stalls.append)

    def grant(self, ttl: int, took: float = 0.0) -> Holder:
        holder = Holder(len(self.holders) + 1, ttl, self.now - took)
        self.holders[holder.id] = holder
        holder.now = self.now
        holder.scheduled = self.schedule.hold(holder.id, ttl, holder.deadline, holder, self.now)
        return holder

    def send(self) -> None:
        if not self.is_open:
            return
        for request in self.schedule.requests(self.now):
            assert self.holders[request.id].is_live, "(c)"
            self.under_way.append((request.id, self.now))
            self.asked += 1
        assert len(self.under_way) + len(self.answers) <= WINDOW

    def serve(self) -> None:
        """The server works on one request, now."""
        if self.under_way and self.refused is None:
            lease_id, sent = self.under_way.popleft()
            holder = self.holders[lease_id]
            if holder.is_denied:
                self.refused = lease_id
                return
            has_it = not holder.is_revoked and holder.expiry > self.now
            if has_it:
                holder.expiry = self.now + holder.ttl
            self.answers.append((LeaseKeepAliveResult(Header(), lease_id, holder.ttl if has_it else 0), sent))

    def deliver(self) -> None:
        """An answer arrives, now."""
        if self.answers:
            reply, sent = self.answers.popleft()
            holder = self.holders[reply.id]
            if reply.ttl and holder.is_live:
                holder.deadline = sent + holder.ttl
            self.schedule.on_reply(reply, self.now)
            self.send()
        elif self.refused is not None:
            holder = self.holders[self.refused]
            self._close()
            holder.is_refusing = True
            assert self.schedule.on_lost(PermissionDeniedError(), self.now)
            holder.is_refusing = False
            self.open()  # at once, as the supervisor does

    def _close(self) -> None:
        self.is_open = False
        self.refused = None
        self.under_way.clear()
        self.answers.clear()

    def open(self) -> None:
        if not self.is_open and self.schedule.is_needed:
            self.is_open = True
            self.opened += 1
            self.schedule.on_open("m", self.now)
            self.send()

    def lose(self) -> None:
        if self.is_open:
            self._close()
            self.schedule.on_lost(ConnectionLostError("lost"), self.now)

    def look(self) -> None:
        """The timer fires."""
        for holder in self.holders.values():
            holder.now = self.now
        reason = self.schedule.on_time(self.now)
        for holder in self.holders.values():
            assert holder.is_forgotten or (holder.lost_at != inf) == (holder.deadline <= holder.lost_at <= self.now)
            assert not holder.is_live or holder.deadline > self.now, "(a): not reported"
            assert holder.is_revoked or not holder.is_live or holder.expiry >= holder.deadline, "(a): believed too much"
        if reason is not None:
            self.lose()
            if self.reopens:
                self.open()
        self.send()
        assert self.schedule.due > self.now or not self.schedule.is_needed, "or the timer would fire for ever"

    def advance(self, until: float) -> None:
        """Time passes, and timers fire when they are due."""
        while (due := self.schedule.due) <= until:
            self.now = max(self.now, due)
            self.look()
        self.now = until

    def stall(self, until: float) -> None:
        """Time passes, and nothing runs; then what has arrived is read before a timer fires."""
        self.now = until
        while self.answers or self.refused is not None:
            self.deliver()
        if self.schedule.due <= self.now:
            self.look()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("advance"), st.floats(0.01, 6.0)),
        st.tuples(st.just("stall"), st.floats(0.1, 20.0)),
        st.tuples(st.sampled_from(["serve", "deliver"]), st.integers(1, 8)),
        st.tuples(st.sampled_from(["open", "lose", "answer all"]), st.just(0)),
        st.tuples(st.just("grant"), st.integers(2, 20)),
        st.tuples(st.sampled_from(["forget", "revoke", "restore", "confirm", "deny", "allow"]), st.integers(1, 8)),
    ),
    max_size=60,
)


@nightly_examples(300)
@given(STEPS)
def test_losses_are_told_at_the_deadline_and_the_deadline_is_safe(steps: list[tuple[str, float]]) -> None:
    model = Model()
    for kind, number in [("grant", 5), ("grant", 8), ("open", 0), *steps]:
        holder = model.holders.get(int(number))
        match kind:
            case "advance":
                model.advance(model.now + number)
            case "stall":
                model.stall(model.now + number)
            case "serve" | "deliver":
                for _ in range(int(number)):
                    getattr(model, kind)()
            case "answer all":
                while model.under_way or model.answers or model.refused is not None:
                    model.serve()
                    model.deliver()
            case "deny" | "allow" if holder is not None:
                holder.is_denied = kind == "deny"
            case "open" | "lose":
                getattr(model, kind)()
            case "grant":
                model.grant(int(number), took=number / 10)
            case "revoke" if holder is not None:
                holder.is_revoked = True
            case "restore" if holder is not None and holder.scheduled is not None:
                model.schedule.restore(holder.scheduled, model.now)
            case "forget" if holder is not None and holder.scheduled is not None:
                holder.is_forgotten = holder.is_live or holder.is_forgotten
                model.schedule.forget(holder.scheduled)
            case "confirm" if holder is not None and holder.scheduled is not None:
                if holder.scheduled.state is LeaseState.MISSING:
                    holder.is_forgotten = True
                    model.schedule.forget(holder.scheduled)
            case _:
                pass
    assert model.schedule.is_needed == any(holder.is_live for holder in model.holders.values())
    model.lose()
    model.advance(model.now + 100.0)
    assert not any(holder.is_live for holder in model.holders.values()), "without a stream all are lost in the end"
    assert model.schedule.due == inf


QUARTERS = st.floats(0.001, 0.249)


@nightly_examples(200)
@given(
    st.lists(st.integers(2, 28), min_size=1, max_size=6),
    st.lists(QUARTERS, min_size=1, max_size=20),
    st.lists(st.tuples(QUARTERS, st.floats(0.0, 1.0)), min_size=1, max_size=20),
)
def test_no_lease_is_lost_while_members_answer_and_streams_come_back_in_time(
    ttls: list[int], latencies: list[float], breaks: list[tuple[float, float]]
) -> None:
    """(b). Quarters are of the shortest TTL; a stream breaks between answers, as the worst case breaks at once."""
    model = Model(reopens=True)
    shortest = min(ttls)
    for ttl in ttls:
        model.grant(ttl)
    model.open()
    rounds = 0
    while rounds < 60:
        rounds += 1
        outage, at = breaks[rounds % len(breaks)]
        latency = latencies[rounds % len(latencies)] * shortest
        if not model.under_way:
            # Until something is due; or until the stream breaks, which is just then in the worst case.
            due = model.schedule.due
            if at > 0.5:
                model.advance(due - 1e-9)
                model.lose()
                model.advance(model.now + outage * shortest)
                model.open()
            else:
                model.advance(due)
        _run(model, until=model.now + 2 * latency, latency=latency)
    assert all(holder.is_live for holder in model.holders.values())


@nightly_examples(100)
@given(
    st.integers(2, 60),
    st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 0.249)), min_size=1, max_size=10),
    st.floats(0.001, 0.12),
)
def test_one_break_at_any_instant_costs_nothing(ttl: int, breaks: list[tuple[float, float]], latency: float) -> None:
    """Also with a request in flight, which has to be repeated, if answers take an eighth of the TTL."""
    latency = min(latency, 6.9 / ttl)  # what takes longer than seven seconds is given up, as etcd itself does
    model = Model(reopens=True)
    model.grant(ttl)
    model.open()
    for at, outage in breaks:
        _run(model, until=model.now + ttl * (1 + at), latency=latency * ttl)
        model.lose()
        model.advance(model.now + outage * ttl)
        model.open()
    _run(model, until=model.now + 3 * ttl, latency=latency * ttl)
    assert model.holders[1].is_live
    assert model.asked <= 16 * (2 * len(breaks) + 4), "and it does not ask more often than it has to"


@nightly_examples(50)
@given(st.integers(2, 60), st.floats(0.0, 0.9))
def test_two_silent_members_cost_little(ttl: int, at: float) -> None:
    """The first two streams say nothing at all; the third answers at once, when more than half of the TTL is left."""
    model = Model()
    holder = model.grant(ttl)
    model.open()
    _run(model, until=model.now + ttl * (2 + at), latency=0.001)
    silent = 0
    while silent < 2:
        model.advance(model.schedule.due)  # no answer comes
        assert holder.is_live
        if not model.is_open:
            silent += 1
            model.open()
    assert holder.deadline - model.now >= (ttl * 0.6 - 1e-6 if ttl >= 4 else ttl / 2)
    _run(model, until=model.now + 3 * ttl, latency=0.001)
    assert holder.is_live


@pytest.mark.parametrize("leases", [100, pytest.param(1000, marks=pytest.mark.nightly)])
def test_many_leases_need_little_more_than_three_renewals_each_per_ttl(leases: int) -> None:
    model = Model()
    for number in range(leases):
        model.advance(model.now + 0.001)
        model.grant(5 + number % 3)
    model.open()
    _run(model, until=model.now + 50.0, latency=0.01)
    assert all(holder.is_live for holder in model.holders.values())
    assert model.asked <= leases * (3.1 * 50 / 5 + 2)


@nightly_examples(100)
@given(
    st.lists(st.tuples(st.integers(2, 20), st.booleans(), st.floats(0.0, 3.0)), min_size=1, max_size=150),
    st.floats(0.001, 0.02),
)
def test_refused_leases_cost_the_others_nothing(leases: list[tuple[int, bool, float]], latency: float) -> None:
    """However many they are. And all of them together cost a stream each at first, then about one a second."""
    model = Model(reopens=True)
    for ttl, is_denied, pause in leases:
        model.grant(ttl).is_denied = is_denied
        model.open()
        _run(model, until=model.now + pause * latency, latency=latency)
    opened, begun = model.opened, model.now
    while any(holder.is_denied and holder.is_live for holder in model.holders.values()):
        _run(model, until=model.now + 1.0, latency=latency)
    for holder in model.holders.values():
        assert holder.is_denied or holder.is_live, "(d)"
        assert not holder.is_denied or holder.lost_at == pytest.approx(holder.deadline)
    denied = sum(holder.is_denied for holder in model.holders.values())
    assert model.opened - opened <= denied + 4 * (model.now - begun + 1)


def _run(model: Model, until: float, latency: float) -> None:
    """Time passes, and every request is answered `latency` after it was sent."""
    while model.now < until:
        arrives = model.under_way[0][1] + latency if model.under_way else inf
        model.advance(max(model.now, min(until, arrives, max(model.schedule.due, model.now))))
        while model.under_way and model.under_way[0][1] + latency <= model.now + 1e-9:
            model.serve()
            model.deliver()
