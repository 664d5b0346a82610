"""The client: builds the layers, connects them, and closes them."""

import asyncio
import os
import ssl
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final, NoReturn, Self, Unpack

from etcd_aio import config, pb
from etcd_aio._version import __version__
from etcd_aio.arguments import encode_key, flag, whole_number
from etcd_aio.backend import Backend, ClientBackend, Shared
from etcd_aio.balancer import Balancer, Choice, Endpoint, PolicyName
from etcd_aio.base.aio import start_background_task
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.base.closing import Unwinding, close_all, unwound
from etcd_aio.base.deadline import deadline_after
from etcd_aio.base.not_awaitable import AsyncBlock
from etcd_aio.base.reprs import when_constructed
from etcd_aio.config import (
    TLS,
    ClientOptions,
    EndpointSecurity,
    check_options,
    sources_from,
    srv_resolver_from,
    with_resolvers,
)
from etcd_aio.discovery import Discovery
from etcd_aio.error_handler import Invoker, Lifetime, RetryPolicy, TokenFunction, credentials_from
from etcd_aio.errors import PermissionDeniedError
from etcd_aio.late_parts import LateParts
from etcd_aio.methods import API_VERSION, COMPACT
from etcd_aio.observing import Observer, ObserverGroup, with_defaults
from etcd_aio.store import Store
from etcd_aio.transport import EngineFactory, EngineName, RequestMetadata, TransportOptions, alpn_of, create_engine
from etcd_aio.types import CompactResult, EndpointStatistics, KeyLike, StreamStatistics

if TYPE_CHECKING:
    from etcd_aio.admin import Auth, Cluster, Maintenance
    from etcd_aio.lease import LeaseKeeper, MakeGuardClient
    from etcd_aio.types import EndpointVersions

_CLOSE_SECONDS: Final = 0.5
"""Seconds that exactly-once blocks, caches and revocations get to end when the client is closed: as locks."""

_PING_KEY: Final = "health"  # the key of etcdctl's health check; it need not exist


