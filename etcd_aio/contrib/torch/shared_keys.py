"""SharedKeys: the keys of a Store of torch.distributed: to set, to wait for, to count up. Without torch.

A wait reads the keys, and follows a watch from that revision on, so nothing is polled and nothing is missed.
"""

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import index
from typing import Final, TypeAlias, TypeVar

from etcd_aio import KeyValue, op
from etcd_aio.contrib.torch.swaps import Swaps
from etcd_aio.errors import CompactedError, EtcdTimeoutError, StoreRolledBackError
from etcd_aio.sync import Store

T = TypeVar("T")
Text: TypeAlias = "str | bytes | bytearray | Sequence[int]"

_MOST_READS: Final = 100  # in a txn; etcd allows 128 operations by default
_PREFIX: Final = b"keys/"
_LONGEST_PAUSE: Final = 0.1  # seconds, after another agent was faster


class SharedKeys:
    """The keys of a job.

    Args:
        store: where they are.
        swaps: writes them.
        clock: the monotonic time in seconds.
    """

    def __init__(self, store: Store, swaps: Swaps, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._swaps = swaps
        self._clock = clock

    def set(self, key: bytes, value: bytes) -> None:
        """Set a key."""
        self._change(key, lambda _: (value, None))

    def append(self, key: bytes, value: bytes) -> None:
        """Append to the value of a key."""
        self._change(key, lambda present: ((present or b"") + value, None))

    def add(self, key: bytes, number: int) -> int:
        """Add to the decimal number of a key, which is 0 if it is missing. Returns the sum."""
        number = index(number)

        def add(present: bytes | None) -> tuple[bytes, int]:
            total = int(present or 0) + number
            return b"%d" % total, total

        return self._change(key, add)

    def compare_set(self, key: bytes, expected: bytes, desired: bytes) -> bytes:
        """Set a key if it has the expected value, or if it is missing and that is empty.

        Returns:
            The value that it has then; if it is missing, the expected one.
        """

        def swap(present: bytes | None) -> tuple[bytes | None, bytes]:
            if present == expected or (present is None and not expected):
                return desired, desired
            return None, expected if present is None else present

        return self._change(key, swap)

    def delete(self, key: bytes) -> bool:
        """Delete a key. Returns whether it was there."""
        kv = self._store.get(_PREFIX + key)
        while kv is not None:
            swap = self._swaps.swap(kv.key, kv.mod_revision, None)
            if swap.is_done:
                return True
            kv = swap.present
        return False

    def count(self) -> int:
        """The number of keys."""
        return self._store.range(prefix=_PREFIX, count_only=True).count

    def check(self, keys: Iterable[bytes]) -> bool:
        """Whether all keys are there."""
        found, _ = self._read(keys)
        return None not in found.values()

    def wait(self, keys: Iterable[bytes], seconds: float) -> Mapping[bytes, bytes]:
        """Wait until all keys are there, and return their values.

        Raises:
            LookupError: they were not in time.
        """
        keys = tuple(keys)
        end = self._clock() + seconds
        while True:
            found, revision = self._read(keys)
            missing = [key for key, value in found.items() if value is None]
            if not missing:
                return {key: value for key, value in found.items() if value is not None}
            left = end - self._clock()
            if left <= 0:
                shown = ", ".join(map(repr, missing[:5]))
                raise LookupError(f"{len(missing)} keys were not set within {seconds:g} s: {shown}")
            self._follow(missing, revision + 1, left)

    def _follow(self, missing: Sequence[bytes], revision: int, seconds: float) -> None:
        """Wait until the keys are put, or the time is over."""
        end = self._clock() + seconds
        absent = {_PREFIX + key for key in missing}
        one = _PREFIX + missing[0] if len(missing) == 1 else None
        prefix = None if one else _PREFIX
        try:
            with self._store.watch(
                one, prefix=prefix, start_revision=revision, filters=("no_delete",), timeout=seconds
            ) as watcher:
                while absent:
                    absent.discard(watcher.next(timeout=max(0.001, end - self._clock())).key)
        except (CompactedError, StoreRolledBackError, EtcdTimeoutError):  # the keys are read again
            return

    def _read(self, keys: Iterable[bytes]) -> tuple[dict[bytes, bytes | None], int]:
        """The values of keys, and a revision at which they were so or later."""
        waiting = list(keys)
        found: dict[bytes, bytes | None] = {}
        revision = 0
        while waiting:
            some, waiting = waiting[:_MOST_READS], waiting[_MOST_READS:]
            reads = {key: op.get(_PREFIX + key) for key in some}
            result = self._store.txn().then(*reads.values()).commit()
            revision = revision or result.revision
            found.update((key, _value(result[read])) for key, read in reads.items())
        return found, revision

    def _change(self, key: bytes, function: "Callable[[bytes | None], tuple[bytes | None, T]]") -> T:
        """Change a key by a function of its value, which returns the new one (None changes nothing), and a result."""
        kv = self._store.get(_PREFIX + key)
        longest = _LONGEST_PAUSE / 8
        while True:
            value, returned = function(_value(kv))
            if value is None:
                return returned
            swap = self._swaps.swap(_PREFIX + key, 0 if kv is None else kv.mod_revision, value)
            if swap.is_done:
                return returned
            kv = swap.present
            time.sleep(random.uniform(0, longest))
            longest = min(2 * longest, _LONGEST_PAUSE)


def binary(text: Text) -> bytes:
    """A key or a value as torch gives it.

    Raises:
        TypeError: it is a number, of which `bytes` would make so many zeros, or something else.
    """
    if isinstance(text, int):
        raise TypeError(f"a key or a value must be a text or bytes, not {type(text).__name__}")
    return text.encode() if isinstance(text, str) else bytes(text)


def _value(kv: KeyValue | None) -> bytes | None:
    return None if kv is None else kv.value
