"""Results of the maintenance calls, as frozen values.

The attributes are named like the fields of etcd's messages, so that the codec can fill them without an intermediate
message.
"""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Final, Literal, TypeAlias, TypeVar

from etcd_aio.dataclass import dataclass
from etcd_aio.errors import EtcdError
from etcd_aio.types.kv import Header


class Alarm(Enum):
    """A problem of a member that etcd itself detects."""

    NOSPACE = "nospace"
    """The member's database has used up its quota: the cluster accepts no writes until the alarm is disarmed."""
    CORRUPT = "corrupt"
    """The member's data differs from the other members': it serves nothing until the alarm is disarmed."""


AlarmLike: TypeAlias = Alarm | Literal["nospace", "corrupt"]


@dataclass(frozen=True, slots=True)
class ActiveAlarm:
    """One raised alarm.

    Attributes:
        member_id: the member that has the problem.
        alarm: the kind of problem.
    """

    member_id: int
    alarm: Alarm


@dataclass(frozen=True, slots=True)
class AlarmResult:
    """The alarms that are raised, or that were disarmed. It is true if there are any.

    Attributes:
        header: the metadata of the response.
        alarms: the alarms.
    """

    header: Header
    alarms: tuple[ActiveAlarm, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.alarms)


@dataclass(frozen=True, slots=True)
class DowngradeInfo:
    """A downgrade of the cluster.

    Attributes:
        enabled: whether a downgrade is under way.
        target_version: the version that the cluster is downgraded to.
    """

    enabled: bool = False
    target_version: str = ""


@dataclass(frozen=True, slots=True)
class StatusResult:
    """The status of a member, as it reports it.

    Attributes:
        header: the metadata of the response.
        version: the release that it runs, such as "3.6.4".
        db_size: the bytes of its database file.
        leader: the id of the leader in its view; 0 if there is none.
        raft_index: the last log entry that is committed, in its view.
        raft_term: its raft term.
        raft_applied_index: the last log entry that it has applied.
        errors: its alarms and problems, in etcd's words.
        db_size_in_use: the bytes of its database that are in use; defragmenting frees the rest.
        is_learner: whether it is a learner.
        storage_version: the version of its database format; empty before etcd 3.6.
        db_size_quota: the most bytes that its database may have; 0 before etcd 3.6.
        downgrade_info: whether the cluster is being downgraded; None before etcd 3.6.
    """

    header: Header
    version: str = ""
    db_size: int = 0
    leader: int = 0
    raft_index: int = 0
    raft_term: int = 0
    raft_applied_index: int = 0
    errors: tuple[str, ...] = ()
    db_size_in_use: int = 0
    is_learner: bool = False
    storage_version: str = ""
    db_size_quota: int = 0
    downgrade_info: DowngradeInfo | None = None

    @property
    def is_leader(self) -> bool:
        """Whether the member reports itself as the leader. A leader that was just partitioned may still do so."""
        return self.leader != 0 and self.leader == self.header.member_id


K = TypeVar("K")


def newest_leader(statuses: Mapping[K, StatusResult]) -> K | None:
    """The key of the member that reports itself as leader in the newest term; None if no member of that term does.

    A partitioned member may still report itself as the leader of an older term, or report a former leader.
    """
    newest = max((status.raft_term for status in statuses.values()), default=0)
    leaders = (key for key, status in statuses.items() if status.is_leader and status.raft_term == newest)
    return next(leaders, None)


@dataclass(frozen=True, slots=True)
class EndpointVersions:
    """The versions that one endpoint reports.

    Attributes:
        endpoint: the endpoint.
        server: the release that its member runs, such as "3.6.4"; empty if it did not answer.
        cluster: the version of the cluster, which is the lowest minor release of its members, such as "3.6.0". Newer
            features are not in use yet. Empty if the endpoint does not serve it, as with separate ports for HTTP.
        error: why `server` is empty; None if it is not.
    """

    endpoint: str
    server: str = ""
    cluster: str = ""
    error: EtcdError | None = None

    @property
    def server_version(self) -> tuple[int, int, int]:
        """`server` as numbers, such as (3, 6, 4); (0, 0, 0) if it is unknown or not a version."""
        return version_tuple(self.server)

    @property
    def cluster_version(self) -> tuple[int, int, int]:
        """`cluster` as numbers, in the same way."""
        return version_tuple(self.cluster)


