"""fake/store.py, fake/refusals.py: the store of the fake: revisions, histories and compaction."""

import pytest

from etcd_aio.fake.refusals import Reason, Refusal
from etcd_aio.fake.store import MvccStore


def put(store: MvccStore, *pairs: tuple[bytes, bytes]) -> None:
    batch = store.begin()
    for key, value in pairs:
        batch.put(key, value, 0)
    batch.commit()


def delete(store: MvccStore, key: bytes, end: bytes = b"") -> int:
    batch = store.begin()
    found = batch.delete(key, end)
    batch.commit()
    return len(found)


def values(store: MvccStore, revision: int = 0) -> dict[bytes, bytes]:
    return {one.key: one.value for one in store.read(b"\x00", b"\x00", revision)}


def test_a_store_begins_at_revision_1_and_was_never_compacted() -> None:
    store = MvccStore()
    assert (store.revision, store.compacted) == (1, -1)
    assert store.read(b"a", b"\x00") == []


def test_a_transaction_is_one_revision_and_one_that_changes_nothing_is_none() -> None:
    store = MvccStore()
    put(store, (b"a", b"1"), (b"b", b"2"))
    assert store.revision == 2
    assert delete(store, b"c") == 0
    assert store.revision == 2
    assert delete(store, b"a", b"\x00") == 2
    assert store.revision == 3


def test_every_revision_can_be_read_until_it_is_compacted() -> None:
    store = MvccStore()
    for number in range(5):
        put(store, (b"a", b"%d" % number))
    assert [values(store, revision) for revision in (1, 2, 6)] == [{}, {b"a": b"0"}, {b"a": b"4"}]
    store.compact(4)
    assert values(store, 4) == {b"a": b"2"}
    with pytest.raises(Refusal) as caught:
        store.read(b"a", b"", 3)
    assert caught.value.text == Reason.COMPACTED.text
    with pytest.raises(Refusal) as caught:
        store.read(b"a", b"", 7)
    assert caught.value.text == Reason.FUTURE_REVISION.text


def test_version_and_creation_begin_anew_after_a_deletion() -> None:
    store = MvccStore()
    put(store, (b"a", b"1"))
    put(store, (b"a", b"2"))
    delete(store, b"a")
    put(store, (b"a", b"3"))
    found = store.get(b"a")
    before = store.get(b"a", 3)
    assert found is not None
    assert before is not None
    assert (before.version, before.create_revision) == (2, 2)
    assert (found.version, found.create_revision, found.mod_revision) == (1, 5, 5)


@pytest.mark.parametrize(
    ("revision", "reason"), [(-1, Reason.COMPACTED), (2, Reason.FUTURE_REVISION), (0, None), (1, None)]
)
def test_compactions_of_a_new_store(revision: int, reason: Reason | None) -> None:
    store = MvccStore()
    if reason is None:
        store.compact(revision)
        reason = Reason.COMPACTED  # the second one is refused
    with pytest.raises(Refusal) as caught:
        store.compact(revision)
    assert caught.value.text == reason.text


def test_a_transaction_reads_what_it_has_written_and_others_do_not_see_half_of_it() -> None:
    store = MvccStore()
    put(store, (b"a", b"1"))
    batch = store.begin()
    assert batch.revision == 2
    batch.put(b"b", b"2", 0)
    assert batch.revision == 3
    assert [one.key for one in batch.read(b"a", b"\x00")] == [b"a", b"b"]
    assert [one.key for one in batch.read(b"a", b"\x00", 2)] == [b"a"]
    assert store.revision == 2
    assert values(store) == {b"a": b"1"}
    batch.commit()
    assert values(store) == {b"a": b"1", b"b": b"2"}


def test_watchers_get_the_changes_from_the_compacted_revision_on() -> None:
    store = MvccStore()
    put(store, (b"a", b"1"))
    put(store, (b"b", b"2"))
    delete(store, b"a")
    put(store, (b"c", b"3"))
    assert [(one.key, one.mod_revision) for one in store.changes(1, 9)] == [(b"a", 2), (b"b", 3), (b"a", 4), (b"c", 5)]
    store.compact(4)
    assert [(one.key, one.version) for one in store.changes(4, 9)] == [(b"a", 0), (b"c", 1)]
    assert [one.key for one in store.changes(5, 5)] == [b"c"]
    forgetful = MvccStore(keeps_tombstone=False)
    put(forgetful, (b"a", b"1"))
    delete(forgetful, b"a")
    forgetful.compact(3)
    assert list(forgetful.changes(3, 3)) == []


def test_compaction_forgets_deleted_keys_and_keeps_the_others() -> None:
    store = MvccStore()
    put(store, (b"a", b"1"), (b"b", b"1"), (b"c", b"1"))
    delete(store, b"a")
    put(store, (b"b", b"2"))
    delete(store, b"c")
    put(store, (b"c", b"3"))
    now = values(store)
    store.compact(5)
    assert values(store, 5) == {b"b": b"2"}
    assert values(store) == now == {b"b": b"2", b"c": b"3"}
    store.compact(6)
    assert store._histories.keys() == {b"b", b"c"}
    assert store._keys == [b"b", b"c"]
