"""KeepAliveSchedule: when each lease of a client is renewed, and when it is lost, on one stream shared by all of them.

A pure state machine: it handles the messages of a supervised stream, and never reads a clock or starts a timer or task.

Two rules: a deadline is moved by `on_reply` alone, and a lease leaves by `_drop` alone.

Theory. A member renews a lease when it works on the request, so never before the request was sent. Therefore the local
deadline is the instant at which the acknowledged request was SENT, plus the TTL of its answer. It passes no later than
the server's own deadline, however long the answer took, so a holder learns of a loss in time.

Each lease is in one of four states:

    state     meaning                            left by
    WAITING   acknowledged, or refused           its `due` -> READY
    READY     to be renewed                      `requests` -> SENT, the nearest deadline first, refused ones last
    SENT      requested on this stream           an answer -> WAITING, or MISSING if the TTL in it is 0
                                                 the loss of the stream -> READY, or WAITING if that was its refusal
    MISSING   a member denied that it exists     `restore` -> WAITING, or `forget`: the listener finds out which, since
                                                 a member that led before it froze may not know of recent grants

and it leaves from each of them for good when its deadline passes, when it is forgotten, or when the client is closed. A
refusal never loses a lease: another member, or a later login, may accept the renewal, and the lease lasts meanwhile.

Due. `patience.py` says when a renewal is due, and how long its answer may take.

Silence. A stream delivers in order, so asking again on the same one is useless: an unanswered request is repeated on
another stream. A stream is given up if nothing was received on it for as long as its most impatient request allows.

Refusal. etcd ends the whole stream when it refuses one request, e.g. since the user may not write one key of the lease.
It works on the requests of a stream in order, so that one is the oldest without an answer. Its leases are put off, and
all others are renewed at once on another stream. Until an answer comes, that one carries a single request: if many
leases are refused, each costs one stream with one message. Afterwards the refused leases are sent after all others,
and so seldom that together they end one stream a second. The first of them that is renewed again brings back all.

Queueing. etcd works on the renewals of a stream one by one, and each costs it a read index or a hop to the leader. At
most `WINDOW` are in flight, so that a lease of 2 s does not queue behind thousands of 60 s, and so that a renewal is
sent shortly before the member works on it. The window is filled up when half of it is answered: that takes fewer turns.
"""

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final, Protocol, TypeAlias, TypeVar

from etcd_aio import pb
from etcd_aio.errors import (
    EtcdError,
    LeaseExpiredError,
    LeaseLostError,
    PermissionDeniedError,
    RetryHint,
    ServerError,
)
from etcd_aio.lease.patience import Patience, due_at
from etcd_aio.types import LeaseKeepAliveResult

WINDOW: Final = 64
"""Requests in flight: 64 keep a stream busy over 50 ms of distance even if a renewal takes etcd less than 1 ms."""

_LOST_AT_ONCE: Final = 1024  # losses in one turn of the loop: five milliseconds
_SPARE: Final = 64  # outdated entries of a heap that are not worth removing
_RESTORED_PAUSE: Final = 0.25  # seconds until a lease that a member denied is renewed again
_LONGEST_PAUSE: Final = 32.0  # seconds until a single refused lease is sent again; rights may come back at any time


class LeaseState(Enum):
    """The state of a lease; see the theory above."""

    WAITING = "waiting"
    READY = "ready"
    SENT = "sent"
    MISSING = "missing"
    GONE = "gone"


class LeaseListener(Protocol):
    """Callbacks for one lease. They may change the schedule."""

    def on_renewed(self, reply: LeaseKeepAliveResult, deadline: float) -> None:
        """A renewal was acknowledged; the lease lasts at least until `deadline`."""

    def on_missing(self, lease: "ScheduledLease") -> None:
        """A member denied that the lease exists: verify that, then `restore` or `forget` it."""

    def on_refused(self, error: EtcdError, refusals: int) -> None:
        """The server refuses to renew this lease, for so many times in a row; it is held until its deadline."""

    def on_lost(self, error: EtcdError) -> None:
        """The lease is lost, and forgotten. The last call."""


