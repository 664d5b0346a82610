"""The metrics of a member that `top` shows. Pure.

The names with `debugging` are not promised by etcd, so each may be missing; they are the same from 3.4 to 3.7.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from etcd_aio.dataclass import dataclass

_FSYNC: Final = "etcd_disk_wal_fsync_duration_seconds_bucket"
_NAMES: Final = {
    "etcd_debugging_mvcc_watcher_total": "watchers",
    "etcd_debugging_mvcc_events_total": "events",
    "etcd_server_slow_apply_total": "slow_applies",
    "etcd_server_proposals_pending": "pending",
}
_PEER: Final = "etcd_network_known_peers{"
_FEATURE: Final = "etcd_server_feature_enabled{"
_GROUPS: Final = frozenset({"AllAlpha", "AllBeta"})  # of features; they are off by default
_PERCENTILE: Final = 0.99


@dataclass(frozen=True, slots=True)
class Metrics:
    """Some metrics of a member at one instant; None for what it does not have.

    Attributes:
        watchers: the number of watchers.
        events: the number of events that it has sent to watchers since it began.
        slow_applies: log entries that took it long to apply, since it began.
        pending: proposals that are not committed yet.
        known_peers: the members that it knows, with itself; from etcd 3.6 on.
        features: its feature gates that are not as they are by default: "+Name" if it is on, "-Name" if it is off; from
            etcd 3.6 on.
        fsyncs: for each limit in seconds, the writes of its log to the disk that took no longer, since it began.
    """

    watchers: int | None = None
    events: int | None = None
    slow_applies: int | None = None
    pending: int | None = None
    known_peers: int | None = None
    features: tuple[str, ...] = ()
    fsyncs: Mapping[float, int] = field(default_factory=dict)


def read_metrics(text: str) -> Metrics:
    """Parse the text of `/metrics`, without the lines that cannot be parsed."""
    found: dict[str, int] = {}
    fsyncs: dict[float, int] = {}
    features: set[str] = set()
    for line in text.splitlines():
        if not line.startswith("etcd_"):
            continue
        name, _, number = line.rpartition(" ")
        try:
            if name in _NAMES:
                found[_NAMES[name]] = int(float(number))
            elif name.startswith(_FSYNC):
                fsyncs[float(_label(name, "le"))] = int(float(number))
            elif name.startswith(_PEER):
                found["known_peers"] = found.get("known_peers", 0) + int(float(number))
            elif name.startswith(_FEATURE):
                features.update(_changed_feature(_label(name, "name"), _label(name, "stage"), float(number) > 0))
        except (ValueError, OverflowError):  # a member, or what answers in its place, may send anything
            continue
    return Metrics(**found, fsyncs=fsyncs, features=tuple(sorted(features)))


def _label(name: str, label: str) -> str:
    return name.partition(f'{label}="')[2].partition('"')[0]


def _changed_feature(name: str, stage: str, is_on: bool) -> tuple[str, ...]:
    """The feature gate, if it is not as it is by default: those of stage ALPHA are off, others are on."""
    is_on_by_default = stage != "ALPHA" and name not in _GROUPS
    return () if is_on is is_on_by_default else (f"+{name}" if is_on else f"-{name}",)


def rate(now: int | None, before: int | None, seconds: float) -> float | None:
    """The growth of a counter per second, or None without two samples. A member that was restarted begins at 0."""
    if now is None or before is None:
        return None
    return round((now - before if now >= before else now) / seconds, 1)


def p99(now: Mapping[float, int], before: Mapping[float, int] | None) -> float | None:
    """The 99th percentile, in milliseconds, of what came between two instants, as Prometheus estimates it.

    Args:
        now: the counts at the second instant.
        before: those at the first; None to take all since the member began.

    Returns:
        None if nothing came. What is longer than the last limit is taken for that.
    """
    limits = sorted(now)
    counts = [now[limit] for limit in limits]
    if before is not None and before.keys() == now.keys():
        grown = [now[limit] - before[limit] for limit in limits]
        counts = grown if min(grown, default=0) >= 0 else counts  # else the member has begun anew
    if not counts or counts[-1] <= 0:
        return None
    rank = counts[-1] * _PERCENTILE
    lower, under = 0.0, 0
    for limit, count in zip(limits, counts, strict=True):
        if count >= rank:
            if limit == float("inf"):
                return round(lower * 1000, 1)
            return round((lower + (limit - lower) * (rank - under) / (count - under)) * 1000, 1)
        lower, under = limit, count
    return None
