"""cache/tree.py: the sorted store of a cache against a dict that is sorted for each range."""

import random

import pytest

from etcd_aio.cache.tree import RUN, Tree


def sorted_keys(model: dict[bytes, int], first: bytes, end: bytes | None) -> list[bytes]:
    return sorted(key for key in model if first <= key and (end is None or key < end))


def check(tree: Tree[int], model: dict[bytes, int], choose: random.Random) -> None:
    assert tree.values == model
    assert len(tree) == len(model)
    assert tree.keys() == sorted(model)
    for _ in range(20):
        first, end = sorted(choose.randbytes(choose.randrange(3)) for _ in range(2))
        assert tree.keys(first, end) == sorted_keys(model, first, end)
        assert tree.keys(first) == sorted_keys(model, first, None)


@pytest.mark.parametrize("seed", range(6))
def test_any_mix_of_changes_leaves_sorted_keys(seed: int) -> None:
    choose = random.Random(seed)
    tree: Tree[int] = Tree()
    model: dict[bytes, int] = {}
    for round_ in range(12):
        # Rounds of growing and of shrinking: runs are split, joined and emptied.
        for _ in range(RUN * 2):
            key = choose.randbytes(choose.choice((1, 2)) if seed % 2 else 2)
            if choose.random() < (0.8 if round_ % 4 < 2 else 0.2):
                tree.put(key, round_)
                model[key] = round_
            elif key in model:
                tree.delete(key)
                del model[key]
        check(tree, model, choose)
    for key in sorted(model, reverse=bool(seed % 2)):
        tree.delete(key)
    check(tree, {}, choose)
    tree.put(b"again", 1)
    assert tree.keys() == [b"again"]


@pytest.mark.parametrize("page", [1, 100, RUN, 3 * RUN + 1])
def test_sorted_pages_are_appended_and_then_changed(page: int) -> None:
    choose = random.Random(page)
    keys = sorted({choose.randbytes(3) for _ in range(5 * RUN)})
    tree: Tree[int] = Tree()
    for begin in range(0, len(keys), page):
        tree.append(dict.fromkeys(keys[begin : begin + page], begin))
    tree.append({})
    model = {key: begin // page * page for begin, key in enumerate(keys)}
    check(tree, model, choose)
    for key in choose.sample(keys, RUN):
        tree.delete(key)
        del model[key]
    for _ in range(RUN):
        key = choose.randbytes(3)
        tree.put(key, -1)
        model[key] = -1
    check(tree, model, choose)


def test_a_key_that_is_not_there_cannot_be_deleted() -> None:
    tree: Tree[int] = Tree()
    tree.put(b"a", 1)
    with pytest.raises(KeyError):
        tree.delete(b"b")
    assert tree.keys() == [b"a"]


def test_a_change_moves_the_keys_of_one_run_alone() -> None:
    """So a change costs the same with a hundred thousand keys as with a thousand."""
    tree: Tree[int] = Tree()
    tree.append(dict.fromkeys((b"%06d" % number for number in range(100_000)), 0))
    tree.put(b"050000a", 1)
    assert max(map(len, tree.runs())) <= 2 * RUN
    for number in range(0, 100_000, 2):
        tree.put(b"%06db" % number, 1)
    assert max(map(len, tree.runs())) <= 2 * RUN
