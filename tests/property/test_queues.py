"""What consumers and workers know of a queue, against models of it."""

from hypothesis import given
from hypothesis import strategies as st

from etcd_aio import Event, EventType, KeyValue
from etcd_aio.recipes.queue import known_items
from etcd_aio.recipes.queue.known_items import KnownItem, KnownItems
from etcd_aio.recipes.work_queue import jobs
from etcd_aio.recipes.work_queue.jobs import Board, FreeJob, JobKeys, Kind
from tests.support.tiers import nightly_examples

KEYS = [b"q/%d" % number for number in range(8)]
JOBS = [b"00100/%020d" % number for number in range(8)]
NAMES = JobKeys(b"w")
KINDS = (Kind.ITEM, Kind.CLAIM, Kind.DELAY)


def low(random: float = 0.0) -> float:
    return random


@nightly_examples(2_000)
@given(st.integers(2, 6), st.integers(0, 8), st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), max_size=40))
def test_known_items_are_the_first_ones(most: int, listed: int, changes: list[tuple[bytes, bool]]) -> None:
    there = dict.fromkeys(KEYS[::2], 1)
    known = KnownItems()
    found = sorted(there)[:listed]
    known.replace([KnownItem(key, 1) for key in found], is_complete=len(found) == len(there))
    before, known_items.MOST = known_items.MOST, most  # type: ignore[misc]
    try:
        for revision, (key, is_put) in enumerate(changes, 2):
            if is_put:
                there[key] = revision
                known.add(KnownItem(key, revision))
            else:
                there.pop(key, None)
                known.remove(key)
            picked = [(one.key, one.revision) for one in known.pick(len(KEYS), 0, low)]
            assert picked == sorted(there.items())[: len(picked)], "none is left out before the last one"
            if known.is_complete:
                assert len(picked) == len(there)
            assert len(known) == len(picked)
    finally:
        known_items.MOST = before  # type: ignore[misc]


@given(st.integers(0, 8), st.integers(1, 4), st.integers(0, 9), st.floats(0, 0.999))
def test_after_losses_an_item_further_back_is_tried(size: int, count: int, losses: int, drawn: float) -> None:
    known = KnownItems()
    known.replace([KnownItem(key, 1) for key in KEYS[:size]], is_complete=True)
    picked = [one.key for one in known.pick(count, losses, lambda: drawn)]
    first = KEYS.index(picked[0]) if picked else 0
    assert picked == KEYS[:size][first : first + count]
    assert first <= losses
    assert bool(picked) == bool(size)


Model = dict[tuple[Kind, bytes], KeyValue]


def free_in(model: Model, now: float) -> list[FreeJob]:
    """Every free job, by its keys."""
    found = []
    for job in JOBS:
        item, delay = model.get((Kind.ITEM, job)), model.get((Kind.DELAY, job))
        is_due = delay is None or float(delay.value) <= now
        if item is not None and (Kind.CLAIM, job) not in model and is_due:
            found.append(FreeJob(job, item.mod_revision, 0 if delay is None else delay.mod_revision))
    return found


CHANGES = st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(JOBS), st.integers(0, 3)), max_size=40)


@nightly_examples(2_000)
@given(st.integers(1, 4), CHANGES, CHANGES, st.integers(1, 8), st.integers(0, 2), st.sets(st.sampled_from(JOBS)))
def test_free_jobs_are_those_of_the_store(
    window: int,
    first: list[tuple[Kind, bytes, int]],
    later: list[tuple[Kind, bytes, int]],
    limit: int,
    now: int,
    doubted: set[bytes],
) -> None:
    model: Model = {}
    revision = 1

    def change(kind: Kind, job: bytes, value: int) -> Event:
        nonlocal revision
        revision += 1
        key = NAMES.of(kind, job)
        if value == 0:
            model.pop((kind, job), None)
            return Event(EventType.DELETE, KeyValue(key, mod_revision=revision))
        before = model.get((kind, job))
        created = revision if before is None else before.create_revision
        kv = model[kind, job] = KeyValue(key, b"%d" % value, created, revision, 1, 7)
        return Event(EventType.PUT, kv)

    old = [change(*one) for one in first]
    board = Board(NAMES)
    before, jobs.WINDOW = jobs.WINDOW, window  # type: ignore[misc]
    try:
        items = [kv for (kind, _), kv in sorted(model.items(), key=lambda one: one[0][1]) if kind is Kind.ITEM]
        others = [kv for (kind, _), kv in model.items() if kind is not Kind.ITEM]
        board.load([*others, *items[:limit]], revision, is_complete=len(items) <= limit)
        for event in old:
            board.apply(event)  # of a member that is behind
        for one in later:
            board.apply(change(*one))
            found = board.free(len(JOBS), now, 0, low)
            expected = free_in(model, now)
            assert found == expected[: len(found)], "none is left out before the last one"
            if board.is_complete:
                assert len(found) == len(expected)
            due = board.next_due(now)
            assert due is None or due > now
        for job in doubted:
            board.doubt(job, revision + 1)
        assert not {one.job for one in board.free(len(JOBS), now, 0, low)} & doubted
        for job in doubted:
            board.apply(change(Kind.TRIES, job, 1))
        assert {one.job for one in board.free(len(JOBS), now, 0, low)} <= {one.job for one in free_in(model, now)}
    finally:
        jobs.WINDOW = before  # type: ignore[misc]


@given(st.integers(0, 65535), st.integers(0, 10**20 - 1), st.binary(max_size=9))
def test_the_keys_of_a_job_are_read_back(priority: int, number: int, id: bytes) -> None:
    job = jobs.job_name(priority, number, id)
    assert jobs.id_of(job) == id
    for kind in Kind:
        assert NAMES.parsed(NAMES.of(kind, job)) == (kind, job)
    for other in (NAMES.id_key(b"x"), NAMES.worker_key(7), b"w/items/x", b"w/other/" + job):
        assert NAMES.parsed(other) is None
