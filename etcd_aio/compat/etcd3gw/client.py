"""The client of etcd3gw."""

import json as encoder
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from threading import Lock as ThreadLock
from types import TracebackType
from typing import Any, Final, Literal, Self, overload
from uuid import uuid4

from etcd_aio import TLS, EtcdError, EtcdTimeoutError, KeyRange
from etcd_aio.compat._limits import CALL_SECONDS
from etcd_aio.compat.etcd3gw import types, watch
from etcd_aio.compat.etcd3gw._errors import local, refused, translated, translating, unknown_route
from etcd_aio.compat.etcd3gw._json import Fields
from etcd_aio.compat.etcd3gw._routes import AUTHENTICATE, ROUTES, route_of
from etcd_aio.compat.etcd3gw.exceptions import Etcd3Exception, WatchTimedOut
from etcd_aio.compat.etcd3gw.lease import Lease
from etcd_aio.compat.etcd3gw.lock import Lock
from etcd_aio.compat.etcd3gw.utils import DEFAULT_TIMEOUT, _decode, _encode, to_bytes
from etcd_aio.errors import PermissionDeniedError
from etcd_aio.sync import Client as SyncClient

DEFAULT_API_PATH: Final = os.getenv("ETCD3GW_API_PATH")

_ANY_SIZE: Final = 2**31 - 1  # requests has no limit
_SORT_ORDERS: Final = ("none", "ascend", "descend")
_SORT_TARGETS: Final = ("key", "version", "create", "mod", "value")


class Session:
    """The settings that a session of requests has, for programs that look at it.

    Attributes:
        headers: of requests; `Authorization` is a token.
        verify: the file of the CA; True for those of the system. False is refused.
        cert: the files of the client's certificate and of its key.
    """

    def __init__(self, ca_cert: str | None, cert: tuple[str, str] | None) -> None:
        self.headers: dict[str, str] = {}
        self.verify: str | bool = ca_cert or True
        self.cert = cert