class ScheduledLease:
    """One lease in the schedule: the handle of the caller that added it. Only the schedule changes it."""

    __slots__ = (
        "added",
        "deadline",
        "id",
        "is_held",
        "listener",
        "refusal",
        "refusals",
        "since",
        "state",
        "timer",
        "ttl",
    )

    def __init__(self, lease_id: int, listener: LeaseListener, ttl: float, deadline: float, now: float) -> None:
        self.id = lease_id
        self.listener = listener
        self.is_held = deadline < inf  # otherwise it is renewed once
        self.ttl = ttl
        self.deadline = deadline
        self.since = now
        self.state = LeaseState.GONE
        self.timer = 0
        self.refusal: EtcdError | None = None  # the last one since the last acknowledgement
        self.refusals = 0  # since then, and answers that may have been about another lease
        self.added = 0  # the number of its adding: those of requests that were sent later are larger


class _Renewal:
    """A request in flight."""

    __slots__ = ("id", "is_first", "number", "patience", "sent_at")

    def __init__(self, lease_id: int, number: int, sent_at: float, patience: float, *, is_first: bool) -> None:
        self.id = lease_id
        self.number = number
        self.sent_at = sent_at
        self.patience = patience
        self.is_first = is_first  # nothing else was under way


_Urgency: TypeAlias = tuple[bool, float]
_Timers: TypeAlias = list[tuple[float, int, ScheduledLease]]
_Ready: TypeAlias = list[tuple[_Urgency, int, ScheduledLease]]
_Key = TypeVar("_Key", float, _Urgency)


