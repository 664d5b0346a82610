"""cache/base.py: the difference from an earlier content is found in parts, whatever is gone."""

import random
from collections import deque

import pytest

from etcd_aio import KeyValue
from etcd_aio.cache.base import Base
from etcd_aio.cache.rows import Row, row_of
from etcd_aio.cache.tree import RUN, Tree


def tree_of(numbers: list[int]) -> Tree[Row]:
    tree: Tree[Row] = Tree()
    tree.append({b"%06d" % number: row_of(KeyValue(b"%06d" % number, b"", 2, 2, 1)) for number in sorted(numbers)})
    return tree


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_difference_of_the_contents(seed: int) -> None:
    choose = random.Random(seed)
    everything = range(RUN * 4)
    earlier = choose.sample(everything, choose.choice((0, 1, RUN, RUN * 3)))
    now = sorted(choose.sample(everything, choose.choice((0, 1, RUN, RUN * 3))))
    before = tree_of(earlier)
    for number in earlier[: len(earlier) // 3]:
        before.delete(b"%06d" % number)
    base: Base[object] = Base(before, None)
    kvs = [KeyValue(b"%06d" % number, b"", 2, choose.choice((2, 3)), 1) for number in now]
    while kvs:
        size = choose.choice((1, 50, 1000))
        page, kvs = kvs[:size], kvs[size:]
        deque(base.add(page, base.changed(page), {}))
    deque(base.finish())
    there, known = base.tree.values, before.values
    assert {key: kv and row_of(kv) for key, kv in base.changes.items()} == {
        key: there.get(key) for key in {*there, *known} if there.get(key) != known.get(key)
    }
    assert base.created == {key for key in there if key not in known}
    assert base.tree.keys() == sorted(there) == [b"%06d" % number for number in now]


def test_an_empty_run_ends_nothing() -> None:
    """The first run of a tree may be empty."""
    before = tree_of(list(range(RUN * 3)))
    for key in before.keys()[:RUN]:
        before.delete(key)
    base: Base[object] = Base(before, None)
    deque(base.finish())
    assert set(base.changes) == set(before.values)


def test_keys_that_are_gone_are_passed_in_parts() -> None:
    before = tree_of(list(range(RUN * 20)))
    base: Base[object] = Base(before, None)
    last = [KeyValue(before.keys()[-1], b"", 2, 2, 1)]
    assert sum(1 for _ in base.add(last, base.changed(last), {})) >= 10, "one page that is behind all the others"
    assert sum(1 for _ in base.finish()) <= 1
    assert len(base.changes) == RUN * 20 - 1
