"""Header blocks: HPACK, with a cache of encoded and decoded blocks.

The requests of a client use few different header blocks, and so do a member's answers. A block has the same meaning as
long as the dynamic table does not change, so each is decoded or encoded once, until some block changes the table.

Request fields enter the peer's table the first time they are sent, while there is room, and are never evicted. The
headers of a call are then a dozen bytes, which saves a Go server 7 % of the work of a get. A block is encoded when it
is sent and not before, since blocks that change the table must reach the peer in the order of their encoding.
"""

import re
from typing import Final

from hpack import Decoder, Encoder, NeverIndexedHeaderTuple
from hpack.hpack import encode_integer

from etcd_aio.http2.errors import RemoteProtocolError
from etcd_aio.http2.frames import ErrorCode
from etcd_aio.http2.settings import DEFAULT_TABLE_SIZE

Fields = tuple[tuple[str, str], ...]

MAX_HEADER_LIST_SIZE: Final = 32 * 1024
"""Bytes a header list may take, decoded. gRPC servers stay under 8 KiB; grpc-go accepts 16 MiB, which is a bomb."""
_MOST_DECODED: Final = 2 * MAX_HEADER_LIST_SIZE  # decoded only to keep the table in step; more ends the connection
_ENTRY_OVERHEAD: Final = 32  # bytes that an entry of the table counts beyond its name and value (RFC 7541, 4.1)
_MAX_REMEMBERED: Final = 256  # blocks; limits the memory for a peer whose blocks never repeat
_MAX_REMEMBERED_SIZE: Final = 1024  # bytes of a block; those that repeat are short

# A table that was resized between two blocks announces its smallest and its last size (RFC 7541, 4.2), and no more.
_MANY_TABLE_SIZES: Final = re.compile(rb"(?:[\x20-\x3e]|\x3f[\x80-\xff]*[\0-\x7f]){3}")

_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9a-z]+")
_FORBIDDEN_IN_VALUES: Final = re.compile("[\0\r\n]")
_OF_HTTP_1: Final = frozenset({"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"})


class HeaderBlock:
    """A decoded block.

    Attributes:
        fields: names and values, in order, each byte as one character.
        status: the HTTP status; empty in trailers.
        flaw: why the block is malformed (RFC 9113, 8.2 and 8.3) or too large; empty if it is valid.
        accepted_as: the role in which the reader accepted the block before; cached with the block, so that a block that
            repeats is checked once.
    """

    __slots__ = ("accepted_as", "fields", "flaw", "status")

    def __init__(self, fields: Fields, flaw: str = "") -> None:
        self.fields = fields
        self.status = fields[0][1] if fields and fields[0][0] == ":status" else ""
        self.flaw = flaw or _flaw(fields)
        self.accepted_as: object = None


def _flaw(fields: Fields) -> str:
    for position, (name, value) in enumerate(fields):
        if name.startswith(":"):
            if name != ":status" or position:
                return "a pseudo-header out of place"
        elif not _NAME.fullmatch(name):
            return "an invalid field name"
        elif name in _OF_HTTP_1:
            return "a field that belongs to HTTP/1"
        if _FORBIDDEN_IN_VALUES.search(value):
            return "a field value with a line end or NUL"
    return ""


class HeaderDecoder:
    """Decodes the peer's blocks.

    Attributes:
        known: the blocks that were decoded since the table has changed, by their bytes.
        fresh: bytes of decoded header lists, but for blocks that were known, since its reader has set it to 0. Their
            time is in proportion to this: a byte of a block may stand for a whole field.
    """

    def __init__(self) -> None:
        self.fresh = 0
        self._decoder = Decoder(max_header_list_size=_MOST_DECODED)
        self.known: dict[bytes, HeaderBlock] = {}

    def decode(self, block: bytes) -> HeaderBlock:
        """Decode a block. One that is too large has no fields, and a flaw.

        Raises:
            RemoteProtocolError: the block is not valid HPACK, or far too large.
        """
        known = self.known.get(block)
        if known is not None:
            return known
        if _MANY_TABLE_SIZES.match(block):  # they take time, and are no part of what is decoded
            raise RemoteProtocolError(ErrorCode.COMPRESSION_ERROR, "header block: more than two table sizes")
        before = self._table_state()
        try:
            raw = self._decoder.decode(block, raw=True)
            size = sum(len(name) + len(value) + _ENTRY_OVERHEAD for name, value in raw)
            self.fresh += size
            if size > MAX_HEADER_LIST_SIZE:
                decoded = HeaderBlock((), "a header list larger than allowed")
            else:
                decoded = HeaderBlock(tuple((_text(name), _text(value)) for name, value in raw))
        except Exception as error:  # HPACKError, and what hpack raises for hostile blocks
            # Only its name: hpack's texts quote the block, which may be long or secret.
            raise RemoteProtocolError(ErrorCode.COMPRESSION_ERROR, f"header block: {type(error).__name__}") from None
        if not _is_same(before, self._table_state()):
            self.known.clear()  # indexes have changed their meaning, also in this block
        elif len(block) <= _MAX_REMEMBERED_SIZE:
            if len(self.known) >= _MAX_REMEMBERED:
                self.known.clear()
            self.known[block] = decoded
        return decoded

    def _table_state(self) -> tuple[object, int, int]:
        """A value that changes with the dynamic table: entries are added at its head and evicted at its end."""
        table = self._decoder.header_table
        entries = table.dynamic_entries
        return entries[0] if entries else None, len(entries), table.maxsize


