"""compat/aetcd/rtypes.py, compat/aetcd/utils.py, compat/aetcd/rpc.py: the results of aetcd, and its small functions."""

import pytest

from etcd_aio import Header, KeyValue
from etcd_aio.compat import aetcd
from etcd_aio.compat.aetcd import rpc, utils
from etcd_aio.errors import StatusCode

HEADER = Header(1, 2, 3, 4)
KV = KeyValue(b"k", b"v", 11, 12, 13, 14)
OTHER = KeyValue(b"l", b"w")


def test_a_key_has_its_header() -> None:
    found = aetcd.Get(HEADER, KV)
    assert (found.key, found.value, found.create_revision, found.mod_revision) == (b"k", b"v", 11, 12)
    assert (found.version, found.lease) == (13, 14)
    header = found.header
    assert (header.cluster_id, header.member_id, header.revision, header.raft_term) == (1, 2, 3, 4)
    shown = "ResponseHeader[cluster_id=1, member_id=2, revision=3, raft_term=4]"
    assert repr(found) == (
        f"Get[header={shown}, key=b'k', value=b'v', create_revision=11, mod_revision=12, version=13, lease=14]"
    )


def test_a_range_is_a_sequence_that_is_true_by_its_count() -> None:
    found = aetcd.GetRange(HEADER, (KV, OTHER), True, 5)
    assert [kv.key for kv in found] == [b"k", b"l"]
    assert (len(found), found[1].value, found.count, found.more, found.kvs) == (2, b"w", 5, True, (KV, OTHER))
    assert found
    assert not aetcd.GetRange(HEADER, (), False, 0)
    assert repr(found).startswith("GetRange[header=ResponseHeader[")


def test_deletes_have_the_keys_as_they_were() -> None:
    one, several = aetcd.Delete(HEADER, 1, KV), aetcd.DeleteRange(HEADER, 2, (KV, OTHER))
    assert one.prev_kv is not None
    assert (one.deleted, one.prev_kv.key, aetcd.Delete(HEADER, 1).prev_kv) == (1, b"k", None)
    assert (len(several), several[0].key, several.deleted, bool(several)) == (2, b"k", 2, True)
    assert not aetcd.DeleteRange(HEADER, 0, ())


def test_an_event_has_the_text_of_its_kind() -> None:
    event = aetcd.Event(1, OTHER, KV)
    assert event.kind == "DELETE" == aetcd.EventKind.DELETE
    assert f"{event.kind}" == "DELETE"
    assert event.prev_kv is not None
    assert (event.prev_kv.value, aetcd.Event(0, KV).prev_kv, aetcd.Event(0, KV).kind) == (b"v", None, "PUT")


@pytest.mark.parametrize(
    ("prefix", "end"),
    [
        (b"foo", b"fop"),
        (b"ab\xff", b"ac\xff"),
        (b"a\xff\xff\xff\xff\xff", b"b\xff\xff\xff\xff\xff"),
        (b"\xff", b"\xff"),
        (b"", b""),
    ],
)
def test_the_end_of_a_prefix_is_as_aetcd_writes_it(prefix: bytes, end: bytes) -> None:
    assert utils.prefix_range_end(prefix) == end


def test_text_is_utf8_and_a_lease_is_a_number_or_has_one() -> None:
    assert utils.to_bytes("k\u00e4") == "k\u00e4".encode() == utils.to_bytes("k\u00e4".encode())
    lease = aetcd.Lease(7, 10, None)  # type: ignore[arg-type] # without a client
    assert [utils.lease_to_id(one) for one in (lease, 8, "9", None)] == [7, 8, 9, 0]


def test_the_names_of_rpc() -> None:
    assert (rpc.NONE, rpc.NOSPACE, rpc.CORRUPT) == (0, 1, 2)
    error = rpc.AioRpcError(rpc.StatusCode.UNAVAILABLE, None, None, "no")
    assert (error.code(), error.details(), rpc.StatusCode) == (StatusCode.UNAVAILABLE, "no", StatusCode)
