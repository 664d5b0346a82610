"""EtcdDriver: the coordination driver of tooz for `etcd3+aio://`.

Groups are read at each `run_watchers`, so one call of it sees all that was acknowledged before.
"""

import functools
import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, ParamSpec, TypeVar

from tooz import ToozError, utils
from tooz.coordination import (
    Capabilities,
    Characteristics,
    CoordinationDriverCachedRunWatchers,
    CoordinationDriverWithExecutor,
    CoordinatorResult,
    LeaderElected,
)

from etcd_aio.contrib.tooz.elections import Elections
from etcd_aio.contrib.tooz.errors import translated
from etcd_aio.contrib.tooz.groups import Groups, Member, quoted
from etcd_aio.contrib.tooz.lock import EtcdLock, Locks
from etcd_aio.contrib.tooz.membership import Membership
from etcd_aio.contrib.tooz.silence import Silence
from etcd_aio.contrib.tooz.url import read_settings
from etcd_aio.errors import NoSpaceError
from etcd_aio.sync import Client

P = ParamSpec("P")
R = TypeVar("R")

_BEATS: Final = 2.0  # heartbeats that are due while the lease lasts


class EtcdDriver(CoordinationDriverCachedRunWatchers, CoordinationDriverWithExecutor):
    """A coordinator; made by `tooz.coordination.get_coordinator("etcd3+aio://...", member_id)`.

    Members stay in their groups by heartbeats: use `start(start_heart=True)`. Locks and leaderships are kept alive by
    the client, until they are released or the process ends.
    """

    CHARACTERISTICS = (
        Characteristics.DISTRIBUTED_ACROSS_THREADS,
        Characteristics.DISTRIBUTED_ACROSS_PROCESSES,
        Characteristics.DISTRIBUTED_ACROSS_HOSTS,
        Characteristics.LINEARIZABLE,
        Characteristics.SEQUENTIAL,
        Characteristics.CAUSAL,
        Characteristics.SERIALIZABLE,
        Characteristics.SAME_VIEW_UNDER_PARTITIONS,
        Characteristics.SAME_VIEW_ACROSS_CLIENTS,
    )

    def __init__(self, member_id: bytes, parsed_url: Any, options: dict[str, Any]) -> None:
        super().__init__(utils.to_binary(member_id, "utf-8"), parsed_url, options)
        with translated():
            self._settings = read_settings(parsed_url.netloc, parsed_url.path, self._options)
        self._open: tuple[Client, Groups, Membership] | None = None
        self._elections = Elections(self._client, self._member_id, self._settings.lock_timeout)
        self._standing: dict[bytes, CoordinatorResult[bool]] = {}  # attempts to lead that go on after a timeout
        self._locks = Locks()
        self._silence = Silence()
        self._is_stopping = False
        self._process = 0

    # Its life.

    def _start(self) -> None:
        super()._start()
        settings = self._settings
        with translated():
            client = Client.from_url(settings.url, **settings.options)
            membership = Membership(client, self._member_id, settings.membership_timeout, settings.call_timeout)
            try:
                membership.begin()
            except BaseException:  # Ctrl-C, too: nothing else would close the client
                client.close()
                raise
        self._open = client, Groups(client, settings.call_timeout), membership
        self._process = os.getpid()

    def stop(self) -> None:
        """Leave all groups, release all locks, and close the connections."""
        self._is_stopping = True
        self._joined_groups.clear()  # they are left at once, with the lease
        try:
            super().stop()
        finally:
            self._is_stopping = False

    def _stop(self) -> None:
        client, _, membership = self._parts()
        until = time.monotonic() + self._settings.call_timeout
        with translated():
            membership.end()
            self._locks.end(until)
            self._elections.end(until)
            client.close()
        self._open = None
        self._standing.clear()
        super()._stop()

    def _parts(self) -> tuple[Client, Groups, Membership]:
        if self._open is None:
            raise ToozError("the coordinator is not started")
        if self._process != os.getpid():
            raise ToozError("the coordinator was started before a fork: start another one in the child process")
        return self._open

    def _client(self) -> Client:
        if self._is_stopping:
            raise ToozError("the coordinator is stopping")
        return self._parts()[0]

    def _groups(self) -> Groups:
        return self._parts()[1]

    def _membership(self) -> Membership:
        return self._parts()[2]

    def _later(self, function: Callable[P, R], *arguments: P.args, **keywords: P.kwargs) -> CoordinatorResult[R]:
        """Run a function in the coordinator's thread, in the order of the calls."""

        @functools.wraps(function)
        def run() -> R:
            with translated():
                return function(*arguments, **keywords)

        self._parts()  # in a forked child the thread is missing
        return CoordinatorResult(self._executor.submit(run))

    def heartbeat(self) -> float:
        """Renew the membership. If it had ended, join the groups again. Returns the seconds until the next is due."""
        try:
            with translated():
                membership = self._membership()
                membership.beat()
                self._joined_groups |= membership.groups
        except ToozError:
            if not self._is_stopping:  # else tooz would repeat it for ever, and stop() wait for it
                raise
        return self._settings.membership_timeout / _BEATS

    # Groups.

    def create_group(self, group_id: bytes) -> CoordinatorResult[None]:
        """See tooz."""
        return self._later(self._groups().create, _binary(group_id))

    def delete_group(self, group_id: bytes) -> CoordinatorResult[None]:
        """See tooz."""
        return self._later(self._groups().delete, _binary(group_id))

    def _destroy_group(self, group_id: bytes) -> None:
        with translated():
            self._groups().destroy(_binary(group_id))

    def get_groups(self) -> CoordinatorResult[list[bytes]]:
        """See tooz."""
        return self._later(self._groups().names)

    def join_group(self, group_id: bytes, capabilities: Capabilities | None = None) -> CoordinatorResult[None]:
        """See tooz."""

        def join() -> None:
            self._membership().join(_binary(group_id), capabilities)
            self._joined_groups.add(_binary(group_id))

        return self._later(join)

    def leave_group(self, group_id: bytes) -> CoordinatorResult[None]:
        """See tooz."""

        def leave() -> None:
            self._membership().leave(_binary(group_id))
            self._joined_groups.discard(_binary(group_id))

        return self._later(leave)

    def get_members(self, group_id: bytes) -> CoordinatorResult[set[bytes]]:
        """See tooz."""
        return self._later(lambda: set(self._members(_binary(group_id))))

    def get_members_with_capabilities(self, group_id: bytes) -> CoordinatorResult[dict[bytes, Capabilities | None]]:
        """See tooz."""

        def read() -> dict[bytes, Capabilities | None]:
            members = self._members(_binary(group_id))
            return {name: member.capabilities for name, member in members.items()}

        return self._later(read)

    def _members(self, group: bytes) -> dict[bytes, Member]:
        """The members of a group, without those that are silent, which are removed."""
        groups, began = self._groups(), time.monotonic()
        members = groups.members(group)
        try:
            for name in self._silence.read(group, members, began, time.monotonic()):
                if groups.remove_silent(group, name, members[name].revision):
                    del members[name]
        except NoSpaceError:  # the cause of the silence
            self._silence.forget(group)
        return members

    def get_member_capabilities(self, group_id: bytes, member_id: bytes) -> CoordinatorResult[Capabilities | None]:
        """See tooz."""
        return self._later(lambda: self._groups().member(_binary(group_id), _binary(member_id)).capabilities)

    def get_member_info(self, group_id: bytes, member_id: bytes) -> CoordinatorResult[dict[str, Any]]:
        """The capabilities of a member, when it joined (`created_at`), and when it last gave them (`updated_at`)."""
        return self._later(lambda: _info(self._groups().member(_binary(group_id), _binary(member_id))))

    def update_capabilities(self, group_id: bytes, capabilities: Capabilities) -> CoordinatorResult[None]:
        """See tooz."""
        return self._later(self._membership().update, _binary(group_id), capabilities)

    def run_watchers(self, timeout: float | None = None) -> list[Any]:
        """Call the functions for what has changed since the last time, and be elected where there is no leader."""
        membership, before = self._membership(), set(self._joined_groups)
        until = None if timeout is None else time.monotonic() + timeout
        results = super().run_watchers(timeout)
        for group in before - self._joined_groups:
            membership.was_left(group)
        return results + self._run_elections(until)

    # Elections.

    def run_elect_coordinator(self) -> None:
        """Be elected in each group that has no leader, if a function waits for that."""
        self._run_elections()

    def _run_elections(self, until: float | None = None) -> list[Any]:
        """Be elected until a monotonic time; what is not answered by then is looked at the next time."""
        results: list[Any] = []
        for group_id, hooks in list(self._hooks_elected_leader.items()):
            if hooks and self._is_elected(_binary(group_id), until):
                results += hooks.run(LeaderElected(group_id, self._member_id))
        watched = {_binary(group_id) for group_id, hooks in self._hooks_elected_leader.items() if hooks}
        for group in [one for one, attempt in self._standing.items() if one not in watched and attempt.done()]:
            if self._is_elected(group, until):
                self.stand_down_group_leader(group)  # no function waits for it any more
        return results

    def _is_elected(self, group: bytes, until: float | None) -> bool:
        """Whether a leadership of the group begins now.

        Raises:
            OperationTimedOut: the attempt goes on.
        """
        attempt = self._standing.pop(group, None)
        if attempt is not None and attempt.done():
            with suppress(ToozError):  # it has failed meanwhile, and another one is made
                return attempt.get()
            attempt = None
        attempt = attempt or self._later(self._elections.try_to_lead, group)
        try:
            return attempt.get(None if until is None else max(until - time.monotonic(), 0.0))
        finally:
            if not attempt.done():  # a timeout, or Ctrl-C
                self._standing[group] = attempt

    def stand_down_group_leader(self, group_id: bytes) -> bool:
        """Give the leadership up. The coordinator stays a candidate. Returns whether it has led."""
        with translated():
            return self._elections.stand_down(_binary(group_id))

    def get_leader(self, group_id: bytes) -> CoordinatorResult[bytes | None]:  # type: ignore[override] # as drivers do
        """See tooz; None if there is no leader."""
        return self._later(self._elections.leader, _binary(group_id))

    # Locks.

    def get_lock(self, name: bytes) -> EtcdLock:
        """See tooz."""
        return EtcdLock(name, f"locks/{quoted(_binary(name))}", self._client, self._settings.lock_timeout, self._locks)


def _binary(identifier: str | bytes) -> bytes:
    return utils.to_binary(identifier, "utf-8")


def _info(member: Member) -> dict[str, Any]:
    return {
        "capabilities": member.capabilities,
        "created_at": datetime.fromtimestamp(member.created_at),
        "updated_at": datetime.fromtimestamp(member.updated_at),
    }
