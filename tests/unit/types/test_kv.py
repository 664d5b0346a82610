"""Results: shapes, truth values, and that no repr tells a value."""

import copy
import pickle
from collections.abc import Sequence
from dataclasses import FrozenInstanceError

import pytest

from etcd_aio.types import (
    CompactResult,
    DeleteResult,
    Header,
    KeyValue,
    LeaseGrantResult,
    LeaseKeepAliveResult,
    LeaseListResult,
    LeaseRevokeResult,
    LeaseStatus,
    LeaseTimeToLiveResult,
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
ALL: tuple[object, ...] = (
    HEADER,
    SECRET,
    PutResult(HEADER, SECRET),
    DeleteResult(HEADER, 1, (SECRET,)),
    RangeResult(HEADER, (SECRET, OTHER), more=True, count=5),
    RangeChunk(RangeResult(HEADER, (SECRET,))),
    TxnResult(True, HEADER, (PutResult(HEADER, SECRET), SECRET, None)),
    CompactResult(HEADER),
    LeaseGrantResult(HEADER, 9, 10),
    LeaseRevokeResult(HEADER),
    LeaseKeepAliveResult(HEADER, 9, 10),
    LeaseTimeToLiveResult(HEADER, 9, 5, 10, (b"k",)),
    LeaseStatus(9),
    LeaseListResult(HEADER, (LeaseStatus(9),)),
)


@pytest.mark.parametrize("result", ALL, ids=lambda result: type(result).__name__)
def test_results_are_frozen_slotted_values(result: object) -> None:
    field = next(iter(type(result).__dataclass_fields__))  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        setattr(result, field, None)
    assert not hasattr(result, "__dict__")
    assert copy.deepcopy(result) == result
    assert pickle.loads(pickle.dumps(result)) == result
    assert hash(copy.deepcopy(result)) == hash(result)


@pytest.mark.parametrize("result", ALL, ids=lambda result: type(result).__name__)
def test_no_repr_shows_a_value(result: object) -> None:
    assert "s3cret" not in repr(result)
    assert "s3cret" not in str(result)


def test_key_value_repr_tells_sizes_and_history() -> None:
    assert repr(SECRET) == (
        "KeyValue(key=b'k', value=<6 bytes>, create_revision=4, mod_revision=6, version=2, lease=0x9)"
    )


@pytest.mark.parametrize(("size", "shown"), [(64, repr(b"x" * 64)), (65, f"{b'x' * 64!r}...<65 bytes>"), (0, "b''")])
def test_long_keys_are_cut_in_a_repr(size: int, shown: str) -> None:
    assert shown_key(b"x" * size) == shown


def test_text_is_the_value_as_utf8() -> None:
    assert KeyValue(b"k", "grüß".encode()).text() == "grüß"


def test_text_of_a_value_that_is_no_text_does_not_carry_the_value_away() -> None:
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
def test_range_result_says_where_keys_are_looked_up(key: str | bytes) -> None:
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


def test_a_key_as_text() -> None:
    assert KeyValue("\u00e9".encode()).key_text() == "\u00e9"
    with pytest.raises(ValueError, match=r"the key of b'a\\xff' is not UTF-8 at byte 1: take .key instead"):
        KeyValue(b"a\xff").key_text()


def test_range_result_is_false_while_empty_even_if_it_counts() -> None:
    assert not RangeResult(HEADER, count=3)
    assert RangeResult(HEADER, (SECRET,), count=1)


def test_range_result_repr() -> None:
    assert repr(RangeResult(HEADER, (SECRET,), more=True, count=5)) == (
        "RangeResult(<1 of 5 kvs>, more=True, revision=7)"
    )


@pytest.mark.parametrize("succeeded", [True, False])
def test_txn_result_is_true_iff_it_succeeded(succeeded: bool) -> None:
    responses: tuple[OpResult, ...] = (None,)
    assert bool(TxnResult(succeeded, HEADER, responses)) is succeeded
    assert bool(TxnResult(succeeded, HEADER)) is succeeded


@pytest.mark.parametrize(
    "result",
    [PutResult(HEADER), DeleteResult(HEADER), RangeResult(HEADER), TxnResult(False, HEADER), CompactResult(HEADER)],
)
def test_revision_is_the_headers(result: PutResult | DeleteResult | RangeResult | TxnResult | CompactResult) -> None:
    assert result.revision == 7


def test_leases() -> None:
    assert LeaseListResult(HEADER, (LeaseStatus(9), LeaseStatus(-4))).ids == (9, -4)
    assert LeaseRevokeResult(HEADER).revision == 7
    assert [LeaseTimeToLiveResult(HEADER, 9, ttl).is_expired for ttl in (-1, 0, 1)] == [True, False, False]


def test_the_id_of_a_lease_is_shown_in_hexadecimal() -> None:
    header = Header()
    assert repr(LeaseGrantResult(header, 100, 5)) == f"LeaseGrantResult(header={header}, id=0x64, ttl=5)"
    assert repr(LeaseKeepAliveResult(header, 100, 5)) == f"LeaseKeepAliveResult(header={header}, id=0x64, ttl=5)"
    assert repr(LeaseTimeToLiveResult(header, 100, 5, 6, (b"k",))) == (
        f"LeaseTimeToLiveResult(header={header}, id=0x64, ttl=5, granted_ttl=6, keys=(b'k',))"
    )
    assert repr(LeaseListResult(header, (LeaseStatus(-1),))).endswith("leases=(LeaseStatus(id=-0x1),))")
    assert repr(KeyValue(b"k", lease=100)).endswith("lease=0x64)")
    assert repr(KeyValue(b"k")).endswith("lease=0)")
