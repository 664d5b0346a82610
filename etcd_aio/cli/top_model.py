"""The model of `top`: from the answers of the members to rows. Pure: the clock is an argument."""

from collections.abc import Mapping, Sequence

from etcd_aio.cli.top_metrics import Metrics, p99, rate
from etcd_aio.dataclass import dataclass
from etcd_aio.types import AlarmResult, MemberHealth, MemberListResult, StatusResult


@dataclass(frozen=True, slots=True)
class MemberAnswer:
    """The answer of one endpoint.

    Attributes:
        status: its status; None if it did not answer.
        seconds: until it answered.
        error: the reason for no answer.
        metrics: some of its metrics; None if it did not send them.
        readiness: what it says of itself when it is asked whether it is ready; None if it did not say it in time.
    """

    status: StatusResult | None
    seconds: float = 0.0
    error: str = ""
    metrics: Metrics | None = None
    readiness: MemberHealth | None = None


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member.

    Attributes:
        endpoint: the endpoint of the requests.
        name: of the member; empty if it is not known yet.
        version: its release.
        role: leader, follower, learner, or empty.
        db_size: bytes of its database.
        in_use: percent of these that are in use.
        quota: percent of the quota that the database takes; None before etcd 3.6.
        raft_index: the last log entry that is committed, in its view.
        lag: log entries that it has committed and not applied.
        behind: log entries that the leader has applied and it has not.
        term: its raft term.
        answer_ms: milliseconds until it answered.
        errors: alarms and problems that it reports.
        silent: seconds since its last answer, or since the start; None if it has answered.
        error: the reason for no answer.
        watchers: the number of its watchers. This and the following are from its metrics; None if they are not known.
        events: the number it sends to watchers per second; None at the first refresh, too.
        slow_applies: log entries that took it long to apply, since it began.
        fsync_p99_ms: 99th percentile of the milliseconds that a write of its log to the disk took since the last
            refresh; at the first one, since it began; None if there was none.
        pending: proposals that are not committed yet.
        known_peers: the members that it knows, with itself; from etcd 3.6 on.
        features: its feature gates that are not as they are by default, such as "+StopGRPCServiceOnDefrag".
        ready: whether it says that it is ready for requests; None if it did not say it in time.
        failed_checks: the checks that keep it from being ready.
        storage_version: of its database; empty before etcd 3.6.
        downgrade_target: the version that the cluster is downgraded to; empty if it is not.
    """

    endpoint: str
    name: str = ""
    version: str = ""
    role: str = ""
    db_size: int = 0
    in_use: int = 0
    quota: int | None = None
    raft_index: int = 0
    lag: int = 0
    behind: int = 0
    term: int = 0
    answer_ms: float = 0.0
    errors: tuple[str, ...] = ()
    silent: float | None = None
    error: str = ""
    watchers: int | None = None
    events: float | None = None
    slow_applies: int | None = None
    fsync_p99_ms: float | None = None
    pending: int | None = None
    known_peers: int | None = None
    features: tuple[str, ...] = ()
    ready: bool | None = None
    failed_checks: tuple[str, ...] = ()
    storage_version: str = ""
    downgrade_target: str = ""


@dataclass(frozen=True, slots=True)
class PrefixRow:
    """A watched prefix.

    Attributes:
        prefix: the prefix, as text.
        events: a second.
        bytes: of keys and values, a second.
        lag: revisions by which the watch is behind the store.
        error: why the watch has ended; empty if it has not.
    """

    prefix: str
    events: float
    bytes: float
    lag: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class TopSnapshot:
    """The state that `top` shows at one instant.

    Attributes:
        cluster_id: in hexadecimal; empty if no member has ever answered.
        version: the oldest release of the members.
        leader: name of the leader, or its id in hexadecimal; empty if there is none.
        term: the newest raft term.
        has_quorum: whether a read with quorum was answered.
        answering: the number of endpoints that have answered.
        revision: of the store.
        alarms: the raised alarms.
        members: a row for each endpoint.
        prefixes: a row for each watched prefix.
    """

    cluster_id: str
    version: str
    leader: str
    term: int
    has_quorum: bool
    answering: int
    revision: int
    alarms: tuple[str, ...]
    members: tuple[MemberRow, ...]
    prefixes: tuple[PrefixRow, ...]


@dataclass(slots=True)
class Counters:
    """The events of the watch of a prefix since the last snapshot.

    Attributes:
        events: the number of events.
        bytes: of their keys and values.
        revision: up to which the watch has everything.
        error: why it has ended; empty if it has not.
    """

    events: int = 0
    bytes: int = 0
    revision: int = 0
    error: str = ""

    def add(self, sizes: Sequence[int], revision: int) -> None:
        """Count a batch: the bytes of each event, and the revision of the batch."""
        self.events += len(sizes)
        self.bytes += sum(sizes)
        self.revision = max(self.revision, revision)


class Top:
    """The state of `top` between two refreshes.

    Args:
        endpoints: of the members.
        now: an instant of a monotonic clock.
    """

    def __init__(self, endpoints: Sequence[str], now: float) -> None:
        self._last: dict[str, MemberRow] = {endpoint: MemberRow(endpoint) for endpoint in endpoints}
        self._answered: dict[str, float] = dict.fromkeys(endpoints, now)
        self._metrics: dict[str, tuple[float, Metrics]] = {}  # of the last refresh that had some, and when
        self._names: dict[int, str] = {}
        self._time = now
        self._cluster_id = 0
        self._revision = 0

    def look(
        self,
        now: float,
        answers: Mapping[str, MemberAnswer],
        members: MemberListResult | None,
        alarms: AlarmResult | None,
        watched: Mapping[str, Counters],
    ) -> TopSnapshot:
        """The next snapshot. The counters begin anew.

        Args:
            now: an instant of the same clock.
            answers: of every endpoint.
            members: read with quorum; None if there is no quorum.
            alarms: the raised alarms; None if they are not known.
            watched: the counters by prefix.
        """
        if members is not None:
            self._names = {member.id: member.name for member in members.members}
        statuses = [answer.status for answer in answers.values() if answer.status is not None]
        for status in statuses:
            self._cluster_id = status.header.cluster_id
            self._revision = max(self._revision, status.header.revision)
        term = max((status.raft_term for status in statuses), default=0)
        leader = next((status.leader for status in statuses if status.raft_term == term and status.leader), 0)
        applied = max((status.raft_applied_index for status in statuses if status.is_leader), default=0)
        for endpoint, answer in answers.items():
            self._last[endpoint] = self._row(endpoint, answer, now, applied)
        seconds = max(now - self._time, 1e-9)
        self._time = now
        return TopSnapshot(
            cluster_id=f"{self._cluster_id:x}" if self._cluster_id else "",
            version=min((status.version for status in statuses), key=_numbers, default=""),
            leader=self._name(leader) if leader else "",
            term=term,
            has_quorum=members is not None,
            answering=len(statuses),
            revision=self._revision,
            alarms=()
            if alarms is None
            else tuple(f"{self._name(one.member_id)} {one.alarm.name}" for one in alarms.alarms),
            members=tuple(self._last.values()),
            prefixes=tuple(self._prefix(prefix, counters, seconds) for prefix, counters in watched.items()),
        )

    def _row(self, endpoint: str, answer: MemberAnswer, now: float, applied: int) -> MemberRow:
        status = answer.status
        before = self._last[endpoint]
        if status is None:
            silent = now - self._answered[endpoint]
            return MemberRow(endpoint, before.name, before.version, silent=silent, error=answer.error)
        self._answered[endpoint] = now
        metrics = answer.metrics or Metrics()
        then, known = self._metrics.get(endpoint, (now, None))
        if answer.metrics is not None:
            self._metrics[endpoint] = now, metrics
        role = "leader" if status.is_leader else "learner" if status.is_learner else "follower"
        return MemberRow(
            endpoint,
            self._name(status.header.member_id),
            status.version,
            role,
            status.db_size,
            _percent(status.db_size_in_use, status.db_size) or 0,
            _percent(status.db_size, status.db_size_quota),
            status.raft_index,
            max(0, status.raft_index - status.raft_applied_index),
            max(0, applied - status.raft_applied_index),
            status.raft_term,
            round(answer.seconds * 1000, 1),
            status.errors,
            watchers=metrics.watchers,
            events=None if known is None else rate(metrics.events, known.events, max(now - then, 1e-9)),
            slow_applies=metrics.slow_applies,
            fsync_p99_ms=p99(metrics.fsyncs, None if known is None else known.fsyncs),
            pending=metrics.pending,
            known_peers=metrics.known_peers,
            features=metrics.features,
            ready=None if answer.readiness is None else answer.readiness.is_ok,
            failed_checks=() if answer.readiness is None else tuple(one.name for one in answer.readiness.failed),
            storage_version=status.storage_version,
            downgrade_target=status.downgrade_info.target_version if status.downgrade_info is not None else "",
        )

    def _name(self, member: int) -> str:
        return self._names.get(member) or f"{member:x}"

    def _prefix(self, prefix: str, counters: Counters, seconds: float) -> PrefixRow:
        lag = max(0, self._revision - counters.revision)
        events, size = round(counters.events / seconds, 1), round(counters.bytes / seconds, 1)
        row = PrefixRow(prefix, events, size, lag, counters.error)
        counters.events = counters.bytes = 0
        return row


def _percent(part: int, whole: int) -> int | None:
    return part * 100 // whole if whole else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("-")[0].split(".") if part.isdigit())
