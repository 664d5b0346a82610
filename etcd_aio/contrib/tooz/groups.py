"""Groups and their members in etcd. A member's key has the lease of its coordinator, and goes with it.

    groups/<group>              an identifier of the request that created it
    members/<group>/<member>    msgpack: see `Member`; written at each heartbeat

Identifiers are percent-encoded, so that a slash in one does not make it a part of another.

A write is repeated until it is answered, since a member of the cluster may die in the middle of it. So each is made
such that a second one changes nothing, and that its answer is recognised: the key has what this call has put.
"""

import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from tooz import utils
from tooz.coordination import (
    Capabilities,
    GroupAlreadyExist,
    GroupNotCreated,
    GroupNotEmpty,
    MemberAlreadyExist,
    MemberNotJoined,
)

from etcd_aio import Key, KeyValue, TxnResult, op
from etcd_aio.contrib.answers import commit_until_answered
from etcd_aio.dataclass import dataclass
from etcd_aio.sync import Store, Txn

_GROUPS: Final = "groups/"
_MOST_BEATS: Final = 50  # groups in a txn; etcd allows 128 operations by default


def quoted(identifier: bytes) -> str:
    """The identifier as one part of a key."""
    return quote_from_bytes(identifier, safe="")


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group.

    Attributes:
        capabilities: those that it has given.
        created_at: when it joined, in seconds since 1970, by its own clock.
        updated_at: when it gave its capabilities.
        ttl: seconds within which it sends a heartbeat.
        revision: of its last heartbeat.
    """

    capabilities: Capabilities | None
    created_at: float
    updated_at: float
    ttl: int
    revision: int = 0

    @classmethod
    def read(cls, kv: KeyValue) -> "Member":
        """The member that a key says.

        Raises:
            SerializationError: it says something else.
        """
        try:
            capabilities, created_at, updated_at, ttl = utils.loads(kv.value)
            return cls(capabilities, float(created_at), float(updated_at), int(ttl), kv.mod_revision)
        except (utils.SerializationError, TypeError, ValueError) as error:
            raise utils.SerializationError(f"{kv.key!r} is not a member of a group: {error}") from error

    def value(self) -> bytes:
        """The value of its key."""
        return utils.dumps([self.capabilities, self.created_at, self.updated_at, self.ttl])


class Groups:
    """The groups of a store.

    Args:
        store: the client, or a namespace.
        timeout: seconds for a write.
        now: the time in seconds since 1970.
    """

    def __init__(self, store: Store, timeout: float, now: Callable[[], float] = time.time) -> None:
        self._store = store
        self._timeout = timeout
        self._now = now

    def create(self, group: bytes) -> None:
        """Create a group.

        Raises:
            GroupAlreadyExist: it exists.
        """
        key, request = _group_key(group), uuid.uuid4().bytes
        present = op.get(key)
        put = op.put(key, request)
        result = self._write(self._store.txn().when(Key(key).missing).then(put).otherwise(present))
        if not result and not _has_value(result[present], request):
            raise GroupAlreadyExist(_text(group))

    def delete(self, group: bytes) -> None:
        """Delete a group that has no members.

        Raises:
            GroupNotCreated: it does not exist.
            GroupNotEmpty: it has members.
        """
        key, members = _group_key(group), _members_prefix(group)
        found = self._store.get(key)
        if found is None:
            raise GroupNotCreated(_text(group))
        is_same = Key(key).create_revision == found.create_revision
        present = op.get(key)
        deletion = self._store.txn().when(is_same, Key(prefix=members).missing).then(op.delete(key))
        result = self._write(deletion.otherwise(present))
        kv = None if result else result[present]
        if kv is not None and kv.create_revision == found.create_revision:
            raise GroupNotEmpty(_text(group))

    def destroy(self, group: bytes) -> None:
        """Delete a group with its members, if it exists."""
        deletions = op.delete(_group_key(group)), op.delete(prefix=_members_prefix(group))
        self._write(self._store.txn().then(*deletions))

    def names(self) -> list[bytes]:
        """The identifiers of all groups."""
        found = self._store.range(prefix=_GROUPS, keys_only=True)
        return [unquote_to_bytes(kv.key[len(_GROUPS) :]) for kv in found.kvs]

    def join(self, group: bytes, member: bytes, capabilities: Capabilities | None, lease: int, ttl: int) -> None:
        """Make a member.

        Args:
            group: the group.
            member: its identifier.
            capabilities: what it gives.
            lease: the id of its lease.
            ttl: seconds within which it sends heartbeats.

        Raises:
            GroupNotCreated: there is no such group.
            MemberAlreadyExist: the group has a member of this identifier.
            LeaseNotFoundError: the lease has ended.
        """
        group_key, key, now = _group_key(group), _member_key(group, member), self._now()
        value = Member(capabilities, now, now, ttl).value()
        get_group, present = op.get(group_key), op.get(key)
        joining = self._store.txn().when(Key(group_key).exists, Key(key).missing).then(op.put(key, value, lease=lease))
        result = self._write(joining.otherwise(get_group, present))
        if result or _has_value(result[present], value, lease):
            return
        if result[get_group] is None:
            raise GroupNotCreated(_text(group))
        raise MemberAlreadyExist(_text(group), _text(member))

    def leave(self, group: bytes, member: bytes) -> None:
        """End a membership.

        Raises:
            MemberNotJoined: there is no such member.
        """
        found = self._find(group, member)
        is_same = Key(found.key).create_revision == found.create_revision
        self._write(self._store.txn().when(is_same).then(op.delete(found.key)))

    def beat(self, groups: Iterable[bytes], member: bytes, lease: int) -> list[bytes]:
        """Show that a member lives. Returns the groups that do not have it, under this lease."""
        missing: list[bytes] = []
        waiting = list(groups)
        while waiting:
            some, waiting = waiting[:_MOST_BEATS], waiting[_MOST_BEATS:]
            beats = {group: _beat(_member_key(group, member), lease) for group in some}
            result = self._write(self._store.txn().then(*beats.values()))
            missing += [group for group, beat in beats.items() if not result[beat]]
        return missing

    def remove_silent(self, group: bytes, member: bytes, revision: int) -> bool:
        """Remove a member that has sent no heartbeat since a revision. Returns whether it is gone.

        Raises:
            NoSpaceError: the store is full. It would allow a deletion alone, but refuses heartbeats, too: so this
                writes, as they do.
        """
        group_key, key = _group_key(group), _member_key(group, member)
        write, present = op.put(group_key, ignore_value=True), op.get(key)
        removal = self._store.txn().when(Key(group_key).exists, Key(key).mod_revision == revision)
        result = self._write(removal.then(write, op.delete(key)).otherwise(present))
        return result.succeeded or result[present] is None

    def members(self, group: bytes) -> dict[bytes, Member]:
        """The members of a group by their identifiers.

        Raises:
            GroupNotCreated: there is no such group.
        """
        prefix = _members_prefix(group)
        listed = op.range(prefix=prefix)
        result = self._store.txn().when(Key(_group_key(group)).exists).then(listed).commit()
        if not result:
            raise GroupNotCreated(_text(group))
        return {unquote_to_bytes(kv.key[len(prefix) :]): Member.read(kv) for kv in result[listed].kvs}

    def member(self, group: bytes, member: bytes) -> Member:
        """One member.

        Raises:
            MemberNotJoined: there is no such member.
        """
        return Member.read(self._find(group, member))

    def update(self, group: bytes, member: bytes, capabilities: Any) -> None:
        """Change the capabilities of a member.

        Raises:
            MemberNotJoined: there is no such member.
        """
        found = self._find(group, member)
        before = Member.read(found)
        value = Member(capabilities, before.created_at, self._now(), before.ttl).value()
        is_same = Key(found.key).create_revision == found.create_revision
        put = op.put(found.key, value, ignore_lease=True)
        if not self._write(self._store.txn().when(is_same).then(put)):
            raise MemberNotJoined(_text(group), _text(member))

    def _write(self, txn: Txn) -> TxnResult:
        return commit_until_answered(txn, self._timeout)

    def _find(self, group: bytes, member: bytes) -> KeyValue:
        found = self._store.get(_member_key(group, member))
        if found is None:
            raise MemberNotJoined(_text(group), _text(member))
        return found


def _text(identifier: bytes) -> str:
    """The identifier in an error of tooz, which would decode it."""
    return identifier.decode(errors="backslashreplace")


def _group_key(group: bytes) -> str:
    return f"{_GROUPS}{quoted(group)}"


def _members_prefix(group: bytes) -> str:
    return f"members/{quoted(group)}/"


def _member_key(group: bytes, member: bytes) -> str:
    return f"{_members_prefix(group)}{quoted(member)}"


def _beat(key: str, lease: int) -> op.TxnOp:
    """Write the key as it is, if it has the lease."""
    return op.txn(when=[Key(key).lease == lease], then=[op.put(key, ignore_value=True, ignore_lease=True)])


def _has_value(kv: KeyValue | None, value: bytes, lease: int = 0) -> bool:
    """Whether the key is as this call has put it, by an attempt without an answer."""
    return kv is not None and (kv.value, kv.lease) == (value, lease)
