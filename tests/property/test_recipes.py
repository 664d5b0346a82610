"""The pure parts of recipes: sums, meetings, and the read sets of transactions, against models of a store."""

from dataclasses import dataclass, field

from hypothesis import example, given
from hypothesis import strategies as st

from etcd_aio import Compare, Header, KeyRange, KeyValue, TxnResult, op
from etcd_aio.kv.compare import CompareOperator, CompareTarget
from etcd_aio.recipes.barrier.meeting import Await, MeetingStep, Open, Participant, entering, leaving
from etcd_aio.recipes.counter.sums import RefusedAddition, sums
from etcd_aio.recipes.stm.isolation import Isolation, level_of
from etcd_aio.recipes.stm.read_set import ReadRange, ReadSet
from tests.support.tiers import nightly_examples

NUMBERS = st.integers(-5, 5)
LIMITS = st.none() | NUMBERS


@given(NUMBERS, st.lists(NUMBERS, max_size=8), LIMITS, LIMITS)
def test_sums_are_those_of_additions_one_by_one(
    before: int, additions: list[int], minimum: int | None, maximum: int | None
) -> None:
    outcomes, last = sums(before, additions, minimum, maximum)
    value = before
    for addition, outcome in zip(additions, outcomes, strict=True):
        alone, _ = sums(value, [addition], minimum, maximum)
        assert alone == [outcome]
        if isinstance(outcome, RefusedAddition):
            assert outcome.value == value
        else:
            assert outcome == value + addition
            value = outcome
            assert addition >= 0 or minimum is None or value >= minimum
            assert addition <= 0 or maximum is None or value <= maximum
    is_changed = any(not isinstance(outcome, RefusedAddition) for outcome in outcomes)
    assert last == (value if is_changed else None)


# Meetings: participants act one at a time, in any order; some give up.


@dataclass
class Place:
    """The keys of a double barrier, and what its participants know."""

    count: int
    revision: int = 1
    keys: dict[bytes, int] = field(default_factory=dict)
    ready: int = 0
    last: int = 0
    own: dict[bytes, Participant] = field(default_factory=dict)
    inside: dict[bytes, int] = field(default_factory=dict)
    bounds: dict[int, int] = field(default_factory=dict)
    leaving: set[bytes] = field(default_factory=set)
    out: set[bytes] = field(default_factory=set)
    openings: list[int] = field(default_factory=list)

    def listed(self) -> list[Participant]:
        return [Participant(key, revision) for key, revision in self.keys.items()]

    def delete(self, key: bytes) -> None:
        if self.keys.pop(key, None) is not None:
            self.revision += 1

    def act(self, key: bytes, *, is_overdue: bool = False) -> bool:
        """Let a participant do one step. Returns whether it could do anything."""
        if key in self.out:
            return False
        if key not in self.own:
            self.revision += 1
            self.keys[key] = self.revision
            self.own[key] = Participant(key, self.revision)
            return True
        own = self.own[key]
        if key not in self.inside:
            step = entering(own, self.listed(), self.ready, self.count, last=self.last, is_overdue=is_overdue)
            match step:
                case MeetingStep.ENTER:
                    assert self.ready in self.openings
                    self.inside[key] = self.ready
                    self.bounds[self.ready] = self.last
                case MeetingStep.TOO_MANY | MeetingStep.GONE:
                    self.delete(key)
                    self.out.add(key)
                case Open(members):
                    assert len(members) == self.count
                    self.revision += 1
                    self.ready, self.last = self.revision, members[-1].revision
                    self.openings.append(self.ready)
                case _:
                    return False
            return True
        if key not in self.leaving:  # all come in before any leaves
            self.leaving.add(key)
            return True
        step_out = leaving(own, self.listed(), self.bounds[self.inside[key]])
        match step_out:
            case Await(other, deletes_own):
                assert other != own
                if deletes_own:
                    self.delete(key)
                return deletes_own
            case MeetingStep.LAST:
                self.delete(key)
                if self.ready == self.inside[key]:
                    self.ready = 0
                self.out.add(key)
            case _:
                assert step_out is MeetingStep.LEFT
                self.out.add(key)
        return True

    def give_up(self, key: bytes) -> None:
        if key in self.own and key not in self.out:
            self.delete(key)
            self.out.add(key)
            self.inside.pop(key, None)


@nightly_examples(2_000)
@example(2, [(number, "act") for number in (0, 1, 2, 1, 2, 0, 1)])  # the third one comes before `ready` is put
@given(
    st.integers(1, 4),
    st.lists(
        st.tuples(st.integers(0, 6), st.sampled_from(["act", "act", "act", "act", "late", "give up"])), max_size=80
    ),
)
def test_participants_enter_together_and_leave_together(count: int, script: list[tuple[int, str]]) -> None:
    place = Place(count)
    for number, what in script:
        key = b"%d" % number
        if what == "give up":
            place.give_up(key)
        else:
            place.act(key, is_overdue=what == "late")
        for opened in place.openings:  # never more than the number in one meeting
            assert sum(one == opened for one in place.inside.values()) <= count
    # Those that came do all that they can: each ends, or waits for others to come.
    while sum(place.act(key) for key in sorted(place.own)):
        pass
    waiting = [key for key in place.own if key not in place.out]
    assert len(waiting) < count, "as many as that go in"
    assert all(key not in place.inside for key in waiting), "all that were inside have left"


