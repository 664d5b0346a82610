"""Members and endpoints as rows of text, which the formats `simple` and `table` share. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from etcd_aio.cli.go_text import size
from etcd_aio.cli.results import EndpointHealth, HashReport, HealthReport, OwnWord, StatusReport
from etcd_aio.errors import printable
from etcd_aio.types import Member, SnapshotStatus, StatusResult

Row: TypeAlias = tuple[str, ...]

MEMBER_TITLES: Final[Row] = ("ID", "Status", "Name", "Peer Addrs", "Client Addrs", "Is Learner")
HEALTH_TITLES: Final[Row] = ("endpoint", "health", "took", "error")
HASH_TITLES: Final[Row] = ("endpoint", "hash", "hash_revision")
FILE_TITLES: Final[Row] = ("hash", "revision", "total keys", "total size", "version")
STATUS_TITLES: Final[Row] = (
    *("endpoint", "ID", "version", "storage version", "db size", "in use", "percentage not in use", "quota"),
    *("is leader", "is learner", "raft term", "raft index", "raft applied index", "errors"),
    *("downgrade target version", "downgrade enabled"),
)


def word(flag: bool) -> str:
    """A flag as Go prints it."""
    return "true" if flag else "false"


def _row(*cells: str) -> Row:
    """Names, addresses and releases are the members' own words, which must not control the terminal."""
    return tuple(map(printable, cells))


def member_rows(members: Sequence[Member]) -> tuple[Row, ...]:
    """A row for each member."""
    return tuple(
        _row(
            f"{member.id:x}",
            "started" if member.is_started else "unstarted",
            member.name,
            ",".join(member.peer_urls),
            ",".join(member.client_urls),
            word(member.is_learner),
        )
        for member in members
    )


def health_titles(report: HealthReport) -> Row:
    """The titles of these rows."""
    return (*HEALTH_TITLES, *(said.asked for row in report.rows[:1] for said in row.words))


def health_rows(report: HealthReport) -> tuple[Row, ...]:
    """A row for each endpoint."""
    return tuple(
        _row(row.endpoint, word(row.is_healthy), row.took, row.error, *map(verdict, row.words)) for row in report.rows
    )


def verdict(said: OwnWord) -> str:
    """The word of a member about itself, in short."""
    if said.health is None:
        return f"unknown: {said.error}"
    text = "ok" if said.health.is_ok else f"failed: {', '.join(check.name for check in said.health.failed)}"
    return f"{text} (by /health: this release has no /{said.asked})" if said.health.is_fallback else text


def check_lines(row: EndpointHealth) -> Iterator[str]:
    """The words of the member of an endpoint about itself, with a line for each check."""
    for said in row.words:
        yield printable(f"{row.endpoint} {said.asked} {verdict(said)}")
        for check in () if said.health is None else said.health.checks:
            yield printable(f"  [+]{check.name} ok" if check.is_ok else f"  [-]{check.name} failed: {check.reason}")


def hash_rows(report: HashReport) -> tuple[Row, ...]:
    """A row for each endpoint."""
    return tuple(_row(endpoint, f"{result.hash}", f"{result.hash_revision}") for endpoint, result in report.rows)


def status_rows(report: StatusReport) -> tuple[Row, ...]:
    """A row for each endpoint."""
    return tuple(_status_row(endpoint, status) for endpoint, status in report.rows)


def file_row(status: SnapshotStatus) -> Row:
    """The row of a snapshot file."""
    numbers = f"{status.hash:x}", f"{status.revision}", f"{status.total_keys}"
    return _row(*numbers, size(status.total_size), status.version)


def _status_row(endpoint: str, status: StatusResult) -> Row:
    downgrade = status.downgrade_info
    in_use = status.db_size_in_use * 100 // status.db_size if status.db_size else 100
    return _row(
        endpoint,
        f"{status.header.member_id:x}",
        status.version,
        status.storage_version,
        size(status.db_size),
        size(status.db_size_in_use),
        f"{100 - in_use}%",
        size(status.db_size_quota),
        word(status.leader == status.header.member_id),
        word(status.is_learner),
        f"{status.raft_term}",
        f"{status.raft_index}",
        f"{status.raft_applied_index}",
        ", ".join(status.errors),
        "" if downgrade is None else downgrade.target_version,
        word(downgrade is not None and downgrade.enabled),
    )
