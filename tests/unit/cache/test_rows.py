"""cache/rows.py: the garbage collector does not look at them, and what is read of them is equal to what was stored."""

import gc

import pytest

from etcd_aio import KeyValue
from etcd_aio.cache.rows import VERSION, KeyValues, key_value, row_of

KV = KeyValue(b"k", b"v", 3, 7, 2, 9)


def test_a_row_has_all_fields() -> None:
    row = row_of(KV)
    assert row == (b"k", b"v", 3, 7, 2, 9)
    assert row[VERSION] == KV.version == 2
    made = key_value(row)
    assert (type(made), made) == (KeyValue, KV)
    with pytest.raises(AttributeError):
        setattr(made, "value", b"")  # noqa: B010 - frozen, as type checkers know


def test_the_collector_forgets_rows() -> None:
    rows = [row_of(KeyValue(b"%d" % number, b"v", number, number, 1)) for number in range(1000, 2000)]
    gc.collect()
    assert not any(map(gc.is_tracked, rows))


def test_what_was_read_is_kept_until_it_is_removed() -> None:
    rows = {b"k": row_of(KV)}
    values = KeyValues(rows)
    assert values[b"k"] == KV
    assert values[b"k"] is values[b"k"]
    rows[b"k"] = row_of(KeyValue(b"k", b"new"))
    del values[b"k"]
    assert values[b"k"].value == b"new"
    with pytest.raises(KeyError):
        values[b"unknown"]
    assert set(values) == {b"k"}


def test_a_key_is_kept_as_bytes_however_it_is_asked_for() -> None:
    values = KeyValues({b"k": row_of(KV)})
    view: memoryview = memoryview(b"k")
    assert values[view] == KV  # type: ignore[index] # its hash is that of the bytes
    assert [type(key) for key in values] == [bytes]
