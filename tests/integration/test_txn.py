"""Transactions on a real server: every comparison, both branches, nesting, and what a txn guarantees."""

import asyncio

import pytest

from etcd_aio import Client, Compare, DeleteResult, Key, KeyValue, Op, PutResult, RangeResult, TxnResult, op
from etcd_aio.errors import InvalidRequestError

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.cluster,
    pytest.mark.both_stores,
    pytest.mark.usefixtures("each_engine", "each_store"),
]


async def holds(client: Client, *compares: Compare) -> bool:
    result = await client.txn().when(*compares).commit()
    assert result.responses == (), "nothing was asked for"
    return bool(result)


async def truths(client: Client, cases: list[tuple[Compare, bool]]) -> None:
    """Ask each in a txn of its own, all at once, and compare with what is written beside it."""
    answers = await asyncio.gather(*(holds(client, compare) for compare, _ in cases))
    wrong = [case for case, answer in zip(cases, answers, strict=True) if answer is not case[1]]
    assert not wrong


async def test_every_target_with_every_operator(client: Client, prefix: str) -> None:
    lease = (await client.leases.grant(36_000)).id
    created = (await client.put(prefix, "l")).revision
    await client.put(prefix, "l")
    changed = (await client.put(prefix, "m", lease=lease)).revision
    key = Key(prefix)
    cases: list[tuple[Compare, bool]] = []
    for target, actual in (
        (key.version, 3),
        (key.create_revision, created),
        (key.mod_revision, changed),
        (key.lease, lease),
    ):
        #                                              ==     !=     <      >
        for operand, equal, unequal, less, greater in (
            (actual - 1, False, True, False, True),
            (actual, True, False, False, False),
            (actual + 1, False, True, True, False),
            (-1, False, True, False, True),
            (2**63 - 1, False, True, True, False),
        ):
            cases += [
                (target == operand, equal),
                (target != operand, unequal),
                (target < operand, less),
                (target > operand, greater),
            ]
    for text, equal, unequal, less, greater in (
        (b"l", False, True, False, True),
        (b"m", True, False, False, False),
        (b"n", False, True, True, False),
        (b"", False, True, False, True),
        (b"m\x00", False, True, True, False),
        (b"\xff", False, True, True, False),
    ):
        value = key.value
        cases += [(value == text, equal), (value != text, unequal), (value < text, less), (value > text, greater)]
    cases += [(key.value == "m", True), (key.exists, True), (key.missing, False)]
    await truths(client, cases)


async def test_a_missing_key_is_zero_and_has_no_value(client: Client, prefix: str) -> None:
    for key in (Key(prefix + "none"), Key(prefix=prefix + "none"), Key(prefix + "x", range_end=prefix + "y")):
        cases = [(key.exists, False), (key.missing, True)]
        for target in (key.version, key.create_revision, key.mod_revision):
            cases += [
                (target == 0, True),
                (target != 0, False),
                (target < 1, True),
                (target > 0, False),
                (target > -1, True),
            ]
        cases += [(key.lease == 0, True), (key.lease != 0, False), (key.lease < 1, True), (key.lease > 0, False)]
        cases += [(key.value == "", False), (key.value != "", False), (key.value < "x", False), (key.value > "", False)]
        await truths(client, cases)


async def test_a_range_holds_if_all_of_its_keys_do(client: Client, prefix: str) -> None:
    revisions = [(await client.put(f"{prefix}{letter}", letter)).revision for letter in "abc"]
    await client.put(f"{prefix}c", "c")
    both, every = Key(f"{prefix}a", range_end=f"{prefix}c"), Key(prefix=prefix)
    await truths(
        client,
        [
            (both.version == 1, True),
            (every.version == 1, False),
            (every.version != 1, False),
            (every.version > 0, True),
            (every.version < 3, True),
            (every.exists, True),
            (every.missing, False),
            (both.value < "c", True),
            (every.value < "c", False),
            (every.value > "", True),
            (both.value != "c", True),
            (both.value != "b", False),
            (every.create_revision > revisions[0] - 1, True),
            (every.create_revision > revisions[0], False),
            (both.mod_revision < revisions[2], True),
            (every.mod_revision < revisions[2] + 1, False),
            (every.lease == 0, True),
            (Key(from_key=prefix).version > 0, True),
            (Key(from_key=b"\xff\xff").missing, True),
            (Key(all_keys=True).version > 0, True),
            (Key(all_keys=True).mod_revision < 0, False),
        ],
    )


async def test_all_comparisons_must_hold(client: Client, prefix: str) -> None:
    await client.put(prefix, "v")
    true, false = Key(prefix).version == 1, Key(prefix).version == 2
    assert await holds(client)
    assert await holds(client, true, true)
    assert not await holds(client, true, false)
    assert not await holds(client, false, true)


