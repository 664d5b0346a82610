"""Snapshots of fake members: streams that send valid or invalid chunks."""

import hashlib
from collections.abc import Callable

from etcd_aio import codec, pb
from etcd_aio.errors import AttemptFailure
from tests.support.fake_engine import FakeStream

CHUNK = 1000


def trailer(database: bytes) -> bytes:
    return hashlib.sha256(database).digest()


def messages(database: bytes, end: bytes | None = None, chunk: int = CHUNK) -> list[bytes]:
    """The replies: the database in chunks, then its hash, or `end` in its place."""
    found = []
    for at in range(0, len(database), chunk):
        blob = database[at : at + chunk]
        left = len(database) - at - len(blob)
        found.append(codec.encode(pb.SnapshotResponse(blob=blob, remaining_bytes=left, version="3.7.0")))
    last = trailer(database) if end is None else end
    return [*found, codec.encode(pb.SnapshotResponse(blob=last, version="3.7.0"))]


def sends(*replies: bytes, then: AttemptFailure | None = None, hangs: bool = False) -> Callable[[FakeStream], None]:
    """Send all replies on every stream, and then end the stream, fail it, or stay silent."""

    def on_stream(stream: FakeStream) -> None:
        def on_message(request: bytes) -> None:
            for reply in replies:
                stream.say(reply)
            if then is not None:
                stream.fail(then)
            elif not hangs:
                stream.end()

        stream.on_message = on_message

    return on_stream