def _is_same(before: tuple[object, int, int], after: tuple[object, int, int]) -> bool:
    # Compares the objects, not their id(): a new entry could have the address of an evicted one.
    return before[0] is after[0] and before[1:] == after[1:]


def _text(raw: bytes | str) -> str:
    # Latin-1 keeps every byte; the reader interprets text that is not ASCII.
    return raw if isinstance(raw, str) else raw.decode("latin-1")


class RequestHeaders:
    """Request fields, with their cached block.

    Args:
        fields: names and values.
        is_lasting: whether they repeat, so that they should enter the peer's table.

    Attributes:
        base: fields that come before those of `fields`, which then never enter a table; None if there are none.
    """

    __slots__ = ("base", "block", "fields", "generation", "is_lasting")

    def __init__(self, fields: Fields, *, is_lasting: bool = True) -> None:
        self.fields = fields
        self.is_lasting = is_lasting
        self.block = b""
        self.generation = -1  # of the table that `block` was encoded with
        self.base: RequestHeaders | None = None

    def with_own(self, fields: Fields) -> "RequestHeaders":
        """Return these fields, followed by others that are sent once and enter no table."""
        found = RequestHeaders(fields)
        found.base = self
        return found


def never_indexed(name: str, value: str) -> bytes:
    """A field as "literal, never indexed, new name" without Huffman coding (RFC 7541, 6.2.3), which is quick."""
    return b"\x10" + _string(name) + _string(value)


def _string(text: str) -> bytes:
    raw = text.encode("ascii")
    return bytes(encode_integer(len(raw), 7)) + raw


class HeaderEncoder:
    """Encodes request headers.

    Args:
        secrets: names of fields that must not enter a table of the peer or of a proxy.

    Attributes:
        generation: changes with the table; blocks of another generation are outdated.
    """

    def __init__(self, secrets: frozenset[str] = frozenset()) -> None:
        self._encoder = Encoder()
        self._secrets = secrets
        self._entered: set[tuple[str, str]] = set()
        self._room = DEFAULT_TABLE_SIZE
        self.generation = 0

    def encode(self, headers: RequestHeaders) -> bytes:
        """The block, which must be sent before any other is encoded."""
        if headers.generation == self.generation:
            return headers.block
        if headers.base is not None:
            return self.encode(headers.base) + b"".join(never_indexed(*field) for field in headers.fields)
        has_entered = len(self._entered)
        is_resized = bool(self._encoder.table_size_changes)
        block = self._encoder.encode([self._field(*field, headers.is_lasting) for field in headers.fields])
        if is_resized or len(self._entered) != has_entered:
            self.generation += 1  # indexes have changed their meaning, also in this block
        else:
            headers.block, headers.generation = block, self.generation
        return block

    def give_up_table(self) -> None:
        """Stop using the peer's table, since it is smaller than the default."""
        if self._room or self._entered:
            self._encoder.header_table_size = 0  # announced at the start of the next block (RFC 9113, 4.3.1)
            self._entered.clear()
            self._room = 0
            self.generation += 1

    def _field(self, name: str, value: str, is_lasting: bool) -> tuple[str, str] | NeverIndexedHeaderTuple:
        if name not in self._secrets:
            if (name, value) in self._entered:
                return name, value
            size = len(name) + len(value) + _ENTRY_OVERHEAD
            if is_lasting and size <= self._room:
                # Fields of the static table do not enter, but are counted anyway.
                self._room -= size
                self._entered.add((name, value))
                return name, value
        # "Never indexed" keeps the value out of every hop's tables (RFC 7541, 7.1.3). Names and pairs that are already
        # in a table, such as ":method: POST", are still sent as an index.
        return NeverIndexedHeaderTuple(name, value)
