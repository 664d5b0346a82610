"""The releases of etcd that the fake can be, and in what they differ. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from etcd_aio.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Release:
    """One line of releases.

    Attributes:
        name: the line, such as "3.7".
        version: the release itself.
        checks_sort: numbers of sort orders and targets that do not exist are refused.
        checks_puts_first: in a transaction, all puts are checked before the first range.
        keys_only_drops_lease: a range of keys only has no leases either, unless it is sorted by value.
        has_range_stream: `KV/RangeStream` exists.
        progress_waits_for_start: a stream tells its progress only when all its watchers have begun.
        has_alarm_header: answers about alarms have a header.
        has_auth_status: `Auth/AuthStatus` exists.
        guards_auth_status: `Auth/AuthStatus` is for root only.
        shows_permission_of_root: the role root is shown with the permission for everything.
        guards_leases: grants, revocations and renewals need a user, and lists the right to read the keys.
        guards_compaction: compactions are for root only.
        checks_whole_txns: permissions and space are checked in inner transactions too, and for leases of puts.
        guards_open_watches: a watch without an end needs the right to read all keys behind the first one, too.
        guards_status: `Status`, `MemberList` and alarms need a user.
        guards_leader: `MoveLeader` is for root only.
        names_maintenance_errors: refusals of `Defragment`, `Hash`, `HashKV` and `Snapshot` have a status of their own.
        names_deadlines: a write that finds no leader is refused with DEADLINE_EXCEEDED, and not with UNKNOWN.
        has_linearizable_members: `MemberList` waits for a leader if it has to be linearizable.
        has_livez: `/livez` and `/readyz` exist.
        has_storage_version: members tell the version of their storage, their quota, and the revision of a hash.
        keeps_tombstone: a compaction at the revision of a deletion keeps the deletion for watchers.
    """

    name: str
    version: str
    checks_sort: bool = True
    checks_puts_first: bool = False
    keys_only_drops_lease: bool = False
    has_range_stream: bool = False
    progress_waits_for_start: bool = True
    has_alarm_header: bool = True
    has_auth_status: bool = True
    guards_auth_status: bool = True
    shows_permission_of_root: bool = True
    guards_leases: bool = True
    guards_compaction: bool = True
    checks_whole_txns: bool = True
    guards_open_watches: bool = True
    guards_status: bool = True
    guards_leader: bool = True
    names_maintenance_errors: bool = True
    names_deadlines: bool = True
    has_linearizable_members: bool = True
    has_livez: bool = True
    has_storage_version: bool = True
    keeps_tombstone: bool = True


RELEASES: Final[Mapping[str, Release]] = MappingProxyType(
    {
        release.name: release
        for release in (
            Release(
                "3.4",
                "3.4.25",
                checks_sort=False,
                checks_puts_first=True,
                progress_waits_for_start=False,
                has_alarm_header=False,
                has_auth_status=False,
                shows_permission_of_root=False,
                guards_leases=False,
                guards_compaction=False,
                checks_whole_txns=False,
                guards_open_watches=False,
                guards_status=False,
                guards_leader=False,
                names_maintenance_errors=False,
                names_deadlines=False,
                has_linearizable_members=False,
                has_livez=False,
                has_storage_version=False,
                keeps_tombstone=False,
            ),
            Release(
                "3.5",
                "3.5.35",
                checks_sort=False,
                checks_puts_first=True,
                shows_permission_of_root=False,
                names_maintenance_errors=False,
                has_storage_version=False,
            ),
            Release("3.6", "3.6.16"),
            Release("3.7", "3.7.3", keys_only_drops_lease=True, has_range_stream=True, guards_auth_status=False),
        )
    }
)
NEWEST: Final = "3.7"


def release_of(version: str) -> Release:
    """The release of a version, such as "3.6" or "3.6.16".

    Raises:
        ConfigError: the fake cannot be that version.
    """
    if not isinstance(version, str):
        raise ConfigError(f"version= is text, such as {NEWEST!r}; got {version!r}")
    release = RELEASES.get(".".join(version.split(".")[:2]))
    if release is None:
        raise ConfigError(f"a fake etcd can be {', '.join(RELEASES)}; got {version!r}")
    return release
