r"""Deletes without an end beside puts: a txn that etcd accepts, and that ends its members. Pure.

etcd refuses a txn in which one branch writes a key twice. Its check takes the end b"\0" of `from_key=` and
`all_keys=True` for a key, so it does not see that such a delete covers a put. What then happens, in 3.4 to 3.7: the
member ends if the put keeps the key's value or lease, and again at each start, since the txn is in its log; and other
puts end members of 3.5 to 3.7 at a read after the next compaction. All members apply the log, so all of them end.

A delete without an end covers every key from its first one on. So a branch is refused if its largest put is not before
the first key of such a delete: no set of keys is needed. Other overlaps are left to etcd, which sees them.
"""

from typing import NamedTuple

from etcd_aio.errors import DuplicateKeyError
from etcd_aio.types import shown_key


class Extent(NamedTuple):
    """The writes of some operations, as far as this check needs them.

    Attributes:
        last_put: the largest key that is put; empty for none.
        deleted_from: the smallest first key of the deletes without an end; None without one.
    """

    last_put: bytes = b""
    deleted_from: bytes | None = None

    def beside(self, other: "Extent") -> "Extent":
        """The extent of these operations and of others that run in the same txn.

        Raises:
            DuplicateKeyError: a delete without an end of one covers a put of the other.
        """
        for put, start in ((self.last_put, other.deleted_from), (other.last_put, self.deleted_from)):
            if start is not None and put >= start:
                raise DuplicateKeyError(
                    f"a txn must not delete all keys from {shown_key(start)} on and put {shown_key(put)}: etcd would "
                    "accept it and its members would crash, also when they are started again; give the delete an end, "
                    "or use two txns"
                )
        return self.instead_of(other)

    def instead_of(self, other: "Extent") -> "Extent":
        """The extent of two branches of which one runs."""
        start, others = self.deleted_from, other.deleted_from
        if start is None or (others is not None and others < start):
            start = others
        return Extent(max(self.last_put, other.last_put), start)


NOTHING = Extent()
