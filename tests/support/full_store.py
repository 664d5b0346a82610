"""What an etcd does with deletions when its store is full."""

import pytest

from etcd_aio import Client, op
from etcd_aio.errors import NoSpaceError


async def skip_if_full_store_keeps_all(client: Client) -> None:
    """Skip the test on an etcd whose full store refuses txns that only delete, as 3.5.1 does."""
    try:
        await client.do(op.txn(then=[op.delete("nothing")]))
    except NoSpaceError:
        pytest.skip("this etcd refuses txns that only delete when its store is full (etcd-io/etcd#13429)")
