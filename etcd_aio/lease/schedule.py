"""Keepalive: when each lease of a client is renewed, and when it is lost, on one stream shared by all of them.

Knows: leases, their deadlines, what was asked and answered on the stream. Never knows: clocks, timers, tasks; it is the
`StreamHandler` of a supervised stream.

Two rules on itself: a deadline is moved by `on_reply` alone, and a lease leaves by `_drop` alone.

The theory. A member renews a lease when it works on the request, so never before the request was sent. Therefore the
local deadline is the instant at which the acknowledged request was SENT, plus the TTL of its answer: it passes no later
than the server's own, however long the answer took. Whoever guards something by the lease is told in time.

Each lease is in one of four states:

    state     it is                          leaves it by
    WAITING   acknowledged                   its `due` -> READY
    READY     to be renewed                  `requests` -> SENT, those first whose deadline is nearest
    SENT      asked for on this stream       an answer -> WAITING, or MISSING if the TTL in it is 0
                                             the loss of the stream -> READY
    MISSING   said not to exist              `restore` -> WAITING, or `forget`: whoever listens finds out which, since a
                                             member that led before it froze may not know what was granted meanwhile

and from each of them it leaves for good when its deadline passes, it is forgotten, or the client is closed. No refusal
is a reason: another member, or a later login, may fare better, and the lease lasts meanwhile.

Due. A renewal is due when half of the TTL is left. If the acknowledgement took longer than that half, it is due at half
of what is left.

Silence. A stream delivers in order, so asking again on the same one is useless: what is unanswered is asked again on
another one. It is given up if nothing was heard on it for as long as its most impatient request has patience: a quarter
of the lease's TTL, so that one silent member leaves the other quarter for the next one. If that one is silent too, the
cluster may be electing a leader (1 to 2 s by default), and its followers wait with it, but whoever asks after it is
answered at once: from then on the patience is half of what is left, so that even 2 s allow for three attempts.

Queueing. etcd works on the renewals of a stream one by one, and each costs it a read index or a hop to the leader.
At most `WINDOW` are under way, so that a lease of 2 s need not queue behind thousands of 60 s, and so that the instant
of sending is near that of the renewal.
"""

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final, Protocol, TypeAlias

from etcd_aio.errors import EtcdError, LeaseExpiredError, LeaseLostError
from etcd_aio.pb import LeaseKeepAliveRequest
from etcd_aio.types import LeaseKeepAliveResult

WINDOW: Final = 64
"""Requests under way: 64 keep a stream busy over 50 ms of distance even if a renewal takes etcd less than 1 ms."""

_SHORTEST_PATIENCE: Final = 0.25  # seconds; less would mistake a distant or busy member for a silent one
_LONGEST_PATIENCE: Final = 7.0  # seconds; etcd itself gives a request up after 5 s and two election timeouts of 1 s
_ASKING_PATIENCE: Final = 1.0  # seconds, for a lease of unknown deadline; twice as long after each stream in vain
_LOST_AT_ONCE: Final = 1024  # leases whose holders are told in one turn of the loop: five milliseconds
_SPARE: Final = 64  # outdated entries of a heap that are not worth cleaning up
_RESTORED_PAUSE: Final = 0.25  # seconds until a lease that was said to be missing is renewed again


class LeaseState(Enum):
    """Where a lease is on its round; see the theory above."""

    WAITING = "waiting"
    READY = "ready"
    SENT = "sent"
    MISSING = "missing"
    GONE = "gone"


class LeaseListener(Protocol):
    """Who is told what becomes of a lease. It may change the schedule in return."""

    def on_renewed(self, reply: LeaseKeepAliveResult, deadline: float) -> None:
        """A renewal was acknowledged; the lease lasts at least until `deadline`."""
        ...

    def on_missing(self, reply: LeaseKeepAliveResult) -> None:
        """A member says that there is no such lease: verify it, then `restore` or `forget`."""
        ...

    def on_lost(self, error: EtcdError) -> None:
        """The lease is lost, and forgotten. Said once, and nothing after it."""
        ...


class ScheduledLease:
    """One lease in the schedule: whoever put it there keeps it to speak of it. Not to be changed from outside."""

    __slots__ = ("deadline", "id", "is_held", "listener", "since", "state", "timer", "ttl")

    def __init__(self, lease_id: int, listener: LeaseListener, ttl: float, deadline: float, now: float) -> None:
        self.id = lease_id
        self.listener = listener
        self.is_held = deadline < inf  # else it was asked for once
        self.ttl = ttl
        self.deadline = deadline
        self.since = now
        self.state = LeaseState.GONE
        self.timer = 0


class _Request:
    """A request under way."""

    __slots__ = ("id", "patience", "sent_at")

    def __init__(self, lease_id: int, sent_at: float, patience: float) -> None:
        self.id = lease_id
        self.sent_at = sent_at
        self.patience = patience


_Heap: TypeAlias = list[tuple[float, int, ScheduledLease]]


