"""The slot of exactly-once writes by an explicit-state model check: every interleaving of two writes on one slot.

A state has the store, the copies of txns that travel, and the client: the real `Slot`, the real txns of `guarded.py`,
and the real judgements of `write_verdicts.py`. In each state everything that can happen next is tried: a copy is
applied, now or later or never, and its answer arrives or is lost; the client sends another copy, gives up, settles,
reads the history; another user deletes the slot; the lease ends; a permission is taken away, and given back; the
history is compacted.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import pytest

from etcd_aio import Event, EventType, KeyValue, op
from etcd_aio.once import guarded, write_verdicts
from etcd_aio.once.slot import Slot, SlotState
from etcd_aio.once.write_verdicts import Applied, Branch, Fate

SLOT, LEASE = b"slot", 7
WRITES = 2  # one after the other, on the same slot

Copy: TypeAlias = tuple[str, int, int]  # create, write or settle; with n and m
Report: TypeAlias = tuple[str, int]  # what the caller was told: applied at a revision, not applied, or unknown


@dataclass(frozen=True)
class State:
    revision: int = 1
    slot: tuple[int, bytes] | None = None  # mod_revision and value
    history: tuple[tuple[int, bytes | None], ...] = ()  # of the slot; None for a deletion
    compacted: int = 0
    has_lease: bool = True
    permission: int = 0  # the user may not write while this is 1: it is taken away, and given back
    applied: tuple[tuple[int, ...], ...] = ((),) * WRITES  # at which revisions
    copies: tuple[Copy, ...] = ()
    # The client.
    state: SlotState = SlotState.NEW
    number: int = 0
    m: int = 0
    sent: int = 0  # copies of the present txn
    reports: tuple[Report, ...] = ()
    gives_up: bool = False  # the caller of the present write does not wait any more

    def restored(self) -> Slot:
        slot = Slot(SLOT, LEASE)
        slot.state, slot.number, slot.revision = self.state, self.number, self.m
        return slot


class Client:
    """The decisions of the client; a mutant overrides one.

    Args:
        creations: how many copies of the txn that creates the slot are sent at most; two of each other txn.
    """

    def __init__(self, creations: int = 1) -> None:
        self.most = {"create": creations, "write": 2, "settle": 2}

    def judge(self, number: int, found: KeyValue | None) -> Applied | Fate:
        return write_verdicts.judge(number, found)

    def judge_history(self, number: int, first: Event) -> Applied | Fate:
        return write_verdicts.judge_history(number, first)

    def settling(self, slot: Slot) -> op.TxnOp:
        return guarded.settle_slot(slot)

    def writing(self, slot: Slot) -> op.TxnOp:
        return guarded.write_through(slot, op.TxnOp(then=(op.put(b"k%d" % slot.number, b"v"),)), None)

    def is_open(self, sent: int) -> bool:
        """Whether a refusal leaves the outcome open: an earlier copy had no answer."""
        return sent > 1


def txn_of(client: Client, copy: Copy) -> op.TxnOp:
    kind, number, m = copy
    slot = Slot(SLOT, LEASE)
    slot.number, slot.revision = number, m
    return {"create": guarded.create_slot, "write": client.writing, "settle": client.settling}[kind](slot)


def apply(state: State, txn: op.TxnOp) -> tuple[State, bool, KeyValue | None] | None:
    """Apply a txn as etcd does: the next state, whether its conditions held, and what it got; None if it is refused."""
    if state.permission == 1 and not txn.is_read_only:
        return None
    mod, value = state.slot or (0, b"")
    holds = True
    for compare in txn.when:
        assert compare.keys.key == SLOT
        holds = holds and compare.operand == (mod if compare.target.value == "mod_revision" else int(mod > 0))
    branch = txn.then if holds else txn.otherwise
    if not state.has_lease and any(isinstance(one, op.PutOp) and one.lease for one in branch):
        return None
    got = None
    changed = state
    revision = state.revision + 1
    for one in branch:
        match one:
            case op.PutOp() if one.key == SLOT:
                changed = replace(
                    changed, slot=(revision, one.value), history=(*changed.history, (revision, one.value))
                )
            case op.PutOp():
                index = int(one.key[1:]) - 1
                applied = list(changed.applied)
                applied[index] = (*applied[index], revision)
                changed = replace(changed, applied=tuple(applied))
            case op.DeleteOp():
                changed = delete_slot(changed, revision)
            case op.GetOp():
                got = None if state.slot is None else KeyValue(SLOT, value, mod_revision=mod)
    return (changed if changed is state else replace(changed, revision=revision)), holds, got


def delete_slot(state: State, revision: int) -> State:
    if state.slot is None:
        return state
    return replace(state, slot=None, history=(*state.history, (revision, None)), revision=revision)


def moved(state: State, following: SlotState, revision: int = 0) -> State:
    slot = state.restored()
    slot.move(following, revision)
    return replace(state, state=slot.state, number=slot.number, m=slot.revision, sent=0)


def told(state: State, verdict: Applied | Fate) -> State:
    """The caller of the present write is told what became of it."""
    match verdict:
        case Applied():
            report = ("applied", verdict.revision)
        case Fate.NOT_APPLIED:
            report = ("not applied", 0)
        case _:
            report = ("unknown", 0)
    reports = state.reports[: state.number - 1]
    return replace(state, reports=(*reports, report))


def send(state: State, kind: str) -> State:
    copy = (kind, state.number, state.m)
    return replace(state, copies=tuple(sorted((*state.copies, copy))), sent=state.sent + 1)


def answered(client: Client, state: State, copy: Copy, reply: tuple[bool, KeyValue | None] | None) -> State:
    """The client gets the answer to a copy of its present txn; None is a definite refusal."""
    kind, number, _ = copy
    if kind == "create":
        if reply is None:
            return moved(state, SlotState.GONE)
        holds, got = reply
        return moved(state, SlotState.FREE, state.revision if holds else got.mod_revision if got else 0)
    if reply is None and kind == "settle":
        return state  # it is repeated
    if reply is None:
        if client.is_open(state.sent):
            return moved(state, SlotState.UNSETTLED)
        return told(moved(state, SlotState.FREE), Fate.NOT_APPLIED)
    holds, got = reply
    if holds and kind == "write":
        return told(moved(state, SlotState.FREE, state.revision), Applied(state.revision, Branch.THEN))
    if holds:
        return told(moved(state, SlotState.GONE), Fate.NOT_APPLIED)
    verdict = client.judge(number, got)
    if isinstance(verdict, Applied):
        return told(moved(state, SlotState.FREE, verdict.revision), verdict)
    if verdict is Fate.NOT_APPLIED:  # only a mutant says so
        return told(replace(state, state=SlotState.GONE), verdict)
    return moved(state, SlotState.HISTORY)


def read_history(client: Client, state: State) -> State:
    if state.m + 1 <= state.compacted:
        return told(moved(state, SlotState.GONE), Fate.UNKNOWN)
    revision, value = next(event for event in state.history if event[0] > state.m)
    kind = EventType.DELETE if value is None else EventType.PUT
    first = Event(kind, KeyValue(SLOT, value or b"", mod_revision=revision))
    return told(moved(state, SlotState.GONE), client.judge_history(state.number, first))


_KIND = {SlotState.NEW: "create", SlotState.BUSY: "write", SlotState.UNSETTLED: "settle"}


def successors(client: Client, state: State) -> Iterator[State]:
    kind = _KIND.get(state.state)
    for copy in dict.fromkeys(state.copies):
        rest = list(state.copies)
        rest.remove(copy)
        without = replace(state, copies=tuple(rest))
        applied = apply(without, txn_of(client, copy))
        after = without if applied is None else applied[0]
        yield after  # its answer is lost
        if copy == (kind, state.number, state.m):
            yield answered(client, after, copy, None if applied is None else applied[1:])
    if kind is not None and state.sent < client.most[kind]:
        yield send(state, kind)
    if state.state is SlotState.FREE and state.number < WRITES:
        yield moved(state, SlotState.BUSY)
    if state.state is SlotState.BUSY:
        given_up = moved(state, SlotState.UNSETTLED)
        yield replace(given_up, reports=(*given_up.reports, ("unknown", 0)))
    if state.state is SlotState.HISTORY:
        yield read_history(client, state)
    # Others.
    if state.slot is not None:
        yield delete_slot(state, state.revision + 1)  # an operator deletes the whole prefix
    if state.has_lease:
        yield replace(delete_slot(state, state.revision + 1), has_lease=False)
    if state.permission < 2:
        yield replace(state, permission=state.permission + 1)
    if state.compacted == 0 and state.revision > 1:
        yield replace(state, compacted=state.revision)


def check(before: State, after: State) -> None:
    """The invariants L1 to L6 of the design, on each step."""
    for number, applied in enumerate(after.applied, 1):
        assert len(applied) <= 1, f"L2: write {number} is applied twice"
        report = after.reports[number - 1] if number <= len(after.reports) else ("unknown", 0)
        if report[0] == "applied":
            assert applied == (report[1],), f"L3: write {number} is not applied where its caller was told"
        elif report[0] == "not applied":
            assert not applied, f"L6: write {number} is applied, and its caller was told that it never will be"
        if number < after.number:
            assert applied == before.applied[number - 1], "L4: it takes effect after the slot is used again"
    if not before.has_lease:
        assert after.applied == before.applied, "L5: applied after the loss of the lease"
    m = before.m
    if m and before.m == after.m and (before.slot is None or before.slot[0] != m):
        assert after.slot is None or after.slot[0] != m, "L1: m comes back"


def explore(client: Client) -> tuple[int, set[tuple[str, ...]]]:
    """Visit every state; returns their number, and every report of a caller that occurred."""
    seen = {State()}
    waiting = deque(seen)
    reports: set[tuple[str, ...]] = set()
    while waiting:
        state = waiting.popleft()
        for after in successors(client, state):
            check(state, after)
            if after not in seen:
                seen.add(after)
                waiting.append(after)
                reports.add(tuple(report[0] for report in after.reports))
    return len(seen), reports


@pytest.mark.parametrize("creations", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_every_interleaving_keeps_the_promise(creations: int) -> None:
    number, reports = explore(Client(creations))
    assert number > 10_000
    words = ("applied", "not applied", "unknown")
    second = {report for report in reports if len(report) == 2}
    assert second == {(first, word) for first in words[:2] for word in words}, "only then the slot is used again"
    assert reports - second - {()} == {(word,) for word in words}


class MissingIsNotApplied(Client):
    """Takes a slot that is gone for a write that was not applied."""

    def judge(self, number: int, found: KeyValue | None) -> Applied | Fate:
        verdict = super().judge(number, found)
        return Fate.NOT_APPLIED if verdict is Fate.IN_HISTORY else verdict


class AnyNumber(Client):
    """Takes whatever was written to the slot for its own write."""

    def judge(self, number: int, found: KeyValue | None) -> Applied | Fate:
        return Fate.IN_HISTORY if found is None else Applied(found.mod_revision, Branch.THEN)


class SettlesByReading(Client):
    """Looks whether the write was applied, and leaves copies that still travel alive."""

    def settling(self, slot: Slot) -> op.TxnOp:
        settle = super().settling(slot)
        return op.TxnOp(settle.when, (op.get(slot.key),), settle.otherwise)


class Unguarded(Client):
    """Repeats a write that has no condition."""

    def writing(self, slot: Slot) -> op.TxnOp:
        write = super().writing(slot)
        return op.TxnOp((), write.then, write.otherwise)


class RefusalIsFinal(Client):
    """Takes a refusal for the fate of all copies."""

    def is_open(self, sent: int) -> bool:
        return False


@pytest.mark.parametrize("mutant", [MissingIsNotApplied, AnyNumber, SettlesByReading, Unguarded, RefusalIsFinal])
def test_the_check_finds_a_client_that_breaks_the_promise(mutant: Callable[[int], Client]) -> None:
    with pytest.raises(AssertionError, match=r"^L[1-6]: "):
        explore(mutant(2))
