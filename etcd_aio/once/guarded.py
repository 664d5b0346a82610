"""The txns of a slot: to create it, to write through it, and to settle it. Pure.

A write without conditions stands beside the condition of the slot. One with conditions is a txn of its own within, so
that it is known which of the two did not hold. A write with an id is within a txn on a key that has its name.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from etcd_aio import Compare, Header, Key, KeyRange, KeyValue, TxnResult, op
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import InvalidRequestError, TooManyOpsError
from etcd_aio.once.slot import Slot
from etcd_aio.once.write_verdicts import CREATED, Branch, slot_value
from etcd_aio.types import OpResult, shown_keys

# etcd accepts 128 operations in a txn, unless it is configured otherwise. A txn within another one may have 128 less
# the longest list of the outer one: its conditions, or one of its branches.
_MAX_OPS: Final = {(False, False): 127, (True, False): 126, (False, True): 125, (True, True): 124}


class SingleWrite(NamedTuple):
    """A put or a delete, with the parts of a txn."""

    then: tuple[op.Op]
    when: tuple[Compare, ...] = ()
    otherwise: tuple[op.Op, ...] = ()


Write: TypeAlias = op.TxnOp | SingleWrite
"""The operations of a user."""


@dataclass(frozen=True, slots=True)
class IdKey:
    """The key that has the name of an id.

    Attributes:
        key: the key.
        digest: of the request, as text, which the key's value begins with.
        lease: the id of the lease that the key is attached to.
    """

    key: bytes
    digest: bytes
    lease: int

    def put(self, branch: Branch) -> op.PutOp:
        """Put the key: the write was made, and this branch of it ran."""
        return op.put(self.key, self.digest + b":" + branch.value, lease=self.lease)


@dataclass(slots=True)
class WriteAnswer:
    """A write that was applied, as far as its result depends on it.

    Attributes:
        branch: which of its operations ran.
        header: of the reply. If the reply was lost, it has only the revision.
        responses: the results of the operations.
        is_replayed: whether the reply was lost, and the results were computed.
    """

    branch: Branch
    header: Header
    responses: tuple[OpResult, ...] = ()
    is_replayed: bool = False


def create_slot(slot: Slot) -> op.TxnOp:
    """Create a slot, or find it as an earlier copy created it."""
    return op.TxnOp((Key(slot.key).missing,), (op.put(slot.key, CREATED, lease=slot.lease),), (slot.look,))


def settle_slot(slot: Slot) -> op.TxnOp:
    """Delete a slot unless a copy of its last write was applied, so that no copy is applied any more.

    It has no put, so it also works when the store is full.
    """
    return op.TxnOp((_is_unchanged(slot),), (op.delete(slot.key),), (slot.look,))


def write_through(slot: Slot, write: Write, id_key: IdKey | None) -> op.TxnOp:
    """Make a write, and put the slot: if the slot is as this client left it."""
    inner: tuple[op.Op, ...] = (*write.then, *_marks(slot, id_key, Branch.THEN))
    if write.when or write.otherwise:
        inner = (op.TxnOp(write.when, inner, (*write.otherwise, *_marks(slot, id_key, Branch.OTHERWISE))),)
    if id_key is not None:
        # Also a duplicate puts the slot, so that no copy of it finds the id free when its time is over.
        inner = (op.TxnOp((Key(id_key.key).missing,), inner, _marks(slot, None, Branch.DUPLICATE)),)
    return op.TxnOp((_is_unchanged(slot),), inner, (slot.look,))


def _is_unchanged(slot: Slot) -> Compare:
    """The slot is as this client left it."""
    made = slot.comparison  # copied: to make it again takes as long as the rest of the txn
    return Compare(made.keys, made.target, made.operator, slot.revision)


def _marks(slot: Slot, id_key: IdKey | None, branch: Branch) -> tuple[op.PutOp, ...]:
    """Put the slot, and the key of the id: the write was made, and this branch of it ran."""
    mark = op.PutOp(slot.key, slot_value(slot.number, branch), slot.lease)
    return (mark,) if id_key is None else (id_key.put(branch), mark)


def found_slot(result: TxnResult) -> KeyValue | None:
    """The slot as a txn found it whose condition did not hold; None if the slot was missing."""
    (found,) = result.responses
    return found if isinstance(found, KeyValue) else None


def unwrap(write: Write, has_id: bool, result: TxnResult) -> WriteAnswer:
    """The answer to the write, in the reply to its copy that was applied."""
    header, responses, own_puts = result.header, result.responses, 1
    if has_id:
        (within,) = responses
        assert isinstance(within, TxnResult)  # noqa: S101 - `TxnOp.result` has checked the kinds
        if not within.succeeded:
            return WriteAnswer(Branch.DUPLICATE, header)
        responses, own_puts = within.responses, 2
    branch = Branch.THEN
    if write.when or write.otherwise:
        (within,) = responses
        assert isinstance(within, TxnResult)  # noqa: S101 - as above
        branch = Branch.THEN if within.succeeded else Branch.OTHERWISE
        responses = within.responses
    return WriteAnswer(branch, header, responses[:-own_puts])


def operations_of(write: Write, branch: Branch) -> tuple[op.Op, ...]:
    """The operations of a write that ran."""
    match branch:
        case Branch.THEN:
            return write.then
        case Branch.OTHERWISE:
            return write.otherwise
        case Branch.DUPLICATE:
            return ()


def described(write: Write) -> str:
    """A write in words, for its errors: its kind, and the keys that it changes."""
    match write:
        case SingleWrite(then=(op.PutOp(key=key),)):
            return f"put {shown_keys(key)}"
        case SingleWrite(then=(op.DeleteOp(keys=keys),)):
            return f"delete {shown_keys(keys.key, keys.range_end)}"
        case _:
            subjects = dict.fromkeys(_changed(write.then + write.otherwise))
            return f"txn on {', '.join(subjects)}"


def _changed(operations: tuple[op.Op, ...]) -> Iterator[str]:
    for operation in _flat(operations):
        match operation:
            case op.PutOp():
                yield shown_keys(operation.key)
            case op.DeleteOp():
                yield shown_keys(operation.keys.key, operation.keys.range_end)


def attaches_lease(write: Write) -> bool:
    """Whether a write has a lease of its own."""
    operations = _flat((*write.then, *write.otherwise))
    return any(isinstance(operation, op.PutOp) and operation.lease != 0 for operation in operations)


def _flat(operations: tuple[op.Op, ...]) -> Iterator[op.Op]:
    """The operations, with those of inner txns in place of these."""
    for operation in operations:
        if isinstance(operation, op.TxnOp):
            yield from _flat(operation.then + operation.otherwise)
        else:
            yield operation


def parse_id_value(value: bytes) -> tuple[bytes, Branch] | None:
    """The digest and the branch in the value of an id's key; None if the value is no such value."""
    digest, _, branch = value.partition(b":")
    known = {b.value: b for b in (Branch.THEN, Branch.OTHERWISE)}
    return (digest, known[branch]) if branch in known else None


def check_write(write: Write, own: KeyRange, *, has_id: bool) -> None:
    """Check that a write can be made through a slot.

    Args:
        write: the write.
        own: the range of the keys that exactly-once writes need for themselves.
        has_id: whether the write has an id.

    Raises:
        TooManyOpsError: with what is added, it has more operations than etcd accepts.
        InvalidRequestError: it writes in the range of `own`.
    """
    most = _MAX_OPS[bool(write.when or write.otherwise), has_id]
    for part in (write.when, write.then, write.otherwise):
        if len(part) > most:
            raise TooManyOpsError(f"an exactly-once txn of this form has at most {most} operations, got {len(part)}")
    for operation in _flat((*write.then, *write.otherwise)):
        match operation:
            case op.PutOp():
                overlaps = operation.key in own
            case op.DeleteOp():
                overlaps = operation.keys.key in own or own.key in operation.keys
            case _:
                overlaps = False
        if overlaps:
            raise InvalidRequestError("an exactly-once write must not change the keys that exactly-once writes use")
