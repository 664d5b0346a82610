"""Keys: encoding, prefix ends, and exactly one form for a range."""

import pytest

from etcd_aio.errors import EmptyKeyError, InvalidRequestError
from etcd_aio.types.keys import KeyLike, KeyRange, encode, encode_key, flag, prefix_end


@pytest.mark.parametrize(
    ("key", "encoded"),
    [
        ("k", b"k"),
        ("ü/☃", "ü/☃".encode()),
        (b"\xff\x00", b"\xff\x00"),
        (bytearray(b"k"), b"k"),
        (memoryview(b"k"), b"k"),
    ],
)
def test_encode_key_takes_text_and_bytes(key: KeyLike, encoded: bytes) -> None:
    assert encode_key(key) == encoded
    assert type(encode_key(key)) is bytes


def test_encoding_captures_by_value() -> None:
    buffer = bytearray(b"before")
    encoded = encode(buffer, "value")
    buffer[:] = b"after!"
    assert encoded == b"before"


@pytest.mark.parametrize("key", ["", b"", bytearray()])
def test_the_empty_key_is_refused(key: KeyLike) -> None:
    with pytest.raises(EmptyKeyError, match="from_key is empty"):
        encode_key(key, "from_key")


@pytest.mark.parametrize("key", [None, 5, 1.5, ["k"], object(), True])
def test_a_key_of_another_type_is_a_type_error(key: object) -> None:
    with pytest.raises(TypeError, match=f"key must be str or bytes, got {type(key).__name__}"):
        encode_key(key)  # type: ignore[arg-type]


def test_surrogates_are_refused_without_telling_the_text() -> None:
    with pytest.raises(InvalidRequestError, match="value has a lone surrogate at position 6") as caught:
        encode("s3cret\udc80", "value")
    assert caught.value.__context__ is None
    assert "s3cret" not in repr(caught.value)


@pytest.mark.parametrize(
    ("prefix", "end"),
    [
        (b"a", b"b"),
        (b"/foo/", b"/foo0"),  # and not /fop: that would take in the neighbours /foo0 to /fooz
        (b"a\xff", b"b"),
        (b"a\xff\xff", b"b"),
        (b"a\xffb", b"a\xffc"),
        (b"\x00", b"\x01"),
        (b"\xfe", b"\xff"),
        (b"\xff", b"\0"),
        (b"\xff\xff", b"\0"),
        (b"", b"\0"),
    ],
)
def test_prefix_end(prefix: bytes, end: bytes) -> None:
    assert prefix_end(prefix) == end


def test_every_form_of_a_range() -> None:
    assert KeyRange.of("k") == KeyRange(b"k", b"")
    assert KeyRange.of("a", range_end="b") == KeyRange(b"a", b"b")
    assert KeyRange.of(prefix="p/") == KeyRange(b"p/", b"p0")
    assert KeyRange.of(prefix=b"\xff") == KeyRange(b"\xff", b"\0")
    assert KeyRange.of(prefix="") == KeyRange(b"\0", b"\0")
    assert KeyRange.of(from_key="k") == KeyRange(b"k", b"\0")
    assert KeyRange.of(from_key="") == KeyRange(b"\0", b"\0")
    assert KeyRange.of(all_keys=True) == KeyRange(b"\0", b"\0")


def test_no_form_says_what_to_write() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        KeyRange.of()
    assert str(caught.value) == (
        "the keys are named by exactly one of key, key with range_end=, prefix=, from_key=, all_keys=True; got none"
    )


def test_two_forms_are_both_named() -> None:
    with pytest.raises(InvalidRequestError, match=r"got key and prefix=$"):
        KeyRange.of("k", prefix="p")
    with pytest.raises(InvalidRequestError, match=r"got range_end= and from_key= and all_keys=True$"):
        KeyRange.of(range_end="z", from_key="k", all_keys=True)


def test_an_interval_does_not_end_before_its_first_key() -> None:
    assert b"b" not in KeyRange.of("b", range_end="b")
    with pytest.raises(InvalidRequestError, match=r"range_end b'a' is before the first key b'b'$"):
        KeyRange.of("b", range_end="a")


def test_a_range_end_alone_asks_for_its_key() -> None:
    with pytest.raises(InvalidRequestError, match="write key with range_end="):
        KeyRange.of(range_end="b")


@pytest.mark.parametrize(("end", "instead"), [("", "the key alone, or from_key="), (b"\0", "from_key=")])
def test_range_ends_with_a_hidden_meaning_are_refused(end: KeyLike, instead: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"write {instead}"):
        KeyRange.of("a", range_end=end)


def test_an_empty_key_is_refused_where_a_key_is_named() -> None:
    with pytest.raises(EmptyKeyError):
        KeyRange.of("")
    with pytest.raises(EmptyKeyError):
        KeyRange.of("", range_end="b")


@pytest.mark.parametrize("form", ["key", "range_end", "prefix", "from_key"])
def test_a_form_of_another_type_is_a_type_error(form: str) -> None:
    arguments: dict[str, object] = {"key": "a", "range_end": 5} if form == "range_end" else {form: 5}
    with pytest.raises(TypeError, match=f"{form} must be str or bytes, got int"):
        KeyRange.of(**arguments)  # type: ignore[arg-type]


def test_what_a_range_says_of_itself() -> None:
    assert KeyRange.of(all_keys=True).is_all_keys
    assert not KeyRange.of(from_key="k").is_all_keys
    assert not KeyRange(b"\0").is_all_keys
    assert repr(KeyRange.of("k")) == "KeyRange(b'k')"
    assert repr(KeyRange.of(prefix="p/")) == "KeyRange(b'p/', b'p0')"
    assert "x" * 65 not in repr(KeyRange.of("x" * 500, range_end="y" * 500))


def test_membership() -> None:
    assert b"a" in KeyRange.of("a")
    assert b"aa" not in KeyRange.of("a")
    assert b"aa" in KeyRange.of("a", range_end="b")
    assert b"b" not in KeyRange.of("a", range_end="b")
    assert b"\xff\xff" in KeyRange.of(from_key="a")
    assert b"Z" not in KeyRange.of(from_key="a")


@pytest.mark.parametrize("value", ["no", 0, 1, None, ""])
def test_a_flag_is_true_or_false_and_nothing_like_it(value: bool) -> None:
    with pytest.raises(TypeError, match="physical must be True or False"):
        flag(value, "physical")
    with pytest.raises(TypeError, match="all_keys must be True or False"):
        KeyRange.of(all_keys=value)


@pytest.mark.parametrize("value", [True, False])
def test_a_flag_passes_through(value: bool) -> None:
    assert flag(value, "physical") is value
