"""Client: the composition root. Builds the floors, wires them, closes them.

Knows: every floor beneath. Never knows: how any of them works.
"""

import asyncio
import os
import ssl
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import FunctionType, TracebackType
from typing import Final, NoReturn, Self, Unpack

from etcd_aio._version import __version__
from etcd_aio.admin import Auth, Cluster, Maintenance, Versions
from etcd_aio.balancer import Balancer, Choice, EndpointStatistics, PolicyName
from etcd_aio.call_options import UNSET, RetryMode, Timeout
from etcd_aio.closing import Unwinding, close_all, unwound
from etcd_aio.config import (
    TLS,
    ClientConfig,
    ClientOptions,
    client_options,
    endpoints_from,
    parse_url,
    read_environment,
)
from etcd_aio.deadline import deadline_after
from etcd_aio.discovery import Discovery
from etcd_aio.error_handler import Invoker, Lifetime, RetryPolicy, StreamStatistics, TokenFunction, credentials_from
from etcd_aio.errors import PermissionDeniedError
from etcd_aio.kv import KV
from etcd_aio.lease import Lease, LeaseKeeper, Leases, OnLost
from etcd_aio.methods import API_VERSION
from etcd_aio.transport import EngineName, Names, RequestMetadata, create_engine, http_get
from etcd_aio.types import EndpointVersions
from etcd_aio.watch import WatchCalls, WatchService

_PING_KEY: Final = "health"  # the one that etcdctl asks for; it need not exist


