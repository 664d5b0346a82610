"""EtcdStore: a Store of torch.distributed in etcd."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from torch.distributed import Store  # pyright: ignore[reportMissingImports]

from etcd_aio.contrib.torch.shared_keys import SharedKeys, Text, binary


class EtcdStore(Store):
    """The keys of a job, for agents and process groups. Threads and forked children may share it.

    Args:
        keys: those of the job.
        timeout: how long `get` and `wait` wait. Default: torch's, 5 minutes.
    """

    def __init__(self, keys: SharedKeys, timeout: timedelta | None = None) -> None:
        super().__init__()  # torch calls the methods from C++
        self._keys = keys
        if timeout is not None:
            self.set_timeout(timeout)

    def set(self, key: Text, value: Text) -> None:
        """Set a key."""
        self._keys.set(binary(key), binary(value))

    def get(self, key: Text) -> bytes:
        """Wait for a key, and return its value.

        Raises:
            LookupError: it was not set in time.
        """
        return self._keys.wait([binary(key)], self.timeout.total_seconds())[binary(key)]

    def add(self, key: Text, num: int) -> int:
        """Add to a number, which is 0 at first. Returns the sum."""
        return self._keys.add(binary(key), num)

    def compare_set(self, key: Text, expected_value: Text, desired_value: Text) -> bytes:
        """Set a key if it has the expected value. Returns the value that it has then."""
        return self._keys.compare_set(binary(key), binary(expected_value), binary(desired_value))

    def delete_key(self, key: Text) -> bool:
        """Delete a key. Returns whether it was there."""
        return self._keys.delete(binary(key))

    def num_keys(self) -> int:
        """The number of keys."""
        return self._keys.count()

    def check(self, keys: Iterable[Text]) -> bool:
        """Whether all keys are there."""
        return self._keys.check(map(binary, keys))

    def wait(self, keys: Iterable[Text], override_timeout: timedelta | None = None) -> None:
        """Wait for keys.

        Raises:
            LookupError: they were not set in time.
        """
        timeout = self.timeout if override_timeout is None else override_timeout
        self._keys.wait(map(binary, keys), timeout.total_seconds())

    def append(self, key: Text, value: Text) -> None:
        """Append to the value of a key."""
        self._keys.append(binary(key), binary(value))

    def multi_get(self, keys: Iterable[Text]) -> list[bytes]:
        """Wait for keys, and return their values."""
        wanted = list(map(binary, keys))
        found = self._keys.wait(wanted, self.timeout.total_seconds())
        return [found[key] for key in wanted]

    def multi_set(self, keys: Iterable[Text], values: Iterable[Text]) -> None:
        """Set keys, one after the other."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Whether it has `append`, `multi_get` and `multi_set`."""
        return True

    def clone(self) -> "EtcdStore":
        """A store of the same keys, for another thread."""
        return EtcdStore(self._keys, self.timeout)

    # The names by which torch calls them from C++, as for a PrefixStore.
    compareSet: Any = compare_set  # noqa: N815 - torch's older names
    deleteKey: Any = delete_key  # noqa: N815
    getNumKeys: Any = num_keys  # noqa: N815
