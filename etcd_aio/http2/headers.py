"""Header blocks: HPACK, with every block remembered while it means the same.

Knows: hpack's tables, and what RFC 9113 calls malformed in any block. Never knows: what a field means.

Theory. A member answers every call with the same few blocks, and we ask with the same few. An HPACK block means the
same as long as the dynamic table is the same, so a block is decoded, or made, once, and looked up from then on until
some block changes the table.

Our fields enter the peer's table the first time they are sent, while there is room; nothing is ever pushed out again. A
call is then a dozen bytes, which cost a Go server 7 % less of a whole get than the same fields in full. A block is made
as it is sent and not before, since blocks that enter something must reach the peer in the order of their making.
"""

import re
from typing import Final

from hpack import Decoder, Encoder, NeverIndexedHeaderTuple

from etcd_aio.http2.errors import RemoteProtocolError
from etcd_aio.http2.frames import ErrorCode
from etcd_aio.http2.settings import DEFAULT_TABLE_SIZE

Fields = tuple[tuple[str, str], ...]

MAX_HEADER_LIST_SIZE: Final = 32 * 1024
"""Bytes a header list may take, decoded. gRPC servers stay under 8 KiB; grpc-go accepts 16 MiB, which is a bomb."""
_MOST_DECODED: Final = 8 * MAX_HEADER_LIST_SIZE  # decoded for the sake of the table alone; more ends the connection
_ENTRY_OVERHEAD: Final = 32  # bytes that an entry of the table counts beyond its name and value (RFC 7541, 4.1)
_MAX_REMEMBERED: Final = 256  # blocks; a peer that never repeats itself must not fill the memory
_MAX_REMEMBERED_SIZE: Final = 1024  # bytes of one; what repeats is short

_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9a-z]+")
_FORBIDDEN_IN_VALUES: Final = re.compile("[\0\r\n]")
_OF_HTTP_1: Final = frozenset({"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"})


class HeaderBlock:
    """A decoded block.

    Attributes:
        fields: names and values, in order, each byte as one character.
        status: of HTTP; empty in trailers.
        flaw: what makes the block malformed (RFC 9113, 8.2 and 8.3) or too large; empty if nothing does.
        note: whatever its reader concluded from it; kept as long as the block is remembered.
    """

    __slots__ = ("fields", "flaw", "note", "status")

    def __init__(self, fields: Fields, flaw: str = "") -> None:
        self.fields = fields
        self.status = fields[0][1] if fields and fields[0][0] == ":status" else ""
        self.flaw = flaw or _flaw(fields)
        self.note: object = None


def _flaw(fields: Fields) -> str:
    for position, (name, value) in enumerate(fields):
        if name.startswith(":"):
            if name != ":status" or position:
                return "a pseudo-header out of place"
        elif not _NAME.fullmatch(name):
            return "a field name that is none"
        elif name in _OF_HTTP_1:
            return "a field that belongs to HTTP/1"
        if _FORBIDDEN_IN_VALUES.search(value):
            return "a field value with a line end or NUL"
    return ""