class Client(KV, WatchCalls):
    """An etcd client: one for each event loop of an application, meant to live as long as it does.

    Making a client touches nothing; entering it, `connect()` and the first call begin to dial. Every call is spread
    over the members, and moves to the next one when its member fails. Use it as `async with Client(...) as client:`,
    or `await client.aclose()` at the end; entering and leaving may happen in different tasks.

    Args:
        endpoints: where members serve clients: a list, or one comma-separated text. `host`, `host:port`, `http://`,
            `https://`, `unix:` and `unixs:` are understood; a missing port is 2379. Default: `127.0.0.1:2379`, etcd's
            own.
        tls: how to verify `https://` endpoints and, if given, those without a scheme: see `TLS`. A context of your own
            is used as it is; it is only told to offer HTTP/2. Default: the system's root certificates, for `https://`
            endpoints only.
        auth: a user's name and password. The client logs in with the first call, and again whenever a member has
            forgotten or outdated its token: calls, streams and watches go on. A refused login is not retried; for
            one second, other calls get the same error. Default: none, or the user that the certificate in `tls`
            names.
        token: instead of `auth`, a token that was made elsewhere (a JWT), which is never renewed; or an async function
            that gives one, called for the first call and whenever the last one is refused. It must not use this client.
        allow_insecure_auth: allow credentials for endpoints without TLS: anybody on the network path can read them.
            Unix sockets do not need this option.
        timeout: seconds a call may take with all its attempts, unless it says otherwise; None for no limit.
            Default: 5, as etcdctl's `--command-timeout`.
        connect_timeout: seconds for dialling one endpoint, its TLS handshake and its first HTTP/2 frame. Default: 2, as
            etcdctl's `--dial-timeout`. A host name may take as much time before that, and a lookup that takes longer
            goes on: the next dial uses its result. The same holds for the files of `tls`.
        policy: how calls are spread over the members. Every policy prefers healthy members.
            `"round_robin"`: all in turn. `"power_of_two"`: the less busy and faster of two that are drawn.
            `"leader_first"`: the leader, which is looked for after every election. `"pinned"`: one connection, to the
            member that is connected first; `"random_pinned"`: one, drawn by lot; both switch when it fails. Or a
            function that gets the READY candidates and returns one of them.
        engine: what carries HTTP/2: `"native"`, our own, or `"grpclib"`, the stock one.
        retry: what is repeated after a failure, unless a call says otherwise: `"safe"` (only what cannot be applied
            twice), `"never"`, or `"always"` (also writes: you declare them idempotent, and do not look at
            their results, which can be those of the last copy).
        retry_policy: how often and how soon.
        require_leader: have a member that has lost its leader refuse at once, so that the call moves on. Default: True,
            since such a member cannot answer anyway.
        keepalive_time: seconds of silence on an open stream before the member is pinged. Default: 10, the least that
            etcd's Go client accepts; etcd itself refuses less than 5.
        keepalive_timeout: seconds of silence after that ping before the connection is given up. Default: 3.
        max_send_bytes: largest request. Default: 2 MiB, as etcd's Go client; etcd itself refuses more than 1.5 MiB
            unless told otherwise.
        max_receive_bytes: largest reply. Default: 64 MiB; `scan` reads any amount in smaller pages.
        hedge_after: seconds after which a read that has no answer is asked of another member too; the first answer
            counts. At most a tenth more calls are made so. Default: None: no hedging; reads already move away
            from unhealthy members.
        auto_sync: seconds from one `sync` to the next, give or take a tenth. A sync that fails is logged and tried
            again. While nothing is connected the endpoints that were given are tried too. Default: None, no sync, as
            etcd's Go client.
        discovery_srv: the domain whose DNS SRV records name the endpoints, instead of `endpoints`:
            `_etcd-client-ssl._tcp` gives `https://` ones; if that does not exist and there is no `tls`,
            `_etcd-client._tcp` gives `http://` ones. Without `tls` the hosts of the first must lie within the domain.
            The records are read again when their TTL expires (after `auto_sync` seconds, if that is given), and while
            nothing is connected; old answers hold until there is a new one. It needs `pip install 'etcd_aio[srv]'`.
        discovery_srv_name: which cluster of that domain: `_etcd-client-ssl-NAME._tcp`, and `_etcd-client-NAME._tcp`.
        reject_old_cluster: have `connect()` ask every endpoint for its version, and raise `OldClusterError` if one runs
            etcd older than 3.4. Those that do not answer within `connect_timeout` are not judged. Default: False, as
            etcd's Go client.
        fail_fast: have a call fail as soon as every endpoint has refused the connection, instead of waiting for one
            until its timeout: for command line tools and tests. A dial that got no answer counts as refused after
            `connect_timeout`; a connection that is lost counts once it could not be made again. Watches, lease renewals
            and `wait_ready()` wait all the same. Default: False, so that services ride out a restart of the cluster.

    Raises:
        ConfigError: an option cannot work.
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
        engine: EngineName = "native",
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
    ) -> None:
        config = ClientConfig(
            endpoints=() if discovery_srv and endpoints is None else endpoints_from(endpoints),
            tls=tls,
            timeout=timeout,
            connect_timeout=connect_timeout,
            policy=policy,
            engine=engine,
            retry=retry,
            retry_policy=RetryPolicy() if retry_policy is None else retry_policy,
            require_leader=require_leader,
            keepalive_time=keepalive_time,
            keepalive_timeout=keepalive_timeout,
            max_send_bytes=max_send_bytes,
            max_receive_bytes=max_receive_bytes,
            credentials=credentials_from(auth, token),
            allow_insecure_auth=allow_insecure_auth,
            hedge_after=hedge_after,
            auto_sync=auto_sync,
            discovery_srv=discovery_srv,
            discovery_srv_name=discovery_srv_name,
            reject_old_cluster=reject_old_cluster,
            fail_fast=fail_fast,
        )
        self._config = config
        self._lifetime = Lifetime(self._start)
        self._unwinding: Unwinding = ()
        metadata = RequestMetadata(API_VERSION, require_leader=config.require_leader)
        names = Names()
        self._balancer = Balancer(
            config.endpoints,
            create_engine(config.engine, config.transport_options(f"etcd_aio/{__version__}"), names),
            metadata=metadata,
            tls_for=config.tls_for,
            policy=config.policy,
            verify_all=config.credentials is not None,
            fail_fast=config.fail_fast,
        )
        invoker = Invoker(
            self._balancer,
            self._lifetime,
            self._balancer.identity,
            metadata,
            policy=config.retry_policy,
            timeout=config.timeout,
            retry=config.retry,
            max_send_bytes=config.max_send_bytes,
            hedge_after=config.hedge_after,
            credentials=config.credentials,
        )
        KV.__init__(self, invoker)
        WatchCalls.__init__(self, WatchService(invoker, self.do))
        self._keeper = LeaseKeeper(invoker)
        self._leases = Leases(invoker, self._keeper)
        self._auth = Auth(invoker)
        self._cluster = Cluster(invoker)
        self._maintenance = Maintenance(invoker)
        self._versions = Versions(
            invoker, lambda endpoint, path: http_get(self._balancer.target(endpoint), path, names)
        )
        self._discovery = Discovery(
            self._balancer,
            config.resolver(),
            lambda seconds: self._cluster.members(timeout=seconds),
            check=config.check_secrecy,
            has_tls=config.tls is not None,
            auto_sync=config.auto_sync,
            connect_timeout=config.connect_timeout,
        )

    @classmethod
    def from_url(cls, url: str, **options: Unpack[ClientOptions]) -> Self:
        """A client from a connection URL.

            etcd://m1:2379,m2:2379,m3:2379/?timeout=3s      plaintext
            etcds://name:password@m1/?ca=/etc/ca.pem        TLS; the system's authorities without `ca`
            etcd+unix:///run/etcd.sock                      a unix socket; etcds+unix with TLS
            etcds+srv://example.com                         `discovery_srv`; etcd+srv takes members without TLS too

        Name, password, path and values are percent-decoded. Options go by their names here: `timeout`,
        `connect_timeout`, `keepalive_time`, `keepalive_timeout`, `hedge_after` and `auto_sync` (`3s`, `500ms`, or
        seconds), `policy`, `engine`, `retry`, `require_leader`, `reject_old_cluster`, `fail_fast` and
        `allow_insecure_auth` (`true` or `false`), `max_send_bytes`, `max_receive_bytes`, `discovery_srv_name`; with TLS
        `ca`, `cert`, `key` and `server_name`.

        Args:
            url: the URL.
            options: as of `Client`; they win over those of the URL.

        Raises:
            ConfigError: the URL, or an option, cannot work. The message repeats nothing of the URL.
        """
        settings = parse_url(url)
        found = client_options(settings, options)
        return cls(settings.endpoints, discovery_srv=settings.discovery_srv, **found)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **options: Unpack[ClientOptions]) -> Self:
        """A client from etcdctl's variables: `ETCDCTL_ENDPOINTS`, `ETCDCTL_CACERT`, `ETCDCTL_DIAL_TIMEOUT` and others.

        Nothing is read from the environment unless you call this. The durations are Go's, such as `5s`. A keepalive
        time below 10 s counts as 10 s, as in Go. `ETCDCTL_INSECURE_TRANSPORT=false` asks for TLS, and so does
        `ETCDCTL_INSECURE_DISCOVERY=false` for SRV records. `ETCDCTL_INSECURE_SKIP_TLS_VERIFY=true` is refused: give
        `tls=` a context of your own if you mean it.

        Args:
            environ: the variables; those of this process by default.
            options: as of `Client`; they win over the variables.

        Raises:
            ConfigError: a variable, or an option, cannot work. The message names the variable, and not its value.
        """
        settings = read_environment(os.environ if environ is None else environ, has_tls="tls" in options)
        found = client_options(settings, options)
        return cls(settings.endpoints, discovery_srv=settings.discovery_srv, **found)

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:  # at exit the module may be gone
        # While its loop runs, its tasks keep it alive, and whatever was made by it works on.
        lifetime: Lifetime | None = getattr(self, "_lifetime", None)  # there is none if the arguments were refused
        if lifetime is not None and lifetime.is_abandoned:
            endpoints = ", ".join(self.endpoints)
            warn(f"unclosed <Client {endpoints}>: use `async with`, or aclose()", ResourceWarning, source=self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Client cannot be copied or pickled, since it owns connections: make another one")

    def __repr__(self) -> str:
        if not hasattr(self, "_balancer"):  # its arguments are being refused, and a report shows local variables
            return "<Client that was not made>"
        if self._lifetime.is_closed:
            return "<Client closed>"
        states = {one.endpoint: one.state.name for one in self._balancer.statistics()}
        shown = ", ".join(f"{name} {states.get(name, 'IDLE')}" for name in self.endpoints)
        return f"<Client {shown or 'without endpoints yet'}>"

    # Leases.

    @property
    def leases(self) -> Leases:
        """The lease calls by themselves: grant, revoke, time_to_live, keep_alive_once, list."""
        return self._leases

    def lease(self, ttl: int, *, id: int | None = None, on_lost: OnLost = "cancel", timeout: Timeout = UNSET) -> Lease:
        """A lease that lives as long as a block: `async with client.lease(10) as lease:`.

        Entering grants it, and raises what `leases.grant` raises. Then it is renewed by itself. Leaving revokes it,
        within 2 seconds and even if the block was cancelled; if that fails it is logged, and the lease ends by its TTL.

        Args:
            ttl: the seconds it lasts if nothing renews it, from 1 to 9 000 000 000: so long it survives a crash of this
                process, and so long an outage may last. etcd raises what is less than its minimum, 2 by default.
            id: its id. By default this client draws one.
            on_lost: what its loss does: `"cancel"` cancels the task that has entered, `"signal"` only tells it. Leaving
                raises `LeaseLostError` in both cases.
            timeout: seconds for the grant.

        Raises:
            InvalidRequestError: an argument cannot be right. Nothing was sent.
        """
        return Lease(self._leases, self._keeper, ttl, id=id, on_lost=on_lost, timeout=timeout)

    # The cluster.

    @property
    def cluster(self) -> Cluster:
        """The calls about who belongs to the cluster: members, add, add_learner, remove, update, promote."""
        return self._cluster

    @property
    def maintenance(self) -> Maintenance:
        """Maintenance calls: status, alarms, defragment, move_leader, snapshot and others."""
        return self._maintenance

    @property
    def auth(self) -> Auth:
        """The calls about users, roles and permissions."""
        return self._auth

    # Lifetime.

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def connect(self) -> Self:
        """Start the client: bind it to the running loop, and begin to connect in the background; returns the client.

        It does not wait for a connection, and does not fail if there is none: calls wait for one by themselves. To wait
        until an endpoint is connected, use `wait_ready()`; to know whether the cluster can be used, `ping()`. Only with
        `reject_old_cluster` does it wait, for the versions of the members. `async with` calls it on entering.

        Raises:
            ClientUsageError: the client is closed, or belongs to another loop or process.
            OldClusterError: a member is too old (only with `reject_old_cluster`). The client is closed then.
            NoAvailableEndpointsError: no member could be asked for its version (only with `reject_old_cluster`). The
                client is closed then.
        """
        self._lifetime.enter()
        if self._config.reject_old_cluster:
            try:
                await self.wait_ready()
                await self._versions.reject_old(self._config.connect_timeout)
            except BaseException:  # a cancellation too: nobody has a client that was not entered
                await self.aclose()
                raise
        return self

    async def wait_ready(self, timeout: Timeout = UNSET) -> None:
        """Wait until at least one endpoint is connected.

        Args:
            timeout: seconds; None for no limit; the client's default if it is not given.

        Raises:
            NoAvailableEndpointsError: none was connected in time; `errors` has every endpoint's real reason.
            ClientUsageError: the client is closed, or belongs to another loop or process.
        """
        loop = self._lifetime.enter()
        await self._balancer.wait_for_pick(
            deadline_after(self._config.timeout if timeout is UNSET else timeout, loop.time()), is_patient=True
        )

    async def ping(self, timeout: Timeout = UNSET) -> float:
        """Find out whether the cluster can be used: ask it a question that needs a leader and a quorum.

        It is what `etcdctl endpoint health` asks: a linearizable read. "Permission denied" counts as a good answer,
        since only a member that the quorum follows can give it. A single member that is down or frozen is left for
        another one, as by every read. For a readiness check use it with a short timeout; `wait_ready` tells only that
        there is a connection.

        Args:
            timeout: seconds; None for no limit; the client's default if it is not given.

        Returns:
            float: the seconds it took, with all attempts.

        Raises:
            EtcdError: what is wrong, as every read.
        """
        started = self._lifetime.enter().time()
        with suppress(PermissionDeniedError):
            await self.range(_PING_KEY, count_only=True, timeout=timeout)
        return asyncio.get_running_loop().time() - started

    async def aclose(self) -> None:
        """Close every connection, in any state within a second; calls and streams end with `ClientClosedError`.

        A second close only waits for the first. A close that is cancelled while it waits has closed the client. Leases
        that are still held are lost; the task that closes is not cancelled for that: see `Lease`.

        Raises:
            ClientUsageError: the client belongs to another loop or process.
        """
        if self._lifetime.close():
            self._unwinding = close_all((self._discovery, self._invoker, self._balancer))
        await unwound(self._unwinding)

    def _start(self) -> None:
        self._balancer.start()
        self._discovery.start()

    # Endpoints.

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The endpoints in use, in one canonical spelling, in the order given."""
        return tuple(endpoint.name for endpoint in self._balancer.endpoints)

    def set_endpoints(self, endpoints: str | Iterable[str]) -> None:
        """Replace the endpoints. Those that stay keep their connections; calls on removed ones may finish.

        Raises:
            ConfigError: there is no endpoint, or one of them is wrong, or credentials would go to it in the clear;
                nothing is changed then.
            ClientUsageError: the client is closed, or belongs to another loop or process.
        """
        parsed = endpoints_from(endpoints)
        self._config.check_secrecy(parsed)
        if self._lifetime.is_used or self._lifetime.is_closed:
            self._lifetime.enter()
        self._discovery.set_endpoints(parsed)

    async def sync(self, timeout: Timeout = UNSET) -> tuple[str, ...]:
        """Ask the cluster for its members, and use what they advertise for clients as endpoints from now on.

        Members that have not started and learners are left out. Not believed is what is no URL, what nobody can connect
        to (`0.0.0.0`), a loopback address or unix socket unless the client was given one itself, and plaintext by a
        client that was given `tls` or an endpoint with TLS; but what it was given itself is always believed.

        Endpoints that stay keep their connections. On those that go, calls under way may finish; watches and lease
        renewals move to another member and lose nothing. If none of the new ones can be connected to within
        `connect_timeout`, all stays as it is: members may advertise addresses that cannot be reached from here.

        If `set_endpoints` is called while this waits, its endpoints stay.

        Args:
            timeout: seconds for asking; None for no limit; the client's default if it is not given.

        Returns:
            tuple[str, ...]: the endpoints in use.

        Raises:
            DiscoveryError: no member advertises an endpoint that can be used; the message says why.
            EtcdError: the members could not be asked; as every call.

        Cancellation: the endpoints are the old or the new ones.
        """
        self._lifetime.enter()
        return await self._discovery.sync(timeout)

    async def versions(self, timeout: Timeout = UNSET) -> tuple[EndpointVersions, ...]:
        """Which release runs at each endpoint, and the version that the cluster has agreed on.

        The second is not in etcd's gRPC API, and is read from `/version` on the same port by a connection of its own.

        Args:
            timeout: seconds; None for no limit; the client's default if it is not given.

        Returns:
            tuple[EndpointVersions, ...]: one for each endpoint, in their order; for one that did not answer, its error.

        Raises:
            ClientUsageError: the client is closed, or belongs to another loop or process.
        """
        self._lifetime.enter()
        return await self._versions.ask(timeout)

    def statistics(self) -> tuple[EndpointStatistics, ...]:
        """What each endpoint has seen so far, in the order given; empty before the first use."""
        return self._balancer.statistics()

    def streams(self) -> tuple[StreamStatistics, ...]:
        """The streams that are needed now: one for all leases that are kept alive, one for all watches.

        One that is not open for longer than a failover takes (well below a second, or an election) means that no member
        can be reached: `since` is how long, `statistics()` says why. Leases then last until their local deadlines, and
        watches wait, or end by their `max_outage`.
        """
        return self._invoker.streams()


# Python says "coroutine 'Client.put' was never awaited" then, and "Client.put() missing 1 required ... argument":
# the classes that the client is made of are not public.
for _part in (KV, WatchCalls):
    for _name, _member in vars(_part).items():
        if isinstance(_member, FunctionType):
            _member.__qualname__ = f"Client.{_name}"
