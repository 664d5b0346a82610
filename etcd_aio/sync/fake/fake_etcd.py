"""FakeEtcd, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.fake.fake_etcd`: do not edit.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Unpack

from etcd_aio.arguments import KeyLike
from etcd_aio.fake import FakeBackup, FakeCall, FakeLease, FakeMember, FakeWatcher, Fault, Network
from etcd_aio.fake import FakeEtcd as AsyncFakeEtcd
from etcd_aio.sync.base_fake import BaseFake
from etcd_aio.transport import Engine, TransportOptions
from etcd_aio.types import KeyValue

if TYPE_CHECKING:
    from etcd_aio.sync.client import Client
    from etcd_aio.sync.config.options import ClientOptions


class FakeEtcd(BaseFake):
    """An etcd cluster in memory: `with FakeEtcd() as fake:`.

    Clients of it run as a whole, and only their connections are imitated. Requests that are there together are answered
    in an order that the seed decides: code that needs luck is found.

    Its clients are those that it makes. Any thread may look inside, set up and break what the clients use.

    Args:
        version: the etcd that it is, such as "3.6"; the newest by default.
        members: how many members it has. They share one store.
        seed: decides everything that the fake leaves to chance; what clients draw, such as ids and pauses, is theirs.
        latency: seconds from a request to its answer.

    Raises:
        ConfigError: the fake cannot be that version, or an argument is invalid.
    """

    def __init__(self, version: str = "3.7", *, members: int = 1, seed: int = 0, latency: float = 0.0) -> None:
        self._object = AsyncFakeEtcd(version, members=members, seed=seed, latency=latency)

    def close(self) -> None:
        """End every connection, and the timer. Clients should be closed before. What is stored can still be seen."""
        self._aio.close()

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The endpoints of the members; inside of `serve`, those of their sockets."""
        return self._aio.endpoints

    def engine(self, options: TransportOptions) -> Engine:
        """Make an engine that connects to this fake: `Client(fake.endpoints, engine=fake.engine)`."""
        return self._aio.engine(options)

    def network(self) -> Network:
        """Make a network of its own for a client, which can break: `fake.client(engine=fake.network().engine)`."""
        return self._aio.network()

    def client(self, **options: "Unpack[ClientOptions]") -> "Client":
        """A client of all members: `with fake.client() as client:`.

        Args:
            options: those of `Client`, besides the engine.
        """
        from etcd_aio.sync.client import Client

        options.setdefault("engine", self._aio.engine)
        return Client(self._aio.endpoints, **options)

    def serve(self, address: str = "127.0.0.1") -> AbstractContextManager[str]:
        """Serve the members over sockets too, for etcdctl and for clients in any language.

            with fake.serve() as endpoint:
                subprocess.run(["etcdctl", "--endpoints", endpoint, "get", "a"])

        A socket answers gRPC without TLS, and HTTP/1 for `/version`, `/health`, `/livez`, `/readyz` and `/metrics`.
        Clients in the process and on sockets share the state, and faults and members that stop or freeze concern both.
        While the block runs, the addresses of the sockets are the endpoints of the members: `endpoints`,
        `FakeMember.endpoint`, the member list.

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
        return self._within(self._aio.serve(address))

    @property
    def revision(self) -> int:
        """The current revision."""
        return self._aio.revision

    def keys(self, prefix: KeyLike = b"") -> dict[bytes, bytes]:
        """The keys with a prefix, and their values."""
        return self._aio.keys(prefix)

    @property
    def leases(self) -> tuple[FakeLease, ...]:
        """The leases; those that expire first come first."""
        return self._aio.leases

    @property
    def watchers(self) -> tuple[FakeWatcher, ...]:
        """The watchers of all members."""
        return self._aio.watchers

    @property
    def calls(self) -> tuple[FakeCall, ...]:
        """The unary calls that the members have answered, or were kept from answering, and the streams; oldest first.

        The last 100 000 are kept. A call that a client gave up before the member got it is not among them, nor are
        streams of gRPC's health service, which clients open by themselves.
        """
        return self._aio.calls

    def changes(self, first: int = 1) -> list[KeyValue]:
        """The changes from a revision on, in order, as far as they are not compacted. Deletions have version 0."""
        return self._aio.changes(first)

    def load(self, content: Mapping[str, KeyLike] | Mapping[bytes, KeyLike]) -> int:
        """Write keys, all in one revision. Returns the revision.

        Raises:
            TypeError: a key or a value is neither text nor bytes.
            ConfigError: a key is empty.
        """
        return self._aio.load(content)

    def elect(self, member: FakeMember) -> None:
        """Let a member lead from now on, in a new term.

        Raises:
            ConfigError: the member is of another fake, or it cannot lead: it does not run, is isolated, or reaches no
                majority.
        """
        self._aio.elect(member)

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
    ) -> AbstractContextManager[Fault]:
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
        return self._aio.fault(
            method,
            status=status,
            message=message,
            after_apply=after_apply,
            delay=delay,
            hang=hang,
            cut_after=cut_after,
            goaway=goaway,
            reset=reset,
            times=times,
            member=member,
        )

    def compact(self, revision: int) -> None:
        """Compact the store: forget what was replaced or deleted before a revision.

        Raises:
            ConfigError: it is compacted already, or the revision is in the future.
        """
        self._aio.compact(revision)

    def back_up(self) -> FakeBackup:
        """Copy the keys and leases, as a copy of a data directory has them; `restore` puts them back."""
        return self._aio.back_up()

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
        self._aio.restore(backup)

    def advance(self, seconds: float) -> None:
        """Let time pass for the server: leases expire. The clock of the clients stays.

        Raises:
            ConfigError: the seconds are negative.
        """
        self._run(self._aio.advance, seconds)

    @property
    def members(self) -> tuple[FakeMember, ...]:
        """The members; the first one leads at the beginning."""
        return self._aio.members
