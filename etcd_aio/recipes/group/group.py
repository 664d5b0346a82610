"""Group: the processes that are there now, under names, for as long as they run.

A member is a key with a lease, kept by `KeptEntry`: a crash ends it with its TTL, and after an outage of any length it
is put again. Who looks reads the keys below the name, or follows them through a cache: every view is the state of etcd
at one revision.
"""

import logging
from secrets import token_bytes
from typing import ClassVar, Final

from etcd_aio import KeyLike, KeyRange
from etcd_aio.arguments import check_text, encode_key, to_bytes, whole_number
from etcd_aio.base import UNSET, Timeout, when_constructed
from etcd_aio.cache import Derived
from etcd_aio.calls import StoreCalls, check_store
from etcd_aio.errors import InvalidRequestError, MemberConflictError
from etcd_aio.recipes.group.hash_ring import DEFAULT_REPLICAS
from etcd_aio.recipes.group.members import GroupView, members_of
from etcd_aio.recipes.group.ring import Ring
from etcd_aio.services import KeptEntry, OnConflict
from etcd_aio.types import ValueLike, shown_key

logger: Final = logging.getLogger("etcd_aio.groups")

DEFAULT_TTL: Final = 10
"""Seconds: as of locks and registrations. It outlasts a leader election several times."""


class Group:
    """A group of processes: `group = Group(client, "workers")`. One object serves any number of tasks.

        async with group.join("host-1", value="10.0.0.1:80"):
            print((await group.members()).names)

    The keys are `<name>/<member>`.

    Args:
        client: the client, or a store that wraps one.
        name: its name.
        ttl: seconds until a member is gone after a crash of its process. Default: 10, as of locks. etcd raises values
            below its minimum, 2 by default.

    Raises:
        InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
    """

    def __init__(self, client: StoreCalls, name: KeyLike, *, ttl: int = DEFAULT_TTL) -> None:
        check_store(client)
        self._store = client
        encoded = encode_key(name, "name")
        if encoded.endswith(b"/"):
            raise InvalidRequestError(f"name must not end with a slash, which is added: got {shown_key(encoded)}")
        self._prefix = encoded + b"/"
        self._ttl = whole_number(ttl, "ttl", minimum=1)

    @when_constructed
    def __repr__(self) -> str:
        return f"<Group {shown_key(self._prefix[:-1])}>"

    @property
    def name(self) -> bytes:
        """The name."""
        return self._prefix[:-1]

    def join(
        self,
        member: str | None = None,
        *,
        value: ValueLike = b"",
        on_conflict: OnConflict = "keep",
        timeout: Timeout = UNSET,
    ) -> "Membership":
        """Be a member: `async with group.join("host-1") as membership:`.

        Args:
            member: its name, without a slash. Default: a random one, which is the same until the block is left. A name
                that a restarted process has again keeps its part of a `ring`.
            value: what it tells about itself, such as its address.
            on_conflict: what happens if there is a member of this name already, such as the one of this process before
                a crash: `"keep"` waits until it is gone, `"replace"` takes its place. Of two processes that replace
                each other the later one is the member.
            timeout: seconds for each call of entering; the client's default if it is not given.

        Raises:
            InvalidRequestError, TypeError: an argument is invalid. Nothing was sent.
        """
        name = token_bytes(16).hex() if member is None else check_text(member, "member")
        if "/" in name:
            raise InvalidRequestError("member must not have a slash, which ends the name of the group")
        key, content = self._prefix + encode_key(name, "member"), to_bytes(value, "value")
        return Membership(self._store, key, content, ttl=self._ttl, on_conflict=on_conflict, timeout=timeout)

    async def members(self, *, timeout: Timeout = UNSET) -> GroupView:
        """The present members, by one linearizable read.

        Args:
            timeout: seconds for the whole call.

        Raises:
            EtcdError: as every read.
        """
        found = await self._store.range(prefix=self._prefix, timeout=timeout)
        return GroupView(found.revision, members_of(found.kvs, self._prefix))

    def cache(self) -> "GroupCache":
        """Follow the members: `async with group.cache() as members:`, then `async for view in members.changes():`.

        The present members come at once, then those after each change. Only a consumer that is slower than the changes
        misses some in between; the newest ones always come. In an outage the last ones stay. `members.view` has the
        present ones.
        """
        return GroupCache(self._store, self._prefix)

    def ring(self, *, replicas: int = DEFAULT_REPLICAS) -> Ring:
        """Divide keys among the members: `async with group.ring() as ring:`, then `ring.owner("user/42")`.

        Args:
            replicas: points of each member on the ring. Default: 64; the largest share is then about a third above the
                mean. All processes must use the same number.

        Raises:
            InvalidRequestError, TypeError: `replicas` is invalid.
        """
        return Ring(self._store, self._prefix, replicas)


class Membership(KeptEntry):
    """A member of a group, within a block: `async with group.join("host-1") as membership:`.

    Entering puts the key of the member, leaving deletes it. In between it is kept alive, and put again whenever its
    lease was lost, after an outage of any length. The block is not cancelled by a loss; `is_registered` tells.

    Attributes:
        key: the key of the member.
    """

    usage: ClassVar[str] = "a membership cannot be awaited: write `async with group.join(...) as membership:`"
    _conflict = MemberConflictError
    _logger = logger
    _watches: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The name of the member."""
        return self.key.rpartition(b"/")[2].decode()

    async def update(self, value: ValueLike, *, timeout: Timeout = UNSET) -> None:
        """Change the value. It is applied once, and in the order of the calls.

        If the key is not there now, it gets the new value when it is put again, and this returns at once.

        Args:
            value: what the member tells about itself.
            timeout: seconds for the call.

        Raises:
            TypeError: the value is neither str nor bytes-like. Nothing was sent.
            ClientUsageError: the block was not entered, or was left.
            MemberConflictError: there is another member of this name by now.
            EtcdError: as every write. The key gets the value when it is put the next time, if not now.
        """
        await self._update(to_bytes(value, "value"), timeout)


class GroupCache(Derived[GroupView, GroupView]):
    """The members of a group, kept up to date in memory: `async with group.cache() as members:`.

    Entering reads them; from then on they follow etcd. In an outage the last ones stay, also while the user may not
    read the group. Any number of tasks may use one object.
    """

    usage: ClassVar[str] = "members cannot be awaited: write `async with group.cache() as members:`"
    _noun: ClassVar[str] = "a cache of a group"

    def __init__(self, store: StoreCalls, prefix: bytes) -> None:
        super().__init__(store, KeyRange.of(prefix=prefix), what=f"members of {shown_key(prefix[:-1])}", logger=logger)
        self._prefix = prefix

    @property
    def view(self) -> GroupView:
        """The present members. It is a plain read from memory, and does not change.

        Raises:
            ClientUsageError: the block was not entered.
        """
        return self._read()

    def _make(self) -> GroupView:
        members, before = members_of(self._cache.range().values(), self._prefix), self._value
        return before if before and before.members == members else GroupView(self._cache.revision, members)
