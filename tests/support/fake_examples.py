"""The examples of `tests/support/transport.py` behind the engine of a fake."""

import asyncio
from random import Random
from typing import Protocol

from etcd_aio.errors import StatusCode
from etcd_aio.fake.documents import HttpDocument
from etcd_aio.fake.host import Host, Inbox
from etcd_aio.fake.link import Link
from etcd_aio.fake.node import Node
from etcd_aio.fake.outcomes import CallOutcome
from etcd_aio.fake.refusals import Refusal
from etcd_aio.fake.server import FakeServer
from etcd_aio.fake.server_streams import ServerStream
from etcd_aio.fake.store import MvccStore
from etcd_aio.fake.watchers import WatchHub
from etcd_aio.transport import Metadata

_FLOOD = 100  # messages; a fake has no flow control, and keeps them all


class _Counts(Protocol):
    """What the examples count."""

    def slow_begins(self) -> None: ...

    def slow_ends(self) -> None: ...


class FakeExamples(FakeServer):
    """A server without sockets. Each server that runs has an authority."""

    def __init__(self) -> None:
        self._links: dict[str, Link] = {}
        self._counts: dict[str, _Counts] = {}

    def listen(self, authority: str, counts: _Counts) -> None:
        """Begin to run."""
        node = Node(1, authority, WatchHub(MvccStore(keeps_tombstone=True)))
        self._links[authority] = Link(Host(node, Inbox(Random(1), lambda: None, 0.0)))
        self._counts[authority] = counts

    def stop(self, authority: str) -> None:
        """End all connections."""
        link = self._links.pop(authority, None)
        if link is not None:
            link.host.stop()

    def link_to(self, authority: str) -> Link | None:
        """The way to a server."""
        return self._links.get(authority)

    def unary(self, node: Node, path: str, payload: bytes, metadata: Metadata) -> bytes | CallOutcome:
        match path:
            case "/x/Echo":
                return payload
            case "/x/Sized":
                return b"x" * int(payload)
            case "/x/Fail":
                number, _, text = payload.decode().partition(" ")
                raise Refusal.other(StatusCode(int(number)), text)
            case "/x/Slow":
                counts = self._counts[node.name]
                counts.slow_begins()
                asyncio.get_running_loop().call_later(float(payload), counts.slow_ends)
                return CallOutcome(b"at last", delay=float(payload))
            case _:
                raise Refusal.other(StatusCode.UNIMPLEMENTED, "Method not found")

    def stream(self, node: Node, path: str, metadata: Metadata) -> ServerStream:
        return {"/x/Count": _Count, "/x/Flood": _Flood, "/x/Chat": _Chat}[path]()

    def receive(self, stream: ServerStream, payload: bytes) -> None:
        stream.receive(payload, 0.0)

    def document(self, node: Node, target: str) -> HttpDocument:
        return HttpDocument(404, "text/plain", b"")


class _Example(ServerStream):
    def say(self, payload: bytes) -> None:
        self.out.append(payload)
        self.on_output()


class _Count(_Example):
    def receive(self, payload: bytes, now: float) -> None:
        for number in range(int(payload)):
            self.say(str(number).encode())


class _Flood(_Example):
    def receive(self, payload: bytes, now: float) -> None:
        for _ in range(_FLOOD):
            self.say(b"x" * 2**16)


class _Chat(_Example):
    def receive(self, payload: bytes, now: float) -> None:
        self.say(payload)
        if payload == b"fail":
            self.end(Refusal.other(StatusCode.ABORTED, "as asked"))
