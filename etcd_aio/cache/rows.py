"""Rows: keys with their values and revisions as plain tuples, and as the `KeyValue`s that are read. Pure.

Why tuples. A full run of CPython's garbage collector looks at every instance of a class, and blocks the loop for as
long: 100 000 instances take 20 to 30 ms, each time. Tuples of bytes and numbers are looked at once, and then forgotten.
So the content is kept as tuples, and a `KeyValue` is made when a key is read for the first time. It is kept until the
key changes: a second read costs no more than a look-up.
"""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final, TypeAlias

from etcd_aio import KeyValue
from etcd_aio.fast_frozen import mutable_twin

Row: TypeAlias = tuple[bytes, bytes, int, int, int, int]
"""The fields of a `KeyValue`, in their order."""

row_of: Final[Callable[[KeyValue], Row]] = attrgetter(*KeyValue.__slots__)
"""The row of a `KeyValue`."""

VERSION: Final = 4
"""Where a row has the version."""

_CREATE_REVISION: Final = 2

_Mutable: Final = mutable_twin(KeyValue)


def is_same_life(one: Row, other: Row) -> bool:
    """Whether a key was not deleted between two of its rows, of one store."""
    return one[_CREATE_REVISION] == other[_CREATE_REVISION]


def key_value(row: Row) -> KeyValue:
    """The `KeyValue` of a row."""
    kv: Any = _Mutable()
    kv.key, kv.value, kv.create_revision, kv.mod_revision, kv.version, kv.lease = row
    kv.__class__ = KeyValue  # frozen from here on
    made: KeyValue = kv
    return made


class KeyValues(dict[bytes, KeyValue]):
    """The `KeyValue`s of rows that were read so far; `[]` makes the others.

    A key that changes is to be removed.

    Args:
        rows: the rows by key.
    """

    __slots__ = ("_rows",)

    def __init__(self, rows: Mapping[bytes, Row]) -> None:
        super().__init__()
        self._rows = rows

    def __missing__(self, key: bytes) -> KeyValue:
        row = self._rows[key]
        made = self[row[0]] = key_value(row)
        return made
