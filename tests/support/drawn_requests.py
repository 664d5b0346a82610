"""Hypothesis strategies for requests to etcd's key space, with odd ones among them."""

from typing import Any, Final, cast

from hypothesis import strategies as st

from etcd_aio import methods, pb
from etcd_aio.methods import AnyMethod
from tests.support.differential import COMPACTED, LEASES, NOW, Step

KEYS: Final = (b"a", b"a\x00", b"ab", b"b", b"b\xff", b"c", b"\x00", b"\xff")
_key = st.sampled_from(KEYS) | st.just(b"")
_good_key = st.sampled_from(KEYS)
_end = st.sampled_from((b"", b"", b"\x00", b"b", b"c", b"ac", b"\xff", b"a"))
_value = st.sampled_from((b"", b"1", b"2", b"22", b"\xff"))
_lease = st.sampled_from((0,) * 6 + LEASES)
_flag = st.sampled_from((False, False, True))
_seldom = st.sampled_from((False,) * 7 + (True,))
_revision = st.sampled_from(
    (0,) * 20
    + tuple(NOW - d for d in range(6)) * 3
    + (NOW + 1, COMPACTED - 1, COMPACTED, COMPACTED, COMPACTED + 1, 1, -1, -2)
)
_compaction = st.sampled_from((NOW, NOW - 1, NOW - 2, NOW - 3, NOW + 1, COMPACTED, COMPACTED + 1, COMPACTED + 2, -1))
_bound = st.sampled_from((0,) * 50 + tuple(NOW - d for d in range(6)) + (-1,))


def _good(strategy: "st.SearchStrategy[Any]", otherwise: "st.SearchStrategy[Any]") -> "st.SearchStrategy[Any]":
    """Mostly the first: a single odd field refuses a whole transaction."""
    return st.integers(0, 39).flatmap(lambda number: otherwise if number == 39 else strategy)


def _weighted(*strategies: "st.SearchStrategy[Any]") -> "st.SearchStrategy[Any]":
    """One of them, each as often as it is named; `st.one_of` would count the branches of each."""
    return st.sampled_from(strategies).flatmap(lambda strategy: strategy)


def _intervals(*, odd_key: "st.SearchStrategy[bytes]" = _key) -> "st.SearchStrategy[dict[str, bytes]]":
    """Key and end: mostly such that there is something between them."""
    wide = st.sampled_from(((b"\x00", b"\x00"), (b"a", b"\x00"), (b"a", b"c"), (b"a", b"b"), (b"ab", b"\xff")))
    point = _good(_good_key, odd_key).map(lambda key: (key, b""))
    return _weighted(wide, wide, wide, point, point, st.tuples(_good(_good_key, odd_key), _end)).map(
        lambda pair: {"key": pair[0], "range_end": pair[1]}
    )


def _with_interval(kind: type[Any], **fields: "st.SearchStrategy[Any]") -> "st.SearchStrategy[Any]":
    return st.builds(lambda interval, **rest: kind(**interval, **rest), _intervals(), **fields)


def ranges(*, has_odd_numbers: bool) -> "st.SearchStrategy[pb.RangeRequest]":
    """Ranges; with sort orders and targets that do not exist."""
    odd = (7,) if has_odd_numbers else (0,)
    return _with_interval(
        pb.RangeRequest,
        limit=st.sampled_from((0, 0, 0, 1, 2, 3, -1)),
        revision=_revision,
        sort_order=_good(st.sampled_from((0, 0, 1, 2)), st.sampled_from(odd)).map(pb.RangeRequestSortOrder),
        sort_target=_good(st.sampled_from((0, 0, 1, 2, 3, 4)), st.sampled_from(odd)).map(pb.RangeRequestSortTarget),
        serializable=_flag,
        keys_only=_flag,
        count_only=_seldom,
        min_mod_revision=_bound,
        max_mod_revision=_bound,
        min_create_revision=_bound,
        max_create_revision=_bound,
    )


