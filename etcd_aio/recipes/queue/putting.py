"""Putting: an item of a queue is put by a txn that is sent once, or whose copies are refused."""

from collections.abc import Iterable
from typing import Final

from etcd_aio import OutcomeUnknownError, TxnResult, op
from etcd_aio.arguments import to_bytes, whole_number
from etcd_aio.errors import EtcdError, InvalidRequestError, ItemInDoubtError, ResultLostError
from etcd_aio.recipes.calls import RecipeCalls
from etcd_aio.types import ValueLike, shown_key

DEFAULT_PRIORITY: Final = 100
"""Priority of an item that is put without one; others can be higher or lower."""

_LAST_PRIORITY: Final = 65535  # Go's are numbers of 16 bits


def checked_priority(priority: int) -> int:
    """A priority of an item or a job.

    Raises:
        InvalidRequestError, TypeError: it is no whole number from 0 to 65535.
    """
    if whole_number(priority, "priority") > _LAST_PRIORITY:
        raise InvalidRequestError(f"priority must be at most {_LAST_PRIORITY}, got {priority}")
    return priority


def encoded_values(values: Iterable[ValueLike], most: int) -> list[bytes]:
    """The values of items as bytes.

    Raises:
        InvalidRequestError: there are more than `most`.
        TypeError: it is one value, or one of them is neither text nor bytes.
    """
    if isinstance(values, str | bytes | bytearray | memoryview):
        raise TypeError(f"put_all() takes several values, got one {type(values).__name__}")
    encoded = [to_bytes(value, "value") for value in values]
    if len(encoded) > most:
        raise InvalidRequestError(f"put_all() takes at most {most} values, got {len(encoded)}")
    return encoded


async def put_once(calls: RecipeCalls, what: str, keys: Iterable[bytes], txn: op.TxnOp, deadline: float) -> TxnResult:
    """Send a txn that puts items under keys. It is not repeated: a late copy would put them after they were taken.

    Raises:
        ItemInDoubtError: the answer was lost.
        OutcomeUnknownError, ResultLostError: of an exact writer, which can settle the first, and knows of the second
            what was applied.
        EtcdError: nothing was put.
    """
    try:
        return await calls.commit(txn, deadline)
    except (OutcomeUnknownError, ResultLostError):
        raise
    except EtcdError as error:
        if not error.maybe_applied:
            raise
        raise put_in_doubt(what, keys) from error


def put_in_doubt(what: str, keys: Iterable[bytes]) -> ItemInDoubtError:
    """The error of a put whose answer is lost."""
    named = tuple(keys)
    text = f"{what}: the answer was lost, and {', '.join(map(shown_key, named))} may have been put"
    return ItemInDoubtError(text, keys=named)
