"""The clients of python-etcd3: `client()`, `Etcd3Client`, and `MultiEndpointEtcd3Client` of its later versions."""

from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import IO, Any, Final, Self
from weakref import WeakSet

from etcd_aio import Header
from etcd_aio.compat.etcd3 import etcdrpc, transactions, utils
from etcd_aio.compat.etcd3._endpoints import CertificatePath, Options, make_client, secure_credentials
from etcd_aio.compat.etcd3._endpoints import Endpoint as Endpoint
from etcd_aio.compat.etcd3._kv_stub import KVStub
from etcd_aio.compat.etcd3._requests import delete_request, put_request, range_request, request_ops, txn_request
from etcd_aio.compat.etcd3._translation import rpc_errors, translation
from etcd_aio.compat.etcd3._values import EtcdTokenCallCredentials as EtcdTokenCallCredentials
from etcd_aio.compat.etcd3._values import KVMetadata as KVMetadata
from etcd_aio.compat.etcd3._values import Status as Status
from etcd_aio.compat.etcd3._values import Transactions as Transactions
from etcd_aio.compat.etcd3._values import Value, values
from etcd_aio.compat.etcd3.events import Event
from etcd_aio.compat.etcd3.leases import Lease
from etcd_aio.compat.etcd3.locks import Lock
from etcd_aio.compat.etcd3.members import Alarm as Alarm
from etcd_aio.compat.etcd3.members import Member
from etcd_aio.compat.etcd3.watch import LIMIT, Callback, Responses, Watcher, WatchResponse, events_of
from etcd_aio.errors import LeaseNotFoundError
from etcd_aio.types import ActiveAlarm
from etcd_aio.types import Member as AioMember

_MAINTENANCE_LIMIT: Final = 600.0  # seconds for calls that read or write a whole database, without a `timeout`

_ALARMS: Final = {"nospace": etcdrpc.NOSPACE, "corrupt": etcdrpc.CORRUPT}
_ALARM_TYPES: Final = {"none": None, "no space": etcdrpc.NOSPACE}


