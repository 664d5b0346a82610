"""types/keys.py: key ranges: prefix ends, and exactly one form for a range."""

import pytest

from etcd_aio.arguments import KeyLike
from etcd_aio.errors import EmptyKeyError, InvalidRequestError
from etcd_aio.types.keys import KeyRange, prefix_end, range_arguments


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


def test_the_error_for_no_form_lists_the_forms() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        KeyRange.of()
    assert str(caught.value) == (
        "the keys are named by exactly one of key, key with range_end=, prefix=, from_key=, all_keys=True; got none"
    )


def test_the_error_for_two_forms_names_both() -> None:
    with pytest.raises(InvalidRequestError, match=r"got key and prefix=$"):
        KeyRange.of("k", prefix="p")
    with pytest.raises(InvalidRequestError, match=r"got range_end= and from_key= and all_keys=True$"):
        KeyRange.of(range_end="z", from_key="k", all_keys=True)


@pytest.mark.parametrize("form", ["prefix", "from_key"])
def test_a_flag_in_place_of_a_key_is_refused_with_what_to_write(form: str) -> None:
    with pytest.raises(TypeError, match=f"write {form}='svc/' and no other key"):
        KeyRange.of("svc/", **{form: True})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=f"write {form}=... and no other key"):
        KeyRange.of(**{form: True})  # type: ignore[arg-type]


def test_an_interval_does_not_end_before_its_first_key() -> None:
    assert b"b" not in KeyRange.of("b", range_end="b")
    with pytest.raises(InvalidRequestError, match=r"range_end b'a' is before the first key b'b'$"):
        KeyRange.of("b", range_end="a")


def test_a_range_end_without_a_key_is_refused() -> None:
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


def test_the_repr_of_a_range() -> None:
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


def test_the_arguments_that_name_a_range() -> None:
    assert range_arguments(KeyRange(b"a")) == (b"a", None, None)
    assert range_arguments(KeyRange(b"a", b"c")) == (b"a", b"c", None)
    assert range_arguments(KeyRange.of(from_key="a")) == (None, None, b"a")
    assert range_arguments(KeyRange.of(all_keys=True)) == (None, None, b"\0")
