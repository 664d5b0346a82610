"""http2/headers.py: header blocks: decoded once, as long as they mean the same; refused when they are a trap."""

import pytest
from hpack import Decoder, Encoder

from etcd_aio.http2 import ErrorCode, HeaderBlock, RemoteProtocolError
from etcd_aio.http2.headers import MAX_HEADER_LIST_SIZE, HeaderDecoder, HeaderEncoder, RequestHeaders

INDEXED = b"\x40"  # a literal that enters the table
PLAIN = b"\x00"  # one that does not


def literal(kind: bytes, name: bytes, value: bytes) -> bytes:
    return kind + bytes([len(name)]) + name + bytes([len(value)]) + value


def test_a_block_that_repeats_is_decoded_once() -> None:
    decoder = HeaderDecoder()
    block = literal(PLAIN, b"grpc-status", b"0")
    first = decoder.decode(block)
    first.accepted_as = "read"
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
    assert len(decoder.known) <= 256
    decoder.known.clear()
    decoder.decode(b"".join(literal(PLAIN, b"m", b"x" * 100) for _ in range(20)))
    assert not decoder.known, "what is long does not repeat"


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(b"\x80", id="index 0"),
        pytest.param(b"\xff\xff\xff\x7f", id="an index beyond the table"),
        pytest.param(b"\x3f\xe2\x1f", id="a table larger than allowed"),
        pytest.param(b"\x88\x20", id="a table size inside a block"),
        pytest.param(b"\x20\x3f\xe1\x1f\x3f\x01\x88", id="three table sizes"),
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


def test_a_block_announces_two_table_sizes() -> None:
    decoded = HeaderDecoder().decode(b"\x20\x3f\xe1\x1f\x88")
    assert decoded.fields == ((":status", "200"),)


def test_no_error_quotes_the_block() -> None:
    with pytest.raises(RemoteProtocolError) as raised:
        HeaderDecoder().decode(literal(PLAIN, b"token", b"s3cret") + b"\x00\x7f" + b"s3cret")
    assert "s3cret" not in str(raised.value)
    assert raised.value.__suppress_context__


