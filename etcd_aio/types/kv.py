"""Results of the key-value calls, as frozen values.

Values are secrets: a `repr` shows only their size. It shows keys, and cuts long ones.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import ClassVar, Final, Generic, TypeAlias, TypeVar, overload

from etcd_aio.dataclass import dataclass

_MAX_SHOWN_KEY: Final = 64  # bytes or characters; longer keys would make log lines unreadable


def shown_key(key: bytes) -> str:
    """A key as a `repr` shows it: a long key is cut, and its size is added."""
    if len(key) <= _MAX_SHOWN_KEY:
        return repr(key)
    return f"{key[:_MAX_SHOWN_KEY]!r}...<{len(key)} bytes>"


def _text(raw: bytes, key: bytes, what: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        position = error.start
    # Python's own error holds the whole value, and its repr would show it in logs.
    raise ValueError(f"the {what} of {shown_key(key)} is not UTF-8 at byte {position}: use .{what} instead")


def shown_text(text: str) -> str:
    """A name, or a key that is text, as an error shows it: long text is cut, and its size is added."""
    if len(text) <= _MAX_SHOWN_KEY:
        return repr(text)
    return f"{text[:_MAX_SHOWN_KEY]!r}...<{len(text)} characters>"


def shown_keys(key: bytes, range_end: bytes = b"") -> str:
    """A key, or a range of keys, as users write it in calls: `'k'`, `prefix='p/'`, `all_keys=True`."""
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
    """The id of a lease as a `repr` shows it: in hexadecimal, as in etcdctl and in logs."""
    return f"{lease:#x}" if lease else "0"


@dataclass(frozen=True, slots=True)
class Header:
    """Response metadata: which member answered, at which revision. Inside a txn only the revision is set.

    Attributes:
        cluster_id: the cluster that answered.
        member_id: the member that answered.
        revision: the store's revision when the request was applied.
        raft_term: the member's raft term, which grows with every leader election.
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
        value: the value; empty if only keys were requested.
        create_revision: the revision that created the key.
        mod_revision: the revision of the last change.
        version: the number of writes since its creation, starting at 1.
        lease: the id of the lease that the key is attached to; 0 if there is none, and from etcd 3.7 also if only keys
            were requested.
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


def _texts(kvs: Iterable[KeyValue], strip_prefix: str) -> dict[str, str]:
    return {kv.key_text().removeprefix(strip_prefix): kv.text() for kv in kvs}


@dataclass(frozen=True, slots=True)
class PutResult:
    """Result of a put.

    Attributes:
        header: the metadata of the response.
        prev_kv: the key before the put, if requested with `prev_kv=True` and if it existed.
        is_replayed: for exactly-once writes, whether the answer was lost and the result computed; else False.
    """

    header: Header
    prev_kv: KeyValue | None = None
    is_replayed: ClassVar[bool] = False

    @property
    def revision(self) -> int:
        """The revision of this put."""
        return self.header.revision


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """Result of a delete.

    Attributes:
        header: the metadata of the response.
        deleted: the number of deleted keys.
        prev_kvs: the deleted keys as they were, if requested with `prev_kv=True`.
        is_replayed: for exactly-once writes, whether the answer was lost and the result computed; else False.
    """

    header: Header
    deleted: int = 0
    prev_kvs: tuple[KeyValue, ...] = ()
    is_replayed: ClassVar[bool] = False

    @property
    def revision(self) -> int:
        """The store's revision after the delete."""
        return self.header.revision

    def to_dict(self, *, strip_prefix: str = "") -> dict[str, str]:
        """Map the deleted keys to the values they had, both as UTF-8 text; empty without `prev_kv=True`.

        Args:
            strip_prefix: a prefix to remove from the keys that begin with it.

        Raises:
            ValueError: a key or a value is not UTF-8.
        """
        return _texts(self.prev_kvs, strip_prefix)


