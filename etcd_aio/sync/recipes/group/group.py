"""Group, Membership and GroupCache, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.recipes.group.group`: do not edit.
"""

from typing import ClassVar, Self

from etcd_aio.arguments import KeyLike, ValueLike
from etcd_aio.base import UNSET, Timeout
from etcd_aio.errors import EtcdError
from etcd_aio.portal import Block, Facade
from etcd_aio.recipes import DEFAULT_REPLICAS, DEFAULT_TTL, GroupView
from etcd_aio.recipes import Group as AsyncGroup
from etcd_aio.services import OnConflict
from etcd_aio.sync.cache.derived import Derived
from etcd_aio.sync.calls.store_calls import StoreCalls
from etcd_aio.sync.recipes.group.ring import Ring


class Group(Facade):
    """A group of processes: `group = Group(client, "workers")`. One object serves any number of threads.

        with group.join("host-1", value="10.0.0.1:80"):
            print(group.members().names)

    The keys are `<name>/<member>`.

    Args:
        client: the client, or a store that wraps one.
        name: its name.
        ttl: seconds until a member is gone after a crash of its process. Default: 10, as of locks. etcd raises values
            below its minimum, 2 by default.

    Raises:
        InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
    """

    _survives_fork: ClassVar[bool] = True

    def __init__(self, client: StoreCalls, name: KeyLike, *, ttl: int = DEFAULT_TTL) -> None:
        self._construct(AsyncGroup, client, name, ttl=ttl)

    @property
    def name(self) -> bytes:
        """The name."""
        return self._aio.name

    def join(
        self,
        member: str | None = None,
        *,
        value: ValueLike = b"",
        on_conflict: OnConflict = "keep",
        timeout: Timeout = UNSET,
    ) -> "Membership":
        """Be a member: `with group.join("host-1") as membership:`.

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
        return self._made("join", member, value=value, on_conflict=on_conflict, timeout=timeout)

    def members(self, *, timeout: Timeout = UNSET) -> GroupView:
        """The present members, by one linearizable read.

        Args:
            timeout: seconds for the whole call.

        Raises:
            EtcdError: as every read.
        """
        return self._run(self._aio.members, timeout=timeout)

    def cache(self) -> "GroupCache":
        """Follow the members: `with group.cache() as members:`, then `for view in members.changes():`.

        The present members come at once, then those after each change. Only a consumer that is slower than the changes
        misses some in between; the newest ones always come. In an outage the last ones stay. `members.view` has the
        present ones.
        """
        return self._made("cache")

    def ring(self, *, replicas: int = DEFAULT_REPLICAS) -> Ring:
        """Divide keys among the members: `with group.ring() as ring:`, then `ring.owner("user/42")`.

        Args:
            replicas: points of each member on the ring. Default: 64; the largest share is then about a third above the
                mean. All processes must use the same number.

        Raises:
            InvalidRequestError, TypeError: `replicas` is invalid.
        """
        return self._made("ring", replicas=replicas)


class Membership(Block):
    """A member of a group, within a block: `with group.join("host-1") as membership:`.

    Entering puts the key of the member, leaving deletes it. In between it is kept alive, and put again whenever its
    lease was lost, after an outage of any length. A loss does not end the block; `is_registered` tells.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    @property
    def name(self) -> str:
        """The name of the member."""
        return self._aio.name

    def update(self, value: ValueLike, *, timeout: Timeout = UNSET) -> None:
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
        self._run(self._aio.update, value, timeout=timeout)

    def close(self) -> None:
        """Delete the entry, within two seconds, and end the block. Leaving does this. Safe to repeat.

        If etcd does not answer in that time, the entry ends with its TTL. Closing the client does this too, within half
        a second.

        Ctrl-C: the entry is deleted in the background.
        """
        self._end(self._aio.aclose)

    @property
    def is_registered(self) -> bool:
        """Whether the entry is there, as far as this process can know. Thread-safe.

        It looks at the clock, so it is right at once when the process or the machine was stopped, and it turns False
        before etcd deletes the key. A membership also notices when another client deletes or replaces the key; a
        registration does not.
        """
        return self._aio.is_registered

    @property
    def error(self) -> EtcdError | None:
        """Why the entry is not there now: `LeaseLostError`, the error of a conflict, or what etcd has answered last."""
        return self._aio.error

    @property
    def revision(self) -> int:
        """The revision of the last put of the entry; 0 if there was none."""
        return self._aio.revision

    def lost(self, *, timeout: float | None = None) -> EtcdError | None:
        """Wait until the entry is lost. It is put again without any help; this is for those who want to know.

        Args:
            timeout: seconds to wait; 0 looks once. Default: None, no limit.

        Returns:
            Why it was lost, or why it is not there; None if the block was left.

        Raises:
            EtcdTimeoutError: it was not lost in time.
            ClientUsageError: the block was not entered.

        Ctrl-C changes nothing.
        """
        return self._run(self._aio.lost, timeout=timeout)

    def wait_registered(self, *, timeout: float | None = None) -> None:
        """Wait until the entry is there.

        Args:
            timeout: seconds to wait. Default: None, no limit.

        Raises:
            EtcdTimeoutError: it was not there in time.
            ClientUsageError: the block was not entered, or was left.

        Ctrl-C changes nothing.
        """
        self._run(self._aio.wait_registered, timeout=timeout)

    @property
    def key(self) -> bytes:
        """The key of the member."""
        return self._aio.key


class GroupCache(Derived[GroupView, GroupView]):
    """The members of a group, kept up to date in memory: `with group.cache() as members:`.

    Entering reads them; from then on they follow etcd. In an outage the last ones stay, also while the user may not
    read the group. Any number of threads may use one object.
    """

    @property
    def view(self) -> GroupView:
        """The present members. It is a plain read from memory, and does not change.

        Raises:
            ClientUsageError: the block was not entered.
        """
        return self._aio.view
