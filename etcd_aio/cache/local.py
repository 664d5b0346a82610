"""LocalReads: the reads of a cache that are plain functions."""

from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar, overload

from etcd_aio import KeyRange, KeyValue
from etcd_aio.arguments import encode_key
from etcd_aio.cache.state import CacheState, Replica
from etcd_aio.cache.waiting import raised_again
from etcd_aio.errors import CacheRangeError, ClientUsageError
from etcd_aio.types import KeyLike, shown_key, shown_keys

T = TypeVar("T")
D = TypeVar("D")

NOT_ENTERED: Final = "the cache is not entered: write `async with client.cache(...) as cache:` (or `with`)"
_NOTHING: Final[Any] = object()


class LocalReads(Generic[T]):
    """The reads from memory, without an await.

    Args:
        keys: the range.
        replica: its content.
    """

    __slots__ = ("_keys", "_reason", "_replica")

    def __init__(self, keys: KeyRange, replica: Replica[T]) -> None:
        self._keys = keys
        self._replica = replica
        self._reason: Exception | None = None  # why the cache has ended

    @overload
    def get(self, key: KeyLike) -> T | None: ...

    @overload
    def get(self, key: KeyLike, default: D) -> T | D: ...

    def get(self, key: KeyLike, default: object = None) -> object:
        """The value of a key, as it is here; `default` if there is no such key, or its value was never decodable.

        Raises:
            CacheRangeError: the key is outside of the range of the cache.
            CacheError: the cache was left, or has ended.
        """
        try:
            return self._replica.values[key.encode() if type(key) is str else key]  # type: ignore[index] # TypeError is caught
        except (KeyError, TypeError, UnicodeError):
            pass  # outside of this block, so that what follows is raised without it
        encoded = self._checked(key)
        try:
            return self._replica.values[encoded]
        except KeyError:
            return default

    def __getitem__(self, key: KeyLike) -> T:
        """The value of a key, as it is here.

        Raises:
            KeyError: there is no such key.
            CacheRangeError, CacheError: as `get`.
        """
        value = self.get(key, _NOTHING)
        if value is _NOTHING:
            raise KeyError(key)
        return value

    def __contains__(self, key: KeyLike) -> bool:
        return self.get(key, _NOTHING) is not _NOTHING

    def __len__(self) -> int:
        self._check_readable()
        return self._replica.count

    def __iter__(self) -> Iterator[bytes]:
        """The keys, sorted, as they are now: changes while they are iterated over are not seen."""
        return iter(self.range())

    def __bool__(self) -> bool:
        return True  # also without keys: a cache is a connection, rather than a container

    def range(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
    ) -> dict[bytes, T]:
        """The values of a range by key, in key order, as they are here. Without arguments: of the whole cache.

        Args:
            key: this key alone; with `range_end`, the first key of an interval.
            range_end: the key before which the interval ends.
            prefix: every key that begins with this.
            from_key: every key from this one on.
            all_keys: every key.

        Returns:
            A new dict.

        Raises:
            CacheRangeError: the range is not wholly within that of the cache.
            CacheError: the cache was left, or has ended.
            InvalidRequestError, EmptyKeyError, TypeError: the keys are not given in exactly one form.
        """
        self._check_readable()
        values = self._replica.values
        if key is None and range_end is None and prefix is None and from_key is None and not all_keys:
            keys = self._keys
        else:
            keys = KeyRange.of(key, range_end=range_end, prefix=prefix, from_key=from_key, all_keys=all_keys)
            self._check_within(keys)
        tree = self._replica.tree
        if not keys.range_end:
            found = [keys.key] if keys.key in tree.values else []
        else:
            found = tree.keys(keys.key, None if keys.range_end == b"\0" else keys.range_end)
        if self._replica.count < len(tree):  # some values could not be decoded
            found = [key for key in found if key in values]
        if not found:
            return {}
        # One look-up for all. With a single key it would return no tuple, so the last one is asked for twice.
        return dict(zip(found, itemgetter(*found, found[-1])(values), strict=False))

    def kv(self, key: KeyLike) -> KeyValue | None:
        """A key with its raw value and its revisions, as it is here; None if there is no such key.

        Raises:
            CacheRangeError, CacheError: as `get`.
        """
        return self._replica.kv(self._checked(key))

    def _checked(self, key: KeyLike) -> bytes:
        """The bytes of a key that may be read here."""
        self._check_readable()
        return self._within(key)

    def _within(self, key: KeyLike) -> bytes:
        encoded = encode_key(key)
        if encoded not in self._keys:
            raise CacheRangeError(f"{shown_key(encoded)} is outside of {self._shown()}")
        return encoded

    def _check_within(self, keys: KeyRange) -> None:
        own = self._keys
        if keys.key in own:
            if not keys.range_end or (own.range_end == b"\0"):
                return
            if keys.range_end != b"\0" and own.range_end and keys.range_end <= own.range_end:
                return
        raise CacheRangeError(f"{shown_keys(keys.key, keys.range_end)} is not within {self._shown()}")

    def _check_readable(self) -> None:
        if self._reason is not None:
            raise raised_again(self._reason)
        if self._replica.state is CacheState.LOADING:
            raise ClientUsageError(NOT_ENTERED)

    def _shown(self) -> str:
        return f"cache {shown_keys(self._keys.key, self._keys.range_end)}"