class Etcd3Client:
    """A client of one server. It connects at its first call.

    Args:
        host: the server's name or address.
        port: its port.
        protocol: `http` or `https`.
        ca_cert: the file of the CA that verifies the server.
        cert_key: the file of the key of `cert_cert`.
        cert_cert: the file of the client's certificate.
        timeout: seconds for a call. Default: 30.
        api_path: the beginning of the paths of `get_url`. Default: `/v3/`.
        session: a session of requests, of which `verify`, `cert` and the header `Authorization` count. Requests do not
            go through it.
    """

    def __init__(
        self,
        host: str = "localhost",
        port: int = 2379,
        protocol: str = "http",
        ca_cert: str | None = None,
        cert_key: str | None = None,
        cert_cert: str | None = None,
        timeout: float | None = None,
        api_path: str | None = DEFAULT_API_PATH,
        session: Any = None,
    ) -> None:
        self.host = host
        self.port = port
        self.protocol = protocol
        self.timeout = timeout
        cert = (cert_cert, cert_key) if cert_cert is not None and cert_key is not None else None
        self.session = Session(ca_cert, cert) if session is None else session
        self._api_path = api_path
        self._auth: tuple[str, str] | None = None
        self._client: SyncClient | None = None
        self._making = ThreadLock()

    @property
    def api_path(self) -> str:
        """The beginning of the paths of `get_url`."""
        return self._api_path or "/v3/"

    @property
    def base_url(self) -> str:
        """The URL of the server."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.protocol}://{host}:{self.port}"

    @property
    def seconds(self) -> float:
        """The time that a call has."""
        return CALL_SECONDS if self.timeout is None else self.timeout

    def get_url(self, path: str) -> str:
        """The URL of a call, for `post`."""
        return self.base_url + self.api_path + path.lstrip("/")

    @property
    def sync(self) -> SyncClient:
        """The client of etcd_aio that sends the calls, for what etcd3gw does not have."""
        with self._making:
            if self._client is None:
                self._client = self._made(self._auth)
            return self._client

    def _made(self, auth: tuple[str, str] | None) -> SyncClient:
        token = None if auth else self.session.headers.get("Authorization")
        # A call to a server that refuses the connection fails at once, as with requests.
        with translating():
            return SyncClient(
                self.base_url,
                tls=self._tls(),
                auth=auth,
                token=token if isinstance(token, str) else None,
                allow_insecure_auth=True,
                timeout=self.seconds,
                max_send_bytes=_ANY_SIZE,
                max_receive_bytes=_ANY_SIZE,
                fail_fast=True,
                allow_in_loop=True,
            )

    def _tls(self) -> TLS | None:
        verify: str | bool = self.session.verify
        given: tuple[str, str] | str | None = self.session.cert
        if self.protocol != "https":
            return None
        cert, key = (given, None) if isinstance(given, str) else given or (None, None)
        if verify is False:
            raise ValueError("a session with verify=False is refused: give the file of the CA that signed the server")
        return TLS(ca=verify if isinstance(verify, str) else None, cert=cert, key=key)

    def close(self) -> None:
        """Close the connection, and end all watches. A later call connects again."""
        with self._making:
            client, self._client = self._client, None
        if client is not None:
            with translating():
                client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def post(self, url: str, data: Any = None, json: Any = None, **_: Any) -> Any:
        """Make a call as a request of etcd's gateway: all other methods come here.

        Args:
            url: that of `get_url`: of keys, leases, the status, the members, or `auth/authenticate`. After that one,
                the client logs in by itself, and renews its token.
            data: the request as text.
            json: the request; its keys and values are Base64.

        Returns:
            The answer, as decoded JSON.

        Raises:
            Etcd3Exception: the call has failed.
        """
        path = route_of(url)
        try:
            request = Fields(json if json is not None else encoder.loads(data or "{}"))
            if path == AUTHENTICATE:
                return self._authenticate((request.text("name"), request.text("password")))
            route = ROUTES.get(path)
            if route is None:
                raise unknown_route(path)
            return route(self.sync, request, self.seconds)
        except EtcdError as error:
            raise translated(error) from error
        except (LookupError, TypeError, ValueError) as error:
            raise refused(str(error)) from error

    def _authenticate(self, auth: tuple[str, str]) -> dict[str, Any]:
        made = self._made(auth)
        try:
            with suppress(PermissionDeniedError):
                made.get(b"\0", serializable=True, keys_only=True)
        except BaseException:  # the caller gets no client to close; Ctrl-C, too
            made.close()
            raise
        with self._making:
            self._auth, former, self._client = auth, self._client, made
        if former is not None:
            former.close()
        return {"header": {}, "token": "kept by etcd_aio"}

    # The cluster.

    def status(self) -> types.StatusResponse:
        """Get the status of the server."""
        found: types.StatusResponse = self.post(self.get_url("/maintenance/status"), json={})
        return found

    def members(self) -> list[types.Member]:
        """List the members of the cluster."""
        found: list[types.Member] = self.post(self.get_url("/cluster/member/list"), json={})["members"]
        return found

    # Leases and locks.

    def lease(self, ttl: int = DEFAULT_TIMEOUT) -> Lease:
        """Grant a lease of so many seconds."""
        found = self.post(self.get_url("/lease/grant"), json={"TTL": ttl, "ID": 0})
        return Lease(int(found["ID"]), client=self)

    def lock(self, id: str | None = None, ttl: int = DEFAULT_TIMEOUT) -> Lock:
        """Make a lock.

        Args:
            id: its name. Default: a random one.
            ttl: the seconds that it lasts without `refresh`.
        """
        return Lock(str(uuid4()) if id is None else id, ttl=ttl, client=self)

    # Keys.

    def create(self, key: str | bytes, value: str | bytes, lease: Lease | None = None) -> bool:
        """Put a value if the key does not exist. Returns whether it did not."""
        compare = {"key": _encode(key), "result": "EQUAL", "target": "CREATE", "create_revision": 0}
        return "succeeded" in self.transaction(
            {"compare": [compare], "success": [{"request_put": _put(key, value, lease)}], "failure": []}
        )

    def put(self, key: str | bytes, value: str | bytes, lease: Lease | None = None) -> bool:
        """Put a value. Returns True."""
        self.post(self.get_url("/kv/put"), json=_put(key, value, lease))
        return True

    def replace(self, key: str | bytes, initial_value: str | bytes, new_value: str | bytes) -> bool:
        """Put a value if the key has another one now. Returns whether it had."""
        compare = {"key": _encode(key), "result": "EQUAL", "target": "VALUE", "value": _encode(initial_value)}
        return "succeeded" in self.transaction(
            {"compare": [compare], "success": [{"request_put": _put(key, new_value)}], "failure": []}
        )

    @overload
    def get(
        self,
        key: str | bytes,
        metadata: Literal[False] = False,
        sort_order: str | None = None,
        sort_target: str | None = None,
        **options: Any,
    ) -> list[bytes]: ...

    @overload
    def get(
        self,
        key: str | bytes,
        metadata: Literal[True],
        sort_order: str | None = None,
        sort_target: str | None = None,
        **options: Any,
    ) -> list[tuple[bytes, types.KeyValue]]: ...

    def get(
        self,
        key: str | bytes,
        metadata: bool = False,
        sort_order: str | None = None,
        sort_target: str | None = None,
        *,
        range_end: str | bytes | None = None,
        limit: int | None = None,
        revision: int | None = None,
        serializable: bool | None = None,
        keys_only: bool | None = None,
        count_only: bool | None = None,
        min_mod_revision: int | None = None,
        max_mod_revision: int | None = None,
        min_create_revision: int | None = None,
        max_create_revision: int | None = None,
        **unknown: Any,
    ) -> list[bytes] | list[tuple[bytes, types.KeyValue]]:
        r"""Get the values of a key or a range.

        Args:
            key: the key, or the first one of a range.
            metadata: return each value with its key and revisions.
            sort_order: `ascend` or `descend`.
            sort_target: `key`, `version`, `create`, `mod` or `value`.
            range_end: the end of the range; "\0" is no end.
            limit: the most keys.
            revision: read the store as it was then.
            serializable: let one member answer from its own state, which may be stale.
            keys_only: leave the values out.
            count_only: return no keys.
            min_mod_revision: leave out keys that were last changed before.
            max_mod_revision: leave out keys that were last changed after.
            min_create_revision: leave out keys that were created before.
            max_create_revision: leave out keys that were created after.
            unknown: arguments that etcd does not have; they are told of.

        Raises:
            ValueError: the sort order or target is unknown.
        """
        watch.warn_of(unknown)
        request = {
            "key": _encode(key),
            "sort_order": _number(_SORT_ORDERS, sort_order, "sort_order"),
            "sort_target": _number(_SORT_TARGETS, sort_target, "sort_target"),
            "range_end": None if range_end is None else _encode(range_end),
            "limit": limit,
            "revision": revision,
            "serializable": serializable,
            "keys_only": keys_only,
            "count_only": count_only,
            "min_mod_revision": min_mod_revision,
            "max_mod_revision": max_mod_revision,
            "min_create_revision": min_create_revision,
            "max_create_revision": max_create_revision,
            **unknown,
        }
        found = self.post(self.get_url("/kv/range"), json=_given(request)).get("kvs", [])
        if not metadata:
            return [_decode(kv.get("value", "")) for kv in found]
        return [_value_and_rest(kv) for kv in found]

    def get_all(
        self, sort_order: str | None = None, sort_target: str | None = "key"
    ) -> list[tuple[bytes, types.KeyValue]]:
        """Get all keys, as `get` with `metadata`."""
        return self.get("\0", True, sort_order, sort_target, range_end="\0")

    def get_prefix(
        self, key_prefix: str | bytes, sort_order: str | None = None, sort_target: str | None = None
    ) -> list[tuple[bytes, types.KeyValue]]:
        """Get all keys that begin with a prefix, as `get` with `metadata`."""
        keys = _prefix(key_prefix)
        return self.get(keys.key, True, sort_order, sort_target, range_end=keys.range_end)

    def delete(
        self,
        key: str | bytes,
        *,
        range_end: str | bytes | None = None,
        prev_kv: bool | None = None,
        **unknown: Any,
    ) -> bool:
        r"""Delete a key or a range. Returns whether there was anything.

        Args:
            key: the key, or the first one of a range.
            range_end: the end of the range; "\0" is no end.
            prev_kv: not used: no call returns the deleted keys.
            unknown: arguments that etcd does not have; they are told of.
        """
        watch.warn_of(unknown)
        request = {
            "key": _encode(key),
            "range_end": None if range_end is None else _encode(range_end),
            "prev_kv": prev_kv,
            **unknown,
        }
        return "deleted" in self.post(self.get_url("/kv/deleterange"), json=_given(request))

    def delete_prefix(self, key_prefix: str | bytes) -> bool:
        """Delete all keys that begin with a prefix. Returns whether there was any.

        Raises:
            ValueError: the prefix is empty.
        """
        if not key_prefix:
            raise ValueError("an empty prefix would delete every key")
        keys = _prefix(key_prefix)
        return self.delete(keys.key, range_end=keys.range_end)

    def transaction(self, txn: Mapping[str, Any]) -> types.TxnResponse:
        """Do some operations if all comparisons hold, and others if not.

        Args:
            txn: the request of etcd's gateway: `compare`, `success` and `failure`; keys and values are Base64.
        """
        found: types.TxnResponse = self.post(self.get_url("/kv/txn"), data=encoder.dumps(txn))
        return found

    # Watches.

    def watch(self, key: str | bytes, **options: Any) -> tuple[Iterator[types.Event], Callable[[], None]]:
        r"""Watch a key or a range. What is written from now on will be delivered, also over lost connections.

        Args:
            key: the key, or the first one of a range.
            options: `range_end` ("\0" is no end), `start_revision`, `progress_notify`, `filters` (a list of `NOPUT`
                and `NODELETE`), `prev_kv`, `fragment`. `watch_id` is accepted, and not used.

        Returns:
            tuple: an iterator over the events, and a function that ends it, from any thread.

        Raises:
            Etcd3Exception: the watch cannot be created. The iterator raises it if the watch ends.
        """
        events = watch.Events(watch.open_watch(self, key, **options))
        return events, events.cancel

    def watch_prefix(self, key_prefix: str | bytes, **options: Any) -> tuple[Iterator[types.Event], Callable[[], None]]:
        """Watch all keys that begin with a prefix, as `watch` does."""
        keys = _prefix(key_prefix)
        return self.watch(keys.key, range_end=keys.range_end, **options)

    def watch_once(self, key: str | bytes, timeout: float | None = None, **options: Any) -> types.Event:
        """Wait for one event, `timeout` seconds at most; the other arguments are those of `watch`.

        Raises:
            WatchTimedOut: none came in time.
        """
        watcher = watch.open_watch(self, key, **options)
        try:
            with translating():
                return watch.shown(watcher.next(timeout))
        except Etcd3Exception as error:
            if isinstance(error.__cause__, EtcdTimeoutError):
                raise local(f"no event came within {timeout} seconds", WatchTimedOut) from None
            raise
        except StopIteration:
            raise local("the client was closed") from None
        finally:
            watch.leave(watcher)

    def watch_prefix_once(self, key_prefix: str | bytes, timeout: float | None = None, **options: Any) -> types.Event:
        """Wait for one event of the keys that begin with a prefix, as `watch_once` does."""
        keys = _prefix(key_prefix)
        return self.watch_once(keys.key, timeout, range_end=keys.range_end, **options)


def client(
    host: str = "localhost",
    port: int = 2379,
    ca_cert: str | None = None,
    cert_key: str | None = None,
    cert_cert: str | None = None,
    timeout: float | None = None,
    protocol: str = "http",
    api_path: str | None = DEFAULT_API_PATH,
    session: Any = None,
) -> Etcd3Client:
    """Make an `Etcd3Client`; the arguments have another order."""
    return Etcd3Client(
        host=host,
        port=port,
        protocol=protocol,
        ca_cert=ca_cert,
        cert_key=cert_key,
        cert_cert=cert_cert,
        timeout=timeout,
        api_path=api_path,
        session=session,
    )


def _put(key: str | bytes, value: str | bytes, lease: Lease | None = None) -> dict[str, Any]:
    request: dict[str, Any] = {"key": _encode(key), "value": _encode(value)}
    return {**request, "lease": lease.id} if lease else request


def _value_and_rest(kv: dict[str, Any]) -> tuple[bytes, Any]:
    return _decode(kv.pop("value", "")), {**kv, "key": _decode(kv["key"])}


def _prefix(key_prefix: str | bytes) -> KeyRange:
    return KeyRange.of(prefix=to_bytes(key_prefix))


def _given(request: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if value is not None}


def _number(words: tuple[str, ...], word: str | None, what: str) -> int:
    """The number of a word.

    Raises:
        ValueError: it is none of them.
    """
    if not word:
        return 0
    if word not in words:
        raise ValueError(f"{what} must be one of {', '.join(words)}, got {word!r}")
    return words.index(word)