class KeepAliveSchedule:
    """The schedule.

    Args:
        on_stall: told how many seconds too late a lease was looked after, if that is more than half its TTL: the event
            loop was held up.
    """

    def __init__(self, on_stall: Callable[[float], None]) -> None:
        self._on_stall = on_stall
        self._leases: dict[int, list[ScheduledLease]] = {}
        self._count = 0
        # (instant, number, lease): the lease's next change. It counts if the lease's `timer` is its number.
        self._timers: _Heap = []
        self._ready: _Heap = []  # (urgency, number, lease); likewise
        self._unanswered: deque[_Request] = deque()
        self._numbers = 0
        self._is_open = False
        self._is_given_up = False
        self._heard_at = -inf
        self._silences = 0  # streams in a row that were given up
        self._looked_at = -inf
        self._last_error: EtcdError | None = None

    # What the leases' owners say. `StreamSupervisor.wake()` follows each of these.

    def hold(self, lease_id: int, ttl: float, deadline: float, listener: LeaseListener, now: float) -> ScheduledLease:
        """Keep a lease alive from now on: it was granted with `ttl`, and lasts at least until `deadline`."""
        lease = ScheduledLease(lease_id, listener, ttl, deadline, now)
        self._add(lease)
        self._wait(lease, now)
        return lease

    def ask(self, lease_id: int, listener: LeaseListener, now: float) -> ScheduledLease:
        """Renew a lease once, at once; after the answer it is forgotten. If it is held, that does not change."""
        lease = ScheduledLease(lease_id, listener, inf, inf, now)
        self._add(lease)
        self._make_ready(lease)
        return lease

    def forget(self, lease: ScheduledLease) -> None:
        """Ask nothing more about the lease, and tell its listener nothing more."""
        if lease.state is not LeaseState.GONE:
            self._drop(lease)

    def expire(self, lease: ScheduledLease) -> None:
        """Somebody was told that its deadline has passed: it is lost, whatever answer is still on its way."""
        if lease.state is not LeaseState.GONE:
            self._drop(lease)
            lease.listener.on_lost(self._expired(lease))

    def restore(self, lease: ScheduledLease, now: float) -> None:
        """The lease that was said to be missing is not, or that could not be found out: go on with it."""
        if lease.state is LeaseState.MISSING:
            left = lease.deadline - now
            self._wait_until(lease, now + min(_RESTORED_PAUSE, left / 2))

    # StreamHandler.

    @property
    def is_needed(self) -> bool:
        """See `StreamHandler`."""
        return self._count > 0

    @property
    def due(self) -> float:
        """See `StreamHandler`."""
        timers = self._timers
        while timers and timers[0][1] != timers[0][2].timer:
            heappop(timers)
        first = timers[0][0] if timers else inf
        return min(first, self._silent_at)

    def requests(self, now: float) -> Iterable[LeaseKeepAliveRequest]:
        """See `StreamHandler`."""
        found: list[LeaseKeepAliveRequest] = []
        while self._is_open and not self._is_given_up and self._ready and len(self._unanswered) < WINDOW:
            _, number, lease = heappop(self._ready)
            if lease.timer != number:
                continue
            lease.state = LeaseState.SENT
            self._unanswered.append(_Request(lease.id, now, self._patience(lease, now)))
            found.append(LeaseKeepAliveRequest(id=lease.id))
        return found

    def on_open(self, endpoint: str, now: float) -> None:
        """See `StreamHandler`."""
        self._is_open, self._is_given_up = True, False
        self._heard_at = now

    def on_reply(self, reply: LeaseKeepAliveResult, now: float) -> None:
        """See `StreamHandler`. The request is the oldest one of this lease: a stream keeps the order."""
        request = next((one for one in self._unanswered if one.id == reply.id), None)
        if request is None:
            return  # nobody asked
        self._unanswered.remove(request)
        overdue = now - max(request.sent_at, self._heard_at) - request.patience
        if overdue > reply.ttl / 2 > 0:
            self._stalled(overdue, now)
        self._heard_at = now
        self._silences = 0
        for lease in self._leases.get(reply.id, ())[:]:
            if lease.state is LeaseState.GONE:
                continue  # one of the others' listeners has forgotten it
            if request.sent_at < lease.since or (lease.state is not LeaseState.SENT and reply.ttl <= 0):
                continue  # the answer is about a time before this lease, or before what is known of it
            if reply.ttl <= 0:
                self._set_timer(lease, lease.deadline, LeaseState.MISSING)
                lease.listener.on_missing(reply)
            elif lease.is_held:
                lease.ttl = reply.ttl
                lease.deadline = request.sent_at + reply.ttl
                self._wait(lease, now)
                lease.listener.on_renewed(reply, lease.deadline)
            else:
                self._drop(lease)
                lease.listener.on_renewed(reply, request.sent_at + reply.ttl)

    def on_time(self, now: float) -> str | None:
        """See `StreamHandler`."""
        lost: list[ScheduledLease] = []
        stall = 0.0
        while self._timers and self._timers[0][0] <= now and len(lost) < _LOST_AT_ONCE:
            instant, number, lease = heappop(self._timers)
            if lease.timer != number:
                continue
            if now - instant > lease.ttl / 2:
                stall = max(stall, now - instant)
            if lease.deadline <= now:
                self._drop(lease)
                lost.append(lease)
            else:
                self._make_ready(lease)
        if stall:
            self._stalled(stall, now)
        self._looked_at = now
        for lease in lost:
            lease.listener.on_lost(self._expired(lease))
        if self._silent_at <= now:
            self._silences += 1
            self._is_given_up = True
            return f"no renewal was answered for {now - self._silent_since:.2f} seconds"
        return None

    def on_lost(self, error: EtcdError, now: float) -> bool:
        """See `StreamHandler`."""
        if self.is_needed:  # else it was closed for that, which explains no loss
            self._last_error = error
        self._close()
        return False

    def on_refused(self, error: EtcdError, now: float) -> bool:
        """See `StreamHandler`. The deadlines of held leases decide; whoever asked for one renewal hears of it now."""
        self._last_error = error
        asked = [lease for same in self._leases.values() for lease in same if not lease.is_held]
        for lease in asked:
            self._drop(lease)
        for lease in asked:
            lease.listener.on_lost(error)
        return self.is_needed

    def on_end(self, error: EtcdError) -> None:
        """See `StreamHandler`. Nothing keeps the leases alive any more, so each is lost, sooner or later: sooner."""
        self._close()
        leases = [lease for same in self._leases.values() for lease in same]
        for lease in leases:
            self._drop(lease)
        for lease in leases:
            if lease.is_held:
                lost = LeaseLostError(f"lease 0x{lease.id:x} is not kept alive any longer: {error.message}")
                lost.__cause__ = error
                lease.listener.on_lost(lost)
            else:
                lease.listener.on_lost(error)

    # Leases in and out.

    def _add(self, lease: ScheduledLease) -> None:
        self._leases.setdefault(lease.id, []).append(lease)
        self._count += 1

    def _drop(self, lease: ScheduledLease) -> None:
        lease.state = LeaseState.GONE
        lease.timer = 0
        same = self._leases[lease.id]
        same.remove(lease)
        if not same:
            del self._leases[lease.id]
        self._count -= 1

    def _expired(self, lease: ScheduledLease) -> EtcdError:
        error = LeaseExpiredError(f"lease 0x{lease.id:x} has expired: no renewal was acknowledged in time")
        error.__cause__ = self._last_error
        return error

    # States.

    def _wait(self, lease: ScheduledLease, now: float) -> None:
        due = lease.deadline - lease.ttl / 2
        self._wait_until(lease, due if due > now else now + (lease.deadline - now) / 2)

    def _wait_until(self, lease: ScheduledLease, due: float) -> None:
        self._set_timer(lease, due, LeaseState.WAITING)

    def _make_ready(self, lease: ScheduledLease) -> None:
        self._set_timer(lease, lease.deadline, LeaseState.READY)
        self._ready = _cleaned(self._ready, self._count)
        # Somebody waits for what was asked for once, so it is as urgent as what is overdue.
        heappush(self._ready, (lease.deadline if lease.is_held else lease.since, lease.timer, lease))

    def _set_timer(self, lease: ScheduledLease, instant: float, state: LeaseState) -> None:
        self._numbers += 1
        lease.state = state
        lease.timer = self._numbers
        if instant < inf:
            self._timers = _cleaned(self._timers, self._count)
            heappush(self._timers, (instant, lease.timer, lease))

    # The stream.

    def _close(self) -> None:
        self._is_open = False
        for request in self._unanswered:
            for lease in self._leases.get(request.id, ()):
                if lease.state is LeaseState.SENT:
                    self._make_ready(lease)
        self._unanswered.clear()

    def _patience(self, lease: ScheduledLease, now: float) -> float:
        if lease.is_held:
            patience = (lease.deadline - now) / 2 if self._silences else lease.ttl / 4
        else:
            patience = _ASKING_PATIENCE * 2 ** min(self._silences, 3)
        return min(max(patience, _SHORTEST_PATIENCE), _LONGEST_PATIENCE)

    @property
    def _silent_at(self) -> float:
        if self._is_given_up:
            return inf
        heard_at = self._heard_at
        return min((max(one.sent_at, heard_at) + one.patience for one in self._unanswered), default=inf)

    @property
    def _silent_since(self) -> float:
        return max(self._unanswered[0].sent_at, self._heard_at)

    def _stalled(self, seconds: float, now: float) -> None:
        """Tell of a stall, unless it is part of one that was told already."""
        if now - seconds >= self._looked_at:
            self._looked_at = now
            self._on_stall(seconds)


def _cleaned(heap: _Heap, leases: int) -> _Heap:
    """The heap, without what is outdated if that is most of it: leases that were forgotten long before their time."""
    if len(heap) <= 4 * leases + _SPARE:
        return heap
    kept = [one for one in heap if one[1] == one[2].timer]
    heapify(kept)
    return kept