class KeepAliveSchedule:
    """The schedule.

    Args:
        on_stall: called with the seconds by which the schedule ran late, if they are more than half a lease's TTL: the
            event loop was blocked.
    """

    def __init__(self, on_stall: Callable[[float], None]) -> None:
        self._on_stall = on_stall
        self._leases: dict[int, list[ScheduledLease]] = {}
        self._count = 0
        # (instant, number, lease): the lease's next change. It counts if the lease's `timer` is its number.
        self._timers: _Timers = []
        self._ready: _Ready = []  # (urgency, number, lease); likewise
        self._refused: dict[ScheduledLease, None] = {}
        self._window = WINDOW
        self._unanswered: deque[_Renewal] = deque()
        self._numbers = 0
        self._is_open = False
        self._is_given_up = False
        self._heard_at = -inf
        self._silent_at = inf  # not after the instant at which the stream has been silent for too long
        self._patience = Patience()
        self._looked_at = -inf
        self._last_error: EtcdError | None = None

    # Changes by the keeper, each together with `StreamSupervisor.wake()`.

    def hold(self, lease_id: int, ttl: float, deadline: float, listener: LeaseListener, now: float) -> ScheduledLease:
        """Keep a lease alive from now on: it was granted with `ttl`, and lasts at least until `deadline`."""
        lease = ScheduledLease(lease_id, listener, ttl, deadline, now)
        self._add(lease)
        self._wait(lease, now)
        return lease

    def renew_once(self, lease_id: int, listener: LeaseListener, now: float) -> ScheduledLease:
        """Renew a lease once, now, and forget it after the answer. The same lease may also be held."""
        lease = ScheduledLease(lease_id, listener, inf, inf, now)
        self._add(lease)
        self._make_ready(lease)
        return lease

    def forget(self, lease: ScheduledLease) -> None:
        """Send no more renewals of the lease, and call its listener no more."""
        if lease.state is not LeaseState.GONE:
            self._drop(lease)

    def expire(self, lease: ScheduledLease) -> None:
        """Lose a lease whose holder knows that its deadline has passed, whatever answer is still on its way."""
        if lease.state is not LeaseState.GONE:
            self._drop(lease)
            lease.listener.on_lost(self._expired(lease))

    def restore(self, lease: ScheduledLease, now: float) -> None:
        """Go on with a lease that was denied: it does exist, or that could not be found out."""
        if lease.state is LeaseState.MISSING:
            left = lease.deadline - now
            self._wait_until(lease, now + min(_RESTORED_PAUSE, left / 2))

    # The stream.

    @property
    def is_needed(self) -> bool:
        """Whether any lease is to be renewed."""
        return self._count > 0

    @property
    def due(self) -> float:
        """The next instant at which a renewal is due, a deadline passes, or the stream was silent for too long."""
        timers = self._timers
        while timers and timers[0][1] != timers[0][2].timer:
            heappop(timers)
        first = timers[0][0] if timers else inf
        return min(first, self._silent_at)

    def requests(self, now: float) -> "Iterable[pb.LeaseKeepAliveRequest]":
        """The renewals to send now."""
        under_way = self._unanswered
        if not self._ready or not self._is_open or self._is_given_up or len(under_way) > self._window // 2:
            return ()
        requests: list[pb.LeaseKeepAliveRequest] = []
        while self._ready and len(under_way) < self._window:
            _, number, lease = heappop(self._ready)
            if lease.timer != number:
                continue
            lease.state = LeaseState.SENT
            self._numbers += 1
            left = lease.deadline - now
            patience = self._patience.held(lease.ttl, left, now) if lease.is_held else self._patience.single()
            under_way.append(_Renewal(lease.id, self._numbers, now, patience, is_first=not under_way))
            self._silent_at = min(self._silent_at, now + patience)
            requests.append(pb.LeaseKeepAliveRequest(id=lease.id))
        return requests

    def on_open(self, endpoint: str, now: float) -> None:
        """A stream is open."""
        self._is_open, self._is_given_up = True, False
        self._heard_at = now

    def on_reply(self, reply: LeaseKeepAliveResult, now: float) -> None:
        """A renewal was answered: the oldest one of this lease, since a stream keeps the order."""
        request = self._answered(reply.id)
        if request is None:
            return
        overdue = now - max(request.sent_at, self._heard_at) - request.patience
        if overdue > reply.ttl / 2 > 0:
            self._stalled(overdue, now)
        self._heard_at = now
        self._patience.on_answer(now - request.sent_at if request.is_first else None)
        self._window = min(2 * self._window, WINDOW)
        if not self._unanswered:
            self._silent_at = inf
        for lease in tuple(self._leases.get(reply.id, ())):
            if lease.state is LeaseState.GONE or request.number < lease.added:
                # Forgotten by the listener of another one, or added after the request was sent. Instants cannot tell:
                # the lease clock has a little noise, and that of uvloop stands still in a turn of the loop.
                continue
            if reply.ttl > 0:
                self._renewed(lease, reply, request.sent_at, now)
            elif lease.state is LeaseState.SENT:
                self._set_timer(lease, lease.deadline, LeaseState.MISSING)
                lease.listener.on_missing(lease)

    def _renewed(self, lease: ScheduledLease, reply: LeaseKeepAliveResult, sent_at: float, now: float) -> None:
        deadline = sent_at + reply.ttl
        if lease.is_held:
            lease.ttl = reply.ttl
            lease.deadline = deadline
            if lease.refusals:
                self._accept(lease)
            self._wait(lease, now)
        else:
            self._drop(lease)
        lease.listener.on_renewed(reply, deadline)

    def on_time(self, now: float) -> str | None:
        """Make due leases ready and lose those whose deadline has passed; returns why to give the stream up, if so."""
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
        if self._silent_at <= now and not self._is_given_up:
            heard_at = self._heard_at
            silent_at = (max(request.sent_at, heard_at) + request.patience for request in self._unanswered)
            self._silent_at = min(silent_at, default=inf)
            if self._silent_at <= now:
                self._silent_at = inf
                self._patience.on_silence()
                self._is_given_up = True
                since = max(self._unanswered[0].sent_at, heard_at)
                return f"no renewal was answered for {now - since:.2f} seconds"
        return None

    def on_lost(self, error: EtcdError, now: float) -> bool:
        """The stream is gone: its unanswered renewals are repeated on the next one.

        Returns:
            bool: whether one of them was refused, which is put off.
        """
        oldest = self._unanswered[0] if self._unanswered else None
        self._close()
        is_refusal = isinstance(error, PermissionDeniedError) and oldest is not None
        if self.is_needed and not is_refusal:  # otherwise it explains no loss of another lease
            self._last_error = error
        if oldest is not None and isinstance(error, ServerError) and error.retry_hint is RetryHint.RAISE:
            self._put_off(oldest, error, now, is_refusal=is_refusal)
        return is_refusal

    def on_refused(self, error: EtcdError, now: float) -> bool:
        """Another stream would be refused: single renewals fail, held leases last until their deadlines."""
        self._last_error = error
        single = [lease for same_id in self._leases.values() for lease in same_id if not lease.is_held]
        for lease in single:
            self._drop(lease)
        for lease in single:
            lease.listener.on_lost(error)
        return self.is_needed

    def on_end(self, error: EtcdError) -> None:
        """The last stream has ended, so every lease is lost now."""
        self._close()
        leases = [lease for same_id in self._leases.values() for lease in same_id]
        for lease in leases:
            self._drop(lease)
        for lease in leases:
            if lease.is_held:
                lost = LeaseLostError(f"lease 0x{lease.id:x} is not kept alive any longer: {error.message}")
                lost.__cause__ = error
                lease.listener.on_lost(lost)
            else:
                lease.listener.on_lost(error)

    # Refused leases.

    def _put_off(self, request: _Renewal, error: EtcdError, now: float, *, is_refusal: bool) -> None:
        """Send a request after all others, since an error was the answer to it; later, if that was a refusal of it."""
        self._window = 1
        asked = [lease for lease in self._leases.get(request.id, ()) if request.number > lease.added]
        for lease in asked:
            if is_refusal and not lease.is_held:
                self._drop(lease)
            elif lease.state is LeaseState.READY:
                lease.refusals += 1
                self._refused[lease] = None
                if is_refusal:
                    left = lease.deadline - now
                    pause = max(min(2.0 ** (lease.refusals - 1), left / 2, _LONGEST_PAUSE), _RESTORED_PAUSE)
                    self._wait_until(lease, min(now + pause * len(self._refused), lease.deadline))
                else:
                    self._make_ready(lease)
        for lease in asked if is_refusal else ():
            if lease.is_held:
                lease.refusal = error
                lease.listener.on_refused(error, lease.refusals)
            else:
                lease.listener.on_lost(error)

    def _accept(self, lease: ScheduledLease) -> None:
        """A refused lease is renewed again: so the others may be, too."""
        del self._refused[lease]
        lease.refusal, lease.refusals = None, 0
        for other in self._refused:
            if other.state is LeaseState.WAITING:
                self._make_ready(other)

    # Leases in and out.

    def _add(self, lease: ScheduledLease) -> None:
        self._numbers += 1
        lease.added = self._numbers
        self._leases.setdefault(lease.id, []).append(lease)
        self._count += 1

    def _drop(self, lease: ScheduledLease) -> None:
        lease.state = LeaseState.GONE
        lease.timer = 0
        self._refused.pop(lease, None)
        same_id = self._leases[lease.id]
        same_id.remove(lease)
        if not same_id:
            del self._leases[lease.id]
        self._count -= 1

    def _expired(self, lease: ScheduledLease) -> EtcdError:
        if lease.refusal is None:
            error = LeaseExpiredError(f"lease 0x{lease.id:x} has expired: no renewal was acknowledged in time")
        else:
            error = LeaseExpiredError(f"lease 0x{lease.id:x} has expired: {lease.refusal.message}")
        error.__cause__ = lease.refusal or self._last_error
        return error

    # States.

    def _wait(self, lease: ScheduledLease, now: float) -> None:
        self._wait_until(lease, max(due_at(lease.ttl, lease.deadline, self._count), now))

    def _wait_until(self, lease: ScheduledLease, due: float) -> None:
        self._set_timer(lease, due, LeaseState.WAITING)

    def _make_ready(self, lease: ScheduledLease) -> None:
        self._set_timer(lease, lease.deadline, LeaseState.READY)
        self._ready = _cleaned(self._ready, self._count)
        # A caller waits for a single renewal, so it is as urgent as an overdue one.
        urgency = lease.deadline if lease.is_held else lease.since
        heappush(self._ready, ((lease.refusals > 0, urgency), lease.timer, lease))

    def _set_timer(self, lease: ScheduledLease, instant: float, state: LeaseState) -> None:
        self._numbers += 1
        lease.state = state
        lease.timer = self._numbers
        if instant < inf:
            self._timers = _cleaned(self._timers, self._count)
            heappush(self._timers, (instant, lease.timer, lease))

    # Silence and stalls.

    def _answered(self, lease_id: int) -> _Renewal | None:
        """Take out the oldest request of this lease."""
        unanswered = self._unanswered
        if unanswered and unanswered[0].id == lease_id:
            return unanswered.popleft()
        request = next((request for request in unanswered if request.id == lease_id), None)
        if request is not None:
            unanswered.remove(request)
        return request

    def _close(self) -> None:
        self._is_open = False
        self._silent_at = inf
        for request in self._unanswered:
            for lease in self._leases.get(request.id, ()):
                if lease.state is LeaseState.SENT:
                    self._make_ready(lease)
        self._unanswered.clear()

    def _stalled(self, seconds: float, now: float) -> None:
        """Report a stall, unless it is part of one that was reported already."""
        if now - seconds >= self._looked_at:
            self._looked_at = now
            self._on_stall(seconds)


def _cleaned(heap: list[tuple[_Key, int, ScheduledLease]], leases: int) -> list[tuple[_Key, int, ScheduledLease]]:
    """The heap, without its outdated entries if they are most of it: leases that were forgotten before their time."""
    if len(heap) <= 4 * leases + _SPARE:
        return heap
    kept = [entry for entry in heap if entry[1] == entry[2].timer]
    heapify(kept)
    return kept
