"""A member of a fake cluster, as tests handle it."""

from collections.abc import Callable

from etcd_aio.base.reprs import when_constructed
from etcd_aio.fake.clock import Clock, in_loop
from etcd_aio.fake.cluster import FakeCluster
from etcd_aio.fake.host import Host
from etcd_aio.fake.node import Node
from etcd_aio.fake.server_streams import HealthStream


class FakeMember:
    """One member: stop it, freeze it, isolate it, from any thread."""

    def __init__(self, cluster: FakeCluster, host: Host, clock: Clock, changed: Callable[[], None]) -> None:
        self._cluster = cluster
        self.host = host
        self._clock = clock
        self._changed = changed

    @when_constructed
    def __repr__(self) -> str:
        return f"<FakeMember {self.endpoint}>"

    @property
    def node(self) -> Node:
        """Its state."""
        return self.host.node

    @property
    def id(self) -> int:
        """Its id."""
        return self.host.node.id

    @property
    def endpoint(self) -> str:
        """Its endpoint: for clients of the fake's engine, and inside of `FakeEtcd.serve` for all."""
        return self.host.node.client_urls[0]

    @property
    def is_leader(self) -> bool:
        """Whether it leads."""
        return self._cluster.leader is self.host.node

    @property
    def connections(self) -> int:
        """How many connections it has."""
        return len(self.host.connections)

    @in_loop
    def stop(self) -> None:
        """Kill the process: connections break, and further ones are refused. It forgets its tokens and watchers."""
        self.host.stop()
        self.node.tokens.forget()
        self.node.is_serving = True
        self._set_running()

    @in_loop
    def start(self) -> None:
        """Start the process again, if it was stopped; one that is frozen needs `resume`. Its data is as before."""
        self.host.start()
        self._set_running()

    @in_loop
    def pause(self) -> None:
        """Freeze the process: connections stay, and nothing is answered. A process that was stopped stays so."""
        self.host.pause()
        self._set_running()

    @in_loop
    def resume(self) -> None:
        """Let the process go on; it answers what it got meanwhile."""
        self.host.resume()
        self._set_running()

    @in_loop
    def isolate(self) -> None:
        """Cut it off from the other members: it has no leader, and what it serves is stale. Clients still reach it."""
        self._cluster.isolate(self.node, self._clock.now())
        self._changed()

    @in_loop
    def heal(self) -> None:
        """Let it reach the other members again."""
        self._cluster.heal(self.node, self._clock.now())
        self._changed()

    @in_loop
    def set_serving(self, is_serving: bool) -> None:
        """Let it say by gRPC's health service whether it serves. It answers all the same.

        A member that etcd has told to (`StopGRPCServiceOnDefrag`) says that it does not serve while it defragments.
        """
        if self.node.is_serving is not is_serving:
            self.node.is_serving = is_serving
            for stream in tuple(self.node.streams):
                if isinstance(stream, HealthStream):
                    stream.tell()

    def _set_running(self) -> None:
        self.node.is_running = self.host.is_up and not self.host.is_paused
        self._cluster.availability_changed(self._clock.now())
        self._changed()
