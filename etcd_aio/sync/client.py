"""Client, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.client`: do not edit.
"""

import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Self, Unpack

from etcd_aio.arguments import KeyLike
from etcd_aio.balancer import Choice, PolicyName
from etcd_aio.base import UNSET, RetryMode, Timeout
from etcd_aio.client import Client as AsyncClient
from etcd_aio.config import TLS
from etcd_aio.error_handler import RetryPolicy
from etcd_aio.observing import Observer
from etcd_aio.sync.base_client import BaseClient
from etcd_aio.sync.config.options import ClientOptions
from etcd_aio.sync.store import Store
from etcd_aio.transport import EngineFactory, EngineName
from etcd_aio.types import CompactResult, EndpointStatistics, StreamStatistics

if TYPE_CHECKING:
    from etcd_aio.sync.admin.auth import Auth
    from etcd_aio.sync.admin.cluster import Cluster
    from etcd_aio.sync.admin.maintenance import Maintenance


class Client(BaseClient, Store):
    """An etcd client.

    An application needs one, for as long as it runs; any number of threads may use it. Ctrl-C ends a call that waits,
    and KeyboardInterrupt is raised when the call has ended. In a process that was forked, the client connects anew;
    what is held, such as locks and watches, is the parent's.

    The constructor opens no connection; `with`, `connect()` and the first call begin to dial. Calls are spread over the
    members, and a call moves to another member when its own fails. Use `with Client(...) as client:`, or
    `client.close()` at the end; entering and leaving may happen in different threads.

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
        token: instead of `auth`, a token (a JWT) from elsewhere, which is never renewed; or a function that returns
            one, in a thread of its own, called before the first call and whenever the last token was refused. The
            function must not use this client.
        allow_insecure_auth: allow credentials for endpoints without TLS, which sends them in plain text. Unix sockets
            do not need this option.
        timeout: seconds for a call with all its attempts, unless the call has its own `timeout`; None for no limit.
            Default: 5, as etcdctl's `--command-timeout`.
        connect_timeout: seconds for dialling one endpoint, with its proxy, the TLS handshake and the first HTTP/2
            frame. Default: 2, as etcdctl's `--dial-timeout`. It does not count the wait of a dial behind many others to
            the same endpoint. An endpoint that accepts connections but does not answer in time has twice as long with
            the next dial, up to 20 s, until it answers; not with `fail_fast`. The question which cluster a new member
            belongs to, which comes before the credentials, has the same timeout once more. The lookup of a host name
            before that may take as long again; a longer lookup continues, and the next dial uses its result. The same
            is true for reading the files of `tls`.
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
        allow_in_loop: let calls block a thread in which an event loop runs. Default: False, such a call raises
            `BlockingInLoopError`, since the loop would stand still: use `etcd_aio.Client` there.

    Raises:
        ConfigError: an option is invalid.
    """

    def __init__(
        self,
        endpoints: str | Iterable[str] | None = None,
        *,
        tls: TLS | ssl.SSLContext | None = None,
        auth: tuple[str, str] | None = None,
        token: str | Callable[[], str] | None = None,
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
        allow_in_loop: bool = False,
    ) -> None:
        self._open(
            AsyncClient,
            allow_in_loop,
            endpoints,
            tls=tls,
            auth=auth,
            token=token,
            allow_insecure_auth=allow_insecure_auth,
            timeout=timeout,
            connect_timeout=connect_timeout,
            policy=policy,
            engine=engine,
            retry=retry,
            retry_policy=retry_policy,
            require_leader=require_leader,
            keepalive_time=keepalive_time,
            keepalive_timeout=keepalive_timeout,
            max_send_bytes=max_send_bytes,
            max_receive_bytes=max_receive_bytes,
            hedge_after=hedge_after,
            auto_sync=auto_sync,
            discovery_srv=discovery_srv,
            discovery_srv_name=discovery_srv_name,
            reject_old_cluster=reject_old_cluster,
            fail_fast=fail_fast,
            proxy=proxy,
            namespace=namespace,
            observers=observers,
            name=name,
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
        client = cls.__new__(cls)
        client._open(AsyncClient.from_url, options.pop("allow_in_loop", False), url, **options)
        return client

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
        client = cls.__new__(cls)
        client._open(AsyncClient.from_env, options.pop("allow_in_loop", False), environ, **options)
        return client

    @property
    def cluster(self) -> "Cluster":
        """The calls about the members of the cluster: members, add, add_learner, remove, update, promote."""
        return self._part("cluster")

    @property
    def maintenance(self) -> "Maintenance":
        """Maintenance calls: status, alarms, defragment, move_leader, snapshot and others."""
        return self._part("maintenance")

    @property
    def auth(self) -> "Auth":
        """The calls about users, roles and permissions."""
        return self._part("auth")

    def compact(
        self, revision: int, *, physical: bool = False, timeout: Timeout = UNSET, retry: RetryMode | None = None
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
        return self._run(self._aio.compact, revision, physical=physical, timeout=timeout, retry=retry)

    def wait_ready(self, timeout: Timeout = UNSET) -> None:
        """Wait until at least one endpoint is connected.

        Raises:
            NoAvailableEndpointsError: none was connected in time; `errors` has the cause for every endpoint.
            ClientUsageError: the client is closed.
        """
        self._run(self._aio.wait_ready, timeout)

    def ping(self, timeout: Timeout = UNSET) -> float:
        """Check that the cluster serves requests: send a read that needs a leader and a quorum.

        It is the same linearizable read as that of `etcdctl endpoint health`. "Permission denied" counts as success,
        since a member needs the quorum to say so. As every read, it moves away from a member that is down or frozen.
        For a readiness check use a short timeout; `wait_ready` checks only that there is a connection.

        Returns:
            float: the duration in seconds, with all attempts.

        Raises:
            EtcdError: the reason why the read failed.
        """
        return self._run(self._aio.ping, timeout)

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The endpoints in use, in canonical spelling, in the order given; of a DNS name, one for each address."""
        return self._aio.endpoints

    def set_endpoints(self, endpoints: str | Iterable[str]) -> None:
        """Replace the endpoints. Those that stay keep their connections; calls on removed ones may finish.

        A DNS name that stays keeps its addresses. One that is new is looked up; calls wait for that, if there is no
        other endpoint.

        Raises:
            ConfigError: there is no endpoint, or one is malformed, or would get credentials in plain text, or needs
                dnspython. Nothing is changed then.
            ClientUsageError: the client is closed.
        """
        self._run(self._aio.set_endpoints, endpoints)

    def sync(self, timeout: Timeout = UNSET) -> tuple[str, ...]:
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

        Ctrl-C: the endpoints are the old or the new ones.
        """
        return self._run(self._aio.sync, timeout)

    def statistics(self) -> tuple[EndpointStatistics, ...]:
        """State, health and traffic of each endpoint, in the order given; empty before the first use."""
        return self._aio.statistics()

    def streams(self) -> tuple[StreamStatistics, ...]:
        """The streams in use: one for all leases that are kept alive, one for all watches of each `stream=`.

        A failover takes well below a second, or as long as an election. A stream that is not open for longer means that
        no member can be reached: `since` has the duration, `statistics()` the causes. Leases then last until their
        local deadlines; watches wait, or end by their `max_outage`.
        """
        return self._aio.streams()
