"""Results: what the key-value and lease calls return, as frozen values.

Knows: the shape of an answer. Never knows: wire messages, which are copied into these types and never kept.

Values are secrets: no `repr` shows one, only its size. Keys are shown, and long ones are cut.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeAlias, TypeVar, overload

_MAX_SHOWN_KEY: Final = 64  # bytes, or characters; a longer key would hide the rest of its own line


def shown_key(key: bytes) -> str:
    """A key as a `repr` shows it: whole if it is short, else cut and with its size."""
    if len(key) <= _MAX_SHOWN_KEY:
        return repr(key)
    return f"{key[:_MAX_SHOWN_KEY]!r}...<{len(key)} bytes>"


def _text(raw: bytes, key: bytes, what: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        where = error.start
    # Python's own error would carry the whole value into every log that shows its repr.
    raise ValueError(f"the {what} of {shown_key(key)} is not UTF-8 at byte {where}: take .{what} instead")


def shown_text(text: str) -> str:
    """A name, or a key that is text, as an error shows it: as `shown_key` does."""
    if len(text) <= _MAX_SHOWN_KEY:
        return repr(text)
    return f"{text[:_MAX_SHOWN_KEY]!r}...<{len(text)} characters>"


def shown_keys(key: bytes, range_end: bytes = b"") -> str:
    """A key, or a range of keys, in the words by which users name them: `'k'`, `prefix='p/'`, `all_keys=True`."""
    if not range_end:
        return _shown(key)
    if range_end == b"\0":
        return "all_keys=True" if key == b"\0" else f"from_key={_shown(key)}"
    stem = key.rstrip(b"\xff")
    if stem and range_end == stem[:-1] + bytes((stem[-1] + 1,)):
        return f"prefix={_shown(key)}"
    return f"{_shown(key)}, range_end={_shown(range_end)}"


def _shown(key: bytes) -> str:
    try:
        return shown_text(key.decode())
    except UnicodeDecodeError:
        return shown_key(key)


def shown_lease(lease: int) -> str:
    """The id of a lease as a `repr` shows it: in hexadecimal, as etcdctl and the logs do."""
    return f"{lease:#x}" if lease else "0"


@dataclass(frozen=True, slots=True)
class Header:
    """Who answered, and how far the store was. A result inside a txn carries the revision alone, as etcd sends it.

    Attributes:
        cluster_id: the cluster that answered.
        member_id: the member that answered.
        revision: the store's revision when the request was carried out.
        raft_term: the member's raft term; it grows with every leader election.
    """

    cluster_id: int = 0
    member_id: int = 0
    revision: int = 0
    raft_term: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class KeyValue:
    """One key with its value and history.

    Attributes:
        key: the key.
        value: the value; empty if only keys were asked for.
        create_revision: the revision that created the key, last.
        mod_revision: the revision that changed it last.
        version: how many times it was put since it was created; 1 is the first.
        lease: the id of the lease it is attached to; 0 is none.
    """

    key: bytes
    value: bytes = b""
    create_revision: int = 0
    mod_revision: int = 0
    version: int = 0
    lease: int = 0

    def text(self) -> str:
        """The value as UTF-8 text.

        Raises:
            ValueError: the value is not UTF-8.
        """
        return _text(self.value, self.key, "value")

    def key_text(self) -> str:
        """The key as UTF-8 text.

        Raises:
            ValueError: the key is not UTF-8.
        """
        return _text(self.key, self.key, "key")

    def __repr__(self) -> str:
        return (
            f"KeyValue(key={shown_key(self.key)}, value=<{len(self.value)} bytes>, "
            f"create_revision={self.create_revision}, mod_revision={self.mod_revision}, "
            f"version={self.version}, lease={shown_lease(self.lease)})"
        )


@dataclass(frozen=True, slots=True)
class PutResult:
    """What a put did.

    Attributes:
        header: who answered.
        prev_kv: what the key held before, if `prev_kv=True` asked for it and it existed.
    """

    header: Header
    prev_kv: KeyValue | None = None

    @property
    def revision(self) -> int:
        """The revision of this put."""
        return self.header.revision


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """What a delete did.

    Attributes:
        header: who answered.
        deleted: how many keys were deleted.
        prev_kvs: what they held, if `prev_kv=True` asked for it.
    """

    header: Header
    deleted: int = 0
    prev_kvs: tuple[KeyValue, ...] = ()

    @property
    def revision(self) -> int:
        """The store's revision after the delete."""
        return self.header.revision


