"""The server, as connections within the process and over sockets use it."""

from typing import Protocol

from etcd_aio.fake.documents import Document
from etcd_aio.fake.node import Node
from etcd_aio.fake.outcomes import Outcome, Pending
from etcd_aio.fake.sessions import Session
from etcd_aio.transport import Metadata


class Server(Protocol):
    """The server, as connections use it."""

    def unary(self, node: Node, path: str, payload: bytes, metadata: Metadata) -> bytes | Outcome | Pending:
        """Answer a call, or raise Refusal."""
        ...

    def stream(self, node: Node, path: str, metadata: Metadata) -> Session:
        """Open a stream, or raise Refusal."""
        ...

    def receive(self, session: Session, payload: bytes) -> None:
        """Let a stream take a request."""
        ...

    def document(self, node: Node, target: str) -> Document:
        """Answer GET over HTTP."""
        ...
