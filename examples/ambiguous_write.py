"""A write whose answer was lost: find out what became of it, and never write twice.

The write is a txn that holds only while the key is at the revision that was read. So it may be sent again: of all
copies at most one can win, even if an early one is still on its way.
Endpoints: arguments, $ETCD_ENDPOINTS, or 127.0.0.1:2379.
"""

import asyncio
import os
import sys
import uuid

from etcd_aio import Client, EtcdError, Key, KeyValue, op
from etcd_aio.testing import FaultProxy

ORDER = "example/order"


async def put_once(client: Client, key: str, value: str, *, revision: int) -> bool:
    """Put a value that nobody else writes; False if somebody else has changed the key since `revision`."""
    guarded = client.txn().when(Key(key).mod_revision == revision).then(op.put(key, value)).otherwise(op.get(key))
    while True:
        try:
            result = await guarded.commit()
        except EtcdError as error:
            if not error.maybe_applied:
                raise  # surely not written
            print("unknown:", error)
            continue
        if result.succeeded:
            return True
        (now,) = result.responses
        return isinstance(now, KeyValue) and now.text() == value  # ours after all: the first copy has won


async def main() -> None:
    endpoint = Client(sys.argv[1:] or os.environ.get("ETCD_ENDPOINTS")).endpoints[0]
    # A proxy that brings the request to the member, and breaks the connection in place of the answer.
    url = endpoint if "://" in endpoint else f"http://{endpoint}"
    async with FaultProxy(url) as proxy, Client(proxy.endpoint) as client:
        before = await client.put(ORDER, "nobody's")
        proxy.cut_after(0, "to_client", connection="open")
        is_ours = await put_once(client, ORDER, f"order {uuid.uuid4()}", revision=before.revision)
        print("the order is ours" if is_ours else "somebody else was first")

        kv = await client.get(ORDER)
        assert kv is not None
        print("the key was written", kv.version - 1, "time since")
        await client.delete(ORDER)


asyncio.run(main())
