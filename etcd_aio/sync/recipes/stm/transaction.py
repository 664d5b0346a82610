"""Transaction, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.recipes.stm.transaction`: do not edit.
"""

from collections.abc import Iterable, Mapping

from etcd_aio.arguments import KeyLike, LeaseLike, ValueLike
from etcd_aio.portal import Facade
from etcd_aio.types import KeyValue


class Transaction(Facade):
    """One attempt of a transaction: the argument of the function that `client.stm` runs.

    It is valid until the function ends. Reads see the writes that were made before; a key that was put in this attempt
    has no revisions and no version yet, they are 0. Tasks that the function starts and waits for may share it.
    """

    @property
    def revision(self) -> int:
        """The revision of the first read, which at the serializable levels is that of all reads; 0 before it."""
        return self._aio.revision

    def get(self, key: KeyLike) -> KeyValue | None:
        """Get one key.

        Returns:
            KeyValue | None: None if the key does not exist.

        Raises:
            EmptyKeyError: the key is empty.
            ClientUsageError: the function of this attempt has ended.
            EtcdError: as every read.
        """
        return self._run(self._aio.get, key)

    def get_all(self, keys: Iterable[KeyLike]) -> Mapping[bytes, KeyValue | None]:
        """Get several keys in one round trip, at most 128 that were not read before.

        Returns:
            Mapping[bytes, KeyValue | None]: by key, as bytes; None for a key that does not exist.

        Raises:
            InvalidRequestError: there are too many keys.
            EmptyKeyError, ClientUsageError, EtcdError: as `get`.
        """
        return self._run(self._aio.get_all, keys)

    def range(
        self, key: KeyLike | None = None, *, range_end: KeyLike | None = None, prefix: KeyLike | None = None
    ) -> tuple[KeyValue, ...]:
        """Get the keys of a range, at most 100. Each of them counts as read.

        At the serializable levels the commit also needs that no key was created in the range, which every member checks
        by reading the whole range.

        Args:
            key: with `range_end`, the first key of an interval.
            range_end: the key before which the interval ends.
            prefix: every key that begins with this.

        Returns:
            tuple[KeyValue, ...]: the keys, in key order.

        Raises:
            InvalidRequestError: the range has more than 100 keys, or its form is wrong.
            ClientUsageError, EtcdError: as `get`.
        """
        return self._run(self._aio.range, key, range_end=range_end, prefix=prefix)

    def put(self, key: KeyLike, value: ValueLike, *, lease: LeaseLike | None = None) -> None:
        """Put a value, which may be empty, under a key when the transaction commits.

        The lease, which may be given by its id, is that of the key afterwards; without one, the key has none.

        Raises:
            InvalidRequestError, EmptyKeyError, TypeError: as `client.put`.
            ClientUsageError: the function of this attempt has ended.
        """
        self._aio.put(key, value, lease=lease)

    def delete(self, key: KeyLike) -> None:
        """Delete a key when the transaction commits.

        Raises:
            EmptyKeyError, TypeError: as `client.delete`.
            ClientUsageError: the function of this attempt has ended.
        """
        self._aio.delete(key)
