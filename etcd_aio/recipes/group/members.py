"""Members: who is in a group, by its keys, at one revision. Pure but for the read of a cache."""

from collections.abc import Iterable

from etcd_aio import KeyValue
from etcd_aio.dataclass import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class GroupMember:
    """A member of a group, as etcd has it.

    Attributes:
        name: its name.
        value: what it tells about itself.
        lease: the id of the lease of its key; the member is gone when that ends.
        revision: the revision of the last put of its key.
        key: its key.
    """

    name: str
    value: bytes
    lease: int
    revision: int
    key: bytes

    def text(self) -> str:
        """The value as UTF-8 text.

        Raises:
            ValueError: the value is not UTF-8.
        """
        return self.value.decode()

    def __repr__(self) -> str:
        return f"GroupMember({self.name!r}, value=<{len(self.value)} bytes>, revision={self.revision})"


@dataclass(frozen=True, slots=True)
class GroupView:
    """The members of a group at one revision.

    Attributes:
        revision: at which they were these. Of two views the one with the larger revision is newer.
        members: sorted by name.
    """

    revision: int
    members: tuple[GroupMember, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the members, sorted."""
        return tuple(member.name for member in self.members)

    def get(self, name: str) -> GroupMember | None:
        """The member of this name; None if there is none."""
        return next((member for member in self.members if member.name == name), None)


def members_of(kvs: Iterable[KeyValue], prefix: bytes) -> tuple[GroupMember, ...]:
    """The members whose keys these are, sorted by name. Keys of other kinds below the prefix are left out."""
    named = ((member_name(kv.key, prefix), kv) for kv in kvs)
    found = [GroupMember(name, kv.value, kv.lease, kv.mod_revision, kv.key) for name, kv in named if name is not None]
    return tuple(sorted(found, key=lambda member: member.name))


def member_name(key: bytes, prefix: bytes) -> str | None:
    """The name of the member whose key this is; None if it is a key of another kind below the prefix."""
    name = key[len(prefix) :]
    if not name or b"/" in name:
        return None
    try:
        return name.decode()
    except UnicodeDecodeError:  # of another program
        return None