class MultiEndpointEtcd3Client:
    """A client of several servers. It uses all of them, and each call moves on when a server fails.

    Args:
        endpoints: the servers.
        timeout: seconds for each call, and for the creation of a watch. Default: None, 30 seconds, and ten minutes for
            `defragment`, `hash`, `snapshot` and a physical compaction.
        user: the name of a user. Together with `password`: the client logs in at once.
        password: the user's password.
        failover: not used: the client always fails over.

    Attributes:
        timeout: as given.
        transactions: the conditions and operations of `transaction`.
        watcher: the watches.
        kvstub: the calls about keys, as messages.
        call_credentials: the token that the client had first; None without a user.
        metadata: the same, as gRPC sends it.
    """

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        timeout: float | None = None,
        user: str | None = None,
        password: str | None = None,
        failover: bool = False,
    ) -> None:
        if (user is None) != (password is None):
            raise ValueError("user and password belong together: give both of them, or neither")
        self.endpoints = {endpoint.netloc: endpoint for endpoint in endpoints}
        self.timeout = timeout
        self.failover = failover
        self.transactions = Transactions()
        self.call_credentials: EtcdTokenCallCredentials | None = None
        self.metadata: tuple[tuple[str, str], ...] | None = None
        self._client = make_client(self.endpoints.values(), user, password)
        self.kvstub = KVStub(self._client, self._limit)
        self.watcher = self._watcher = Watcher(self._client, timeout)
        self._responses: WeakSet[Responses] = WeakSet()
        if user is not None and password is not None:
            self._log_in(user, password)

    def _log_in(self, user: str, password: str) -> None:
        try:
            with rpc_errors:
                token = self._client.auth.authenticate(user, password, timeout=self._limit()).token
        except BaseException:  # the caller gets no client to close
            self.close()
            raise
        self.metadata = (("token", token),)
        self.call_credentials = EtcdTokenCallCredentials(token)

    def close(self) -> None:
        """End the watches, and close the connections."""
        for responses in tuple(self._responses):
            responses.close()
        self._watcher.close()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    get_secure_creds = staticmethod(secure_credentials)
    _build_get_range_request = staticmethod(range_request)
    _ops_to_requests = staticmethod(request_ops)

    def _limit(self, default: float = LIMIT) -> float:
        return default if self.timeout is None else self.timeout

    # Reads.

    def get_response(self, key: str | bytes, **kwargs: Any) -> etcdrpc.RangeResponse:
        """Get a key, as a response. The options are `serializable`, and those of `get_range`."""
        return self._range(key, **kwargs)

    def get(self, key: str | bytes, **kwargs: Any) -> Value | tuple[None, None]:
        """Get the value of a key, and its metadata; None and None if it does not exist.

        Args:
            key: the key.
            kwargs: `serializable=True` lets one member answer from its own state, which may be old; and the options of
                `get_range`.
        """
        response = self._range(key, **kwargs)
        return next(values(response.kvs, response.header), (None, None))

    def get_prefix_response(self, key_prefix: str | bytes, **kwargs: Any) -> etcdrpc.RangeResponse:
        """Get the keys that begin with a prefix, as a response. The options are those of `get_range`."""
        if {"key", "range_end"} & kwargs.keys():
            raise TypeError("Don't use key or range_end with a prefix, which names the keys")
        prefix = utils.to_bytes(key_prefix)
        return self._range(prefix or b"\0", range_end=utils.prefix_range_end(prefix), **kwargs)

    def get_prefix(self, key_prefix: str | bytes, **kwargs: Any) -> Iterator[Value]:
        """Get the values of the keys that begin with a prefix, and their metadata."""
        return _values(self.get_prefix_response(key_prefix, **kwargs))

    def get_range_response(
        self, range_start: str | bytes, range_end: str | bytes, **kwargs: Any
    ) -> etcdrpc.RangeResponse:
        """Get the keys from `range_start` up to, and without, `range_end`, as a response."""
        return self._range(range_start, range_end=range_end, **kwargs)

    def get_range(self, range_start: str | bytes, range_end: str | bytes, **kwargs: Any) -> Iterator[Value]:
        """Get the values of the keys from `range_start` up to, and without, `range_end`, and their metadata.

        The request is sent when the iteration begins.

        Args:
            range_start: the first key.
            range_end: the key before which the range ends.
            kwargs: `sort_order`: `"ascend"` or `"descend"`. `sort_target`: `"key"`, `"version"`, `"create"`, `"mod"` or
                `"value"`. `keys_only=True`: without the values. `serializable`, `limit`, `revision`, `count_only`,
                `min_mod_revision`, `max_mod_revision`, `min_create_revision`, `max_create_revision`: as
                `etcd_aio.Store.range` has them; python-etcd3 0.12 ignores all of these but the first.
        """
        yield from _values(self.get_range_response(range_start, range_end, **kwargs))

    def get_all_response(
        self, sort_order: str | None = None, sort_target: str | None = "key", keys_only: bool = False
    ) -> etcdrpc.RangeResponse:
        """Get every key, as a response."""
        return self._range(b"\0", b"\0", sort_order=sort_order, sort_target=sort_target, keys_only=keys_only)

    def get_all(self, **kwargs: Any) -> Iterator[Value]:
        """Get the values of every key, and their metadata. The request is sent when the iteration begins."""
        yield from _values(self.get_all_response(**kwargs))

    def _range(self, *args: Any, **kwargs: Any) -> etcdrpc.RangeResponse:
        request = range_request(*args, **kwargs)
        with translation:
            return self.kvstub.Range(request, self.timeout)

    # Writes.

    def put(
        self, key: str | bytes, value: str | bytes, lease: Any = None, prev_kv: bool = False
    ) -> etcdrpc.PutResponse:
        """Put a value under a key.

        Args:
            key: the key.
            value: the value.
            lease: the lease to attach the key to: a `Lease`, or its id.
            prev_kv: return the key as it was before, as `prev_kv` of the response.
        """
        request = put_request(transactions.Put(key, value, lease, prev_kv))
        with translation:
            return self.kvstub.Put(request, self.timeout)

    def put_if_not_exists(self, key: str | bytes, value: str | bytes, lease: Any = None) -> bool:
        """Put a value under a key that does not exist. Returns whether it was put."""
        put = transactions.Put(key, value, lease)
        return self.transaction(compare=[transactions.Create(key) == 0], success=[put], failure=[])[0]

    def replace(self, key: str | bytes, initial_value: str | bytes, new_value: str | bytes) -> bool:
        """Put a value under a key that has another, known one. Returns whether it had it, and the new one was put."""
        put = transactions.Put(key, new_value)
        return self.transaction(compare=[transactions.Value(key) == initial_value], success=[put], failure=[])[0]

    def delete(
        self, key: str | bytes, prev_kv: bool = False, return_response: bool = False
    ) -> bool | etcdrpc.DeleteRangeResponse:
        """Delete a key. Returns whether it existed.

        Args:
            key: the key.
            prev_kv: return the key as it was, as `prev_kvs` of the response.
            return_response: return the response.
        """
        response = self._delete(transactions.Delete(key, prev_kv=prev_kv))
        return response if return_response else response.deleted > 0

    def delete_prefix(self, prefix: str | bytes) -> etcdrpc.DeleteRangeResponse:
        """Delete the keys that begin with a prefix. The response has their number, `deleted`.

        Raises:
            ValueError: the prefix is empty, so that every key would be deleted.
        """
        first = utils.to_bytes(prefix)
        if not first:
            raise ValueError("an empty prefix would delete every key")
        return self._delete(transactions.Delete(first, utils.prefix_range_end(first)))

    def _delete(self, delete: transactions.Delete) -> etcdrpc.DeleteRangeResponse:
        request = delete_request(delete)
        with translation:
            return self.kvstub.DeleteRange(request, self.timeout)

    def transaction(
        self, compare: Iterable[Any], success: Iterable[Any] | None = None, failure: Iterable[Any] | None = None
    ) -> tuple[bool, list[Any]]:
        """Run a transaction.

        Args:
            compare: the conditions, such as `client.transactions.version("k") > 0`.
            success: the operations if all of them hold, such as `client.transactions.put("k", "v")`.
            failure: the operations if one of them does not hold.

        Returns:
            tuple[bool, list[Any]]: whether the conditions held; and the response to each operation: that to a get is a
                list of values with their metadata, any other an `etcdrpc.ResponseOp`.
        """
        request = txn_request(compare, success, failure)
        with translation:
            response = self.kvstub.Txn(request, self.timeout)
        return response.succeeded, [_given(each, response.header) for each in response.responses]

    def compact(self, revision: int, physical: bool = False) -> None:
        """Discard the history before a revision.

        Args:
            revision: the oldest revision that stays readable.
            physical: wait until the member that answers has freed the space.
        """
        limit = self._limit(_MAINTENANCE_LIMIT) if physical else self._limit()
        with translation:
            self._client.compact(revision, physical=physical, timeout=limit)

    # Watches.

    def add_watch_callback(self, *args: Any, **kwargs: Any) -> int:
        """Call a function with each response of a watch, in a thread of its own: `add_watch_callback(key, function)`.

        The function gets a `WatchResponse`; or, as the last call, the exception that has ended the watch. The options
        are `range_end`, `start_revision`, `progress_notify`, `filters` (0: no puts, 1: no deletes) and `prev_kv`.

        Returns:
            int: the id, for `cancel_watch`.

        Raises:
            WatchTimedOut: the watch was not created in time.
        """
        with translation:
            return self.watcher.add_callback(*args, **kwargs)

    def add_watch_prefix_callback(self, key_prefix: str | bytes, callback: Callback, **kwargs: Any) -> int:
        """Call a function with each response of a watch of the keys that begin with a prefix."""
        return self.add_watch_callback(*_prefix(key_prefix, kwargs), callback, **kwargs)

    def watch_response(self, key: str | bytes, **kwargs: Any) -> tuple[Responses, Callable[[], None]]:
        """Watch a key: returns an iterator of responses, and a function that ends it and cancels the watch.

        The watch is created before this returns. The options are those of `add_watch_callback`.
        """
        responses = Responses()
        self._responses.add(responses)  # before: a signal handler may raise after the next line
        watch_id = self.add_watch_callback(key, responses.put, **kwargs)

        def cancel() -> None:
            responses.close()
            self.cancel_watch(watch_id)

        return responses, cancel

    def watch(self, key: str | bytes, **kwargs: Any) -> tuple[Iterator[Event], Callable[[], None]]:
        """Watch a key: returns an iterator of events, and a function that ends it and cancels the watch."""
        responses, cancel = self.watch_response(key, **kwargs)
        return events_of(responses), cancel

    def watch_prefix_response(self, key_prefix: str | bytes, **kwargs: Any) -> tuple[Responses, Callable[[], None]]:
        """As `watch_response`, of the keys that begin with a prefix."""
        return self.watch_response(*_prefix(key_prefix, kwargs), **kwargs)

    def watch_prefix(self, key_prefix: str | bytes, **kwargs: Any) -> tuple[Iterator[Event], Callable[[], None]]:
        """As `watch`, of the keys that begin with a prefix."""
        return self.watch(*_prefix(key_prefix, kwargs), **kwargs)

    def watch_once_response(self, key: str | bytes, timeout: float | None = None, **kwargs: Any) -> WatchResponse:
        """Watch a key until the first response, which is returned.

        Args:
            key: the key.
            timeout: seconds to wait for it; None waits for ever.
            kwargs: the options of `add_watch_callback`.

        Raises:
            WatchTimedOut: the watch was not created in time, or no response came.
        """
        with translation:
            return self._watcher.once(key, timeout, **kwargs)

    def watch_once(self, key: str | bytes, timeout: float | None = None, **kwargs: Any) -> Event:
        """As `watch_once_response`, but returns the first event."""
        return self.watch_once_response(key, timeout=timeout, **kwargs).events[0]

    def watch_prefix_once_response(
        self, key_prefix: str | bytes, timeout: float | None = None, **kwargs: Any
    ) -> WatchResponse:
        """As `watch_once_response`, of the keys that begin with a prefix."""
        return self.watch_once_response(*_prefix(key_prefix, kwargs), timeout=timeout, **kwargs)

    def watch_prefix_once(self, key_prefix: str | bytes, timeout: float | None = None, **kwargs: Any) -> Event:
        """As `watch_once`, of the keys that begin with a prefix."""
        return self.watch_once(*_prefix(key_prefix, kwargs), timeout=timeout, **kwargs)

    def cancel_watch(self, watch_id: int) -> None:
        """Cancel the watch of a callback. An unknown id is ignored."""
        with translation:
            self.watcher.cancel(watch_id)

    # Leases and locks.

    def lease(self, ttl: int, lease_id: int | None = None) -> Lease:
        """Grant a lease. It is not renewed by itself: call `refresh` of the lease.

        Args:
            ttl: the seconds that it lasts.
            lease_id: its id. Default: a random id.

        Raises:
            PreconditionFailedError: there is a lease with this id.
        """
        with translation:
            granted = self._client.leases.grant(ttl, lease_id or None, timeout=self._limit())
        return Lease(granted.id, granted.ttl, etcd_client=self)

    def revoke_lease(self, lease_id: int) -> None:
        """End a lease, and delete its keys."""
        with translation:
            self._client.leases.revoke(lease_id, timeout=self._limit())

    def refresh_lease(self, lease_id: int) -> Iterator[etcdrpc.LeaseKeepAliveResponse]:
        """Renew a lease: yields one response. The request is sent when the iteration begins."""
        with translation:
            try:
                renewed = self._client.leases.keep_alive_once(lease_id, timeout=self._limit())
                response = etcdrpc.LeaseKeepAliveResponse(renewed.header, renewed.id, renewed.ttl)
            except LeaseNotFoundError:
                response = etcdrpc.LeaseKeepAliveResponse(Header(), lease_id, 0)
        yield response

    def get_lease_info(self, lease_id: int) -> etcdrpc.LeaseTimeToLiveResponse:
        """Get how long a lease still lasts (`TTL`, `grantedTTL`), and its `keys`."""
        with translation:
            found = self._client.leases.time_to_live(lease_id, keys=True, timeout=self._limit())
        return etcdrpc.LeaseTimeToLiveResponse(found.header, found.id, found.ttl, found.granted_ttl, list(found.keys))

    def lock(self, name: str, ttl: int = 60) -> Lock:
        """A lock, which is not acquired yet.

        Args:
            name: the name.
            ttl: the seconds that it is held, unless it is refreshed.
        """
        return Lock(name, ttl=ttl, etcd_client=self)

    # The cluster.

    @property
    def members(self) -> Iterator[Member]:
        """The members of the cluster."""
        with translation:
            found = self._client.cluster.members(timeout=self._limit())
        return (self._member(member) for member in found)

    def add_member(self, urls: Iterable[str]) -> Member:
        """Add a member with these URLs for other members."""
        with translation:
            return self._member(self._client.cluster.add(urls, timeout=self._limit()).member)

    def remove_member(self, member_id: int) -> None:
        """Remove a member."""
        with translation:
            self._client.cluster.remove(member_id, timeout=self._limit())

    def update_member(self, member_id: int, peer_urls: Iterable[str]) -> None:
        """Give a member other URLs for other members."""
        with translation:
            self._client.cluster.update(member_id, peer_urls, timeout=self._limit())

    def _member(self, member: AioMember) -> Member:
        return Member(member.id, member.name, list(member.peer_urls), list(member.client_urls), self)

    # Maintenance.

    def status(self) -> Status:
        """Get the status of the server; with several servers, of one that is connected."""
        with translation:
            found = self._client.maintenance.status(self._endpoint(), timeout=self._limit())
        leader = next((member for member in self.members if member.id == found.leader), None)
        return Status(found.version, found.db_size, leader, found.raft_index, found.raft_term)

    def defragment(self) -> None:
        """Defragment the database of the server, which serves nothing meanwhile."""
        with translation:
            self._client.maintenance.defragment(self._endpoint(), timeout=self._limit(_MAINTENANCE_LIMIT))

    def hash(self) -> int:
        """Get the hash of the database of the server."""
        with translation:
            limit = self._limit(_MAINTENANCE_LIMIT)
            return self._client.maintenance.hash(self._endpoint(), timeout=limit).hash

    def snapshot(self, file_obj: IO[bytes]) -> None:
        """Write the whole database into a binary file.

        Raises:
            RpcError: also if what came is not complete; then the file must not be used.
        """
        with translation:
            for chunk in self._client.maintenance.snapshot(timeout=self._limit(_MAINTENANCE_LIMIT)):
                file_obj.write(chunk)

    def create_alarm(self, member_id: int = 0) -> list[Alarm]:
        """Raise the alarm that there is no space, of a member; 0 is no member. The cluster accepts no writes then."""
        with translation:
            raised = self._client.maintenance.raise_alarm("nospace", member_id or None, timeout=self._limit())
        return [_alarm(alarm) for alarm in raised.alarms]

    def list_alarms(self, member_id: int = 0, alarm_type: str = "none") -> Iterator[Alarm]:
        """The alarms. The request is sent when the iteration begins.

        Args:
            member_id: only of this member; 0 is every member.
            alarm_type: `"no space"`: only these; `"none"`: every alarm.
        """
        if alarm_type not in _ALARM_TYPES:
            raise ValueError(f'alarm_type must be "none" or "no space", got {alarm_type!r}')
        kind = _ALARM_TYPES[alarm_type]
        with translation:
            found = self._client.maintenance.alarms(timeout=self._limit())
        for alarm in map(_alarm, found.alarms):
            if kind in (None, alarm.alarm_type) and member_id in (0, alarm.member_id):
                yield alarm

    def disarm_alarm(self, member_id: int = 0) -> list[Alarm]:
        """Disarm the alarm that there is no space, of a member; 0 is every member. Returns what was disarmed."""
        with translation:
            disarmed = self._client.maintenance.disarm("nospace", member_id or None, timeout=self._limit())
        return [_alarm(alarm) for alarm in disarmed.alarms]

    def _endpoint(self) -> str:
        states = {record.endpoint: record.state.name for record in self._client.statistics()}
        endpoints = self._client.endpoints
        return next((endpoint for endpoint in endpoints if states.get(endpoint) == "READY"), endpoints[0])


