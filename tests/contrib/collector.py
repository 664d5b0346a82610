"""Collector: takes the spans that servers export by OTLP over gRPC, and decodes what tests look at.

The messages are `opentelemetry.proto.collector.trace.v1`, read field by field: the numbers below are theirs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from grpclib.const import Cardinality, Handler
from grpclib.encoding.base import CodecBase
from grpclib.server import Server, Stream

from etcd_aio.testing.ports import free_ports

_EXPORT: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_RESOURCE_SPANS, _SCOPE_SPANS, _SPANS = 1, 2, 2
_TRACE_ID, _SPAN_ID, _PARENT, _NAME, _KIND, _BEGAN, _ENDED = 1, 2, 4, 5, 6, 7, 8
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5

SERVER: Final = 2
"""The kind of a span that a server makes for a call."""


@dataclass(frozen=True, slots=True)
class ServerSpan:
    """A span of a server.

    Attributes:
        trace: id of its trace.
        id: its own id.
        parent: id of its parent; 0 if it has none.
        name: its name.
        kind: such as `SERVER`.
        began, ended: nanoseconds since 1970.
    """

    trace: int
    id: int
    parent: int
    name: str
    kind: int
    began: int
    ended: int


class _Plain(CodecBase):
    """Passes the bytes of messages."""

    __content_subtype__ = "proto"  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]

    def encode(self, message: Any, message_type: Any) -> bytes:
        return bytes(message)

    def decode(self, data: bytes, message_type: Any) -> bytes:
        return data


class Collector:
    """`async with Collector() as collector:` listens at `collector.address`, such as "127.0.0.1:4317"."""

    def __init__(self) -> None:
        self.spans: list[ServerSpan] = []
        self.address = ""
        self._server = Server([self], codec=_Plain())

    async def __aenter__(self) -> Self:
        (port,) = free_ports(1)
        await self._server.start("127.0.0.1", port)
        self.address = f"127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    def __mapping__(self) -> Mapping[str, Handler]:
        return {_EXPORT: Handler(self._export, Cardinality.UNARY_UNARY, bytes, bytes)}

    async def _export(self, stream: "Stream[bytes, bytes]") -> None:
        request = await stream.recv_message()
        assert request is not None
        for resource in _all(request, _RESOURCE_SPANS):
            for scope in _all(resource, _SCOPE_SPANS):
                self.spans += [_span(data) for data in _all(scope, _SPANS)]
        await stream.send_message(b"")


def _span(data: bytes) -> ServerSpan:
    found = dict(_fields(data))

    def number(field: int) -> int:
        value = found.get(field, 0)
        return int.from_bytes(value, "big") if isinstance(value, bytes) else value

    name = found.get(_NAME, b"")
    assert isinstance(name, bytes)
    return ServerSpan(
        trace=number(_TRACE_ID),
        id=number(_SPAN_ID),
        parent=number(_PARENT),
        name=name.decode(),
        kind=number(_KIND),
        began=number(_BEGAN),
        ended=number(_ENDED),
    )


def _all(data: bytes, field: int) -> list[bytes]:
    """The embedded messages of a field."""
    return [value for number, value in _fields(data) if number == field and isinstance(value, bytes)]


def _fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """The fields of a message, in their order: their numbers and values."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        number, kind = divmod(varint(), 8)
        if kind == _VARINT:
            yield number, varint()
            continue
        if kind not in {_FIXED_64, _BYTES, _FIXED_32}:
            raise ValueError(f"wire type {kind}")
        length = varint() if kind == _BYTES else {_FIXED_64: 8, _FIXED_32: 4}[kind]
        value, at = data[at : at + length], at + length
        yield number, value if kind == _BYTES else int.from_bytes(value, "little")
