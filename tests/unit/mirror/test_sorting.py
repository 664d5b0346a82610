"""mirror/sorting.py: sorted_keys: what `sorted` returns, in parts."""

import asyncio
from random import Random

import pytest

from etcd_aio.errors import EmptyKeyError
from etcd_aio.mirror.sorting import PART, sorted_keys
from tests.support.virtual_time import turns

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("count", [0, 1, PART - 1, PART, PART + 1, 5 * PART + 7])
async def test_keys_are_sorted_and_each_is_there_once(count: int) -> None:
    random = Random(count)
    keys: list[str | bytes] = [f"k{random.randrange(1, 3 * count)}" for _ in range(count)]
    keys += [key.encode() for key in random.sample(keys, count // 2) if isinstance(key, str)]
    encoded = {key.encode() if isinstance(key, str) else key for key in keys}
    assert await sorted_keys(keys, "known") == sorted(encoded)


async def test_others_have_their_turns_and_may_change_the_collection() -> None:
    known: dict[bytes, int] = {b"%d" % number: 0 for number in range(10 * PART)}
    sorting = asyncio.create_task(sorted_keys(known, "known"))
    taken = 0
    while not sorting.done():
        await turns(1)
        known[b"new%d" % taken] = 0
        taken += 1
    assert taken >= 10, "a turn for each part"
    assert len(await sorting) == 10 * PART


async def test_what_is_no_key_is_refused() -> None:
    with pytest.raises(EmptyKeyError):
        await sorted_keys(["a", ""], "known")
    with pytest.raises(TypeError, match="known"):
        await sorted_keys([1], "known")  # type: ignore[list-item]
