"""Replay against a real etcd: random txns on random stores, their answers computed from the history and compared."""

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, TypedDict

import pytest
from hypothesis import settings

from etcd_aio import Client, Compare, Key, KeyValue, RangeResult, SortBy, SortOrder, TxnResult, op
from etcd_aio.errors import DuplicateKeyError, KeyNotFoundError
from etcd_aio.once.guarded import operations_of
from etcd_aio.once.replay import needs_values, ranges_to_read
from etcd_aio.once.replay import replay as recompute
from etcd_aio.once.write_verdicts import Branch
from etcd_aio.types import OpResult

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

NAMES: Final = "abcde"


class Keys(TypedDict, total=False):
    """A key, or a range of keys, as arguments."""

    key: str
    prefix: str
    range_end: str


class RandomTxns:
    """Makes operations and conditions on a few keys below a prefix."""

    def __init__(self, seed: str, prefix: str, lease: int) -> None:
        self.random = random.Random(seed)
        self.prefix = prefix
        self.lease = lease
        self.revision = 0  # about the present one, for bounds

    def key(self) -> str:
        return self.prefix + self.random.choice(NAMES)

    def keys(self) -> Keys:
        if self.random.random() < 0.5:
            return {"key": self.key()}
        if self.random.random() < 0.5:
            return {"prefix": self.prefix}
        first, last = sorted(self.random.sample(NAMES, 2))
        return {"key": self.prefix + first, "range_end": self.prefix + last}

    def flag(self) -> bool:
        return self.random.random() < 0.3

    def value(self) -> str:
        return self.random.choice("xyz")

    def put(self) -> op.PutOp:
        key, lease = self.key(), self.random.choice((None, self.lease))
        if self.flag():
            return op.put(key, ignore_value=True, lease=lease, prev_kv=self.flag())
        if self.flag():
            return op.put(key, self.value(), ignore_lease=True, prev_kv=self.flag())
        return op.put(key, self.value(), lease=lease, prev_kv=self.flag())

    def read(self) -> op.RangeOp:
        def bound() -> int:
            return max(0, self.revision - self.random.randrange(6)) if self.random.random() < 0.15 else 0

        least = bound()
        return op.range(
            **self.keys(),
            limit=self.random.choice((0, 0, 1, 2)),
            sort_by=self.random.choice((SortBy.KEY, SortBy.KEY, *SortBy)),
            sort_order=self.random.choice(list(SortOrder)),
            keys_only=self.flag(),
            count_only=self.flag(),
            min_mod_revision=least,
            max_mod_revision=max(least, bound()) if self.flag() else 0,
            min_create_revision=bound(),
        )

    def operation(self, depth: int) -> op.Op:
        kind = self.random.random()
        if kind < 0.4:
            return self.put()
        if kind < 0.55:
            return op.delete(**self.keys(), prev_kv=self.flag())
        if kind < 0.65:
            return op.get(self.key(), keys_only=self.flag())
        if kind < 0.85 or depth == 0:
            return self.read()
        return self.txn(depth - 1)

    def condition(self) -> Compare:
        target = Key(**self.keys())
        number = self.random.randrange(4)
        return self.random.choice(
            (
                target.version == number,
                target.version < number,
                target.create_revision > 0,
                target.mod_revision != self.revision,
                target.value == self.value(),
                target.value != self.value(),
                target.value > self.value(),
                target.lease == self.lease,
            )
        )

    def txn(self, depth: int = 2) -> op.TxnOp:
        when = [self.condition() for _ in range(self.random.randrange(3))]
        then = [self.operation(depth) for _ in range(self.random.randrange(5))]
        otherwise = [self.operation(depth) for _ in range(self.random.randrange(4))]
        return op.txn(when=when, then=then, otherwise=otherwise)


def comparable(operations: Iterable[op.Op], results: Iterable[OpResult]) -> list[object]:
    """The results, without the leases of reads of keys only: etcd 3.7 leaves them out, earlier releases do not."""
    return [_comparable(operation, result) for operation, result in zip(operations, results, strict=True)]


def _comparable(operation: op.Op, result: OpResult) -> object:
    match operation, result:
        case op.GetOp(keys_only=True), KeyValue():
            return replace(result, lease=0)
        case op.RangeOp(keys_only=True), RangeResult():
            return replace(result, kvs=tuple(replace(kv, lease=0) for kv in result.kvs))
        case op.TxnOp(), TxnResult():
            operations = operation.then if result else operation.otherwise
            return result.succeeded, result.header.revision, comparable(operations, result.responses)
        case _:
            return result


async def test_what_is_computed_is_what_etcd_answered(client: Client, prefix: str, run_seed: int) -> None:
    compared = 0
    async with client.lease(600) as lease, client.exactly_once(prefix=f"{prefix}once/") as once:
        made = RandomTxns(f"{run_seed}", f"{prefix}k/", lease.id)
        for _ in range(4 * settings().max_examples):
            txn = made.txn()
            if txn.is_read_only:
                continue
            try:
                result = await once.txn().when(*txn.when).then(*txn.then).otherwise(*txn.otherwise).commit()
            except (DuplicateKeyError, KeyNotFoundError):
                continue
            operations = operations_of(txn, Branch.THEN if result else Branch.OTHERWISE)
            before: dict[bytes, KeyValue] = {}
            for keys in ranges_to_read(operations):
                read = op.RangeOp(keys, revision=result.revision - 1, keys_only=not needs_values(operations))
                before |= {kv.key: kv for kv in await client.do(read)}
            computed = recompute(operations, before.values(), result.header)
            if ranges_to_read(operations):
                compared += 1
                assert comparable(operations, computed) == comparable(operations, result.responses), operations
            made.revision = result.revision
    assert compared > 50
