"""FakeEtcd: an etcd cluster in memory, without processes and sockets."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from math import inf
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, Unpack
from weakref import WeakSet

from etcd_aio.arguments import to_bytes
from etcd_aio.base.not_awaitable import AsyncBlock
from etcd_aio.errors import ConfigError
from etcd_aio.fake.clock import Clock, in_loop
from etcd_aio.fake.cluster import FakeBackup, FakeCluster
from etcd_aio.fake.faults import Fault, FaultRules, check, refusal_of
from etcd_aio.fake.host import Host, Inbox
from etcd_aio.fake.inspection import CallLog, FakeCall, FakeLease, FakeWatcher, leases_of, watchers_of
from etcd_aio.fake.member import FakeMember
from etcd_aio.fake.network import Network
from etcd_aio.fake.node import CLIENT_PORT, Node
from etcd_aio.fake.refusals import Refusal
from etcd_aio.fake.releases import NEWEST, release_of
from etcd_aio.fake.server import FakeServer
from etcd_aio.transport import Engine, TransportOptions
from etcd_aio.types import KeyLike, KeyValue

if TYPE_CHECKING:
    from etcd_aio.client import Client
    from etcd_aio.config import ClientOptions

_MOST_STEPS: Final = 1_000_000  # of one `advance`


class FakeEtcd(AsyncBlock):
    """An etcd cluster in memory: `async with FakeEtcd() as fake:`.

    Clients of it run as a whole, and only their connections are imitated. Requests are answered in a later turn of the
    loop, and those of one turn in an order that the seed decides: code that needs luck is found.

    A fake belongs to one event loop at a time, with all of its clients: the next loop may use it when that one runs no
    more. What is not `async` may be called from any thread, and before there is a loop; so a synchronous test can look
    inside, set up and break what an application uses in another thread.

    Args:
        version: the etcd that it is, such as "3.6"; the newest by default.
        members: how many members it has. They share one store.
        seed: decides everything that the fake leaves to chance; what clients draw, such as ids and pauses, is theirs.
        latency: seconds from a request to its answer.

    Attributes:
        members: the members; the first one leads at the beginning.

    Raises:
        ConfigError: the fake cannot be that version, or an argument is invalid.
    """

    def __init__(self, version: str = NEWEST, *, members: int = 1, seed: int = 0, latency: float = 0.0) -> None:
        if not isinstance(members, int) or isinstance(members, bool) or members < 1:
            raise ConfigError(f"members= is a number of members, 1 or more; got {members!r}")
        if not 0 <= latency < inf:
            raise ConfigError(f"latency= is a number of seconds, 0 or more; got {latency!r}")
        random = Random(seed)
        self._cluster = FakeCluster(release_of(version), members, random.getrandbits)
        self._clock = Clock(self._on_due, self._on_left)
        self._inbox = Inbox(random, self._on_served, latency, self._clock.enter)
        self._hosts = {f"{node.name}:{CLIENT_PORT}": Host(node, self._inbox) for node in self._cluster.nodes}
        self._faults = FaultRules()
        self._calls = CallLog()
        self._server = self._make_server()
        self._networks: WeakSet[Network] = WeakSet()
        self._network = self.network()
        self.members = tuple(
            FakeMember(self._cluster, host, self._clock, self._set_timer) for host in self._hosts.values()
        )

    async def __aenter__(self) -> Self:
        if self._inbox.is_closed:
            raise ConfigError("the fake etcd was closed, and answers nothing more: make another one")
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @in_loop
    def close(self) -> None:
        """End every connection, and the timer. Clients should be closed before. What is stored can still be seen."""
        self._inbox.close()
        self._clock.stop()
        for host in self._hosts.values():
            host.stop()

    # Clients.

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The endpoints of the members; inside of `serve`, those of their sockets."""
        return tuple(member.endpoint for member in self.members)

    def engine(self, options: TransportOptions) -> Engine:
        """Make an engine that connects to this fake: `Client(fake.endpoints, engine=fake.engine)`."""
        return self._network.engine(options)

    def network(self) -> Network:
        """Make a network of its own for a client, which can break: `fake.client(engine=fake.network().engine)`."""
        network = Network(self._hosts, self._server)
        self._networks.add(network)
        return network

    def client(self, **options: "Unpack[ClientOptions]") -> "Client":
        """A client of all members: `async with fake.client() as client:`.

        Args:
            options: those of `Client`, besides the engine.
        """
        from etcd_aio.client import Client

        options.setdefault("engine", self.engine)
        return Client(self.endpoints, **options)

    @asynccontextmanager
    async def serve(self, address: str = "127.0.0.1") -> AsyncIterator[str]:
        """Serve the members over sockets too, for etcdctl and for clients in any language.

            async with fake.serve() as endpoint:
                await asyncio.create_subprocess_exec("etcdctl", "--endpoints", endpoint, "get", "a")

        A socket answers gRPC without TLS, and HTTP/1 for `/version`, `/health`, `/livez`, `/readyz` and `/metrics`.
        Clients in the process and on sockets share the state, and faults and members that stop or freeze concern both.
        While the block runs, the addresses of the sockets are the endpoints of the members: `endpoints`,
        `FakeMember.endpoint`, the member list. Only the loop of the fake answers: a program that waits for an answer
        must not block it.

        Args:
            address: where the first member is served: "HOST" for a free port, "HOST:PORT" or "unix:PATH". The others
                take free ports, the ports behind PORT, or the paths "PATH.2", "PATH.3" and so on.

        Yields:
            The endpoints of all members, separated by commas, as etcdctl and `Client` take them: one URL of the form
            "http://127.0.0.1:PORT" or "unix:PATH" if there is one member.

        Raises:
            ConfigError: the address has another form.
            OSError: the address cannot be used, or is taken.
        """
        from etcd_aio.fake.listener import Listener, places

        self._clock.enter()
        hosts = [member.host for member in self.members]
        listeners = [
            Listener(host, self._server, place) for host, place in zip(hosts, places(address, len(hosts)), strict=True)
        ]
        served: list[tuple[Node, str]] = []
        try:
            for host, listener in zip(hosts, listeners, strict=True):
                await listener.open()
                served.append((host.node, listener.place.url))
                host.node.served_at.append(listener.place.url)
                self._hosts[listener.place.key] = host  # clients of the engine may learn of it from the member list
            yield ",".join(url for _, url in served)
        finally:
            for node, url in served:
                node.served_at.remove(url)
            await asyncio.gather(*(listener.aclose() for listener in listeners))

    # The inside, as plain data.

    @property
    def revision(self) -> int:
        """The current revision."""
        return self._cluster.store.revision

    @in_loop
    def keys(self, prefix: KeyLike = b"") -> dict[bytes, bytes]:
        """The keys with a prefix, and their values."""
        wanted = to_bytes(prefix, "prefix")
        found = self._cluster.store.read(wanted or b"\x00", b"\x00")
        return {one.key: one.value for one in found if one.key.startswith(wanted)}

    @property
    @in_loop
    def leases(self) -> tuple[FakeLease, ...]:
        """The leases; those that expire first come first."""
        return leases_of(self._cluster, self._clock.now())

    @property
    @in_loop
    def watchers(self) -> tuple[FakeWatcher, ...]:
        """The watchers of all members."""
        return watchers_of(self._cluster)

    @property
    @in_loop
    def calls(self) -> tuple[FakeCall, ...]:
        """The unary calls that the members have answered, or were kept from answering, and the streams; oldest first.

        The last 100 000 are kept. A call that a client gave up before the member got it is not among them, nor are
        streams of gRPC's health service, which clients open by themselves.
        """
        return tuple(self._calls.calls(self._cluster.nodes))

    @in_loop
    def changes(self, first: int = 1) -> list[KeyValue]:
        """The changes from a revision on, in order, as far as they are not compacted. Deletions have version 0."""
        found = self._cluster.store.changes(first, self.revision)
        return [
            KeyValue(one.key, one.value, one.create_revision, one.mod_revision, one.version, one.lease) for one in found
        ]

    @in_loop
    def load(self, content: Mapping[str, KeyLike] | Mapping[bytes, KeyLike]) -> int:
        """Write keys, all in one revision. Returns the revision.

        Raises:
            TypeError: a key or a value is neither text nor bytes.
            ConfigError: a key is empty.
        """
        pairs = [(to_bytes(key, "a key"), to_bytes(value, "a value")) for key, value in content.items()]
        if any(not key for key, _ in pairs):
            raise ConfigError("a key must not be empty")
        batch = self._cluster.store.begin()
        for key, value in pairs:
            batch.put(key, value, 0)
        self._cluster.committed(batch.commit())
        return self.revision

    # Faults.

    @in_loop
    def elect(self, member: FakeMember) -> None:
        """Let a member lead from now on, in a new term.

        Raises:
            ConfigError: the member is of another fake, or it cannot lead: it does not run, is isolated, or reaches no
                majority.
        """
        node = self._node(member)
        if not self._cluster.may_lead(node):
            raise ConfigError(f"{member!r} cannot lead: it does not run, is isolated, or reaches no majority")
        self._cluster.elect(node, self._clock.now())
        self._set_timer()

    @contextmanager
    def fault(
        self,
        method: str,
        *,
        status: str | None = None,
        message: str | None = None,
        after_apply: bool = False,
        delay: float = 0.0,
        hang: bool = False,
        cut_after: int | None = None,
        goaway: bool = False,
        reset: bool = False,
        times: int | None = None,
        member: FakeMember | None = None,
    ) -> Iterator[Fault]:
        """Let calls go wrong in a block: `with fake.fault("KV/Put", status="UNAVAILABLE", after_apply=True, times=1):`.

        A stream goes wrong by `status` when it is opened, by `hang`, by `cut_after`, or by `reset`, which cuts before
        its first message; the other arguments are for unary calls. Of several rules for a call, the one that was made
        first decides, until its `times` are over. A rule without a fault lets calls pass, and counts them.

        Args:
            method: the calls, such as "KV/Put".
            status: the name of a gRPC status that they are refused with, or of one of etcd's reasons, such as
                "NO_LEADER".
            message: the text, instead of that of the reason.
            after_apply: the server runs the call before it is refused, or before its connection breaks.
            delay: seconds by which the answer is late.
            hang: there is no answer; the server runs the call.
            cut_after: messages of a stream behind which its connection breaks.
            goaway: the member announces that it takes no more calls on the connection.
            reset: the connection breaks instead of an answer.
            times: how many calls go wrong; all by default.
            member: the member on which they go wrong; all by default.

        Returns:
            Fault: the rule; `hits` counts the calls.

        Raises:
            ConfigError: there is no such method or status, or an argument is not for that method.
        """
        node = None if member is None else self._node(member)
        refusal = refusal_of(status, message)
        rule = Fault(method, node, refusal, after_apply, delay, hang, cut_after, goaway, reset, times)
        check(rule)
        self._faults.rules.append(rule)
        try:
            yield rule
        finally:
            self._faults.rules.remove(rule)

    @in_loop
    def compact(self, revision: int) -> None:
        """Compact the store: forget what was replaced or deleted before a revision.

        Raises:
            ConfigError: it is compacted already, or the revision is in the future.
        """
        try:
            self._cluster.store.compact(revision)
        except Refusal as refusal:
            now, compacted = self._cluster.store.revision, self._cluster.store.compacted
            text = f"compact({revision}): {refusal.text}; the revision is {now}, and compacted is {compacted}"
            raise ConfigError(text) from None

    @in_loop
    def back_up(self) -> FakeBackup:
        """Copy the keys and leases, as a copy of a data directory has them; `restore` puts them back."""
        return self._cluster.back_up()

    @in_loop
    def restore(self, backup: FakeBackup) -> None:
        """Put a backup back: what was written since is gone, and what was deleted since is there.

            backup = fake.back_up()
            ...
            for member in fake.members:
                member.stop()
            fake.restore(backup)
            for member in fake.members:
                member.start()

        Revisions go back, and the leases of that time last for their whole TTL again. Users and roles stay.

        Raises:
            ConfigError: a member runs, is frozen or is isolated.
        """
        if any(host.is_up or host.node.isolated is not None for host in self._hosts.values()):
            raise ConfigError(
                "a backup is restored while no member runs: stop() all, and heal() those that are isolated"
            )
        self._cluster.restore(backup)

    async def advance(self, seconds: float) -> None:
        """Let time pass for the server: leases expire. The clock of the loop, and so that of clients, stays.

        Raises:
            ConfigError: the seconds are negative.
        """
        if not 0 <= seconds < inf:
            raise ConfigError(f"seconds must be 0 or more; got {seconds!r}")
        self._clock.enter()
        end = self._clock.now() + seconds
        for _ in range(_MOST_STEPS):
            due = self._cluster.due()
            if due > end:
                break
            self._clock.ahead += max(due - self._clock.now(), 0.0)
            self._on_due()
            await asyncio.sleep(0)
        self._clock.ahead += max(end - self._clock.now(), 0.0)
        self._set_timer()

    def _make_server(self) -> FakeServer:
        return FakeServer(self._cluster, self._faults, self._calls, self._clock.now)

    def _node(self, member: FakeMember) -> Node:
        if member not in self.members:
            raise ConfigError(f"{member!r} is a member of another fake")
        return member.node

    # Time.

    def _on_served(self) -> None:
        self._set_timer()

    def _on_due(self) -> None:
        self._cluster.tick(self._clock.now())
        self._set_timer()

    def _on_left(self) -> None:
        """The loop has ended: forget what its clients have left open."""
        self._inbox.forget()
        self._cluster.forget_waiters()
        for host in self._hosts.values():
            host.forget()
        for network in self._networks:
            network.forget()
        for node in self._cluster.nodes:
            for stream in tuple(node.streams):
                stream.on_output = _nothing
                stream.close()

    def _set_timer(self) -> None:
        self._clock.wake_at(self._cluster.due())


def _nothing() -> None:
    pass
