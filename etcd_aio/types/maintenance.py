"""Results of the maintenance calls, as frozen values.

The attributes are named like the fields of etcd's messages, so that the codec can fill them without an intermediate
message.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar

from etcd_aio.errors import EtcdError
from etcd_aio.types.kv import Header


class Alarm(Enum):
    """What can be wrong with a member, as etcd itself finds it."""

    NOSPACE = "nospace"
    """Its database has used up its quota: the cluster takes no more writes until it is disarmed."""
    CORRUPT = "corrupt"
    """Its data differs from that of the others: it serves nothing until it is disarmed."""


@dataclass(frozen=True, slots=True)
class ActiveAlarm:
    """One alarm that is raised.

    Attributes:
        member_id: the member it is about.
        alarm: what is wrong.
    """

    member_id: int
    alarm: Alarm


@dataclass(frozen=True, slots=True)
class AlarmResult:
    """Alarms: those that are raised, or those that were disarmed. It is true if there are any.

    Attributes:
        header: who answered.
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
        enabled: whether one is under way.
        target_version: the version that the cluster is to have.
    """

    enabled: bool = False
    target_version: str = ""


@dataclass(frozen=True, slots=True)
class StatusResult:
    """What a member says of itself.

    Attributes:
        header: who answered.
        version: the release it runs, such as "3.6.4".
        db_size: bytes of its database file.
        leader: the id of the member it takes for the leader; 0 if it knows none.
        raft_index: the last entry of the log that it knows to be committed.
        raft_term: its raft term.
        raft_applied_index: the last entry of the log that it has applied.
        errors: its alarms and complaints, in etcd's words.
        db_size_in_use: bytes of its database that are in use; defragmenting gives the rest back.
        is_learner: whether it is a learner.
        storage_version: the version of its database's format; empty before etcd 3.6.
        db_size_quota: the bytes that its database may have; 0 before etcd 3.6.
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
        """Whether it takes itself for the leader. One that was just cut off may be wrong about it."""
        return self.leader != 0 and self.leader == self.header.member_id


K = TypeVar("K")


def newest_leader(statuses: Mapping[K, StatusResult]) -> K | None:
    """The key of the member that says it leads in the newest term; None if no member of that term does.

    A member that was cut off may still take itself for the leader of an older term, or name a leader that is gone.
    """
    newest = max((status.raft_term for status in statuses.values()), default=0)
    leaders = (key for key, status in statuses.items() if status.is_leader and status.raft_term == newest)
    return next(leaders, None)


@dataclass(frozen=True, slots=True)
class EndpointVersions:
    """What one endpoint says of versions.

    Attributes:
        endpoint: which one.
        server: the release that its member runs, such as "3.6.4"; empty if it did not answer.
        cluster: the version of the cluster, the lowest minor release among its members, such as "3.6.0": what is newer
            than that is not in use yet. Empty if the endpoint does not tell, as where HTTP and gRPC have ports of their
            own.
        error: why there is no `server`; None if there is.
    """

    endpoint: str
    server: str = ""
    cluster: str = ""
    error: EtcdError | None = None

    @property
    def server_version(self) -> tuple[int, int, int]:
        """`server` to compare with: (3, 6, 4). A version that is not known, or cannot be read, is (0, 0, 0)."""
        return version_tuple(self.server)

    @property
    def cluster_version(self) -> tuple[int, int, int]:
        """`cluster` to compare with, in the same way."""
        return version_tuple(self.cluster)


@dataclass(frozen=True, slots=True)
class DefragmentResult:
    """A member's database was defragmented.

    Attributes:
        header: who answered; some releases tell nothing in it.
    """

    header: Header


@dataclass(frozen=True, slots=True)
class HashResult:
    """The hash of a member's whole database.

    Attributes:
        header: who answered.
        hash: the hash. It covers what no two members have in common too, so it tells nothing about their consistency.
    """

    header: Header
    hash: int = 0


@dataclass(frozen=True, slots=True)
class HashKVResult:
    """The hash of a member's keys and their history.

    Members agree if `hash` is the same at the same `hash_revision` and `compact_revision`.

    Attributes:
        header: who answered.
        hash: the hash.
        compact_revision: the revision up to which history was compacted when the hash was made.
        hash_revision: the revision up to which keys are in the hash; 0 before etcd 3.6, where it is the one asked for.
    """

    header: Header
    hash: int = 0
    compact_revision: int = 0
    hash_revision: int = 0


@dataclass(frozen=True, slots=True)
class MoveLeaderResult:
    """The leadership is where it was asked to be.

    Attributes:
        header: who answered; the member that led before, unless it leads already or the answer was lost.
    """

    header: Header


@dataclass(frozen=True, slots=True)
class DowngradeResult:
    """A downgrade was checked, begun or cancelled.

    Attributes:
        header: who answered.
        version: the cluster's version before that.
    """

    header: Header
    version: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class SnapshotChunk:
    """One message of a snapshot; users see its bytes.

    Attributes:
        header: who answers, as far as it says so.
        remaining_bytes: the bytes of the database that follow after this chunk.
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
    """A snapshot that is on disk, whole and verified.

    Attributes:
        size: bytes of the file: the database, and etcd's SHA-256 of it behind it, 32 bytes.
        sha256: that hash, in hexadecimal: computed here, and the same as etcd's.
        endpoint: the endpoint it came from.
        version: the storage version, which is the release to restore it with; empty before etcd 3.6.
    """

    size: int
    sha256: str
    endpoint: str
    version: str = ""


_VERSION: Final = re.compile(r"v?([0-9]{1,9})\.([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:[-+].*)?", re.ASCII)


def version_tuple(text: str) -> tuple[int, int, int]:
    """A version to compare with; (0, 0, 0) if the text is none. What follows the three numbers does not count."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return 0, 0, 0
    major, minor, patch = match.groups()
    return int(major), int(minor), int(patch or 0)
