"""types/kv.py: results of the key-value calls: what they say besides their fields."""

from collections.abc import Sequence

import pytest

from etcd_aio.types import (
    CompactResult,
    DeleteResult,
    Header,
    KeyValue,
    OpResult,
    PutResult,
    RangeChunk,
    RangeResult,
    TxnResult,
    shown_key,
)

HEADER = Header(cluster_id=1, member_id=2, revision=7, raft_term=3)
SECRET = KeyValue(b"k", b"s3cret", create_revision=4, mod_revision=6, version=2, lease=9)
OTHER = KeyValue(b"l", b"other")


def test_the_repr_of_a_key_value_shows_sizes_and_history() -> None:
    assert repr(SECRET) == (
        "KeyValue(key=b'k', value=<6 bytes>, create_revision=4, mod_revision=6, version=2, lease=0x9)"
    )


@pytest.mark.parametrize(("size", "shown"), [(64, repr(b"x" * 64)), (65, f"{b'x' * 64!r}...<65 bytes>"), (0, "b''")])
def test_long_keys_are_cut_in_a_repr(size: int, shown: str) -> None:
    assert shown_key(b"x" * size) == shown


def test_text_decodes_the_value_as_utf8() -> None:
    assert KeyValue(b"k", "grüß".encode()).text() == "grüß"


def test_the_error_for_a_value_that_is_no_text_does_not_hold_the_value() -> None:
    with pytest.raises(ValueError, match="is not UTF-8 at byte 6") as caught:
        KeyValue(b"k", b"s3cret\xff").text()
    assert "s3cret" not in repr(caught.value)
    assert caught.value.__context__ is None


def test_a_chunk_has_the_header_of_its_range() -> None:
    assert RangeChunk(RangeResult(HEADER)).header is HEADER
    assert RangeChunk().header is None


def test_range_result_is_a_sequence_of_key_values() -> None:
    found = RangeResult(HEADER, (SECRET, OTHER), more=True, count=5)
    assert isinstance(found, Sequence)
    assert len(found) == 2
    assert list(found) == [SECRET, OTHER]
    assert list(reversed(found)) == [OTHER, SECRET]
    assert found[0] is SECRET
    assert found[-1] is OTHER
    assert found[1:] == (OTHER,)
    assert OTHER in found
    assert KeyValue(b"absent") not in found
    assert found.index(OTHER) == 1
    assert (found.more, found.count, found.revision) == (True, 5, 7)
    with pytest.raises(IndexError):
        found[2]
    match found:
        case [first, _]:
            assert first is SECRET
        case _:
            pytest.fail("a range result does not match a sequence pattern")


@pytest.mark.parametrize("key", ["a", b"a"])
def test_the_error_for_a_key_as_index_names_to_dict(key: str | bytes) -> None:
    found = RangeResult(HEADER, (SECRET, OTHER))
    with pytest.raises(TypeError, match="to_dict"):
        assert key in found  # type: ignore[comparison-overlap]
    with pytest.raises(TypeError, match="to_dict"):
        found[key]  # type: ignore[call-overload]


def test_range_result_as_a_dict() -> None:
    found = RangeResult(HEADER, (KeyValue(b"cfg/b", b"1"), KeyValue(b"cfg/a", "\u00e9".encode()), KeyValue(b"x")))
    assert list(found.to_dict().items()) == [("cfg/b", "1"), ("cfg/a", "\u00e9"), ("x", "")]
    assert found.to_dict(strip_prefix="cfg/") == {"b": "1", "a": "\u00e9", "x": ""}
    for kv in (KeyValue(b"\xff", b"v"), KeyValue(b"k", b"secret\xff")):
        with pytest.raises(ValueError, match="is not UTF-8 at byte") as caught:
            RangeResult(HEADER, (kv,)).to_dict()
        assert "secret" not in repr(caught.value)
        assert RangeResult(HEADER, (kv,)).to_bytes_dict() == {kv.key: kv.value}
    assert list(found.to_bytes_dict()) == [b"cfg/b", b"cfg/a", b"x"]


def test_what_was_deleted_as_a_dict() -> None:
    gone = DeleteResult(HEADER, 2, (KeyValue(b"cfg/b", b"1"), KeyValue(b"x", "\u00e9".encode())))
    assert gone.to_dict() == {"cfg/b": "1", "x": "\u00e9"}
    assert gone.to_dict(strip_prefix="cfg/") == {"b": "1", "x": "\u00e9"}
    assert DeleteResult(HEADER, 2).to_dict() == {}


def test_a_key_as_text() -> None:
    assert KeyValue("\u00e9".encode()).key_text() == "\u00e9"
    with pytest.raises(ValueError, match=r"the key of b'a\\xff' is not UTF-8 at byte 1: use .key instead"):
        KeyValue(b"a\xff").key_text()


def test_range_result_is_false_while_empty_even_if_it_counts() -> None:
    assert not RangeResult(HEADER, count=3)
    assert RangeResult(HEADER, (SECRET,), count=1)


def test_range_result_repr() -> None:
    assert repr(RangeResult(HEADER, (SECRET,), more=True, count=5)) == (
        "RangeResult(<1 of 5 kvs>, more=True, revision=7)"
    )


@pytest.mark.parametrize("succeeded", [True, False])
def test_a_txn_result_is_true_if_it_succeeded(succeeded: bool) -> None:
    responses: tuple[OpResult, ...] = (None,)
    assert bool(TxnResult(succeeded, HEADER, responses)) is succeeded
    assert bool(TxnResult(succeeded, HEADER)) is succeeded


@pytest.mark.parametrize(
    "result",
    [PutResult(HEADER), DeleteResult(HEADER), RangeResult(HEADER), TxnResult(False, HEADER), CompactResult(HEADER)],
)
def test_the_revision_of_a_result_is_its_headers(
    result: PutResult | DeleteResult | RangeResult | TxnResult | CompactResult,
) -> None:
    assert result.revision == 7