@dataclass(frozen=True, slots=True)
class DefragmentResult:
    """A member's database was defragmented.

    Attributes:
        header: the metadata of the response; empty in some releases.
    """

    header: Header


@dataclass(frozen=True, slots=True)
class HashResult:
    """The hash of a member's whole database.

    Attributes:
        header: the metadata of the response.
        hash: the hash. It also covers data that differs from member to member, so it cannot show whether they agree.
    """

    header: Header
    hash: int = 0


@dataclass(frozen=True, slots=True)
class HashKVResult:
    """The hash of a member's keys and their history.

    Members agree if `hash` is the same at the same `hash_revision` and `compact_revision`.

    Attributes:
        header: the metadata of the response.
        hash: the hash.
        compact_revision: the revision up to which the history was compacted when the hash was made.
        hash_revision: the revision up to which keys are in the hash; 0 before etcd 3.6, where it is the requested one.
    """

    header: Header
    hash: int = 0
    compact_revision: int = 0
    hash_revision: int = 0


@dataclass(frozen=True, slots=True)
class MoveLeaderResult:
    """The leadership was transferred.

    Attributes:
        header: the metadata of the status of the member that led when the call began; etcd's own reply has none.
    """

    header: Header


@dataclass(frozen=True, slots=True)
class DowngradeResult:
    """A downgrade was validated, started or cancelled.

    Attributes:
        header: the metadata of the response.
        version: the cluster's version before it.
    """

    header: Header
    version: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class SnapshotChunk:
    """One message of a snapshot. Users get its bytes.

    Attributes:
        header: the metadata of the response; empty in some releases.
        remaining_bytes: the bytes of the database after this chunk.
        blob: the bytes of this chunk.
        version: the storage version that the snapshot has; empty before etcd 3.6.
    """

    header: Header
    remaining_bytes: int = 0
    blob: bytes = b""
    version: str = ""

    def __repr__(self) -> str:
        return f"SnapshotChunk(<{len(self.blob)} bytes>, remaining_bytes={self.remaining_bytes})"


@dataclass(frozen=True, slots=True)
class SavedSnapshot:
    """A complete and verified snapshot on disk.

    Attributes:
        size: the bytes of the file: the database, followed by etcd's SHA-256 of it (32 bytes).
        sha256: this hash in hexadecimal; the client has computed the same one.
        endpoint: the endpoint that sent it.
        version: the storage version, which is the release to restore it with; empty before etcd 3.6.
    """

    size: int
    sha256: str
    endpoint: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class SnapshotStatus:
    """The status of a database file, as `etcdutl snapshot status` has it.

    Attributes:
        hash: the checksum (CRC-32C) of all buckets, keys and values.
        revision: the last revision.
        total_keys: the number of keys.
        total_size: bytes of the pages in use; the file may be larger.
        version: the storage version, which etcd has from 3.6 on; empty before.
        hash_matches: whether the SHA-256 at the end of a snapshot is right; None for a file without one, such as that
            of a data directory. etcdutl checks it only when a snapshot is restored, and refuses one that is wrong.
    """

    hash: int
    revision: int
    total_keys: int
    total_size: int
    version: str
    hash_matches: bool | None


_VERSION: Final = re.compile(r"v?([0-9]{1,9})\.([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:[-+].*)?", re.ASCII)


def version_tuple(text: str) -> tuple[int, int, int]:
    """Parse a version into three numbers; (0, 0, 0) if it is malformed. Text after the numbers is ignored."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return 0, 0, 0
    major, minor, patch = match.groups()
    return int(major), int(minor), int(patch or 0)
