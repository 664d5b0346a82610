"""The world of a run: a fake cluster, the networks of its clients, and the record of everything that happens in it."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from math import inf, nextafter
from typing import Any, Final, Protocol, TypeAlias

from etcd_aio import Client, methods
from etcd_aio.fake import FakeEtcd
from etcd_aio.fake.link import Link
from etcd_aio.fake.network import Network
from etcd_aio.fake.node import Node
from etcd_aio.fake.outcomes import CallOutcome, PendingCall
from etcd_aio.fake.refusals import Refusal
from etcd_aio.fake.server import FakeServer
from etcd_aio.fake.server_streams import ServerStream
from etcd_aio.transport import Metadata
from tests.faults.ownership import Violation
from tests.simulation.early_leases import EarlyLeases
from tests.simulation.history import History
from tests.simulation.plan import Plan
from tests.simulation.trace import Trace
from tests.simulation.watch_delivery import RELEASES, WatchDelivery

Believer: TypeAlias = Callable[[int], Iterable[str]]

_MOMENT: Final = 0.001  # seconds, in which a task ends that is cancelled
_SPREAD: Final = (0.2, 1.0, 1.0, 3.0)
"""How long a way is beside the average, if they differ."""


class Replaceable(Protocol):
    """Processes, of which one may be killed."""

    def replace(self) -> None:
        """Kill one, and start another one in its place."""


class TracedServer(FakeServer):
    """A server of a fake that records what reaches it."""

    def __init__(self, fake: "TracedEtcd", *arguments: Any) -> None:
        super().__init__(*arguments)
        self._fake = fake
        self._random = random.Random(f"parts {fake.plan.seed}")
        self.served = 0

    def unary(self, node: Node, path: str, payload: bytes, metadata: Metadata) -> bytes | CallOutcome | PendingCall:
        trace = self._fake.trace
        self.served += 1
        trace.add(f"{node.name} {path}", payload)
        try:
            outcome = super().unary(node, path, payload, metadata)
        except Refusal as refusal:
            trace.add(f"{node.name} refused: {refusal.text}")
            raise
        if isinstance(outcome, CallOutcome):
            trace.add(f"{node.name} {outcome.delay} {outcome.loses_connection}", outcome.reply or b"")
        elif isinstance(outcome, PendingCall):
            trace.add(f"{node.name} waits for a leader")
        else:
            trace.add(f"{node.name} answered at revision {self._fake.revision}", outcome)
        return outcome

    def stream(self, node: Node, path: str, metadata: Metadata) -> ServerStream:
        self._fake.trace.add(f"{node.name} {path} opened")
        stream = super().stream(node, path, metadata)
        plan = self._fake.plan
        if path != methods.WATCH.path or not (plan.lag or plan.divides or plan.has_early_marks):
            return stream
        return WatchDelivery(stream, plan.lag, self._random, divides=plan.divides, has_early_marks=plan.has_early_marks)

    def receive(self, stream: ServerStream, payload: bytes) -> None:
        self.served += 1
        self._fake.trace.add(f"a request on {type(stream).__name__}", payload)
        super().receive(stream, payload)


class TracedEtcd(FakeEtcd):
    """A fake whose server records what reaches it."""

    def __init__(self, trace: Trace, plan: Plan) -> None:
        self.trace = trace
        self.plan = plan
        super().__init__(plan.version, members=plan.members, seed=plan.seed)
        if plan.has_early_marks:
            self._cluster.release = replace(self._cluster.release, version=RELEASES[plan.version])
        self.early_leases = EarlyLeases(plan.drift)
        self.early_leases.install(self._cluster)

    def _make_server(self) -> TracedServer:
        self.server = TracedServer(self, self._cluster, self._faults, self._calls, self._clock.now)
        return self.server


class World:
    """The world.

    Args:
        plan: what it is made of.
        trace: gets what happens.

    Attributes:
        fake: the cluster.
        history: the history of its store.
        operator: a client that is in no trouble but that of the members.
        networks: those of the clients that live.
        calm: set when there are no more faults.
        is_compacted: whether a part of the history was compacted.
        meddled: keys that were deleted by an operator, by themselves or with their leases.
        faults: how often each was made.
        killable: the loads whose processes may be killed.
        believers: told when a lease has ended; each returns what it still does in the name of the lease.
        violations: that were seen while it lived.
    """

    def __init__(self, plan: Plan, trace: Trace) -> None:
        self.plan = plan
        self.trace = trace
        self.fake = TracedEtcd(trace, plan)
        self.history = History(self.fake)
        self.networks: list[Network] = []
        self.operator = self.fake.client(timeout=2.0)
        self.violations: list[Violation] = []
        self.believers: list[Believer] = []
        self.calm = asyncio.Event()
        self.is_compacted = False
        self.meddled: set[str] = set()
        self.faults: Counter[str] = Counter()
        self.killable: list[Replaceable] = []
        self._instant = 0.0
        self._ways = self.random("ways")
        self._latencies: dict[Link, float] = {}
        self.fake.early_leases.on_end = self._lease_ended

    def instant(self) -> float:
        """The time, later than all instants before: so it tells what came first within one turn of the loop, too."""
        self._instant = max(asyncio.get_running_loop().time(), nextafter(self._instant, inf))
        return self._instant

    def random(self, what: str) -> random.Random:
        """Randomness of its own for one purpose, so that the others draw the same without it."""
        return random.Random(f"{what} {self.plan.seed}")

    def network(self) -> Network:
        """A network for one more client."""
        network = self.fake.network()
        self.networks.append(network)
        self.heal(network)
        return network

    def client(self, **options: Any) -> Client:
        """A client on a network of its own."""
        return self.fake.client(engine=self.network().engine, **options)

    def heal(self, network: Network) -> None:
        """Let a network be as it was in the beginning."""
        network.heal()
        self.quicken(network)

    def quicken(self, network: Network) -> None:
        """Let a network be as fast as it was in the beginning."""
        for link in network.links:
            link.latency = self._latency(link)

    def _latency(self, link: Link) -> float:
        if link not in self._latencies:
            self._latencies[link] = self.plan.latency * (self._ways.choice(_SPREAD) if self.plan.spread else 1.0)
        return self._latencies[link]

    def _lease_ended(self, lease: int) -> None:
        """Etcd has ended a lease: a moment later nothing may be done in its name."""
        asyncio.get_running_loop().call_later(_MOMENT, self._ask_believers, lease)

    def _ask_believers(self, lease: int) -> None:
        self.violations += (
            Violation("held after its lease", text) for believer in self.believers for text in believer(lease)
        )

    def compact(self, revision: int) -> None:
        """Compact the history, up to a revision or a little less.

        etcd 3.4.25 forgets a deletion at the very revision of a compaction, so that watches which begin there miss it
        (mended in 3.4.36). That defect would hide others.
        """
        self.history.collect()
        while self.plan.version == "3.4" and self.history.deletes_at(revision):
            revision -= 1
        self.fake.compact(revision)
        self.is_compacted = True

    def heal_all(self) -> None:
        """End everything that is still in trouble."""
        for member in self.fake.members:
            member.start()
            member.resume()
            member.heal()
        for network in self.networks:
            self.heal(network)
