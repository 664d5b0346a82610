r"""Key ranges: one key or an interval of keys, as etcd encodes it.

etcd has one encoding for all ranges. Without a `range_end` it is the key alone; with `range_end` b"\0" it is every key
from `key` on; any other `range_end` ends the half-open interval [key, range_end). b"\0" is the smallest key, so
[b"\0", b"\0") is the whole keyspace. Users name the form they mean instead: `prefix=`, `from_key=`, `all_keys=True`.
"""

from typing import Final, Self

from etcd_aio.arguments import KeyLike, encode_key, flag, to_bytes
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import InvalidRequestError
from etcd_aio.types.kv import shown_key

_SMALLEST_KEY: Final = b"\0"
NO_END: Final = b"\0"
_FORMS: Final = "exactly one of key, key with range_end=, prefix=, from_key=, all_keys=True"


def prefix_end(prefix: bytes) -> bytes:
    r"""Return the `range_end` for which [prefix, range_end) has exactly the keys that begin with `prefix`.

    The last byte of the prefix is increased by one. A last byte 0xff cannot be increased, so it is cut off first. If no
    byte is left, no other key sorts after those with the prefix, so there is no end: b"\0".
    """
    stem = prefix.rstrip(b"\xff")
    if not stem:
        return NO_END
    return stem[:-1] + bytes((stem[-1] + 1,))


@dataclass(frozen=True, slots=True, repr=False)
class KeyRange:
    r"""One key or an interval of keys, as etcd encodes it.

    Attributes:
        key: the first key; never empty.
        range_end: the first key after the range; empty for the key alone, b"\0" for no end.
    """

    key: bytes
    range_end: bytes = b""

    @classmethod
    def of(
        cls,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
    ) -> Self:
        """Make the range that exactly one form names.

        Args:
            key: this key alone; with `range_end`, the first key of an interval.
            range_end: the key before which the interval ends. If it is `key` itself, the interval is empty.
            prefix: every key that begins with this; the empty prefix is every key.
            from_key: every key from this one on; empty is every key.
            all_keys: every key.

        Raises:
            InvalidRequestError: not exactly one form is given, the interval ends before its first key, or UTF-8 cannot
                encode a key.
            EmptyKeyError: `key` is empty.
            TypeError: a key is neither str nor bytes-like, or `all_keys` is not a bool.
        """
        flag(all_keys, "all_keys")
        if key is not None and prefix is None and from_key is None and not all_keys:
            first = encode_key(key)
            if range_end is None:
                return cls(first)
            end = _encode_range_end(range_end)
            if end < first:
                raise InvalidRequestError(f"range_end {shown_key(end)} is before the first key {shown_key(first)}")
            return cls(first, end)
        for form, value in (("prefix", prefix), ("from_key", from_key)):
            if isinstance(value, bool):  # as other clients name these forms
                shown = "..." if key is None else shown_key(encode_key(key)).removeprefix("b")
                raise TypeError(f"{form}= takes the key itself: write {form}={shown} and no other key")
        given = [
            name
            for name, is_given in (
                ("key", key is not None),
                ("range_end=", range_end is not None),
                ("prefix=", prefix is not None),
                ("from_key=", from_key is not None),
                ("all_keys=True", all_keys),
            )
            if is_given
        ]
        if given == ["range_end="]:
            raise InvalidRequestError("range_end= needs the first key of the range: write key with range_end=")
        if len(given) != 1:
            raise InvalidRequestError(f"the keys are named by {_FORMS}; got {' and '.join(given) or 'none'}")
        if prefix is not None:
            first = to_bytes(prefix, "prefix")
            return cls(first or _SMALLEST_KEY, prefix_end(first))
        first = b"" if from_key is None else to_bytes(from_key, "from_key")
        return cls(first or _SMALLEST_KEY, NO_END)

    @property
    def is_all_keys(self) -> bool:
        """Whether this is the whole keyspace."""
        return self.key == _SMALLEST_KEY and self.range_end == NO_END

    def __contains__(self, key: bytes) -> bool:
        if not self.range_end:
            return key == self.key
        return self.key <= key and (self.range_end == NO_END or key < self.range_end)

    def __repr__(self) -> str:
        if not self.range_end:
            return f"KeyRange({shown_key(self.key)})"
        return f"KeyRange({shown_key(self.key)}, {shown_key(self.range_end)})"


def range_arguments(keys: KeyRange) -> tuple[bytes | None, bytes | None, bytes | None]:
    """The arguments `key`, `range_end` and `from_key` that name a range in the calls of a client."""
    if not keys.range_end:
        return keys.key, None, None
    if keys.range_end == NO_END:
        return None, None, keys.key
    return keys.key, keys.range_end, None


def _encode_range_end(range_end: KeyLike) -> bytes:
    encoded = to_bytes(range_end, "range_end")
    # On the wire both have another meaning than the end of an interval.
    if not encoded:
        raise InvalidRequestError("range_end is empty: write the key alone, or from_key= for all keys from it on")
    if encoded == NO_END:
        raise InvalidRequestError("no key is before b'\\0': write from_key= for all keys from one on")
    return encoded