async def test_each_branch_does_its_own(client: Client, prefix: str) -> None:
    create = (
        client.txn()
        .when(Key(prefix).missing)
        .then(op.put(prefix, "first"))
        .otherwise(op.get(prefix), op.get(prefix + "none"))
    )
    won = await create.commit()
    assert (won.succeeded, bool(won)) == (True, True)
    (put,) = won.responses
    assert isinstance(put, PutResult)
    assert put.revision == won.revision

    lost = await create.commit()
    assert (lost.succeeded, bool(lost)) == (False, False)
    assert lost.responses == (KeyValue(prefix.encode(), b"first", won.revision, won.revision, 1), None)
    assert lost.revision == won.revision, "it changed nothing"

    only_then = await client.txn().when(Key(prefix).missing).then(op.put(prefix, "never")).commit()
    assert (only_then.succeeded, only_then.responses) == (False, ())
    only_else = await client.txn().when(Key(prefix).exists).otherwise(op.put(prefix, "never")).commit()
    assert (only_else.succeeded, only_else.responses) == (True, ())
    kv = await client.get(prefix)
    assert kv is not None
    assert kv.text() == "first"


async def test_operations_run_in_order_and_share_one_revision(client: Client, prefix: str) -> None:
    before = await client.put(prefix + "old", "x")
    result = await client.txn().then(
        op.get(prefix + "new"),
        op.put(prefix + "new", "y"),
        op.get(prefix + "new"),
        op.put(prefix + "old", "z", prev_kv=True),
        op.range(prefix=prefix, sort_order="descend", limit=1),
        op.delete(prefix=prefix + "none", prev_kv=True),
        op.range(prefix=prefix, keys_only=True),
        op.range(prefix=prefix, count_only=True),
    ).commit()  # fmt: skip
    absent, put, present, replaced, last, gone, bare, counted = result.responses
    revision = before.revision + 1
    assert result.revision == revision
    assert absent is None
    assert isinstance(put, PutResult)
    assert put.prev_kv is None
    new = KeyValue(f"{prefix}new".encode(), b"y", revision, revision, 1)
    assert present == new, "it sees what came before it in the same txn"
    assert isinstance(replaced, PutResult)
    assert replaced.prev_kv == KeyValue(f"{prefix}old".encode(), b"x", before.revision, before.revision, 1)
    assert isinstance(last, RangeResult)
    assert last.kvs == (KeyValue(f"{prefix}old".encode(), b"z", before.revision, revision, 2),)
    assert (last.count, last.more) == (2, True)
    assert isinstance(gone, DeleteResult)
    assert (gone.deleted, gone.prev_kvs) == (0, ())
    assert isinstance(bare, RangeResult)
    assert [kv.value for kv in bare] == [b"", b""]
    assert isinstance(counted, RangeResult)
    assert (counted.kvs, counted.count) == ((), 2)
    assert [kv.mod_revision for kv in await client.range(prefix=prefix)] == [revision, revision]
    past = op.range(prefix=prefix, revision=before.revision)
    assert (await client.txn().then(op.get(prefix), past).commit())[past].kvs == (replaced.prev_kv,)


@pytest.mark.parametrize("where", ["then", "otherwise", "nested", "beside a nested write"])
async def test_a_txn_that_writes_is_refused_if_it_reads_a_past_revision(
    client: Client, prefix: str, where: str
) -> None:
    before = await client.put(prefix, "x")
    past, write = op.get(prefix, revision=before.revision), op.put(prefix, "y")
    cases: dict[str, tuple[list[Op], list[Op]]] = {
        "then": ([past, write], []),
        "otherwise": ([write], [op.range(prefix=prefix, revision=before.revision)]),
        "nested": ([write, op.txn(otherwise=[op.txn(then=[past])])], []),
        "beside a nested write": ([past, op.txn(then=[write])], []),
    }
    then, otherwise = cases[where]
    with pytest.raises(InvalidRequestError, match="past revision"):
        await client.txn().then(*then).otherwise(*otherwise).commit()
    with pytest.raises(InvalidRequestError, match="past revision"):
        await client.do(op.txn(then=then, otherwise=otherwise))
    assert (await client.get(prefix)) == KeyValue(prefix.encode(), b"x", before.revision, before.revision, 1)


async def test_delete_inside_a_txn(client: Client, prefix: str) -> None:
    for letter in "abc":
        await client.put(prefix + letter, letter)
    result = await client.txn().then(
        op.delete(prefix + "a", range_end=prefix + "c", prev_kv=True), op.range(prefix=prefix), op.delete(prefix + "c")
    ).commit()  # fmt: skip
    several, left, one = result.responses
    assert isinstance(several, DeleteResult)
    assert (several.deleted, [kv.value for kv in several.prev_kvs]) == (2, [b"a", b"b"])
    assert isinstance(left, RangeResult)
    assert [kv.value for kv in left] == [b"c"]
    assert isinstance(one, DeleteResult)
    assert (one.deleted, one.prev_kvs) == (1, ())
    assert (await client.range(prefix=prefix)).count == 0


