"""etcd's own lock and election services (v3lock and v3election), by raw gRPC: the messages are made by hand.

etcd runs the recipes of the Go client for the caller, who keeps the lease alive.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from grpclib.client import Channel
from grpclib.const import Cardinality
from grpclib.encoding.base import CodecBase

Fields = dict[int, "bytes | int"]


class Raw(CodecBase):
    """Messages are bytes."""

    __content_subtype__ = "proto"  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]

    def encode(self, message: Any, message_type: Any) -> bytes:
        return bytes(message)

    def decode(self, data: bytes, message_type: Any) -> Any:
        return data


def _varint(number: int) -> bytes:
    number &= 2**64 - 1
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def encode(fields: Fields) -> bytes:
    """A message with these fields: numbers are varints, bytes are strings or messages."""
    parts = []
    for number, value in fields.items():
        if isinstance(value, int):
            parts.append(_varint(number << 3) + _varint(value))
        else:
            parts.append(_varint(number << 3 | 2) + _varint(len(value)) + value)
    return b"".join(parts)


def decode(data: bytes) -> Fields:
    """The fields of a message, of which each comes once at most."""
    fields: Fields = {}
    at = 0

    def varint() -> int:
        nonlocal at
        number = shift = 0
        while True:
            byte = data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            fields[tag >> 3] = varint()
        else:
            assert tag & 7 == 2, "these messages have numbers and bytes only"
            size = varint()
            fields[tag >> 3] = data[at : at + size]
            at += size
    return fields


def content(fields: Fields, number: int) -> bytes:
    """A field that is bytes; empty if it is missing."""
    value = fields.get(number, b"")
    assert isinstance(value, bytes)
    return value


@dataclass(frozen=True)
class Kv:
    """What these services tell of a key."""

    key: bytes
    value: bytes
    create_revision: int


class Services:
    """The calls of both services on one member."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def _call(self, path: str, request: Fields) -> Fields:
        async with self._channel.request(path, Cardinality.UNARY_UNARY, bytes, bytes) as stream:
            await stream.send_message(encode(request), end=True)
            reply = await stream.recv_message()
        assert reply is not None
        return decode(reply)

    # v3lock.

    async def lock(self, name: str, lease: int) -> bytes:
        """Acquire a lock; returns its key."""
        return content(await self._call("/v3lockpb.Lock/Lock", {1: name.encode(), 2: lease}), 2)

    async def unlock(self, key: bytes) -> None:
        """Release it."""
        await self._call("/v3lockpb.Lock/Unlock", {1: key})

    # v3election.

    async def campaign(self, name: str, lease: int, value: str) -> bytes:
        """Wait until this candidate leads; returns what the other calls take."""
        reply = await self._call("/v3electionpb.Election/Campaign", {1: name.encode(), 2: lease, 3: value.encode()})
        return content(reply, 2)

    async def proclaim(self, leader: bytes, value: str) -> None:
        """Change the value."""
        await self._call("/v3electionpb.Election/Proclaim", {1: leader, 2: value.encode()})

    async def resign(self, leader: bytes) -> None:
        """Give the leadership up."""
        await self._call("/v3electionpb.Election/Resign", {1: leader})

    async def leader(self, name: str) -> Kv:
        """The leader; raises if there is none."""
        return _kv(await self._call("/v3electionpb.Election/Leader", {1: name.encode()}))

    @asynccontextmanager
    async def observe(self, name: str) -> AsyncIterator[AsyncIterator[Kv]]:
        """The leaders, as the server tells them."""
        path: Final = "/v3electionpb.Election/Observe"
        async with self._channel.request(path, Cardinality.UNARY_STREAM, bytes, bytes) as stream:
            await stream.send_message(encode({1: name.encode()}), end=True)

            async def leaders() -> AsyncIterator[Kv]:
                while (reply := await stream.recv_message()) is not None:
                    yield _kv(decode(reply))

            yield leaders()
            await stream.cancel()


def _kv(reply: Fields) -> Kv:
    kv = decode(content(reply, 2))
    created = kv.get(2, 0)
    assert isinstance(created, int)
    return Kv(content(kv, 1), content(kv, 5), created)


@asynccontextmanager
async def services(endpoint: str) -> AsyncIterator[Services]:
    """The services of one member, over a connection of their own."""
    url = urlsplit(endpoint)
    channel = Channel(url.hostname, url.port, codec=Raw())
    try:
        yield Services(channel)
    finally:
        channel.close()
