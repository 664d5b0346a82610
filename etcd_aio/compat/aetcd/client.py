"""The client of aetcd."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Protocol, Self

from etcd_aio import Client as AioClient
from etcd_aio import KeyRange, Operation, RangeResult, SortBy, SortOrder, op
from etcd_aio import KeyValue as AioKeyValue
from etcd_aio.compat._limits import CALL_SECONDS
from etcd_aio.compat.aetcd import rpc, transactions
from etcd_aio.compat.aetcd.exceptions import ClientError, WatchTimeoutError, WrongArgumentError, translating
from etcd_aio.compat.aetcd.leases import Lease, LeaseKeepAlive, LeaseTimeToLive
from etcd_aio.compat.aetcd.locks import Lock
from etcd_aio.compat.aetcd.members import Alarm as Alarm
from etcd_aio.compat.aetcd.members import Member
from etcd_aio.compat.aetcd.rtypes import Delete, DeleteRange, Event, EventKind, Get, GetRange, Put, Watch
from etcd_aio.compat.aetcd.transactions import BaseCompare, Transactions
from etcd_aio.compat.aetcd.utils import lease_to_id
from etcd_aio.compat.aetcd.watcher import WatchRequest, open_watch
from etcd_aio.errors import LeaseNotFoundError
from etcd_aio.types import Alarm as AioAlarm
from etcd_aio.types import Member as AioMember

_NOTHING: Final = AioKeyValue(b"")  # aetcd's value for a key that did not exist before
_SORT_BY: Final = {
    None: SortBy.KEY,
    "key": SortBy.KEY,
    "version": SortBy.VERSION,
    "create": SortBy.CREATE_REVISION,
    "mod": SortBy.MOD_REVISION,
    "value": SortBy.VALUE,
}
_SORT_ORDERS: Final = {None: SortOrder.ASCEND, "ascend": SortOrder.ASCEND, "descend": SortOrder.DESCEND}
_UNLIMITED: Final = 2**31 - 1  # bytes; gRPC writes -1
_OPTIONS: Final[Mapping[str, tuple[str, Callable[[int], float]]]] = {
    "grpc.keepalive_time_ms": ("keepalive_time", lambda value: max(value / 1000, 5.0)),  # etcd allows no less
    "grpc.keepalive_timeout_ms": ("keepalive_timeout", lambda value: value / 1000),
    "grpc.max_receive_message_length": ("max_receive_bytes", lambda value: _UNLIMITED if value < 0 else value),
    "grpc.max_send_message_length": ("max_send_bytes", lambda value: _UNLIMITED if value < 0 else value),
}


class Writable(Protocol):
    """A file that bytes can be written to."""

    def write(self, data: bytes, /) -> object:
        """Write bytes."""
        ...


class Status:
    """The status of a member.

    Attributes:
        version: the release that it runs.
        db_size: the bytes of its database.
        leader: the leader; None if it knows none.
        raft_index: the last log entry that is committed.
        raft_term: its raft term.
    """

    def __init__(self, version: str, db_size: int, leader: Member | None, raft_index: int, raft_term: int) -> None:
        self.version = version
        self.db_size = db_size
        self.leader = leader
        self.raft_index = raft_index
        self.raft_term = raft_term


class Client:
    """A client of one server. It connects at its first call, and again after `close`.

    Args:
        host: the server's name or address.
        port: its port.
        username: a user, who logs in with the first call.
        password: of the user.
        timeout: seconds for a call. Default: 30.
        options: of gRPC's channel: `grpc.keepalive_time_ms`, `grpc.keepalive_timeout_ms`,
            `grpc.max_receive_message_length` and `grpc.max_send_message_length` count, others do not.
        connect_wait_timeout: not used: connecting waits for nothing.

    Attributes:
        transactions: makes comparisons and operations.

    Raises:
        ValueError: only one of user and password is given.
    """

    def __init__(
        self,
        host: str = "localhost",
        port: int = 2379,
        username: str | None = None,
        password: str | None = None,
        timeout: float | None = None,
        options: Mapping[str, Any] | None = None,
        connect_wait_timeout: float = 3,
    ) -> None:
        if (username is None) is not (password is None):
            raise ValueError("username and password are given both, or none of them")
        self._endpoint = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._auth = None if username is None or password is None else (username, password)
        self._timeout = timeout
        self._options = {
            _OPTIONS[name][0]: _OPTIONS[name][1](value) for name, value in (options or {}).items() if name in _OPTIONS
        }
        self._client: AioClient | None = None
        self.transactions = Transactions()

    @property
    def aio(self) -> AioClient:
        """The client of etcd_aio that sends the calls, for what aetcd does not have."""
        if self._client is None:
            options: dict[str, Any] = self._options
            # A call to a server that refuses the connection fails at once, as with gRPC.
            self._client = AioClient(
                self._endpoint,
                auth=self._auth,
                allow_insecure_auth=True,
                timeout=CALL_SECONDS if self._timeout is None else self._timeout,
                fail_fast=True,
                **options,
            )
        return self._client

    async def connect(self) -> None:
        """Begin to connect; calls do so themselves."""
        with translating():
            await self.aio.connect()

    async def close(self) -> None:
        """Close the connection, and end all watches. A later call connects again."""
        client, self._client = self._client, None
        if client is not None:
            with translating():
                await client.aclose()

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # Keys.

    async def get(self, key: bytes, serializable: bool = False) -> Get | None:
        """Get a key; None if it does not exist.

        Args:
            key: the key.
            serializable: let one member answer from its own state, which may be stale.
        """
        with translating():
            found = await self.aio.range(key, serializable=serializable)
        return Get(found.header, found.kvs[0]) if found.kvs else None

    async def get_prefix(
        self, key_prefix: bytes, sort_order: str | None = None, sort_target: str | None = "key", keys_only: bool = False
    ) -> GetRange:
        """Get all keys that begin with a prefix."""
        return await self._get_range(KeyRange.of(prefix=key_prefix), sort_order, sort_target, keys_only)

    async def get_range(
        self, range_start: bytes, range_end: bytes, sort_order: str | None = None, sort_target: str | None = "key"
    ) -> GetRange:
        r"""Get the keys from a first one to the one before `range_end`; b"\0" is no end."""
        return await self._get_range(KeyRange(range_start, range_end), sort_order, sort_target, False)

    async def get_all(
        self, sort_order: str | None = None, sort_target: str | None = "key", keys_only: bool = False
    ) -> GetRange:
        """Get all keys."""
        return await self._get_range(KeyRange.of(all_keys=True), sort_order, sort_target, keys_only)

    async def _get_range(
        self, keys: KeyRange, sort_order: str | None, sort_target: str | None, keys_only: bool
    ) -> GetRange:
        if sort_order not in _SORT_ORDERS:
            raise WrongArgumentError(f"unknown sort order: {sort_order!r}")
        if sort_target not in _SORT_BY:
            raise WrongArgumentError(f"unknown sort target: {sort_target!r}")
        order, by = _SORT_ORDERS[sort_order], _SORT_BY[sort_target]
        found: RangeResult = await self._do(op.RangeOp(keys, sort_by=by, sort_order=order, keys_only=keys_only))
        return GetRange(found.header, found.kvs, found.more, found.count)

    async def put(self, key: bytes, value: bytes, lease: Any = None, prev_kv: bool = False) -> Put:
        """Put a value under a key.

        Args:
            key: the key.
            value: the value.
            lease: the lease to attach it to, or its id.
            prev_kv: return the key as it was before.
        """
        result = await self._do(op.put(key, value, lease=lease_to_id(lease), prev_kv=prev_kv))
        return Put(result.header, (result.prev_kv or _NOTHING) if prev_kv else None)

    async def delete(self, key: bytes, prev_kv: bool = False) -> Delete | None:
        """Delete a key; None if it did not exist."""
        with translating():
            result = await self.aio.delete(key, prev_kv=prev_kv)
        if not result.deleted:
            return None
        return Delete(result.header, result.deleted, result.prev_kvs[0] if prev_kv else None)

    async def delete_prefix(self, key_prefix: bytes, prev_kv: bool = False) -> DeleteRange:
        """Delete all keys that begin with a prefix, which must not be empty."""
        with translating():
            result = await self.aio.delete(prefix=key_prefix, prev_kv=prev_kv)
        return DeleteRange(result.header, result.deleted, result.prev_kvs)

    async def delete_range(self, range_start: bytes, range_end: bytes, prev_kv: bool = False) -> DeleteRange:
        r"""Delete the keys from a first one to the one before `range_end`; b"\0" is no end."""
        result = await self._do(op.DeleteOp(KeyRange(range_start, range_end), prev_kv))
        return DeleteRange(result.header, result.deleted, result.prev_kvs)

    async def replace(self, key: bytes, initial_value: bytes, new_value: bytes, lease: Any = None) -> bool:
        """Put a value if the key has another one now. Returns whether it had."""
        is_replaced, _ = await self.transaction(
            compare=[self.transactions.value(key) == initial_value],
            success=[self.transactions.put(key, new_value, lease=lease)],
        )
        return is_replaced

    async def transaction(
        self, compare: Iterable[BaseCompare], success: Iterable[Any] | None = None, failure: Iterable[Any] | None = None
    ) -> tuple[bool, list[Any]]:
        """Do some operations if all comparisons hold, and others if not.

        Returns:
            tuple[bool, list]: whether they held, and the response of each operation: of a read a list of
                `(value, Get)`, of others a `ResponseOp`.
        """
        with translating():
            when = transactions.compares(compare)
            then, otherwise = transactions.operations(success), transactions.operations(failure)
        result = await self._do(op.txn(when=when, then=then, otherwise=otherwise))
        return result.succeeded, transactions.responses(result)

    async def _do(self, operation: Operation[Any]) -> Any:
        with translating():
            return await self.aio.do(operation)

    # Watches.

    async def watch(
        self,
        key: bytes,
        range_end: bytes | None = None,
        start_revision: int | None = None,
        progress_notify: bool = False,
        kind: EventKind | None = None,
        prev_kv: bool = False,
        watch_id: int | None = None,
        fragment: bool = False,
    ) -> Watch:
        r"""Watch a key or a range. What is written from now on will be delivered, also over lost connections.

        Args:
            key: the key, or the first one of a range.
            range_end: the end of the range; b"\0" is no end.
            start_revision: the first revision of interest.
            progress_notify: let the server report progress, which keeps a quiet watch from falling behind.
            kind: only events of this kind.
            prev_kv: each event has the key as it was before.
            watch_id: the number that the watch shall have.
            fragment: let the server split large messages.

        Raises:
            WatchTimeoutError: it was not created in time.
        """
        request = WatchRequest(key, range_end, start_revision, progress_notify, kind, prev_kv, watch_id, fragment)
        opened = await open_watch(self.aio, request)
        return Watch(lambda: opened, opened.cancel, opened.watch_id)

    async def watch_prefix(
        self,
        key_prefix: bytes,
        range_end: bytes | None = None,
        start_revision: int | None = None,
        progress_notify: bool = False,
        kind: EventKind | None = None,
        prev_kv: bool = False,
        watch_id: int | None = None,
        fragment: bool = False,
    ) -> Watch:
        """Watch all keys that begin with a prefix, as `watch` does. `range_end` does not count."""
        keys = KeyRange.of(prefix=key_prefix)
        return await self.watch(
            keys.key, keys.range_end, start_revision, progress_notify, kind, prev_kv, watch_id, fragment
        )

    async def watch_once(
        self,
        key: bytes,
        timeout: float | None = None,
        range_end: bytes | None = None,
        start_revision: int | None = None,
        progress_notify: bool = False,
        kind: EventKind | None = None,
        prev_kv: bool = False,
        watch_id: int | None = None,
        fragment: bool = False,
    ) -> Event:
        """Wait for one event, `timeout` seconds at most; the other arguments are those of `watch`.

        Raises:
            WatchTimeoutError: none came in time.
        """
        request = WatchRequest(key, range_end, start_revision, progress_notify, kind, prev_kv, watch_id, fragment)
        opened = await open_watch(self.aio, request)
        try:
            async with asyncio.timeout(timeout):
                return await anext(opened)
        except TimeoutError:
            raise WatchTimeoutError(f"no event came within {timeout} seconds") from None
        except StopAsyncIteration:
            raise ClientError("the client was closed") from None
        finally:
            await opened.cancel()

    async def watch_prefix_once(
        self,
        key_prefix: bytes,
        timeout: float | None = None,
        range_end: bytes | None = None,
        start_revision: int | None = None,
        progress_notify: bool = False,
        kind: EventKind | None = None,
        prev_kv: bool = False,
        watch_id: int | None = None,
        fragment: bool = False,
    ) -> Event:
        """Wait for one event of the keys that begin with a prefix, as `watch_once` does."""
        keys = KeyRange.of(prefix=key_prefix)
        return await self.watch_once(
            keys.key, timeout, keys.range_end, start_revision, progress_notify, kind, prev_kv, watch_id, fragment
        )

    # Leases and locks.

    async def lease(self, ttl: int, lease_id: int | None = None) -> Lease:
        """Grant a lease.

        Args:
            ttl: the seconds that it lasts.
            lease_id: its number. Default: a random one.

        Raises:
            DuplicateLeaseError: there is a lease with this number.
        """
        with translating():
            granted = await self.aio.leases.grant(ttl, lease_id or None)
        return Lease(granted.id, granted.ttl, self)

    async def revoke_lease(self, lease_id: int) -> None:
        """End a lease, which deletes its keys."""
        with translating():
            await self.aio.leases.revoke(lease_id)

    async def refresh_lease(self, lease_id: int) -> LeaseKeepAlive:
        """Renew a lease. The `TTL` of the answer is 0 if there is no such lease."""
        with translating():
            try:
                result = await self.aio.leases.keep_alive_once(lease_id)
            except LeaseNotFoundError:
                return LeaseKeepAlive(None, lease_id, 0)
        return LeaseKeepAlive(result.header, result.id, result.ttl)

    async def get_lease_info(self, lease_id: int, *, keys: bool = True) -> LeaseTimeToLive:
        """Get how long a lease still lasts, and its keys. The `TTL` is -1 if there is no such lease."""
        with translating():
            found = await self.aio.leases.time_to_live(lease_id, keys)
        return LeaseTimeToLive(found.header, found.id, found.ttl, found.granted_ttl, list(found.keys))

    def lock(self, key: bytes, ttl: int = 60) -> Lock:
        """Make a lock.

        Args:
            key: the key in the store.
            ttl: the seconds that it lasts without `refresh`.
        """
        return Lock(self, key, ttl)

    # The cluster.

    async def status(self) -> Status:
        """Get the status of the server."""
        with translating():
            found = await self.aio.maintenance.status(self._endpoint)
        leaders = [member async for member in self.members() if member.id == found.leader]
        return Status(found.version, found.db_size, leaders[0] if leaders else None, found.raft_index, found.raft_term)

    async def members(self) -> AsyncIterator[Member]:
        """Iterate over the members of the cluster."""
        with translating():
            found = await self.aio.cluster.members()
        for member in found:
            yield self._member(member)

    async def add_member(self, urls: Iterable[str]) -> Member:
        """Add a member, which then has to be started. `urls` are those for other members."""
        with translating():
            return self._member((await self.aio.cluster.add(urls)).member)

    async def remove_member(self, member_id: int) -> None:
        """Remove a member."""
        with translating():
            await self.aio.cluster.remove(member_id)

    async def update_member(self, member_id: int, peer_urls: Iterable[str]) -> None:
        """Change the URLs of a member for others."""
        with translating():
            await self.aio.cluster.update(member_id, peer_urls)

    def _member(self, found: AioMember) -> Member:
        return Member(found.id, found.name, found.peer_urls, found.client_urls, self)

    async def compact(self, revision: int, physical: bool = False) -> None:
        """Discard the history before a revision; `physical` waits until its space is free."""
        with translating():
            await self.aio.compact(revision, physical=physical)

    async def defragment(self) -> None:
        """Defragment the database of the server."""
        with translating():
            await self.aio.maintenance.defragment(self._endpoint)

    async def hash(self) -> int:
        """Get the hash of the server's database."""
        with translating():
            return (await self.aio.maintenance.hash(self._endpoint)).hash

    async def create_alarm(self, member_id: int = 0) -> list[Alarm]:
        """Raise the alarm `NOSPACE` for a member, or for none."""
        with translating():
            raised = await self.aio.maintenance.raise_alarm(AioAlarm.NOSPACE, member_id or None)
        return [_alarm(one.alarm, one.member_id) for one in raised.alarms]

    async def list_alarms(self, member_id: int = 0, alarm_type: str = "none") -> AsyncIterator[Alarm]:
        """Iterate over the alarms.

        Args:
            member_id: only those of this member; 0 for all.
            alarm_type: `"no space"` for those only, `"none"` for all.

        Raises:
            ValueError: there is no such kind.
        """
        if alarm_type not in ("none", "no space"):
            raise WrongArgumentError(f"unknown alarm type: {alarm_type!r}")
        with translating():
            found = await self.aio.maintenance.alarms()
        for one in found.alarms:
            is_wanted = alarm_type == "none" or one.alarm is AioAlarm.NOSPACE
            if is_wanted and member_id in (0, one.member_id):
                yield _alarm(one.alarm, one.member_id)

    async def disarm_alarm(self, member_id: int = 0) -> list[Alarm]:
        """Disarm the alarms `NOSPACE` of a member; with 0 those of all. Returns them."""
        with translating():
            found = await self.aio.maintenance.disarm(AioAlarm.NOSPACE, member_id or None)
        return [_alarm(one.alarm, one.member_id) for one in found.alarms]

    async def snapshot(self, file_obj: Writable) -> None:
        """Write the whole database to a file, which blocks while it is written."""
        with translating():
            async for chunk in self.aio.maintenance.snapshot(self._endpoint):
                file_obj.write(chunk)


def _alarm(alarm: AioAlarm, member_id: int) -> Alarm:
    return Alarm(rpc.AlarmType[alarm.name], member_id)
