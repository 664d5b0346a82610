"""Large replies: decoded in turns, with the same result and the same error."""

import asyncio

import pytest

from etcd_aio import codec, pb
from etcd_aio.error_handler.large import LARGE, decode_large
from etcd_aio.errors import MalformedReplyError
from etcd_aio.types import RangeResult

pytestmark = pytest.mark.anyio


def reply(keys: int) -> bytes:
    kvs = [pb.KeyValue(key=b"%d" % number, value=bytes(100), mod_revision=number + 1) for number in range(keys)]
    return codec.encode(pb.RangeResponse(header=pb.ResponseHeader(revision=9), kvs=kvs, count=keys))


async def test_others_run_while_a_large_reply_is_decoded() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    raw = reply(20_000)
    assert len(raw) > 16 * LARGE
    counting = asyncio.create_task(count())
    try:
        found = await decode_large(RangeResult, raw)
    finally:
        counting.cancel()
    assert found == codec.decode(RangeResult, raw)
    assert turns >= 10


async def test_what_is_malformed_is_said_as_ever() -> None:
    with pytest.raises(MalformedReplyError):
        await decode_large(RangeResult, reply(1000)[:-1])