# Transactions: a read set is committed on a store, after others have changed it.

KEYS = (b"a", b"b", b"c", b"r/1", b"r/2")
RANGE = KeyRange.of(prefix="r/")
LEVELS: tuple[Isolation, ...] = ("serializable_snapshot", "serializable", "repeatable_reads", "read_committed")


class Model:
    """A store: keys, and txns on them."""

    def __init__(self) -> None:
        self.revision = 1
        self.keys: dict[bytes, KeyValue] = {}

    def put(self, key: bytes, value: bytes) -> None:
        self.commit(op.txn(then=[op.put(key, value)]))

    def delete(self, key: bytes) -> None:
        self.commit(op.txn(then=[op.delete(key)]))

    def holds(self, compare: Compare) -> bool:
        assert compare.target is CompareTarget.MOD_REVISION
        assert isinstance(compare.operand, int)
        found = [kv.mod_revision for key, kv in self.keys.items() if key in compare.keys] or [0]
        if compare.operator is CompareOperator.EQUAL:
            return all(one == compare.operand for one in found)
        assert compare.operator is CompareOperator.LESS
        return all(one < compare.operand for one in found)

    def commit(self, txn: op.TxnOp) -> TxnResult:
        succeeded = all(map(self.holds, txn.when))
        if not succeeded:
            found = tuple(self.keys.get(one.key) for one in txn.otherwise if isinstance(one, op.GetOp))
            return TxnResult(False, Header(revision=self.revision), found)
        at = self.revision + 1
        changed = False
        for one in txn.then:
            if isinstance(one, op.PutOp):
                before = self.keys.get(one.key)
                created, version = (before.create_revision, before.version) if before else (at, 0)
                self.keys[one.key] = KeyValue(one.key, one.value, created, at, version + 1, one.lease)
                changed = True
            elif isinstance(one, op.DeleteOp):
                changed = self.keys.pop(one.keys.key, None) is not None or changed
        self.revision += changed
        return TxnResult(True, Header(revision=self.revision))


CHANGES = st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), max_size=4)


@nightly_examples(3_000)
@given(
    st.sampled_from(LEVELS),
    CHANGES,
    st.sets(st.sampled_from(KEYS)),
    st.booleans(),
    st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), min_size=1, max_size=4),
    CHANGES,
)
def test_a_read_set_commits_if_what_its_level_guards_is_unchanged(
    isolation: Isolation,
    first: list[tuple[bytes, bool]],
    read: set[bytes],
    reads_range: bool,
    writes: list[tuple[bytes, bool]],
    later: list[tuple[bytes, bool]],
) -> None:
    store = Model()

    def change(changes: list[tuple[bytes, bool]]) -> None:
        for key, is_put in changes:
            store.put(key, b"x") if is_put else store.delete(key)

    change(first)
    level = level_of(isolation)
    reads = ReadSet(level)
    for key in sorted(read):
        reads.learn(key, store.keys.get(key), store.revision)
        reads.reads[key] = store.keys.get(key)
    if reads_range:
        for key, kv in store.keys.items():
            if key in RANGE:
                reads.learn(key, kv, store.revision)
                reads.reads[key] = kv
        reads.base = reads.base or store.revision
        reads.ranges.append(ReadRange(RANGE, store.revision))
    for key, is_put in writes:
        reads.writes[key] = op.put(key, b"own") if is_put else op.delete(key)
    before = dict(store.keys)
    base = store.revision
    change(later)
    changed = {key for key in KEYS if store.keys.get(key) != before.get(key)}
    guarded = set(reads.reads) if level.guards_reads else set[bytes]()
    if level.guards_writes and reads.base:
        guarded |= {key for key in reads.writes if (now := store.keys.get(key)) and now.mod_revision > base}
    expected = not changed & guarded
    if reads_range and level.guards_ranges:
        in_range = {key for key in changed if key in RANGE and (key in store.keys or key in reads.reads)}
        expected = expected and not in_range
    result = store.commit(reads.commit())
    assert result.succeeded == expected
    if not level.guards_reads:
        assert result.succeeded
    elif result.succeeded:
        known = reads.after_commit(result.revision)
        assert {key: store.keys.get(key) for key in known.keys} == known.keys
        assert set(known.keys) >= set(reads.reads)
    else:
        found = reads.after_conflict(result)
        assert {key: store.keys.get(key) for key in found.keys} == found.keys
        conflicts = set(reads.conflicts(found))
        assert conflicts
        assert conflicts == changed & guarded or (reads_range and conflicts == {RANGE.key})


@given(st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), max_size=4), st.sets(st.sampled_from(KEYS)))
def test_a_range_shows_own_writes_in_key_order(writes: list[tuple[bytes, bool]], there: set[bytes]) -> None:
    reads = ReadSet(level_of("serializable"))
    expected = {key: b"" for key in there if key in RANGE}
    for key, is_put in writes:
        reads.writes[key] = op.put(key, b"own") if is_put else op.delete(key)
        if key in RANGE:
            if is_put:
                expected[key] = b"own"
            else:
                expected.pop(key, None)
    shown = reads.overlaid(RANGE, [KeyValue(key) for key in there if key in RANGE])
    assert [(kv.key, kv.value) for kv in shown] == sorted(expected.items())
