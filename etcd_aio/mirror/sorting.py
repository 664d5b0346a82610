"""Sorting: keys in order, in parts, so that the event loop is not blocked however many they are."""

import asyncio
from collections.abc import Collection
from heapq import merge
from itertools import islice
from typing import Final

from etcd_aio import KeyLike
from etcd_aio.arguments import encode_key

PART: Final = 2000
"""Keys in one turn of the loop: one or two milliseconds."""


async def sorted_keys(keys: Collection[KeyLike], what: str) -> list[bytes]:
    """The keys as they are at the call, encoded, in order, and each once. The collection may change meanwhile.

    Raises:
        EmptyKeyError, InvalidRequestError, TypeError: one is not a key.
    """
    given = list(keys)
    runs: list[list[bytes]] = []
    for begin in range(0, len(given), PART):
        if begin:
            await asyncio.sleep(0)
        runs.append(sorted({encode_key(key, what) for key in given[begin : begin + PART]}))
    if len(runs) < 2:
        return runs[0] if runs else []
    found: list[bytes] = []
    merged = merge(*runs)
    while part := list(islice(merged, PART)):
        await asyncio.sleep(0)
        part = list(dict.fromkeys(part))  # a key may have been given as str and as bytes
        found.extend(part[1:] if found and part[0] == found[-1] else part)
    return found