@dataclass(frozen=True, slots=True, repr=False)
class RangeResult(Sequence[KeyValue]):
    """The keys of a range: a sequence of `KeyValue`.

    It has length, index, slice, iteration and `in`, all about `KeyValue`s; `to_dict()` maps keys to values. Like every
    sequence it is false if it is empty, as it always is after `count_only=True`. Unlike in other sequences, `count` is
    a number.

    Attributes:
        header: the metadata of the response.
        kvs: the keys, in the requested order.
        more: whether the limit left out some keys.
        count: the number of keys in the range, whatever the limit.
    """

    header: Header
    kvs: tuple[KeyValue, ...] = ()
    more: bool = False
    # The name of this number in etcd and in every client. Each KeyValue occurs once, so the method is not needed.
    count: int = field(default=0)  # type: ignore[assignment]  # pyright: ignore[reportIncompatibleMethodOverride]

    @property
    def revision(self) -> int:
        """The store's revision when the range was read.

        A watch from `revision + 1` continues without a gap, unless an older `revision=` was requested.
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
            raise TypeError("a range result has KeyValues: look up keys in its to_dict()")
        return item in self.kvs

    @overload
    def __getitem__(self, index: int) -> KeyValue: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[KeyValue, ...]: ...

    def __getitem__(self, index: int | slice) -> KeyValue | tuple[KeyValue, ...]:
        if isinstance(index, str | bytes):
            raise TypeError("a range result is indexed by number: look up keys in its to_dict()")
        return self.kvs[index]

    def to_dict(self, *, strip_prefix: str = "") -> dict[str, str]:
        """Map keys to values, both as UTF-8 text, in the order of the range.

        Args:
            strip_prefix: a prefix to remove from the keys that begin with it.

        Raises:
            ValueError: a key or a value is not UTF-8.
        """
        return _texts(self.kvs, strip_prefix)

    def to_bytes_dict(self) -> dict[bytes, bytes]:
        """Map keys to values as they are, in the order of the range: for values that are no text."""
        return {kv.key: kv.value for kv in self.kvs}

    def __repr__(self) -> str:
        return f"RangeResult(<{len(self.kvs)} of {self.count} kvs>, more={self.more}, revision={self.revision})"


@dataclass(frozen=True, slots=True, repr=False)
class RangeChunk:
    """One chunk of a streamed range. Users get its keys as pages of a scan.

    Attributes:
        range_response: the keys of this chunk. Only the last chunk has a header, `more` and `count`.
    """

    range_response: RangeResult | None = None

    @property
    def header(self) -> Header | None:
        """The metadata of the response, which only the last chunk has."""
        return None if self.range_response is None else self.range_response.header

    def __repr__(self) -> str:
        return f"RangeChunk({self.range_response!r})"


T_co = TypeVar("T_co", covariant=True)


class Operation(Generic[T_co]):
    """An operation of a txn or of `client.do()`. Its result has the type of the call with the same name.

    Attributes:
        is_read_only: whether it changes nothing; of a txn, whether none of its operations does.
    """

    __slots__ = ()
    is_read_only: bool


@dataclass(frozen=True, slots=True)
class TxnResult:
    """Result of a txn: which branch ran, and the results of its operations. It is true if the comparisons held.

    `result[operation]` is the result of one operation, with its own type:

        get_a, get_b = op.get("a"), op.range(prefix="b/")
        result = await client.txn().then(get_a, get_b).commit()
        result[get_a]  # KeyValue | None
        result[get_b]  # RangeResult

    Attributes:
        succeeded: True if every comparison held, so that `then` ran; False if `otherwise` ran.
        header: the metadata of the response.
        responses: the results of the branch that ran, one for each operation, as of the calls with the same names.
        operations: the operations of the branch that ran, in the order of `responses`.
        is_replayed: for exactly-once writes, whether the answer was lost and the result computed; else False.
    """

    succeeded: bool
    header: Header
    responses: "tuple[OpResult, ...]" = ()
    operations: "tuple[Operation[OpResult], ...]" = field(default=(), repr=False, compare=False)
    is_replayed: ClassVar[bool] = False

    def __bool__(self) -> bool:
        return self.succeeded

    def __getitem__(self, operation: Operation[T_co]) -> T_co:
        """Return the result of this very object. If the txn has it twice, its first result.

        Raises:
            LookupError: the operation is not in the branch that ran.
            TypeError: the argument is not an operation.
        """
        if not isinstance(operation, Operation):
            kind = type(operation).__name__
            raise TypeError(f"result[...] takes an operation of the txn, got {kind}: see .responses")
        for candidate, response in zip(self.operations, self.responses, strict=True):
            if candidate is operation:
                result: T_co = response  # type: ignore[assignment] # `TxnOp.result` has checked their kinds
                return result
        branch = "then()" if self.succeeded else "otherwise()"
        raise LookupError(f"this operation is not in {branch}, the branch that ran")

    @property
    def revision(self) -> int:
        """The store's revision after the txn: the revision of every change it made."""
        return self.header.revision


OpResult: TypeAlias = PutResult | DeleteResult | RangeResult | TxnResult | KeyValue | None
"""The result of one operation. `op.get` returns a `KeyValue`, or None if the key does not exist."""


@dataclass(frozen=True, slots=True)
class CompactResult:
    """A compaction was applied.

    Attributes:
        header: the metadata of the response.
    """

    header: Header

    @property
    def revision(self) -> int:
        """The store's revision; a compaction does not change it."""
        return self.header.revision
