"""Header blocks: decoded once, as long as they mean the same; refused when they are a trap."""

import pytest
from hpack import Decoder, Encoder

from etcd_aio.http2 import ErrorCode, HeaderBlock, RemoteProtocolError
from etcd_aio.http2.headers import MAX_HEADER_LIST_SIZE, HeaderDecoder, HeaderEncoder

INDEXED = b"\x40"  # a literal that enters the table
PLAIN = b"\x00"  # one that does not


def literal(kind: bytes, name: bytes, value: bytes) -> bytes:
    return kind + bytes([len(name)]) + name + bytes([len(value)]) + value


def test_a_block_that_repeats_is_decoded_once() -> None:
    decoder = HeaderDecoder()
    block = literal(PLAIN, b"grpc-status", b"0")
    first = decoder.decode(block)
    first.note = "read"
    assert decoder.decode(block) is first
    assert first.fields == (("grpc-status", "0"),)


def test_a_block_that_enters_the_table_is_not_remembered_from_before() -> None:
    decoder = HeaderDecoder()
    head = b"\xbe"  # whatever entered last
    decoder.decode(literal(INDEXED, b"a", b"1"))
    assert decoder.decode(head).fields == (("a", "1"),)
    decoder.decode(literal(INDEXED, b"b", b"2"))
    assert decoder.decode(head).fields == (("b", "2"),)


def test_entries_that_come_and_go_within_one_block_are_noticed() -> None:
    # A table of one entry; a block that enters two leaves the same count, and maybe an entry at the same address.
    one = 32 + 2
    decoder, fresh = HeaderDecoder(), Decoder()
    size = b"\x3f" + bytes([one - 31])
    blocks = [size + literal(INDEXED, b"a", b"1"), b"\xbe"]
    for _ in range(20):
        blocks += [literal(INDEXED, b"a", b"2") + literal(INDEXED, b"a", b"3"), b"\xbe"]
        blocks += [literal(INDEXED, b"a", b"4") + literal(INDEXED, b"a", b"5"), b"\xbe"]
    for block in blocks:
        expected = tuple((name.decode(), value.decode()) for name, value in fresh.decode(block, raw=True))
        assert decoder.decode(block).fields == expected


def test_an_entry_that_leaves_behind_the_head_is_noticed() -> None:
    decoder = HeaderDecoder()
    decoder.decode(literal(INDEXED, b"a", b"1") + literal(INDEXED, b"b", b"2"))
    assert decoder.decode(b"\xbf").fields == (("a", "1"),)
    decoder.decode(b"\x3f" + bytes([34 - 31]))  # room for the head alone
    assert decoder.decode(b"\xbe").fields == (("b", "2"),)
    with pytest.raises(RemoteProtocolError):
        decoder.decode(b"\xbf")


def test_the_memory_of_blocks_is_bounded() -> None:
    decoder = HeaderDecoder()
    for number in range(2000):
        decoder.decode(literal(PLAIN, b"grpc-message", str(number).encode()))
    assert len(decoder._known) <= 256
    decoder._known.clear()
    decoder.decode(b"".join(literal(PLAIN, b"m", b"x" * 100) for _ in range(20)))
    assert not decoder._known, "what is long does not repeat"


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(b"\x80", id="index 0"),
        pytest.param(b"\xff\xff\xff\x7f", id="an index beyond the table"),
        pytest.param(b"\x3f\xe2\x1f", id="a table larger than allowed"),
        pytest.param(b"\x88\x20", id="a table size inside a block"),
        pytest.param(b"\x00\x05ab", id="a name cut short"),
        pytest.param(b"\x00\x81\x00\x00", id="Huffman code with wrong padding"),
        pytest.param(b"\x1f" + b"\xff" * 60_000, id="a number without an end"),
    ],
)
def test_what_is_no_hpack_is_refused_in_few_words(block: bytes) -> None:
    with pytest.raises(RemoteProtocolError) as raised:
        HeaderDecoder().decode(block)
    assert raised.value.code is ErrorCode.COMPRESSION_ERROR
    assert len(str(raised.value)) < 100


def test_no_error_quotes_the_block() -> None:
    with pytest.raises(RemoteProtocolError) as raised:
        HeaderDecoder().decode(literal(PLAIN, b"token", b"s3cret") + b"\x00\x7f" + b"s3cret")
    assert "s3cret" not in str(raised.value)
    assert raised.value.__suppress_context__


def test_a_bomb_is_refused() -> None:
    decoder = HeaderDecoder()
    decoder.decode(INDEXED + b"\x01a" + b"\x7f\xa1\x1e" + b"x" * 4000)
    with pytest.raises(RemoteProtocolError):
        decoder.decode(b"\xbe" * (MAX_HEADER_LIST_SIZE // 4000 + 1))


def test_text_is_kept_byte_for_byte() -> None:
    (field,) = HeaderDecoder().decode(literal(PLAIN, b"grpc-message", bytes(range(128, 228)))).fields
    assert field[1].encode("latin-1") == bytes(range(128, 228))


@pytest.mark.parametrize(
    ("fields", "is_flawed"),
    [
        (((":status", "200"), ("content-type", "application/grpc")), False),
        ((("grpc-status", "0"), ("grpc-message", " spaces are fine ")), False),
        ((), False),
        (((":status", "200"), (":status", "200")), True),
        ((("a", "b"), (":status", "200")), True),
        (((":path", "/"),), True),
        ((("Upper", "x"),), True),
        ((("with space", "x"),), True),
        ((("", "x"),), True),
        ((("connection", "close"),), True),
        ((("a", "x\r\ny"),), True),
        ((("a", "x\0y"),), True),
    ],
)
def test_what_rfc_9113_calls_malformed_is_flawed(fields: tuple[tuple[str, str], ...], is_flawed: bool) -> None:
    assert bool(HeaderBlock(fields).flaw) is is_flawed


def test_the_status_is_at_hand() -> None:
    assert HeaderBlock(((":status", "204"),)).status == "204"
    assert HeaderBlock((("grpc-status", "0"),)).status == ""


def test_our_blocks_are_made_once_and_mean_the_same_for_ever() -> None:
    encoder, decoder = HeaderEncoder(), Decoder()
    fields = ((":method", "POST"), (":path", "/a/b"), ("token", "s3cret"), ("user-agent", "x"))
    block = encoder.encode(fields)
    assert encoder.encode(fields) is block
    for _ in range(3):
        assert [(str(name), str(value)) for name, value in decoder.decode(block)] == list(fields)
    assert not decoder.header_table.dynamic_entries, "nothing entered the peer's table"


def test_a_secret_is_marked_never_to_be_indexed() -> None:
    (found,) = Decoder().decode(HeaderEncoder().encode((("token", "s3cret"),)))
    assert not found.indexable


def test_the_memory_of_our_blocks_is_bounded() -> None:
    encoder = HeaderEncoder()
    for number in range(1000):
        encoder.encode((("a", str(number)),))
    assert len(encoder._known) <= 256


def test_hpacks_own_encoder_is_understood() -> None:
    encoder, decoder = Encoder(), HeaderDecoder()
    for number in (1, 2, 1, 2, 3):
        fields = ((":status", "200"), ("content-type", "application/grpc"), ("x", str(number)))
        assert decoder.decode(encoder.encode(fields)).fields == fields