class Client(Store, AsyncBlock):
    """An etcd client. An application needs one for each event loop, for as long as the loop runs.

    The constructor opens no connection; `async with`, `connect()` and the first call begin to dial. Calls are spread
    over the members, and a call moves to another member when its own fails. Use `async with Client(...) as client:`, or
    `await client.aclose()` at the end; entering and leaving may happen in different tasks.

    Args:
        endpoints: the client URLs of the members: a list, or one comma-separated text. `host`, `host:port`, `http://`,
            `https://`, `unix:` and `unixs:` are accepted, and `dns:///name:port`, `http+dns://` and `https+dns://` for
            each address of a DNS name, which is looked up again at its TTL (needs `pip install 'etcd_aio[dns]'`); the
            default port is 2379. Default: `127.0.0.1:2379`, as etcd's own.
        tls: how to verify `https://` endpoints and, if given, those without a scheme: see `TLS`. An `ssl.SSLContext`
            is only changed to offer the version of HTTP that `engine` speaks. Default: the system's root certificates,
            for `https://` endpoints only.
        auth: name and password of a user. The client logs in with the first call, and again when its token has expired
            or is refused: calls, streams and watches continue. A refused login is not retried; for one second,
            other calls get the same error. Default: none, or the user that the certificate in `tls` names.
        token: instead of `auth`, a token (a JWT) from elsewhere, which is never renewed; or an async function that
            returns one, called before the first call and whenever the last token was refused. The function must not
            use this client.
        allow_insecure_auth: allow credentials for endpoints without TLS, which sends them in plain text. Unix sockets
            do not need this option.
        timeout: seconds for a call with all its attempts, unless the call has its own `timeout`; None for no limit.
            Default: 5, as etcdctl's `--command-timeout`.
        connect_timeout: seconds for dialling one endpoint, with its proxy, the TLS handshake and the first HTTP/2
            frame. Default: 2, as etcdctl's `--dial-timeout`. Time in which the event loop was blocked does not count,
            nor the wait of a dial behind many others to the same endpoint. An endpoint that accepts connections but
            does not answer in time has twice as long with the next dial, up to 20 s, until it answers; not with
            `fail_fast`. The question which cluster a new member belongs to, which comes before the credentials, has the
            same timeout once more. The lookup of a host name before that may take as long again; a longer lookup
            continues, and the next dial uses its result. The same is true for reading the files of `tls`.
        policy: how calls are spread over the members. Every policy prefers healthy members.
            `"round_robin"`: all in turn. `"power_of_two"`: of two random members, the one that is less busy and faster.
            `"leader_first"`: the leader, which is searched for after every election. `"pinned"`: one connection, to
            the member that is connected first; `"random_pinned"`: one connection, to a random member; both switch
            when it fails. Or a function that takes the READY candidates and returns one of them.
        engine: the protocol implementation. `"native"`: HTTP/2, by this library's own implementation. `"grpclib"`: the
            same by grpclib. `"gateway"`: etcd's JSON gateway over HTTP/1.1, where HTTP/2 does not pass; slower.
            `"auto"`: native, and the gateway for endpoints where the handshake proves that HTTP/2 does not pass. The
            last two need `pip install 'etcd_aio[gateway]'`. Or a function that takes the `TransportOptions` of the
            client and returns an `Engine` of `etcd_aio.transport`, such as that of a fake etcd.
        retry: which failed attempts are retried, unless the call has its own `retry`: `"safe"` (only what cannot be
            applied twice), `"never"`, or `"always"` (also writes: you declare that they are idempotent, and that you
            ignore their results, which can be of the second attempt).
        retry_policy: how many attempts, and how long to wait between them.
        require_leader: let a member without a leader refuse calls at once, so that they move to another member.
            Default: True, since such a member cannot answer anyway.
        keepalive_time: seconds of silence with an open stream, after which the member is pinged. Default: 10, the
            minimum of etcd's Go client; etcd itself refuses less than 5.
        keepalive_timeout: seconds of silence after that ping, after which the connection is closed. Default: 3.
        max_send_bytes: largest request. Default: 2 MiB, as etcd's Go client; etcd refuses more than 1.5 MiB by default.
        max_receive_bytes: largest reply. Default: 64 MiB; `scan` reads any amount in smaller pages.
        hedge_after: seconds after which a read without an answer is sent to another member too; the first answer
            counts. This adds at most a tenth to the number of calls. Default: None: no hedging; reads move away from
            unhealthy members anyway.
        auto_sync: seconds from one `sync` to the next, plus or minus a tenth. A failed sync is logged and tried again.
            While no member is connected, the original endpoints are tried too. Default: None: no sync, as etcd's Go
            client.
        discovery_srv: instead of `endpoints`, the domain whose DNS SRV records name them: `_etcd-client-ssl._tcp` for
            `https://` endpoints; if that does not exist and there is no `tls`, `_etcd-client._tcp` for `http://`
            endpoints. Without `tls`, the hosts of the former must lie within the domain. The records are read again
            when their TTL expires (after `auto_sync` seconds, if given), and while no member is connected; the last
            answer is used until there is a new one. Needs `pip install 'etcd_aio[dns]'`.
        discovery_srv_name: the name of the cluster, if the domain has several: `_etcd-client-ssl-NAME._tcp`, and
            `_etcd-client-NAME._tcp`.
        reject_old_cluster: let `connect()` ask every endpoint for its version, and raise `OldClusterError` if one runs
            etcd older than 3.4. Endpoints that do not answer within `connect_timeout` are not checked. Default: False,
            as etcd's Go client.
        fail_fast: let a call fail as soon as every endpoint has refused the connection, or DNS has none, instead of
            waiting until its timeout: for command line tools and tests. A dial without an answer counts as refused
            after `connect_timeout`; a lost connection once it could not be made again. Watches, lease renewals and
            `wait_ready()` wait all the same. Default: False, so that services survive a restart of the cluster.
        proxy: the URL of a proxy for the connections: `http://name:password@host:3128` (method CONNECT), `https://`
            (with TLS to the proxy, by the system's root certificates), `socks5://` (names are resolved here) or
            `socks5h://` (by the proxy). `"environment"`: what `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`
            say. Unix sockets are dialled directly. Default: None, no proxy, whatever the environment says.
        namespace: a prefix of all keys: every call about keys, watches and leases, and every shortcut, works on the
            keys that begin with it, and shows them without it, as `Client.namespace` does. What is about the whole
            cluster stays so: `compact`, `cluster`, `maintenance`, and `auth`, whose permissions name whole keys.
            Default: None, the whole store.
        observers: are notified of calls, attempts, streams, watches, leases, members and logins; see
            `etcd_aio.observing.Observer`. Default: those of `etcd_aio.observing.add_default`, which come in any case.
        name: distinguishes the clients of a process: in the lines of logs, whose records have it as the field `client`;
            in `statistics()` and `streams()`; for observers; and as a label of metrics. At most 64 letters, digits and
            `.`, `_`, `-`, `:`, `/`. Default: no name.

    Raises:
        ConfigError: an option is invalid.
    """

    def __init__(
        self,
        endpoints: str | Iterable[str] | None = None,
        *,
        tls: TLS | ssl.SSLContext | None = None,
        auth: tuple[str, str] | None = None,
        token: str | TokenFunction | None = None,
        allow_insecure_auth: bool = False,
        timeout: float | None = 5.0,
        connect_timeout: float = 2.0,
        policy: PolicyName | Choice = "round_robin",
        engine: EngineName | EngineFactory = "native",
        retry: RetryMode = "safe",
        retry_policy: RetryPolicy | None = None,
        require_leader: bool = True,
        keepalive_time: float = 10.0,
        keepalive_timeout: float = 3.0,
        max_send_bytes: int = 2 * 2**20,
        max_receive_bytes: int = 64 * 2**20,
        hedge_after: float | None = None,
        auto_sync: float | None = None,
        discovery_srv: str = "",
        discovery_srv_name: str = "",
        reject_old_cluster: bool = False,
        fail_fast: bool = False,
        proxy: str | None = None,
        namespace: KeyLike | None = None,
        observers: Sequence[Observer] = (),
        name: str = "",
    ) -> None:
        options: ClientOptions = {
            "allow_insecure_auth": allow_insecure_auth,
            "auto_sync": auto_sync,
            "connect_timeout": connect_timeout,
            "discovery_srv_name": discovery_srv_name,
            "engine": engine,
            "fail_fast": fail_fast,
            "hedge_after": hedge_after,
            "keepalive_time": keepalive_time,
            "keepalive_timeout": keepalive_timeout,
            "max_receive_bytes": max_receive_bytes,
            "max_send_bytes": max_send_bytes,
            "name": name,
            "namespace": namespace,
            "observers": observers,
            "policy": policy,
            "proxy": proxy,
            "reject_old_cluster": reject_old_cluster,
            "require_leader": require_leader,
            "retry": retry,
            "retry_policy": retry_policy,
            "timeout": timeout,
        }
        check_options(**options)
        named = () if discovery_srv and endpoints is None else sources_from(endpoints)
        credentials = credentials_from(auth, token)
        has_credentials = credentials is not None
        offered = alpn_of(engine)
        security = EndpointSecurity(
            tls, has_credentials=has_credentials, allow_insecure_auth=allow_insecure_auth, client=name, alpn=offered
        )
        security.check(named)
        records = srv_resolver_from(named, discovery_srv, discovery_srv_name, security)
        sources = with_resolvers(named)
        self._options: ClientOptions = {**options, "tls": tls, "auth": auth, "token": token}
        self._discovery_srv = discovery_srv
        self._has_records = records is not None
        self._security = security
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._reject_old_cluster = reject_old_cluster
        self._lifetime = Lifetime(self._start)
        self._unwinding: Unwinding = ()
        self._closings: list[asyncio.Task[None]] = []
        transport = TransportOptions(
            connect_timeout=connect_timeout,
            is_patient=not fail_fast,
            keepalive_time=keepalive_time,
            keepalive_timeout=keepalive_timeout,
            max_receive_bytes=max_receive_bytes,
            user_agent=f"etcd_aio/{__version__}",
            client=name,
        )
        made = create_engine(engine, transport)
        metadata = RequestMetadata(API_VERSION, require_leader=require_leader)
        group = ObserverGroup(with_defaults(observers), name)
        self._balancer = Balancer(
            [source for source in sources if isinstance(source, Endpoint)],
            made,
            metadata=metadata,
            tls_for=security.tls_for,
            proxy_for=None if proxy is None else config.proxies_from(proxy, os.environ, name),
            policy=policy,
            verify_all=has_credentials,
            connect_timeout=connect_timeout,
            fail_fast=fail_fast,
            on_change=group.endpoint_changed,
            client=name,
            certificates=security.renewal,
        )
        invoker = Invoker(
            self._balancer,
            self._lifetime,
            self._balancer.identity,
            metadata,
            policy=RetryPolicy() if retry_policy is None else retry_policy,
            timeout=timeout,
            retry=retry,
            max_send_bytes=max_send_bytes,
            hedge_after=hedge_after,
            credentials=credentials,
            observers=group,
            client=name,
        )
        self._observers = group
        self._invoker = invoker
        shared = Shared(name, timeout, invoker.clock, self._ask_versions)

        async def http_get(endpoint: str, path: str) -> bytes:
            self._lifetime.enter()
            return await made.http_get(self._balancer.target(endpoint), path)

        self._parts = LateParts(invoker, http_get, self._guard_client)
        backend: Backend = ClientBackend(invoker, lambda: self._parts.leases, shared, self.__repr__)
        if namespace is not None:
            from etcd_aio.views import PrefixView

            backend = PrefixView(backend, encode_key(namespace, "the namespace"))
        super().__init__(backend)
        self._discovery = Discovery(
            self._balancer,
            sources,
            lambda seconds: self.cluster.members(timeout=seconds),
            records=records,
            check=security.check,
            has_tls=security.has_tls,
            auto_sync=auto_sync,
            connect_timeout=connect_timeout,
            client=name,
        )

    @classmethod
    def from_url(cls, url: str, **options: Unpack[ClientOptions]) -> Self:
        """Make a client from a connection URL.

            etcd://m1:2379,m2:2379,m3:2379/?timeout=3s      plaintext
            etcds://name:password@m1/?ca=/etc/ca.pem        TLS; without `ca` the system's authorities
            etcd+unix:///run/etcd.sock                      a unix socket; etcds+unix with TLS
            etcds+srv://example.com                         `discovery_srv`; etcd+srv takes members without TLS too
            etcd+dns://etcd-headless.ns:2379                each address of a DNS name; etcds+dns with TLS
            etcd://m1/app/                                  `namespace="app/"`; of a unix socket `?namespace=app/`

        The namespace is all of the path after its first slash, so it ends as the path does. Name, password, path and
        values are percent-decoded. Options of `Client` that are numbers, flags or words are accepted by name: times as
        `3s`, `500ms` or seconds, flags as `true` or `false`, None as `none`. With TLS also `ca`, `cert`, `key`,
        `server_name` and `reconnect` of `TLS`.

        Args:
            url: the URL.
            options: those of `Client`; they override those in the URL.

        Raises:
            ConfigError: the URL or an option is invalid. The message repeats no secret.
        """
        settings = config.parse_url(url)
        found = config.client_options(settings, options)
        return cls(settings.endpoints, discovery_srv=settings.discovery_srv, **found)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **options: Unpack[ClientOptions]) -> Self:
        """Make a client from etcdctl's variables, such as `ETCDCTL_ENDPOINTS`, `ETCDCTL_CACERT` and `ETCDCTL_USER`.

        `ETCD_PROXY` is the option `proxy`; `ETCD_AIO_TLS_RECONNECT=true` is `TLS(reconnect=True)`. No other method
        reads the environment, and no option but `proxy="environment"`. Durations are those of Go (`5s`). A keepalive
        time below 10 s counts as 10 s, as in Go. `ETCDCTL_INSECURE_TRANSPORT=false` requires TLS, and so does
        `ETCDCTL_INSECURE_DISCOVERY=false` for SRV records. `ETCDCTL_INSECURE_SKIP_TLS_VERIFY=true` is refused: pass
        `tls=` a context of your own to do that.

        Args:
            environ: the variables; by default those of this process.
            options: those of `Client`; they override the variables.

        Raises:
            ConfigError: a variable or an option is invalid. The message names the variable, but not its value.
        """
        settings = config.read_environment(os.environ if environ is None else environ, has_tls="tls" in options)
        found = config.client_options(settings, options)
        return cls(settings.endpoints, discovery_srv=settings.discovery_srv, **found)

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:  # at exit the module may be gone
        # While the loop runs, the client's tasks keep it alive, and watches and leases continue.
        lifetime: Lifetime | None = getattr(self, "_lifetime", None)  # missing if the arguments were refused
        if lifetime is not None and lifetime.is_abandoned:
            endpoints = ", ".join(self.endpoints)
            warn(f"unclosed <Client {endpoints}>: use `async with`, or aclose()", ResourceWarning, source=self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Client owns connections and cannot be copied or pickled: make a new one")

    @when_constructed
    def __repr__(self) -> str:
        title = f"Client {self.name!r}" if self.name else "Client"
        if self._lifetime.is_closed:
            return f"<{title} closed>"
        states = {record.endpoint: record.state.name for record in self._balancer.statistics()}
        shown = ", ".join(f"{name} {states.get(name, 'IDLE')}" for name in self.endpoints)
        return f"<{title} {shown or 'without endpoints yet'}>"

    # The cluster.

    @property
    def cluster(self) -> "Cluster":
        """The calls about the members of the cluster: members, add, add_learner, remove, update, promote."""
        return self._parts.cluster

    @property
    def maintenance(self) -> "Maintenance":
        """Maintenance calls: status, alarms, defragment, move_leader, snapshot and others."""
        return self._parts.maintenance

    @property
    def auth(self) -> "Auth":
        """The calls about users, roles and permissions."""
        return self._parts.auth

    async def compact(
        self,
        revision: int,
        *,
        physical: bool = False,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> CompactResult:
        """Discard the history before a revision: reads and watches from before it then fail with `CompactedError`.

        Args:
            revision: the oldest revision that stays readable.
            physical: wait until the answering member has freed the space; needs a long `timeout`.
            retry: which failed attempts are retried. A retry is harmless, but raises `CompactedError` if the first
                attempt was applied.

        Returns:
            CompactResult: only a header.

        Raises:
            CompactedError: this revision was compacted before.
            FutureRevisionError: the store has not reached the revision.
        """
        request = pb.CompactionRequest(
            revision=whole_number(revision, "revision", minimum=1), physical=flag(physical, "physical")
        )
        return await self._invoker.unary(COMPACT, request, timeout=timeout, retry=retry)

    # Lifetime.

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def connect(self) -> Self:
        """Start the client: bind it to the running loop, and connect in the background. Returns the client.

        It does not wait for a connection, and does not fail without one: calls wait for a connection. Use
        `wait_ready()` to wait until an endpoint is connected, and `ping()` to check the cluster. Only with
        `reject_old_cluster` it waits, for the versions of the members. `async with` calls it on entering.

        Raises:
            ClientUsageError: the client is closed, or belongs to another loop or process.
            OldClusterError: a member is too old (only with `reject_old_cluster`). The client is closed then.
            NoAvailableEndpointsError: no member could be asked for its version (only with `reject_old_cluster`). The
                client is closed then.
        """
        self._lifetime.enter()
        if self._reject_old_cluster:
            try:
                await self.wait_ready()
                await self._parts.versions.reject_old(self._connect_timeout)
            except BaseException:  # also a cancellation: the caller gets no client to close
                await self.aclose()
                raise
        return self

    async def wait_ready(self, timeout: Timeout = UNSET) -> None:
        """Wait until at least one endpoint is connected.

        Raises:
            NoAvailableEndpointsError: none was connected in time; `errors` has the cause for every endpoint.
            ClientUsageError: the client is closed, or belongs to another loop or process.
        """
        loop = self._lifetime.enter()
        await self._balancer.wait_for_pick(
            deadline_after(self._timeout if timeout is UNSET else timeout, loop.time()), is_patient=True
        )

    async def ping(self, timeout: Timeout = UNSET) -> float:
        """Check that the cluster serves requests: send a read that needs a leader and a quorum.

        It is the same linearizable read as that of `etcdctl endpoint health`. "Permission denied" counts as success,
        since a member needs the quorum to say so. As every read, it moves away from a member that is down or frozen.
        For a readiness check use a short timeout; `wait_ready` checks only that there is a connection.

        Returns:
            float: the duration in seconds, with all attempts.

        Raises:
            EtcdError: the reason why the read failed.
        """
        started = self._lifetime.enter().time()
        with suppress(PermissionDeniedError):
            await self.range(_PING_KEY, count_only=True, timeout=timeout)
        return asyncio.get_running_loop().time() - started

    async def aclose(self) -> None:
        """Close every connection, in any state within a second; calls and streams end with `ClientClosedError`.

        A second close only waits for the first. If a close is cancelled while it waits, the client is closed all the
        same. Leases and locks that are still held are lost, which does not cancel the task that closes: see `Lease`.
        Other tasks that hold locks get half a second to end and release them; in that time blocks of `exactly_once`,
        registrations and members of groups are ended too, as by leaving them, and leases are revoked whose blocks were
        cancelled, or that are being granted. A cancelled scope of anyio waits for that.

        Raises:
            ClientUsageError: the client belongs to another loop or process.
        """
        try:
            has_more_to_end = (
                (self._parts.has_leases and (self.leases.used_pool or self._parts.keeper.unsettled))
                or self.backend.shared.blocks
                or self._closings
            )
            if has_more_to_end and self._lifetime.is_used and not self._lifetime.is_closed:
                self._lifetime.enter()
                await self._end_blocks()
        finally:
            if self._lifetime.close():
                if self._lifetime.is_used and self._observers.client_closed is not None:
                    self._observers.client_closed(self)
                self._unwinding = close_all((*self._parts.guards, self._discovery, self._invoker, self._balancer))
        await unwound(self._unwinding)

    async def _end_blocks(self) -> None:
        """End the blocks of this client, while it still works; within half a second."""
        from anyio import CancelScope  # where there is something to end

        loop = asyncio.get_running_loop()
        ends = loop.time() + _CLOSE_SECONDS
        try:
            with CancelScope(shield=True):  # a scope of anyio waits for this; a cancellation by asyncio ends the wait
                self._end_new_blocks()
                await self.leases.pool.aclose()  # also if it is new: from now on it lends nothing
                while True:
                    self._end_new_blocks()  # those that were entered meanwhile
                    waiting = [task for task in (*self._closings, *self._parts.keeper.unsettled) if not task.done()]
                    left = ends - loop.time()
                    if not waiting or left <= 0:
                        return
                    await asyncio.wait(waiting, timeout=left)
        finally:
            for closing in self._closings:
                closing.cancel()

    def _end_new_blocks(self) -> None:
        blocks = self.backend.shared.blocks
        for block in tuple(blocks):
            blocks.discard(block)  # a second close waits for the task of the first
            self._closings.append(start_background_task(block.aclose(), name="etcd_aio close"))

    def _guard_client(self) -> "MakeGuardClient":
        """See `LeaseKeeper`."""
        options, domain = config.guard_options(self._options), self._discovery_srv
        endpoints = None if self._has_records else self._discovery.names

        def make() -> "tuple[Client, LeaseKeeper]":
            client = Client(endpoints, discovery_srv=domain, **options)
            return client, client._parts.keeper

        return make

    def _start(self) -> None:
        if self._observers.client_started is not None:
            self._observers.client_started(self)
        self._balancer.start()
        self._discovery.start()

    # Endpoints.

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The endpoints in use, in canonical spelling, in the order given; of a DNS name, one for each address."""
        return tuple(endpoint.name for endpoint in self._balancer.endpoints)

    def set_endpoints(self, endpoints: str | Iterable[str]) -> None:
        """Replace the endpoints. Those that stay keep their connections; calls on removed ones may finish.

        A DNS name that stays keeps its addresses. One that is new is looked up; calls wait for that, if there is no
        other endpoint.

        Raises:
            ConfigError: there is no endpoint, or one is malformed, or would get credentials in plain text, or needs
                dnspython. Nothing is changed then.
            ClientUsageError: the client is closed, or belongs to another loop or process.
        """
        named = sources_from(endpoints)
        self._security.check(named)
        if self._lifetime.is_used or self._lifetime.is_closed:
            self._lifetime.enter()
        self._discovery.set_endpoints(with_resolvers(named))

    async def sync(self, timeout: Timeout = UNSET) -> tuple[str, ...]:
        """Ask the cluster for its members, and use the client URLs that they advertise as endpoints from now on.

        Learners and members that have not started are left out. Refused are malformed URLs; unspecified addresses such
        as `0.0.0.0`; loopback addresses and unix sockets, unless the client was given one itself; and plain-text URLs,
        if the client was given `tls` or an endpoint with TLS. Endpoints that the client was given are always accepted.

        Endpoints that stay keep their connections. On removed endpoints, calls under way may finish; watches and lease
        renewals move to another member without a loss. If none of the new endpoints can be connected within
        `connect_timeout`, nothing changes: members may advertise addresses that this machine cannot reach.

        If `set_endpoints` is called meanwhile, its endpoints stay.

        Args:
            timeout: seconds for the request.

        Returns:
            tuple[str, ...]: the endpoints in use.

        Raises:
            DiscoveryError: no member advertises a usable endpoint; the message says why.
            EtcdError: the request for the members failed.

        Cancellation: the endpoints are the old or the new ones.
        """
        self._lifetime.enter()
        return await self._discovery.sync(timeout)

    async def _ask_versions(self, timeout: Timeout) -> "tuple[EndpointVersions, ...]":
        self._lifetime.enter()
        return await self._parts.versions.ask(timeout)

    def statistics(self) -> tuple[EndpointStatistics, ...]:
        """State, health and traffic of each endpoint, in the order given; empty before the first use."""
        return self._balancer.statistics()

    def streams(self) -> tuple[StreamStatistics, ...]:
        """The streams in use: one for all leases that are kept alive, one for all watches of each `stream=`.

        A failover takes well below a second, or as long as an election. A stream that is not open for longer means that
        no member can be reached: `since` has the duration, `statistics()` the causes. Leases then last until their
        local deadlines; watches wait, or end by their `max_outage`.
        """
        return self._invoker.streams()
