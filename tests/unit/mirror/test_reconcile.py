"""mirror/reconcile.py: pages of both sides become exactly the changes that make the destination equal."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from etcd_aio import KeyValue
from etcd_aio.mirror.reconcile import Change, Merge, changed_since, differences
from tests.support.tiers import nightly_examples

KEYS = st.binary(min_size=1, max_size=2)
STORES = st.dictionaries(KEYS, st.sampled_from([b"", b"1", b"2"]), max_size=30)


def applied(store: dict[bytes, bytes], changes: list[Change]) -> dict[bytes, bytes]:
    result = dict(store)
    for key, value in changes:
        if value is None:
            del result[key]
        else:
            result[key] = value
    return result


@given(STORES, STORES, st.data())
@nightly_examples(5000)
def test_the_destination_becomes_the_source_whatever_the_pages(
    source: dict[bytes, bytes], destination: dict[bytes, bytes], data: st.DataObject
) -> None:
    merge: Merge[bytes, bytes] = Merge()
    left = [sorted(source.items()), sorted(destination.items())]
    changes: list[Change] = []
    held = 0
    while not merge.is_complete:
        which = 0 if merge.reads_source else 1
        side: Any = merge.source if merge.reads_source else merge.destination
        assert not side.is_complete, "no page is read behind the last one"
        size = data.draw(st.integers(1, 5))
        page, left[which] = left[which][:size], left[which][size:]
        side.add([key for key, _ in page], [value for _, value in page], is_last=not left[which])
        held = max(held, len(merge.source.keys), len(merge.destination.keys))
        wanted, found = merge.take()
        changes += differences(wanted, found)
    assert [key for key, _ in changes] == sorted({key for key, _ in changes}), "in key order, each key once"
    assert applied(destination, changes) == source
    assert all(destination.get(key) != value for key, value in changes), "nothing that is equal already"
    assert held <= 10, "a side holds a page, and what is left of the one before"


def test_a_side_without_keys() -> None:
    merge: Merge[bytes, bytes] = Merge()
    merge.source.add([], [], is_last=True)
    assert not merge.reads_source
    merge.destination.add([b"a"], [b"1"], is_last=True)
    assert merge.take() == ({}, {b"a": b"1"})
    assert merge.is_complete


@given(
    st.dictionaries(KEYS, st.integers(1, 9), max_size=20),
    st.sets(KEYS, max_size=20),
    st.integers(min_value=0, max_value=9),
)
def test_a_reader_with_some_keys_gets_what_it_lacks(
    revisions: dict[bytes, int], known: set[bytes], revision: int
) -> None:
    source = {key: KeyValue(key, mod_revision=revisions[key]) for key in sorted(revisions)}
    puts, gone = changed_since(source, known, revision)
    assert {kv.key for kv in puts} == {key for key, mod in revisions.items() if mod > revision or key not in known}
    assert gone == sorted(known - set(revisions))
    assert [kv.key for kv in puts] == sorted(kv.key for kv in puts)
