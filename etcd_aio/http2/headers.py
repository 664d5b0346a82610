"""Header blocks: HPACK, with every block remembered while it means the same.

Knows: hpack's tables, and what RFC 9113 calls malformed in any block. Never knows: what a field means.

Theory. A member answers every call with the same few blocks. An HPACK block means the same as long as the dynamic
table is the same, so a received block is decoded once, and its bytes are looked up from then on until some block
changes the table.
"""

import re
from typing import Final

from hpack import Decoder, Encoder, NeverIndexedHeaderTuple

from etcd_aio.http2.errors import RemoteProtocolError
from etcd_aio.http2.frames import ErrorCode

Fields = tuple[tuple[str, str], ...]

MAX_HEADER_LIST_SIZE: Final = 32 * 1024
"""Bytes a header list may take, decoded. gRPC servers stay under 8 KiB; grpc-go accepts 16 MiB, which is a bomb."""
TABLE_SIZE_ZERO: Final = b"\x20"
"""The instruction, before a block, that our half of the tables is empty and stays so (RFC 7541, 6.3)."""
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
        flaw: what makes the block malformed (RFC 9113, 8.2 and 8.3); empty if nothing does.
        note: whatever its reader concluded from it; kept as long as the block is remembered.
    """

    __slots__ = ("fields", "flaw", "note", "status")

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.status = fields[0][1] if fields and fields[0][0] == ":status" else ""
        self.flaw = _flaw(fields)
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
        self._decoder = Decoder(max_header_list_size=MAX_HEADER_LIST_SIZE)
        self._known: dict[bytes, HeaderBlock] = {}

    def decode(self, block: bytes) -> HeaderBlock:
        """The fields of a block.

        Raises:
            RemoteProtocolError: it is no HPACK, or larger than allowed.
        """
        known = self._known.get(block)
        if known is not None:
            return known
        before = self._table_state()
        try:
            raw = self._decoder.decode(block, raw=True)
            fields = tuple((_text(name), _text(value)) for name, value in raw)
        except Exception as error:  # HPACKError, and whatever a hostile block may make hpack raise besides
            # By its name alone: hpack's texts quote the block, which may be long, or a secret.
            raise RemoteProtocolError(ErrorCode.COMPRESSION_ERROR, f"header block: {type(error).__name__}") from None
        decoded = HeaderBlock(fields)
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


class HeaderEncoder:
    """Our blocks. No field enters the peer's table, so a block means the same for ever and is made once."""

    __slots__ = ("_encoder", "_known")

    def __init__(self) -> None:
        self._encoder = Encoder()
        self._known: dict[Fields, bytes] = {}

    def encode(self, fields: Fields) -> bytes:
        """The block of these fields."""
        known = self._known.get(fields)
        if known is None:
            if len(self._known) >= _MAX_REMEMBERED:
                self._known.clear()
            # "Never indexed" also asks every hop to keep a token out of its own tables (RFC 7541, 7.1.3); what the
            # static table holds whole, such as ":method: POST", is an index all the same.
            known = self._encoder.encode([NeverIndexedHeaderTuple(*field) for field in fields])
            self._known[fields] = known
        return known