async def test_put_options_inside_a_txn(client: Client, prefix: str) -> None:
    lease = (await client.leases.grant(36_000)).id
    await client.put(prefix, "kept")
    await client.txn().then(op.put(prefix, ignore_value=True, lease=lease)).commit()
    await client.txn().then(op.put(prefix, "new", ignore_lease=True)).commit()
    kv = await client.get(prefix)
    assert kv is not None
    assert (kv.lease, kv.text(), kv.version) == (lease, "new", 3)
    past = await client.get(prefix, revision=kv.mod_revision - 1)
    assert past is not None
    assert (past.lease, past.text()) == (lease, "kept")


@pytest.mark.both_engines
async def test_nested_txns(client: Client, prefix: str) -> None:
    await client.put(prefix + "a", "1")
    inner_most = op.txn(
        when=[Key(prefix + "b").exists], then=[op.put(prefix + "never", "")], otherwise=[op.get(prefix + "a")]
    )
    inner = op.txn(
        when=[Key(prefix + "a").value == "1", Key(prefix + "b").missing],
        then=[op.put(prefix + "b", "2"), inner_most, op.txn()],
    )
    result = await client.txn().then(inner, op.range(prefix=prefix)).commit()
    nested, found = result.responses
    assert isinstance(nested, TxnResult)
    assert (nested.succeeded, nested.revision) == (True, result.revision)
    put, deepest, empty = nested.responses
    assert isinstance(put, PutResult)
    assert isinstance(deepest, TxnResult)
    # etcd judges the comparisons of all levels before it carries anything out, so `b` is not there yet.
    assert (deepest.succeeded, deepest.revision) == (False, result.revision)
    (kv,) = deepest.responses
    assert isinstance(kv, KeyValue)
    assert kv.value == b"1"
    assert isinstance(empty, TxnResult)
    assert (empty.succeeded, empty.responses) == (True, ())
    assert isinstance(found, RangeResult)
    assert [(one.key[-1:], one.mod_revision) for one in found] == [(b"a", result.revision - 1), (b"b", result.revision)]


async def test_a_read_only_txn_changes_nothing(client: Client, prefix: str) -> None:
    put = await client.put(prefix, "v")
    expected = KeyValue(prefix.encode(), b"v", put.revision, put.revision, 1)
    for serializable in (False, True):
        result = await (
            client.txn()
            .when(Key(prefix).exists)
            .then(
                op.get(prefix, serializable=serializable),
                op.range(prefix=prefix, serializable=serializable),
                op.get(prefix, revision=put.revision - 1, serializable=serializable),
            )
            .commit()
        )
        assert result.revision == put.revision
        kv, found, before = result.responses
        assert kv == expected
        assert isinstance(found, RangeResult)
        assert found.kvs == (expected,)
        assert before is None
    nested = await client.txn().then(op.txn(then=[op.get(prefix)]), op.txn(when=[Key(prefix).missing])).commit()
    assert nested.revision == put.revision
    (inner, failed) = nested.responses
    assert isinstance(inner, TxnResult)
    assert inner.responses == (expected,)
    assert isinstance(failed, TxnResult)
    assert (failed.succeeded, failed.revision) == (False, put.revision)


@pytest.mark.both_engines
async def test_as_many_operations_as_a_server_takes(client: Client, prefix: str) -> None:
    result = await client.txn().then(*(op.put(f"{prefix}{number:03}", "") for number in range(128))).commit()
    assert len(result.responses) == 128
    found = await client.range(prefix=prefix)
    assert {kv.mod_revision for kv in found} == {result.revision}
    assert found.count == 128


async def test_compare_and_swap_under_contention(client: Client, prefix: str) -> None:
    """Ten writers of one counter: every increment is made exactly once."""
    await client.put(prefix, "0")

    async def increment() -> int:
        lost = 0
        while True:
            kv = await client.get(prefix)
            assert kv is not None
            changed = (
                client.txn()
                .when(Key(prefix).mod_revision == kv.mod_revision)
                .then(op.put(prefix, str(int(kv.text()) + 1)))
            )
            if await changed.commit():
                return lost
            lost += 1

    async def ten_times() -> int:
        return sum([await increment() for _ in range(10)])

    lost = sum(await asyncio.gather(*(ten_times() for _ in range(10))))
    assert lost > 0, "no transaction met another: the test proves nothing"
    kv = await client.get(prefix)
    assert kv is not None
    assert (kv.text(), kv.version) == ("100", 101)


async def test_do_sends_every_kind_of_operation(client: Client, prefix: str) -> None:
    key = f"{prefix}k"
    put = await client.do(op.put(key, "v"))
    assert await client.do(op.get(key)) == await client.get(key) is not None
    assert await client.do(op.get(f"{prefix}missing")) is None
    assert (await client.do(op.range(prefix=prefix, serializable=True))).kvs == ((await client.get(key)),)
    get = op.get(key, serializable=True)
    txn = await client.do(op.txn(when=[Key(key).mod_revision == put.revision], then=[get], otherwise=[op.delete(key)]))
    assert txn.succeeded
    assert txn[get] == await client.get(key)
    assert (await client.do(op.delete(key))).deleted == 1