@dataclass(frozen=True, slots=True, repr=False)
class RangeResult(Sequence[KeyValue]):
    """The keys that a range holds: a sequence of `KeyValue`.

    It has length, index, slice, iteration and `in`, for the `KeyValue`s and not for keys: `to_dict()` is by key. As
    every sequence it is false while empty, which it always is after `count_only=True`. Only `count` is not what other
    sequences have.

    Attributes:
        header: who answered.
        kvs: the keys found, in the order asked for.
        more: whether the limit cut some off.
        count: how many keys the range holds in all, whatever the limit.
    """

    header: Header
    kvs: tuple[KeyValue, ...] = ()
    more: bool = False
    # etcd's word for this number, and every client's. Nobody counts how often a range holds one KeyValue.
    count: int = field(default=0)  # type: ignore[assignment]  # pyright: ignore[reportIncompatibleMethodOverride]

    @property
    def revision(self) -> int:
        """The store's revision when the range was read.

        A watch from `revision + 1` continues it without a gap, if no older `revision=` was asked for.
        """
        return self.header.revision

    def __len__(self) -> int:
        return len(self.kvs)

    def __iter__(self) -> Iterator[KeyValue]:
        return iter(self.kvs)

    def __reversed__(self) -> Iterator[KeyValue]:
        return reversed(self.kvs)

    def __contains__(self, item: object) -> bool:
        if isinstance(item, str | bytes):
            raise TypeError("a range result holds KeyValues: look keys up in found.to_dict()")
        return item in self.kvs

    @overload
    def __getitem__(self, index: int) -> KeyValue: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[KeyValue, ...]: ...

    def __getitem__(self, index: int | slice) -> KeyValue | tuple[KeyValue, ...]:
        if isinstance(index, str | bytes):
            raise TypeError("a range result is indexed by number: look keys up in found.to_dict()")
        return self.kvs[index]

    def to_dict(self, *, strip_prefix: str = "") -> dict[str, str]:
        """The values by their keys, all as UTF-8 text, in the order of the range.

        Args:
            strip_prefix: what to leave out at the beginning of each key that begins with it.

        Raises:
            ValueError: a key or a value is not UTF-8.
        """
        return {kv.key_text().removeprefix(strip_prefix): kv.text() for kv in self.kvs}

    def __repr__(self) -> str:
        return f"RangeResult(<{len(self.kvs)} of {self.count} kvs>, more={self.more}, revision={self.revision})"


@dataclass(frozen=True, slots=True, repr=False)
class RangeChunk:
    """One chunk of a range that the server streams; users see its keys as pages of a scan.

    Attributes:
        range_response: keys that no other chunk has. Only the last chunk has a header, `more` and `count`.
    """

    range_response: RangeResult | None = None

    @property
    def header(self) -> Header | None:
        """Who answered, once the last chunk tells."""
        return None if self.range_response is None else self.range_response.header

    def __repr__(self) -> str:
        return f"RangeChunk({self.range_response!r})"


T_co = TypeVar("T_co", covariant=True)


class Operation(Generic[T_co]):
    """One operation of a txn, which returns a `T_co`: what the call of the same name returns."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TxnResult:
    """Which branch of a txn ran, and what its operations returned. It is true iff the comparisons held.

    `result[operation]` is what one operation returned, with its own type:

        get_a, get_b = op.get("a"), op.range(prefix="b/")
        result = await client.txn().then(get_a, get_b).commit()
        result[get_a]  # KeyValue | None
        result[get_b]  # RangeResult

    Attributes:
        succeeded: True if every comparison held, so that `then` ran; False if `otherwise` ran.
        header: who answered.
        responses: one for each operation of the branch that ran, each what the call of the same name returns.
        operations: those of the branch that ran, in the order of `responses`.
    """

    succeeded: bool
    header: Header
    responses: "tuple[OpResult, ...]" = ()
    operations: "tuple[Operation[OpResult], ...]" = field(default=(), repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.succeeded

    def __getitem__(self, operation: Operation[T_co]) -> T_co:
        """What this very operation returned; if it was given twice, what it returned first.

        Raises:
            LookupError: it is not in the branch that ran.
            TypeError: it is no operation.
        """
        if not isinstance(operation, Operation):
            given = type(operation).__name__
            raise TypeError(f"result[...] takes an operation that was given to the txn, got {given}: see .responses")
        for one, response in zip(self.operations, self.responses, strict=True):
            if one is operation:
                found: T_co = response  # type: ignore[assignment] # `txn_result` has put together what fits
                return found
        branch = "then()" if self.succeeded else "otherwise()"
        raise LookupError(f"this operation was not given to {branch}, the branch that ran")

    @property
    def revision(self) -> int:
        """The store's revision after the txn: the revision of every change it made."""
        return self.header.revision


OpResult: TypeAlias = PutResult | DeleteResult | RangeResult | TxnResult | KeyValue | None
"""What one operation of a txn returns; `op.get` gives a `KeyValue`, or None if there is no such key."""


@dataclass(frozen=True, slots=True)
class CompactResult:
    """A compaction was carried out.

    Attributes:
        header: who answered.
    """

    header: Header

    @property
    def revision(self) -> int:
        """The store's revision; a compaction does not change it."""
        return self.header.revision