def test_a_bomb_is_refused() -> None:
    decoder = HeaderDecoder()
    decoder.decode(INDEXED + b"\x01a" + b"\x7f\xa1\x1e" + b"x" * 4000)
    with pytest.raises(RemoteProtocolError):
        decoder.decode(b"\xbe" * (8 * MAX_HEADER_LIST_SIZE // 4000 + 1))


def test_a_list_that_is_too_large_is_not_kept_and_the_table_follows() -> None:
    decoder = HeaderDecoder()
    decoder.decode(INDEXED + b"\x01a" + b"\x7f\xa1\x1e" + b"x" * 4000)
    large = decoder.decode(b"\xbe" * (MAX_HEADER_LIST_SIZE // 4000 + 1) + INDEXED + b"\x01b\x01c")
    assert (large.fields, large.flaw) == ((), "a header list larger than allowed")
    assert decoder.decode(b"\xbe").fields == (("b", "c"),)


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


FIELDS = ((":method", "POST"), (":path", "/a/b"), ("token", "s3cret"), ("user-agent", "x"))


def fields_in(decoder: Decoder, block: bytes) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(value)) for name, value in decoder.decode(block))


def test_our_fields_enter_the_table_once_and_are_indices_ever_after() -> None:
    encoder, decoder = HeaderEncoder(), Decoder()
    sent = RequestHeaders(FIELDS[:2] + FIELDS[3:])
    first = encoder.encode(sent)
    assert fields_in(decoder, first) == sent.fields
    second = encoder.encode(sent)
    assert len(second) == 3
    assert encoder.encode(sent) is second, "made once"
    for _ in range(3):
        assert fields_in(decoder, second) == sent.fields


def test_a_block_is_made_anew_once_others_have_entered_the_table() -> None:
    encoder, decoder = HeaderEncoder(), Decoder()
    one, other = (RequestHeaders(((":method", "POST"), (":path", path))) for path in ("/one", "/other"))
    for sent in (one, one, other, one, other, one):
        assert fields_in(decoder, encoder.encode(sent)) == sent.fields


def test_what_does_not_last_only_borrows_a_name() -> None:
    encoder, decoder = HeaderEncoder(), Decoder()
    usual = RequestHeaders((("grpc-timeout", "5000m"),))
    rare = RequestHeaders((("grpc-timeout", "120m"),), is_lasting=False)
    assert fields_in(decoder, encoder.encode(usual)) == usual.fields
    entries = len(decoder.header_table.dynamic_entries)
    block = encoder.encode(rare)
    assert len(block) < len("grpc-timeout")
    assert fields_in(decoder, block) == rare.fields
    assert len(decoder.header_table.dynamic_entries) == entries == 1
    assert len(encoder.encode(usual)) == 1


def test_a_secret_is_marked_never_to_be_indexed_and_enters_no_table() -> None:
    encoder, decoder = HeaderEncoder(frozenset({"token"})), Decoder()
    for _ in range(3):
        found = decoder.decode(encoder.encode(RequestHeaders(FIELDS)))
        assert [field.indexable for field in found] == [True, True, False, True]
        assert b"s3cret" not in repr(decoder.header_table.dynamic_entries).encode()


def test_the_table_is_filled_and_nothing_is_pushed_out_of_it() -> None:
    encoder, decoder = HeaderEncoder(), Decoder()
    first = RequestHeaders(((":path", "/first"),))
    encoder_sent = [first, *(RequestHeaders(((":path", f"/{number:060}"),)) for number in range(100))]
    for sent in encoder_sent * 2:
        assert fields_in(decoder, encoder.encode(sent)) == sent.fields
    assert len(encoder.encode(first)) <= 2, "still an index"
    generation = encoder.generation
    for sent in encoder_sent:
        encoder.encode(sent)
    assert encoder.generation == generation, "no block changes the table any more"


def test_without_a_table_every_block_stands_alone() -> None:
    encoder, decoder = HeaderEncoder(), Decoder()
    sent = RequestHeaders(FIELDS)
    fields_in(decoder, encoder.encode(sent))
    encoder.give_up_table()
    encoder.give_up_table()
    block = encoder.encode(sent)
    assert block[:1] == b"\x20"
    assert fields_in(decoder, block) == FIELDS
    alone = encoder.encode(sent)
    for _ in range(2):
        assert fields_in(Decoder(), alone) == FIELDS
    assert not decoder.header_table.dynamic_entries


def test_hpacks_own_encoder_is_understood() -> None:
    encoder, decoder = Encoder(), HeaderDecoder()
    for number in (1, 2, 1, 2, 3):
        fields = ((":status", "200"), ("content-type", "application/grpc"), ("x", str(number)))
        assert decoder.decode(encoder.encode(fields)).fields == fields


def test_fields_of_one_request_come_last_and_enter_no_table() -> None:
    encoder, decoder = HeaderEncoder(), Decoder()
    base = RequestHeaders(((":method", "POST"), ("x-lasting", "1")))
    table = []
    for number in range(3):
        block = encoder.encode(base.with_own((("traceparent", f"00-{number}"), ("long", "v" * 300))))
        found = [(str(name), str(value)) for name, value in decoder.decode(block)]
        assert found == [*base.fields, ("traceparent", f"00-{number}"), ("long", "v" * 300)]
        table.append(list(decoder.header_table.dynamic_entries))
    assert table[0] == table[1] == table[2]
    assert [entry[0] for entry in table[0]] == [b"x-lasting"]
    assert encoder.encode(base) == base.block, "the lasting fields are encoded once"


def test_fields_of_one_request_are_marked_as_never_indexed() -> None:
    encoder = HeaderEncoder()
    block = encoder.encode(RequestHeaders(()).with_own((("a", "1"),)))
    assert block == literal(b"\x10", b"a", b"1")
