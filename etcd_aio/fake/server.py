"""FakeServer: answers calls and streams, unless a fault of a test decides otherwise, and notes them."""

from collections.abc import Callable
from functools import partial

from etcd_aio.errors import MalformedReplyError, StatusCode
from etcd_aio.fake.cluster import FakeCluster
from etcd_aio.fake.dispatch import Dispatcher
from etcd_aio.fake.documents import HttpDocument, document
from etcd_aio.fake.faults import FaultRules
from etcd_aio.fake.inspection import CallLog
from etcd_aio.fake.node import Node
from etcd_aio.fake.outcomes import CallOutcome, PendingCall
from etcd_aio.fake.refusals import Refusal
from etcd_aio.fake.server_streams import ServerStream
from etcd_aio.methods import HEALTH_WATCH
from etcd_aio.transport import Metadata


class FakeServer:
    """The server, as connections within the process and over sockets use it.

    Args:
        calls: gets a note of each call and stream.
        clock: returns the time, in seconds.
    """

    def __init__(self, cluster: FakeCluster, faults: FaultRules, calls: CallLog, clock: Callable[[], float]) -> None:
        self._cluster = cluster
        self._faults = faults
        self._calls = calls
        self._clock = clock
        self._dispatcher = Dispatcher(cluster)

    def unary(self, node: Node, path: str, payload: bytes, metadata: Metadata) -> bytes | CallOutcome | PendingCall:
        """Answer a call; see `Dispatcher.unary`.

        Raises:
            Refusal: the status, if it is not OK.
        """
        now = self._clock()
        fault = self._faults.match(node, path)
        is_applied = False

        def serve() -> bytes | PendingCall:
            nonlocal is_applied
            reply = self._dispatcher.unary(node, path, payload, metadata, now)
            is_applied = isinstance(reply, bytes)
            return reply

        try:
            answer = serve() if fault is None else fault.outcome(serve)
        except Refusal as refusal:
            self._note(path, node, refusal)
            raise
        if isinstance(answer, PendingCall):
            answer.on_answer = partial(self._note, path, node)
        elif isinstance(answer, CallOutcome):
            self._calls.decided(path, node, self._cluster.store.revision, answer, is_applied=is_applied)
        else:
            self._note(path, node, answer)
        return answer

    def stream(self, node: Node, path: str, metadata: Metadata) -> ServerStream:
        """Open a stream.

        Raises:
            Refusal: there is no such stream, or a fault refuses it.
        """
        fault = self._faults.match(node, path)
        try:
            if fault is not None and fault.refusal is not None:
                raise Refusal.other(fault.refusal.code, fault.refusal.text)
            stream = self._dispatcher.stream(node, path, metadata, self._clock())
        except Refusal as refusal:
            self._note(path, node, refusal)
            raise
        if fault is not None:
            stream = fault.stream(stream)
        if path != HEALTH_WATCH.path:  # which a client opens by itself, about a second after it has connected
            self._calls.opened(path, node, self._cluster.store.revision, stream)
        return stream

    def receive(self, stream: ServerStream, payload: bytes) -> None:
        """Let a stream take a request."""
        try:
            stream.receive(payload, self._clock())
        except MalformedReplyError:  # raised in the turn that serves all, it would lose the requests of others
            text = "grpc: failed to unmarshal the received message: proto: cannot parse invalid wire-format data"
            stream.end(Refusal.other(StatusCode.INTERNAL, text))

    def document(self, node: Node, target: str) -> HttpDocument:
        """Answer GET over HTTP."""
        return document(self._cluster, node, target)

    def _note(self, path: str, node: Node, answer: bytes | Refusal) -> None:
        """Note a call that the server has answered."""
        refusal = answer if isinstance(answer, Refusal) else None
        self._calls.answered(path, node, self._cluster.store.revision, refusal)
