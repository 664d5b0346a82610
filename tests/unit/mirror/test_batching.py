"""mirror/batching.py: txns within their limits, in the order of revisions, atomic where the limits allow it."""

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.mirror.batching import CopyTxn, Limits, pack, size_of, txns_of
from etcd_aio.mirror.reconcile import Change
from tests.support.tiers import nightly_examples

LIMITS = Limits(126, 2**20)
KEYS = [b"a", b"b", b"c", b"d", b"e", b"f"]
CHANGES = st.dictionaries(st.sampled_from(KEYS), st.none() | st.binary(max_size=8), min_size=1)
HISTORIES = st.lists(CHANGES, max_size=12)


def flat(history: list[dict[bytes, bytes | None]], before: int) -> list[tuple[int, Change]]:
    return [(before + 1 + at, change) for at, changes in enumerate(history) for change in changes.items()]


def apply(state: dict[bytes, bytes], changes: "list[Change] | tuple[Change, ...]") -> None:
    for key, value in changes:
        if value is None:
            state.pop(key, None)
        else:
            state[key] = value


@given(HISTORIES, st.builds(Limits, st.integers(1, 8), st.integers(1, 300)))
@nightly_examples(5000)
def test_every_complete_step_is_a_revision_of_the_source(
    history: list[dict[bytes, bytes | None]], limits: Limits
) -> None:
    before = 10
    wanted: dict[int, dict[bytes, bytes]] = {before: {}}
    for revision, group in groupby(flat(history, before), key=lambda change: change[0]):
        wanted[revision] = dict(wanted[revision - 1])
        apply(wanted[revision], [change for _, change in group])
    state: dict[bytes, bytes] = {}
    last = before
    for step in txns_of(flat(history, before), before, limits):
        assert len({key for key, _ in step.changes}) == len(step.changes) > 0, "etcd refuses a second put of a key"
        assert len(step.changes) <= limits.ops
        assert len(step.changes) == 1 or sum(map(size_of, step.changes)) <= limits.bytes
        apply(state, step.changes)
        assert step.revision >= last, "revisions never go back"
        last = step.revision
        if step.is_complete:
            assert state == wanted[step.revision]
        else:
            own = history[step.revision - before]
            fits = len(own) <= limits.ops and sum(map(size_of, own.items())) <= limits.bytes
            assert not fits, "only a revision that does not fit is split"
    assert state == wanted[before + len(history)]
    assert last == before + len(history)


def test_small_revisions_share_a_txn() -> None:
    history = [(2 + number, (b"k%d" % number, b"v")) for number in range(252)]
    assert [(len(step.changes), step.revision) for step in txns_of(history, 1, LIMITS)] == [(126, 127), (126, 253)]


def test_the_last_change_of_a_key_counts() -> None:
    history = [(2, (b"a", b"1")), (3, (b"a", None)), (4, (b"b", b"1")), (5, (b"a", b"2"))]
    assert list(txns_of(history, 1, LIMITS)) == [CopyTxn(((b"a", b"2"), (b"b", b"1")), 5)]


def test_a_split_revision_is_incomplete_until_its_last_part() -> None:
    history = [(2, (b"a", b"1")), *((3, (b"k%03d" % number, b"v")) for number in range(300)), (4, (b"b", b"1"))]
    made = [(len(step.changes), step.revision, step.is_complete) for step in txns_of(history, 1, LIMITS)]
    assert made == [(1, 2, True), (126, 2, False), (126, 2, False), (49, 4, True)]


@pytest.mark.parametrize(("sizes", "parts"), [([10, 10, 10], [2, 1]), ([900], [1]), ([10, 900, 10], [1, 1, 1])])
def test_a_change_larger_than_the_limit_is_alone(sizes: list[int], parts: list[int]) -> None:
    changes: list[Change] = [(b"%d" % at, b"v" * size) for at, size in enumerate(sizes)]
    assert [len(part) for part in pack(changes, Limits(126, 100))] == parts
