"""Key ranges against models small enough to be obvious."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.arguments import encode_key, to_bytes
from etcd_aio.errors import EtcdError, InvalidRequestError
from etcd_aio.types.keys import KeyRange, prefix_end

# The edges and one byte between: with these, every carry and every neighbour occurs.
ALPHABET = (b"\x00", b"a", b"\xfe", b"\xff")
UNIVERSE = tuple(b"".join(letters) for length in range(1, 5) for letters in product(ALPHABET, repeat=length))
PREFIXES = tuple(b"".join(letters) for length in range(4) for letters in product(ALPHABET, repeat=length))


@pytest.mark.parametrize("prefix", PREFIXES, ids=repr)
def test_a_prefix_holds_exactly_the_keys_that_begin_with_it(prefix: bytes) -> None:
    interval = KeyRange.of(prefix=prefix)
    assert {key for key in UNIVERSE if key in interval} == {key for key in UNIVERSE if key.startswith(prefix)}


@given(st.binary(max_size=8), st.binary(min_size=1, max_size=8), st.binary(max_size=4))
def test_a_prefix_of_any_bytes(prefix: bytes, key: bytes, rest: bytes) -> None:
    interval = KeyRange.of(prefix=prefix)
    assert (key in interval) == key.startswith(prefix)
    assert prefix + rest in interval or not prefix + rest


@given(st.binary(max_size=8))
def test_a_prefix_end_is_no_longer_than_the_prefix_and_past_it(prefix: bytes) -> None:
    end = prefix_end(prefix)
    if end == b"\0":
        assert set(prefix) <= {0xFF}
    else:
        assert end > prefix
        assert len(end) <= len(prefix)
        assert not end.startswith(prefix)


@given(st.binary(min_size=1, max_size=6), st.binary(min_size=1, max_size=6), st.binary(min_size=1, max_size=6))
def test_intervals(first: bytes, end: bytes, key: bytes) -> None:
    assert (key in KeyRange.of(first)) == (key == first)
    assert (key in KeyRange.of(from_key=first)) == (key >= first)
    assert key in KeyRange.of(all_keys=True)
    if end != b"\0" and end < first:
        with pytest.raises(InvalidRequestError):
            KeyRange.of(first, range_end=end)
    elif end != b"\0":
        assert (key in KeyRange.of(first, range_end=end)) == (first <= key < end)


@given(
    st.none() | st.text(max_size=4) | st.binary(max_size=4),
    st.none() | st.text(max_size=4) | st.binary(max_size=4),
    st.none() | st.text(max_size=4) | st.binary(max_size=4),
    st.none() | st.text(max_size=4) | st.binary(max_size=4),
    st.booleans(),
)
def test_exactly_one_form_or_a_clear_error(
    key: str | bytes | None,
    range_end: str | bytes | None,
    prefix: str | bytes | None,
    from_key: str | bytes | None,
    all_keys: bool,
) -> None:
    forms = [key is not None, prefix is not None, from_key is not None, all_keys]
    is_one_form = sum(forms) == 1 and (range_end is None or key is not None)
    is_backwards = range_end is not None and key is not None and to_bytes(range_end, "end") < to_bytes(key, "key")
    if is_one_form and not is_backwards and key not in ("", b"") and range_end not in ("", b"", "\0", b"\0"):
        assert KeyRange.of(key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys).key
    else:
        # One form alone is refused only for its own contents: an empty key, or an end that ends nothing.
        with pytest.raises(EtcdError) as caught:
            KeyRange.of(key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys)
        assert is_one_form or isinstance(caught.value, InvalidRequestError)


@given(st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"])))
def test_text_keys_are_their_utf8(key: str) -> None:
    assert encode_key(key) == encode_key(key.encode()) == key.encode()
