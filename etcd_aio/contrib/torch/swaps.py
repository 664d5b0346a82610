"""Swaps: compare-and-swap whose outcome is known, also if the answer to it is lost.

Each swap also writes a marker of its own. If a swap is sent again and does not find the key as it was, the marker tells
whether an attempt before has been applied: a counter is not counted up twice, and an agent does not believe that it has
failed to write the state that it has written.
"""

import os
import threading
import uuid

from etcd_aio import Key, KeyValue, op
from etcd_aio.contrib.answers import commit_until_answered
from etcd_aio.contrib.torch.run_lease import RunLease
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import LeaseNotFoundError
from etcd_aio.sync import Store
from etcd_aio.types import KeyLike


@dataclass(frozen=True, slots=True)
class Swap:
    """The outcome.

    Attributes:
        is_done: whether the key was changed.
        revision: the revision of the change; 0 if there was none.
        present: the key as it is instead; None if it is missing, or was changed.
    """

    is_done: bool
    revision: int = 0
    present: KeyValue | None = None


class Swaps:
    """The swaps of one agent. Threads and forked children may share it.

    Args:
        store: where the keys are.
        lease: that they get.
        timeout: seconds for a swap.
        markers: the prefix of the markers.
    """

    def __init__(self, store: Store, lease: RunLease, timeout: float, markers: str) -> None:
        self._store = store
        self._lease = lease
        self._timeout = timeout
        self._markers = f"{markers}{uuid.uuid4().hex}"

    def swap(self, key: KeyLike, revision: int, value: bytes | None) -> Swap:
        """Change a key.

        Args:
            key: the key.
            revision: what its `mod_revision` must be; 0 if it must be missing.
            value: the new value; None deletes the key.
        """
        marker = f"{self._markers}/{os.getpid()}/{threading.get_ident()}"
        token = uuid.uuid4().bytes
        while True:
            lease = self._lease.current()
            change = op.delete(key) if value is None else op.put(key, value, lease=lease)
            present, marked = op.get(key), op.get(marker)
            is_same = Key(key).mod_revision == revision
            txn = self._store.txn().when(is_same).then(change, op.put(marker, token, lease=lease))
            txn = txn.otherwise(present, marked)
            try:
                result = commit_until_answered(txn, self._timeout)
            except LeaseNotFoundError:
                self._lease.is_gone(lease)
                continue
            if result:
                return Swap(True, result.revision)
            mark = result[marked]
            if mark is not None and mark.value == token:  # by an attempt whose answer was lost
                return Swap(True, mark.mod_revision)
            return Swap(False, present=result[present])
