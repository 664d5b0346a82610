"""recipes/group/hash_ring.py: the same everywhere, even enough, and it moves as few keys as it can."""

import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from etcd_aio import InvalidRequestError
from etcd_aio.errors import EmptyGroupError
from etcd_aio.recipes import HashRing
from etcd_aio.recipes.group.hash_ring import hash_of, points_of

KEYS = [f"user/{number}" for number in range(20_000)]


def owners(names: list[str], replicas: int = 64) -> list[str]:
    ring = HashRing(names, replicas=replicas)
    return [ring.owner(key) for key in KEYS]


def test_points_and_hashes_are_those_of_every_release() -> None:
    """Members of different releases must agree: if this fails, the format has changed."""
    assert points_of("host-1", 3) == (9689803473951020115, 15923508684386083445, 1191459600240192583)
    assert points_of("host-1", 64)[:3] == points_of("host-1", 3)
    assert len(set(points_of("host-1", 64))) == 64
    assert hash_of(b"user/42") == 3702068913261514561
    ring = HashRing(["host-1", "host-2", "host-3"])
    assert [ring.owner(f"user/{number}") for number in range(8)] == [
        *("host-2", "host-2", "host-3", "host-2", "host-3", "host-2", "host-3", "host-3")
    ]


@pytest.mark.slow
def test_it_does_not_depend_on_the_process_or_the_order() -> None:
    code = "from etcd_aio.recipes import HashRing; print([HashRing({'a', 'b', 'c'}).owner(str(n)) for n in range(50)])"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
    assert owners(["a", "b", "c"]) == owners(["c", "a", "b", "a"])


def test_a_member_that_joins_gets_keys_and_moves_no_others() -> None:
    names = [f"host-{number}" for number in range(10)]
    before, after = owners(names), owners([*names, "new"])
    moved = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert {new for _, new in moved} == {"new"}
    assert {old for old, _ in moved} == set(names), "each gives a part"
    assert len(KEYS) / 11 * 0.6 < len(moved) < len(KEYS) / 11 * 1.4


def test_shares_are_even() -> None:
    names = [f"host-{number}" for number in range(10)]
    assert all(0.65 < count / (len(KEYS) / 10) < 1.35 for count in Counter(owners(names)).values())
    assert all(0.9 < count / (len(KEYS) / 10) < 1.1 for count in Counter(owners(names, 4096)).values())


def test_several_owners_begin_with_the_owner_and_go_on_with_the_next() -> None:
    names = ["a", "b", "c", "d"]
    ring = HashRing(names)
    for key in KEYS[:200]:
        found = ring.owners(key, 3)
        assert len(set(found)) == 3
        assert found[0] == ring.owner(key)
        left = HashRing([name for name in names if name != found[0]])
        assert left.owner(key) == found[1]
        assert set(ring.owners(key, 9)) == set(names)
    assert HashRing([]).owners("k", 2) == ()


def test_a_ring_of_other_members_is_that_made_anew() -> None:
    ring = HashRing(["a", "b"], epoch=7)
    again = ring.replaced(["b", "c"], 9)
    assert again == HashRing(["b", "c"], epoch=9)
    assert [again.owner(key) for key in KEYS[:500]] == [HashRing(["b", "c"]).owner(key) for key in KEYS[:500]]
    assert len({ring, again, HashRing(["b", "a"], epoch=7)}) == 2
    assert ring != HashRing(["a", "b"], epoch=7, replicas=8)
    assert (ring.members, ring.replicas, ring.epoch) == (("a", "b"), 64, 7)
    assert repr(ring) == "<HashRing of 2 members epoch=7>"


def test_without_members_nothing_has_an_owner() -> None:
    with pytest.raises(EmptyGroupError):
        HashRing([]).owner("k")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"replicas": 0}, InvalidRequestError),
        ({"replicas": 4097}, InvalidRequestError),
        ({"replicas": True}, TypeError),
        ({"epoch": -1}, InvalidRequestError),
        ({"names": "abc"}, TypeError),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        HashRing(**{"names": ["a"], **arguments})
    with pytest.raises(TypeError):
        HashRing(["a"]).owner(1)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError):
        HashRing(["a"]).owners("k", 0)