_plain_puts = st.builds(
    pb.PutRequest,
    key=_good(_good_key, _key),
    value=_value,
    lease=_lease,
    prev_kv=_flag,
)
_ignoring_puts = st.builds(
    pb.PutRequest,
    key=_good_key,
    value=_good(st.just(b""), _value),
    lease=_good(st.just(0), _lease),
    prev_kv=_flag,
    ignore_value=st.booleans(),
    ignore_lease=st.booleans(),
)
puts = _weighted(*[_plain_puts] * 6, _ignoring_puts)
deletes = _weighted(
    *[st.builds(pb.DeleteRangeRequest, key=_good_key, prev_kv=_flag)] * 2,
    _with_interval(pb.DeleteRangeRequest, prev_kv=_flag),
)


@st.composite
def compares(draw: st.DrawFn) -> pb.Compare:
    """Comparisons; some with a value of another kind than their target, some with numbers that do not exist."""
    target = draw(st.sampled_from((0, 1, 2, 3, 4)))
    kind = draw(st.sampled_from((target, target, target, 0, 3, None)))
    compare = pb.Compare(
        result=pb.CompareCompareResult(draw(st.sampled_from((0, 1, 2, 3, 9)))),
        target=pb.CompareCompareTarget(target),
        **cast("Any", draw(_intervals())),
    )
    match kind:
        case 0:
            compare.version = draw(st.integers(-1, 3))
        case 1:
            compare.create_revision = draw(_revision)
        case 2:
            compare.mod_revision = draw(_revision)
        case 3:
            compare.value = draw(_value)
        case 4:
            compare.lease = draw(_lease)
    return compare


def txns(*, has_odd_numbers: bool, depth: int = 3) -> "st.SearchStrategy[pb.TxnRequest]":
    """Transactions, nested up to a depth."""
    simple = _weighted(
        ranges(has_odd_numbers=has_odd_numbers).map(lambda one: pb.RequestOp(request_range=one)),
        *[puts.map(lambda one: pb.RequestOp(request_put=one))] * 2,
        deletes.map(lambda one: pb.RequestOp(request_delete_range=one)),
    )
    ops = _good(simple, st.just(pb.RequestOp()))
    if depth > 1:
        inner = txns(has_odd_numbers=has_odd_numbers, depth=depth - 1)
        ops = _weighted(ops, ops, ops, inner.map(lambda one: pb.RequestOp(request_txn=one)))
    return st.builds(
        pb.TxnRequest,
        compare=st.lists(compares(), max_size=2),
        success=st.lists(ops, max_size=4),
        failure=st.lists(ops, max_size=2),
    )


BEGINNING: Final = (
    *(Step(methods.LEASE_GRANT, pb.LeaseGrantRequest(id=lease, ttl=1000)) for lease in LEASES[:2]),
    *(
        Step(methods.PUT, pb.PutRequest(key=key, value=value, lease=lease))
        for key, value, lease in (
            *(
                (b"a", b"1", 0),
                (b"ab", b"22", 1),
                (b"c", b"1", 0),
                (b"b", b"2", 2),
                (b"ab", b"2", 1),
                (b"\xff", b"", 0),
            ),
            *((b"a", b"1", 1), (b"ab", b"", 0), (b"b\xff", b"1", 2)),
        )
    ),
    Step(methods.DELETE_RANGE, pb.DeleteRangeRequest(key=b"c")),
)
"""Requests after which there are keys with several versions and with leases, so that there is something to read."""


def _as_steps(method: AnyMethod, requests: "st.SearchStrategy[Any]") -> "st.SearchStrategy[Step]":
    return requests.map(lambda request: Step(method, request))


