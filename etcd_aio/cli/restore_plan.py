"""The changes of a restore: the keys of a dump beside those of the store, both in order. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from etcd_aio import KeyValue
from etcd_aio.cli.dump_format import DumpedKey, DumpHead
from etcd_aio.cli.go_text import quoted
from etcd_aio.dataclass import dataclass

_OP_BYTES: Final = 32  # of a request, besides key and value of an operation, at most
MOST_BYTES: Final = 2**20
"""The most bytes of a txn: etcd accepts 1.5 MiB."""


@dataclass(frozen=True, slots=True)
class KeyChange:
    """One key that is put or deleted.

    Attributes:
        key: the key.
        before: as it is; None if it does not exist.
        after: as the dump has it; None if it has no such key.
    """

    key: bytes
    before: KeyValue | None
    after: DumpedKey | None

    def size(self, *, is_conditional: bool) -> int:
        """Bytes of a request, at most; a condition has the key a second time."""
        written = _OP_BYTES + len(self.key) + (0 if self.after is None else len(self.after.value))
        return written + _OP_BYTES + len(self.key) if is_conditional else written

    def line(self) -> str:
        """The change for people."""
        before = None if self.before is None else quoted(self.before.value)
        key, after = quoted(self.key), None if self.after is None else quoted(self.after.value)
        if before is None:
            return f"+ {key} {after}"
        if after is None:
            return f"- {key} {before}"
        return f"~ {key} {before} (its lease)" if before == after else f"~ {key} {before} -> {after}"


class OutOfPlaceError(ValueError):
    """A key of the dump has no place below the new prefix."""


def moved(keys: Iterable[DumpedKey], prefix: bytes, to_prefix: bytes) -> Iterator[DumpedKey]:
    """The keys below another prefix.

    Raises:
        OutOfPlaceError: a key would be empty.
    """
    for one in keys:
        key = to_prefix + one.key[len(prefix) :]
        if not key:
            raise OutOfPlaceError(f"the key {quoted(one.key)} would be empty there")
        yield replace(one, key=key)


def change_of(
    wanted: DumpedKey | None, found: KeyValue | None, *, keeps_leases: bool, prunes: bool
) -> KeyChange | None:
    """The change after which a key is as in the dump; None if it is already.

    Args:
        wanted: the key of the dump.
        found: the same key as it is.
        keeps_leases: keys with a lease get one.
        prunes: keys that the dump does not have are deleted.
    """
    if wanted is None:
        return KeyChange(found.key, found, None) if found is not None and prunes else None
    if found is not None and found.value == wanted.value and bool(found.lease) == (keeps_leases and bool(wanted.lease)):
        return None
    return KeyChange(wanted.key, found, wanted)


def is_conflict(change: KeyChange, head: DumpHead) -> bool:
    """Whether a key has changed since the dump was made."""
    now = 0 if change.before is None else change.before.mod_revision
    if change.after is None:
        return now > head.revision
    return now != change.after.mod_revision