class HeaderDecoder:
    """The peer's blocks."""

    __slots__ = ("_decoder", "_known")

    def __init__(self) -> None:
        self._decoder = Decoder(max_header_list_size=_MOST_DECODED)
        self._known: dict[bytes, HeaderBlock] = {}

    def decode(self, block: bytes) -> HeaderBlock:
        """The fields of a block; one that is larger than allowed has none, and a flaw.

        Raises:
            RemoteProtocolError: it is no HPACK, or far larger than allowed.
        """
        known = self._known.get(block)
        if known is not None:
            return known
        before = self._table_state()
        try:
            raw = self._decoder.decode(block, raw=True)
            if sum(len(name) + len(value) + _ENTRY_OVERHEAD for name, value in raw) > MAX_HEADER_LIST_SIZE:
                decoded = HeaderBlock((), "a header list larger than allowed")
            else:
                decoded = HeaderBlock(tuple((_text(name), _text(value)) for name, value in raw))
        except Exception as error:  # HPACKError, and whatever a hostile block may make hpack raise besides
            # By its name alone: hpack's texts quote the block, which may be long, or a secret.
            raise RemoteProtocolError(ErrorCode.COMPRESSION_ERROR, f"header block: {type(error).__name__}") from None
        if not _is_same(before, self._table_state()):
            self._known.clear()  # every index may mean something else now, also in this very block
        elif len(block) <= _MAX_REMEMBERED_SIZE:
            if len(self._known) >= _MAX_REMEMBERED:
                self._known.clear()
            self._known[block] = decoded
        return decoded

    def _table_state(self) -> tuple[object, int, int]:
        """What differs whenever the dynamic table does: entries enter only at its head, and leave only at its end."""
        table = self._decoder.header_table
        entries = table.dynamic_entries
        return entries[0] if entries else None, len(entries), table.maxsize


def _is_same(before: tuple[object, int, int], after: tuple[object, int, int]) -> bool:
    # The head is held, not its id() alone: a new entry could take the place in memory of one that was dropped.
    return before[0] is after[0] and before[1:] == after[1:]


def _text(raw: bytes | str) -> str:
    # Any bytes fit, and can be had back; text that is no ASCII is its reader's to understand.
    return raw if isinstance(raw, str) else raw.decode("latin-1")


class RequestHeaders:
    """Fields of ours, with their block as long as it means them.

    Args:
        fields: names and values.
        is_lasting: whether they come again and again, so that they are worth a place in the peer's table.
    """

    __slots__ = ("block", "fields", "generation", "is_lasting")

    def __init__(self, fields: Fields, *, is_lasting: bool = True) -> None:
        self.fields = fields
        self.is_lasting = is_lasting
        self.block = b""
        self.generation = -1  # of the table that `block` was made for


class HeaderEncoder:
    """Our blocks.

    Args:
        secrets: names of fields that must not enter a table, the peer's or another's on the way.
    """

    __slots__ = ("_encoder", "_entered", "_room", "_secrets", "generation")

    def __init__(self, secrets: frozenset[str] = frozenset()) -> None:
        self._encoder = Encoder()
        self._secrets = secrets
        self._entered: set[tuple[str, str]] = set()
        self._room = DEFAULT_TABLE_SIZE
        self.generation = 0

    def encode(self, headers: RequestHeaders) -> bytes:
        """The block that must be sent now, before any other is made."""
        if headers.generation == self.generation:
            return headers.block
        has_entered = len(self._entered)
        is_resized = bool(self._encoder.table_size_changes)
        block = self._encoder.encode([self._field(*field, headers.is_lasting) for field in headers.fields])
        if is_resized or len(self._entered) != has_entered:
            self.generation += 1  # every index may mean something else now, also in this very block
        else:
            headers.block, headers.generation = block, self.generation
        return block

    def give_up_table(self) -> None:
        """The peer keeps less than we count on: from the next block on nothing is in its table."""
        if self._room or self._entered:
            self._encoder.header_table_size = 0  # which the next block says first (RFC 9113, 4.3.1)
            self._entered.clear()
            self._room = 0
            self.generation += 1

    def _field(self, name: str, value: str, is_lasting: bool) -> tuple[str, str] | NeverIndexedHeaderTuple:
        if name not in self._secrets:
            if (name, value) in self._entered:
                return name, value
            size = len(name) + len(value) + _ENTRY_OVERHEAD
            if is_lasting and size <= self._room:
                # What the static table holds whole does not enter, and is counted all the same.
                self._room -= size
                self._entered.add((name, value))
                return name, value
        # "Never indexed" asks every hop to keep it out of its own tables (RFC 7541, 7.1.3). A name that is in a table,
        # or a pair such as ":method: POST", is an index all the same.
        return NeverIndexedHeaderTuple(name, value)
