"""A star import as type checkers see it: they must find the names without `__all__`, which is computed."""

from typing import assert_type

from etcd_aio import *  # noqa: F403
from etcd_aio.errors import *  # noqa: F403


async def get(client: Client) -> None:  # noqa: F405
    assert_type(await client.get("k"), KeyValue | None)  # noqa: F405
    assert_type(await client.do(op.range("k")), RangeResult)  # noqa: F405
    assert_type(CompactedError().compact_revision, int)  # noqa: F405
