"""kv/endless_deletes.py: a txn that would end the members of etcd is refused before it is sent."""

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from etcd_aio.errors import DuplicateKeyError
from etcd_aio.kv import op
from etcd_aio.kv.operations import DeleteOp, Op, PutOp, TxnOp
from etcd_aio.types import NO_END

LETTERS = st.sampled_from("abc")
WRITES = st.one_of(
    LETTERS.map(lambda key: op.put(key, "v")),
    LETTERS.map(lambda key: op.put(key, ignore_value=True)),
    LETTERS.map(op.delete),
    LETTERS.map(lambda key: op.delete(from_key=key)),
    LETTERS.map(lambda key: op.delete(key, range_end="d")),
    st.just(op.delete(all_keys=True)),
    st.just(op.delete(prefix=b"\xff")),
    st.just(op.get("a")),
)


def txns(operations: st.SearchStrategy[Op]) -> st.SearchStrategy[Op]:
    branches = st.lists(operations, max_size=3)
    return st.builds(lambda then, otherwise: op.txn(then=then, otherwise=otherwise), branches, branches)


TXNS = txns(st.recursive(WRITES, txns, max_leaves=6))


def runs(operation: Op) -> Iterator[tuple[Op, ...]]:
    """Each list of puts, deletes and reads that an operation can come to, by the outcomes of its comparisons."""
    if not isinstance(operation, TxnOp):
        yield (operation,)
        return
    for branch in (operation.then, operation.otherwise):
        done: list[tuple[Op, ...]] = [()]
        for inner in branch:
            done = [earlier + later for earlier in done for later in runs(inner)]
        yield from done


def has_fatal_run(txn: Op) -> bool:
    return any(
        put.key in delete.keys
        for run in runs(txn)
        for delete in run
        if isinstance(delete, DeleteOp) and delete.keys.range_end == NO_END
        for put in run
        if isinstance(put, PutOp)
    )


def is_refused_by_the_client(txn: Op) -> bool:
    try:
        txn.message()
    except DuplicateKeyError:
        return True
    return False


@given(txn=TXNS)
@example(txn=op.txn(then=[op.put("a", "v"), op.delete(from_key="a")]))
@example(txn=op.txn(then=[op.delete(from_key="b"), op.put("a", "v")]))
@example(txn=op.txn(then=[op.delete(all_keys=True)], otherwise=[op.put("a", "v")]))
@example(txn=op.txn(then=[op.txn(otherwise=[op.delete(from_key="a")]), op.txn(then=[op.put("b", "v")])]))
def test_a_txn_is_refused_exactly_if_one_of_its_runs_deletes_without_an_end_and_puts_such_a_key(txn: Op) -> None:
    assert is_refused_by_the_client(txn) == has_fatal_run(txn)


def test_the_error_names_both_keys_and_what_to_write() -> None:
    txn = op.txn(then=[op.delete(from_key="jobs/"), op.put("jobs/7", "s3cret")])
    with pytest.raises(
        DuplicateKeyError, match=r"all keys from b'jobs/' on and put b'jobs/7'.*use two txns"
    ) as refused:
        txn.message()
    assert "s3cret" not in str(refused.value)
    assert not refused.value.maybe_applied