class Etcd3Client(MultiEndpointEtcd3Client):
    """A client of one server. It connects with the first call.

    Args:
        host: the host.
        port: the port.
        ca_cert: the file with the certificates of the authorities. The server has TLS if it is given.
        cert_key: the file with the private key of the client.
        cert_cert: the file with the certificate of the client.
        timeout: as of `MultiEndpointEtcd3Client`.
        user: the same.
        password: the same.
        grpc_options: options of gRPC, of which those about sizes, keepalive and the name of the server are used.

    Attributes:
        uses_secure_channel: whether the server has TLS.
    """

    def __init__(
        self,
        host: str = "localhost",
        port: int | str = 2379,
        ca_cert: CertificatePath | None = None,
        cert_key: CertificatePath | None = None,
        cert_cert: CertificatePath | None = None,
        timeout: float | None = None,
        user: str | None = None,
        password: str | None = None,
        grpc_options: Options | None = None,
    ) -> None:
        self.uses_secure_channel = ca_cert is not None
        credentials = None
        if ca_cert is not None:
            if (cert_key is None) != (cert_cert is None):
                raise ValueError("cert_key and cert_cert belong together: give both of them, or ca_cert alone")
            credentials = secure_credentials(ca_cert, cert_key, cert_cert)
        endpoint = Endpoint(host, port, secure=self.uses_secure_channel, creds=credentials, opts=grpc_options)
        super().__init__([endpoint], timeout=timeout, user=user, password=password)


def client(
    host: str = "localhost",
    port: int | str = 2379,
    ca_cert: CertificatePath | None = None,
    cert_key: CertificatePath | None = None,
    cert_cert: CertificatePath | None = None,
    timeout: float | None = None,
    user: str | None = None,
    password: str | None = None,
    grpc_options: Options | None = None,
) -> Etcd3Client:
    """Make an `Etcd3Client`."""
    return Etcd3Client(host, port, ca_cert, cert_key, cert_cert, timeout, user, password, grpc_options)


def _prefix(prefix: str | bytes, options: dict[str, Any]) -> tuple[bytes]:
    """The first key of a prefix; its end goes into the options."""
    first = utils.to_bytes(prefix)
    options["range_end"] = utils.prefix_range_end(first)
    return (first or b"\0",)


def _values(response: etcdrpc.RangeResponse) -> Iterator[Value]:
    return values(response.kvs, response.header)


def _given(response: etcdrpc.ResponseOp, header: Header) -> Any:
    """The response to an operation as `transaction` returns it."""
    found = response.response_range
    return response if found is None else list(values(found.kvs, header))


def _alarm(alarm: ActiveAlarm) -> Alarm:
    return Alarm(_ALARMS[alarm.alarm.value], alarm.member_id)
