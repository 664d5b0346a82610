"""The inside of a fake, for tests: its leases, its watchers, and the calls that it got. Pure."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from etcd_aio.errors import StatusCode
from etcd_aio.fake.cluster import FakeCluster
from etcd_aio.fake.node import Node
from etcd_aio.fake.outcomes import NEVER, CallOutcome
from etcd_aio.fake.refusals import Refusal
from etcd_aio.fake.server_streams import Ending, ServerStream
from etcd_aio.fake.watch_stream import ServerWatchStream
from etcd_aio.fake.watchers import HubWatcher, WatcherState

_MOST_CALLS: Final = 100_000


@dataclass(frozen=True, slots=True)
class FakeLease:
    """A lease of a fake.

    Attributes:
        id: its id.
        ttl: seconds that it was granted for.
        remaining: seconds until it expires; 0 or less if it only waits to be revoked.
        keys: the keys that are attached to it, sorted.
    """

    id: int
    ttl: int
    remaining: float
    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class FakeWatcher:
    """A watcher of a fake.

    Attributes:
        member: the number of its member: `fake.members[watcher.member]`.
        id: its id on its stream; watchers of other streams may have the same.
        key: the first key.
        range_end: the key behind the last one, as in etcd's requests: empty for `key` alone, and a zero byte for all
            keys from `key` on.
        start_revision: the revision that it was asked to begin at; 0 for the next one.
        next_revision: its stream has got every event below this revision.
        is_synced: its stream has got every event up to the current revision.
    """

    member: int
    id: int
    key: bytes
    range_end: bytes
    start_revision: int
    next_revision: int
    is_synced: bool


@dataclass(frozen=True, slots=True)
class FakeCall:
    """A call that a fake got: a unary call, or a stream.

    Attributes:
        method: the service and the method, such as "KV/Put".
        member: the number of the member that got it: `fake.members[call.member]`.
        is_applied: the member ran it and did not refuse it: a write took place. This does not depend on what the
            caller heard, which a fault may decide. A stream was opened.
        status: the answer; None if there was none: a fault withheld it, or the stream has not ended.
        message: the text of the status.
        revision: the current revision after the call; at its beginning, for a stream.
    """

    method: str
    member: int
    is_applied: bool
    status: StatusCode | None
    message: str
    revision: int


def leases_of(cluster: FakeCluster, now: float) -> tuple[FakeLease, ...]:
    """The leases; those that expire first come first."""
    return tuple(FakeLease(one.id, one.ttl, one.expiry - now, tuple(sorted(one.keys))) for one in cluster.leases.all())


def watchers_of(cluster: FakeCluster) -> tuple[FakeWatcher, ...]:
    """The watchers of all members."""
    return tuple(
        _watcher(number, watch_id, watcher, node.store.revision)
        for number, node in enumerate(cluster.nodes)
        for stream in node.streams
        if isinstance(stream, ServerWatchStream)
        for watch_id, watcher in stream.watchers()
    )


def _watcher(member: int, id: int, watcher: HubWatcher, revision: int) -> FakeWatcher:
    is_synced = watcher.state is WatcherState.SYNCED
    next_revision = max(watcher.next, revision + 1) if is_synced else watcher.next
    return FakeWatcher(member, id, watcher.key, watcher.end, watcher.start, next_revision, is_synced)


@dataclass(frozen=True, slots=True)
class _Record:
    """A call, as it is kept: without its stream or its exception, which would keep objects of the client alive."""

    path: str
    node: Node
    is_applied: bool
    revision: int
    ending: Ending


class CallLog:
    """The last 100 000 calls."""

    def __init__(self) -> None:
        self._records: deque[_Record] = deque(maxlen=_MOST_CALLS)

    def answered(self, path: str, node: Node, revision: int, refusal: Refusal | None = None) -> None:
        """Take a unary call that the server has answered."""
        self._records.append(_Record(path, node, refusal is None, revision, Ending.of(refusal)))

    def decided(self, path: str, node: Node, revision: int, outcome: CallOutcome, *, is_applied: bool) -> None:
        """Take a unary call whose answer is late, or not the server's."""
        is_answered = not outcome.loses_connection and outcome.delay != NEVER
        ending = Ending.of(outcome.refusal) if is_answered else Ending()
        self._records.append(_Record(path, node, is_applied, revision, ending))

    def opened(self, path: str, node: Node, revision: int, stream: ServerStream) -> None:
        """Take a stream."""
        self._records.append(_Record(path, node, True, revision, stream.ending))

    def calls(self, nodes: Sequence[Node]) -> Iterator[FakeCall]:
        """The calls, oldest first."""
        numbers = {node.id: number for number, node in enumerate(nodes)}
        for one in self._records:
            method = one.path.rpartition(".")[2]
            ending = one.ending
            code = ending.code if ending.is_over else None
            yield FakeCall(method, numbers[one.node.id], one.is_applied, code, ending.text, one.revision)