def histories(*, has_odd_numbers: bool) -> "st.SearchStrategy[list[Step]]":
    """Requests to the key space and to the leases.

    Args:
        has_odd_numbers: whether sort orders and targets may be such that do not exist; etcd 3.4 and 3.5 crash then.
    """
    lease = st.sampled_from(LEASES)
    grants = st.builds(pb.LeaseGrantRequest, id=lease, ttl=_good(st.just(1000), st.just(9_000_000_001)))
    put, grant = _as_steps(methods.PUT, puts), _as_steps(methods.LEASE_GRANT, grants)
    read = _as_steps(methods.RANGE, ranges(has_odd_numbers=has_odd_numbers))
    txn = _as_steps(methods.TXN, txns(has_odd_numbers=has_odd_numbers))
    compact = st.builds(pb.CompactionRequest, revision=_compaction, physical=st.just(True))
    anything = _weighted(
        *(put, put, put, read, read, read, read, txn, txn, txn, txn, grant),
        _as_steps(methods.DELETE_RANGE, deletes),
        _as_steps(methods.COMPACT, compact),
        _as_steps(methods.LEASE_REVOKE, st.builds(pb.LeaseRevokeRequest, id=lease)),
        _as_steps(methods.LEASE_TIME_TO_LIVE, st.builds(pb.LeaseTimeToLiveRequest, id=lease, keys=st.booleans())),
    )
    return st.lists(anything, min_size=10, max_size=40).map(lambda drawn: [*BEGINNING, *drawn])


def watch_histories(*, has_negative_revisions: bool) -> "st.SearchStrategy[list[Step]]":
    """Requests to watch, among writes and compactions.

    Args:
        has_negative_revisions: whether watches may begin at one; etcd 3.4 does not refuse them.
    """
    starts = st.sampled_from(
        (0,) * 4
        + tuple(NOW + d for d in range(-4, 5))
        + (COMPACTED - 1, COMPACTED, COMPACTED, COMPACTED, COMPACTED + 1, 1, -1, -2)
    )
    if not has_negative_revisions:
        starts = starts.filter(lambda revision: revision >= 0)
    create = _with_interval(
        pb.WatchCreateRequest,
        start_revision=starts,
        progress_notify=_flag,
        filters=st.lists(st.sampled_from((0, 1)).map(pb.WatchCreateRequestFilterType), max_size=1),
        prev_kv=st.booleans(),
        watch_id=st.sampled_from((0, 0, 0, 1, 2)),
        fragment=_flag,
    )
    watch = _as_steps(methods.WATCH, create.map(lambda one: pb.WatchRequest(create_request=one)))
    cancel = _as_steps(
        methods.WATCH,
        st.integers(0, 2).map(lambda one: pb.WatchRequest(cancel_request=pb.WatchCancelRequest(watch_id=one))),
    )
    put = _as_steps(methods.PUT, puts)
    recent = st.sampled_from((NOW, NOW, NOW - 1, NOW - 2, COMPACTED + 1))
    compact = _as_steps(methods.COMPACT, st.builds(pb.CompactionRequest, revision=recent, physical=st.just(True)))
    delete = _as_steps(methods.DELETE_RANGE, deletes)
    # The events at the revision of a compaction, of which not all may be left.
    at_compaction = pb.WatchCreateRequest(key=b"\x00", range_end=b"\x00", start_revision=COMPACTED, prev_kv=True)
    compacted = st.tuples(put, delete).map(
        lambda pair: [
            *pair,
            Step(methods.COMPACT, pb.CompactionRequest(revision=NOW, physical=True)),
            Step(methods.WATCH, pb.WatchRequest(create_request=at_compaction)),
        ]
    )
    again = st.tuples(watch, cancel, watch).map(list)  # ids are not given out again
    anything = _weighted(
        *(put, put, put, put, watch, watch, watch, cancel, delete),
        _as_steps(methods.TXN, txns(has_odd_numbers=False, depth=2)),
    ).map(lambda step: [step])
    anything = _weighted(*[anything] * 6, compact.map(lambda step: [step]), compacted, again)
    return st.lists(anything, min_size=5, max_size=25).map(
        lambda drawn: [*BEGINNING, *(step for steps in drawn for step in steps)]
    )
