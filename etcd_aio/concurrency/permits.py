"""Permits: the rule of a semaphore, from the keys that it sees. Pure.

Theory. Each contender has a key whose value says how many permits it wants and what it takes for the limit. In the
order of `create_revision`, a contender holds if its permits and those of all before it are at most the limit. Keys
before it only ever vanish, so once that is true, it stays true. At any revision the youngest holder has counted all
others, which are older and alive, so the sum of those that hold never exceeds the limit.

A contender with another limit than the oldest one leaves with an error. Until its key is gone, it counts for those
behind it as one that wants more than there is: they wait for it. So two that hold have named the same limit, also if
the oldest one leaves meanwhile, and such a key, which stands for a moment, drives none away that agrees with the
oldest. Who comes in that moment, when the last one that agrees has left, finds that key the oldest, and gets the error.

The sums only grow from one contender to the next, so those that hold are the first ones, and none overtakes a large
request. The first that does not hold is the head. It waits for a deletion of any key. Each other one waits for the one
before it, until that is gone or holds; a contender that had to wait marks its key when it holds. So a release wakes the
head, and the head, if it holds then, wakes the next one.

So a contender needs no list of all keys, which would be long for each of many: the oldest keys until their permits pass
the limit say whether it is behind the head, and then it needs the key before its own alone.
"""

import json
from collections.abc import Iterable
from typing import Protocol

from etcd_aio.concurrency.place import Listed
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import LockError
from etcd_aio.types import shown_key


class ListedPermit(Listed, Protocol):
    """A key with its value, as the server lists it: a `KeyValue`."""

    @property
    def value(self) -> bytes:
        """The value."""
        ...


@dataclass(frozen=True, slots=True)
class PermitRequest:
    """The permits that a contender wants.

    Attributes:
        limit: the permits that there are.
        permits: how many of them.
    """

    limit: int
    permits: int

    def value(self, *, is_held: bool) -> bytes:
        """The value of its key; `is_held` marks it once it holds."""
        return json.dumps({"limit": self.limit, "permits": self.permits, "held": is_held}).encode()


@dataclass(frozen=True, slots=True)
class PermitVerdict:
    """The conclusion from a list of the keys up to the own one.

    Attributes:
        is_there: the own key is among them.
        is_held: it holds.
        ahead: the contender before it, if there is one.
        is_head: all contenders before it hold.
    """

    is_there: bool
    is_held: bool = False
    ahead: ListedPermit | None = None
    is_head: bool = True


def judge(found: Iterable[ListedPermit], key: bytes, revision: int, request: PermitRequest) -> PermitVerdict:
    """Apply the rule.

    Args:
        found: all keys of the semaphore, or all that are not younger than the own one.
        key: the own key.
        revision: its `create_revision`.
        request: what it wants.

    Raises:
        LockError: the oldest key has another limit, or one is not that of a semaphore. Younger keys are not looked at.
    """
    total = 0
    ahead: ListedPermit | None = None
    is_head = True
    for kv in _by_age(found):
        if kv.create_revision >= revision:
            if kv.create_revision > revision or kv.key != key:
                break
            return PermitVerdict(True, total + parse(kv, request) <= request.limit, ahead, is_head)
        total += _counted(kv, request, is_oldest=ahead is None)
        is_head = total <= request.limit
        ahead = kv
    return PermitVerdict(False)


def judge_ends(
    oldest: Iterable[ListedPermit], youngest: Iterable[ListedPermit], key: bytes, revision: int, request: PermitRequest
) -> PermitVerdict | None:
    """Apply the rule to the ends of a line. Returns None if these keys do not tell.

    Args:
        oldest: the oldest keys of the semaphore, of which there are more.
        youngest: the youngest keys that are not younger than the own one.
        key: the own key.
        revision: its `create_revision`.
        request: what it wants.

    Raises:
        LockError: as `judge`.
    """
    first = _by_age(oldest)
    verdict = judge(first, key, revision, request)
    if verdict.is_there:
        return verdict
    counted = (_counted(kv, request, is_oldest=number == 0) for number, kv in enumerate(first))
    last = _by_age(youngest)
    if not last or (last[-1].key, last[-1].create_revision) != (key, revision):
        return PermitVerdict(False)
    if sum(counted) <= request.limit or len(last) < 2:
        return None
    return PermitVerdict(True, False, last[-2], is_head=False)


def is_free(found: Iterable[ListedPermit], request: PermitRequest) -> bool:
    """Whether a contender that comes after these would hold at once.

    Args:
        found: all keys of the semaphore.
        request: what it wants.

    Raises:
        LockError: as `judge`.
    """
    counted = [_counted(kv, request, is_oldest=number == 0) for number, kv in enumerate(_by_age(found))]
    return sum(counted) + request.permits <= request.limit


def parse(kv: ListedPermit, request: PermitRequest) -> int:
    """The permits that a contender wants.

    Raises:
        LockError: its limit is another one, or the key is not one of a semaphore.
    """
    return _counted(kv, request, is_oldest=True)


def _by_age(found: Iterable[ListedPermit]) -> list[ListedPermit]:
    return sorted(found, key=lambda kv: kv.create_revision)


def _counted(kv: ListedPermit, request: PermitRequest, *, is_oldest: bool) -> int:
    """The permits that a contender counts for; more than there are, if it is about to leave."""
    value, key = _fields(kv.value), shown_key(kv.key)
    limit, permits = value.get("limit"), value.get("permits")
    if not isinstance(limit, int) or not isinstance(permits, int):
        raise LockError(f"the key {key} is not one of a semaphore: use a name for one kind of lock only")
    if limit == request.limit:
        return permits
    if is_oldest:
        raise LockError(f"the limit is {request.limit} here, and {limit} for the contender {key}: use the same one")
    return request.limit + 1


def is_marked(kv: ListedPermit) -> bool:
    """Whether a contender had to wait and says that it holds now."""
    return _fields(kv.value).get("held") is True


def _fields(value: bytes) -> dict[str, object]:
    try:
        fields = json.loads(value)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
