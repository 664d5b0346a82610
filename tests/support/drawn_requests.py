"""Random requests to etcd's key space, with odd ones among them, which typed calls would refuse.

Revisions are relative: see `differential.resolve`.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, TypeAlias

from etcd_aio import methods, pb
from tests.support.differential import COMPACTED, LEASES, NOW, Step

Make: TypeAlias = Callable[[Random], Step]

KEYS: Final = (b"a", b"a\x00", b"ab", b"b", b"b\xff", b"c", b"\x00", b"\xff")
_ENDS: Final = (b"", b"", b"\x00", b"b", b"c", b"ac", b"\xff", b"a")
_WIDE: Final = ((b"\x00", b"\x00"), (b"a", b"\x00"), (b"a", b"c"), (b"a", b"b"), (b"ab", b"\xff"))
_VALUES: Final = (b"", b"1", b"2", b"22", b"\xff")
_REVISIONS: Final = (
    (0,) * 20
    + tuple(NOW - d for d in range(6)) * 3
    + (NOW + 1, COMPACTED - 1, COMPACTED, COMPACTED, COMPACTED + 1, 1, -1, -2)
)
_COMPACTIONS: Final = (NOW, NOW - 1, NOW - 2, NOW - 3, NOW + 1, COMPACTED, COMPACTED + 1, COMPACTED + 2, -1, 0)
_BOUNDS: Final = (0,) * 50 + tuple(NOW - d for d in range(6)) + (-1,)
_STARTS: Final = (
    (0,) * 4
    + tuple(NOW + d for d in range(-4, 5))
    + (COMPACTED - 1, COMPACTED, COMPACTED, COMPACTED, COMPACTED + 1, 1, -1, -2)
)
_MOST_OPS: Final = 128  # of a transaction, by default


def _is_odd(random: Random) -> bool:
    """Seldom: a single odd field refuses a whole transaction."""
    return random.random() < 0.025


def _flag(random: Random, chance: float = 1 / 3) -> bool:
    return random.random() < chance


def _key(random: Random) -> bytes:
    return b"" if _is_odd(random) else random.choice(KEYS)


def _lease(random: Random) -> int:
    return random.choice(LEASES) if _flag(random) else 0


def _interval(random: Random) -> dict[str, bytes]:
    """Key and end: mostly such that there is something between them."""
    kind = random.random()
    if kind < 0.5:
        key, end = random.choice(_WIDE)
    else:
        key, end = _key(random), b"" if kind < 0.83 else random.choice(_ENDS)
    return {"key": key, "range_end": end}


def range_of(random: Random) -> pb.RangeRequest:
    """A range; seldom with a sort order or a target that does not exist."""
    return pb.RangeRequest(
        **_interval(random),
        limit=random.choice((0, 0, 0, 1, 2, 3, -1)),
        revision=random.choice(_REVISIONS),
        sort_order=pb.RangeRequestSortOrder(7 if _is_odd(random) else random.choice((0, 0, 1, 2))),
        sort_target=pb.RangeRequestSortTarget(7 if _is_odd(random) else random.choice((0, 0, 1, 2, 3, 4))),
        serializable=_flag(random),
        keys_only=_flag(random),
        count_only=_flag(random, 1 / 8),
        min_mod_revision=random.choice(_BOUNDS),
        max_mod_revision=random.choice(_BOUNDS),
        min_create_revision=random.choice(_BOUNDS),
        max_create_revision=random.choice(_BOUNDS),
    )


def put_of(random: Random) -> pb.PutRequest:
    """A put; some keep the value or the lease."""
    if _flag(random, 6 / 7):
        return pb.PutRequest(
            key=_key(random), value=random.choice(_VALUES), lease=_lease(random), prev_kv=_flag(random)
        )
    return pb.PutRequest(
        key=random.choice(KEYS),
        value=random.choice(_VALUES) if _is_odd(random) else b"",
        lease=_lease(random) if _is_odd(random) else 0,
        prev_kv=_flag(random),
        ignore_value=_flag(random, 1 / 2),
        ignore_lease=_flag(random, 1 / 2),
    )


def delete_of(random: Random) -> pb.DeleteRangeRequest:
    """A delete, mostly of one key."""
    interval = {"key": random.choice(KEYS)} if _flag(random, 2 / 3) else _interval(random)
    return pb.DeleteRangeRequest(**interval, prev_kv=_flag(random))


def compare_of(random: Random) -> pb.Compare:
    """A comparison; some with a value of another kind than their target, some with numbers that do not exist."""
    target = random.choice((0, 1, 2, 3, 4, *((9,) if _is_odd(random) else ())))
    kind = random.choice((target, target, target, 0, 3, None))
    compare = pb.Compare(
        result=pb.CompareCompareResult(9 if _is_odd(random) else random.choice((0, 1, 2, 3))),
        target=pb.CompareCompareTarget(target),
    )
    interval = _interval(random)
    compare.key, compare.range_end = interval["key"], interval["range_end"]
    match kind:
        case 0:
            compare.version = random.randint(-1, 3)
        case 1:
            compare.create_revision = random.choice(_REVISIONS)
        case 2:
            compare.mod_revision = random.choice(_REVISIONS)
        case 3:
            compare.value = random.choice(_VALUES)
        case 4:
            compare.lease = _lease(random)
    return compare


def txn_of(random: Random, depth: int = 3) -> pb.TxnRequest:
    """A transaction, nested up to a depth."""
    if _flag(random, 1 / 25):
        return _txn_at_the_limit(random, depth)
    return pb.TxnRequest(
        compare=[compare_of(random) for _ in range(random.choice((0, 0, 1, 1, 2)))],
        success=[_op_of(random, depth) for _ in range(random.choice((0, 1, 1, 2, 2, 3, 4)))],
        failure=[_op_of(random, depth) for _ in range(random.choice((0, 0, 1, 1, 2)))],
    )


def _op_of(random: Random, depth: int) -> pb.RequestOp:
    if _is_odd(random):
        return pb.RequestOp()
    kind = random.random()
    if kind < 0.25 and depth > 1:
        return pb.RequestOp(request_txn=txn_of(random, depth - 1))
    if kind < 0.45:
        return pb.RequestOp(request_range=range_of(random))
    if kind < 0.8:
        return pb.RequestOp(request_put=put_of(random))
    return pb.RequestOp(request_delete_range=delete_of(random))


def _txn_at_the_limit(random: Random, depth: int) -> pb.TxnRequest:
    """A transaction with about as many operations or comparisons as are allowed, some of them in an inner one.

    Its operations are cheap, and write one key only: etcd's order of many equal items is arbitrary.
    """
    most = _MOST_OPS + random.choice((-1, 0, 0, 1))
    inner = random.choice((0, 1, 2, most - 1)) if depth > 1 else 0
    count = pb.RangeRequest(key=b"a", range_end=b"\x00", count_only=True)
    ops = [pb.RequestOp(request_range=count)] * (most - inner)
    if _flag(random):
        ops[0] = pb.RequestOp(request_put=put_of(random))
    if inner and ops:
        ops[-1] = pb.RequestOp(request_txn=_in_a_branch(random, [pb.RequestOp(request_range=count)] * inner))
    if _flag(random, 1 / 4):
        many = pb.Compare(key=b"a", target=pb.CompareCompareTarget.VERSION, result=pb.CompareCompareResult.NOT_EQUAL)
        return pb.TxnRequest(compare=[many] * most, success=ops[-1:], failure=ops[:1])
    txn = _in_a_branch(random, ops)
    txn.compare = [compare_of(random)]
    return txn


def _in_a_branch(random: Random, ops: list[pb.RequestOp]) -> pb.TxnRequest:
    return pb.TxnRequest(success=ops) if _flag(random, 1 / 2) else pb.TxnRequest(failure=ops)


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


def puts(random: Random) -> Step:
    return Step(methods.PUT, put_of(random))


def ranges(random: Random) -> Step:
    return Step(methods.RANGE, range_of(random))


def deletes(random: Random) -> Step:
    return Step(methods.DELETE_RANGE, delete_of(random))


def txns(random: Random) -> Step:
    return Step(methods.TXN, txn_of(random))


def short_txns(random: Random) -> Step:
    return Step(methods.TXN, txn_of(random, depth=2))


def grants(random: Random) -> Step:
    ttl = 9_000_000_001 if _is_odd(random) else 1000
    return Step(methods.LEASE_GRANT, pb.LeaseGrantRequest(id=random.choice(LEASES), ttl=ttl))


def revocations(random: Random) -> Step:
    return Step(methods.LEASE_REVOKE, pb.LeaseRevokeRequest(id=random.choice(LEASES)))


def renewals(random: Random) -> Step:
    return Step(methods.LEASE_KEEP_ALIVE, pb.LeaseKeepAliveRequest(id=random.choice(LEASES)))


def looks_at_leases(random: Random) -> Step:
    request = pb.LeaseTimeToLiveRequest(id=random.choice(LEASES), keys=_flag(random, 1 / 2))
    return Step(methods.LEASE_TIME_TO_LIVE, request)


def compactions(random: Random) -> Step:
    return Step(methods.COMPACT, pb.CompactionRequest(revision=random.choice(_COMPACTIONS), physical=True))


def range_streams(random: Random) -> Step:
    return Step(methods.RANGE_STREAM, range_of(random))


def weighted(random: Random, table: Sequence[tuple[int, Any]]) -> Any:
    """One of the entries, each as often as the number before it says."""
    (chosen,) = random.choices([entry for _, entry in table], [weight for weight, _ in table])
    return chosen


_KEYS_AND_LEASES: Final[Sequence[tuple[int, Make]]] = (
    (6, puts),
    (8, ranges),
    (8, txns),
    (2, deletes),
    (2, grants),
    (2, compactions),
    (2, revocations),
    (2, looks_at_leases),
    (1, renewals),
    (1, range_streams),
)


def _full_or_corrupt(random: Random) -> list[Step]:
    """Requests during an alarm."""
    alarm = pb.AlarmRequest(
        action=pb.AlarmRequestAlarmAction.ACTIVATE, alarm=random.choice((pb.AlarmType.NOSPACE, pb.AlarmType.CORRUPT))
    )
    ending = pb.AlarmRequest(action=pb.AlarmRequestAlarmAction.DEACTIVATE, alarm=alarm.alarm)
    during = [weighted(random, _KEYS_AND_LEASES)(random) for _ in range(random.randint(1, 6))]
    return [Step(methods.ALARM, alarm), *during, Step(methods.ALARM, ending)]


def history(random: Random) -> list[Step]:
    """Requests to the key space and to the leases."""
    drawn = [weighted(random, _KEYS_AND_LEASES)(random) for _ in range(random.randint(10, 50))]
    if _flag(random, 1 / 8):
        drawn += _full_or_corrupt(random)
    return [*BEGINNING, *drawn]


def watch_creation(random: Random) -> Step:
    create = pb.WatchCreateRequest(
        **_interval(random),
        start_revision=random.choice(_STARTS),
        progress_notify=_flag(random),
        filters=[pb.WatchCreateRequestFilterType(random.choice((0, 1)))] if _flag(random, 1 / 2) else [],
        prev_kv=_flag(random, 1 / 2),
        watch_id=random.choice((0, 0, 0, 1, 2)),
        fragment=_flag(random),
    )
    if _is_odd(random):
        create.filters = [pb.WatchCreateRequestFilterType(7)]
    if _is_odd(random):
        create.watch_id = -5
    return Step(methods.WATCH, pb.WatchRequest(create_request=create))


def _watch_cancellation(random: Random) -> Step:
    cancel = pb.WatchCancelRequest(watch_id=random.randint(0, 3))
    return Step(methods.WATCH, pb.WatchRequest(cancel_request=cancel))


def _watch_progress(random: Random) -> Step:
    return Step(methods.WATCH, pb.WatchRequest(progress_request=pb.WatchProgressRequest()))


def _recent_compaction(random: Random) -> Step:
    revision = random.choice((NOW, NOW, NOW - 1, NOW - 2, COMPACTED + 1))
    return Step(methods.COMPACT, pb.CompactionRequest(revision=revision, physical=True))


def _watch_at_compaction(random: Random) -> list[Step]:
    """The events at the revision of a compaction, of which not all may be left."""
    everything = pb.WatchCreateRequest(key=b"\x00", range_end=b"\x00", start_revision=COMPACTED, prev_kv=True)
    return [
        *(puts(random), deletes(random)),
        Step(methods.COMPACT, pb.CompactionRequest(revision=NOW, physical=True)),
        Step(methods.WATCH, pb.WatchRequest(create_request=everything)),
    ]


def _reused_id(random: Random) -> list[Step]:
    """Ids are not given out again."""
    return [watch_creation(random), _watch_cancellation(random), watch_creation(random)]


def watch_history(random: Random) -> list[Step]:
    """Requests to watch, among writes and compactions."""
    table: Sequence[tuple[int, Callable[[Random], Any]]] = (
        (12, puts),
        (9, watch_creation),
        (3, deletes),
        (6, short_txns),
        (1, _watch_cancellation),
        (1, _watch_progress),
        (1, _recent_compaction),
        (1, _watch_at_compaction),
        (1, _reused_id),
    )
    drawn = list(BEGINNING)
    for _ in range(random.randint(5, 45)):
        made = weighted(random, table)(random)
        drawn += made if isinstance(made, list) else [made]
    return drawn
