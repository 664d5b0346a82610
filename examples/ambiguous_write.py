"""A write whose reply was lost: find out whether it was applied, and never apply it twice.

The write is a transaction with a condition on the revision of the key. So it is safe to send it again: at most one of
all copies is applied, even if an earlier copy is still on its way. The last lines do the same with `exactly_once()`.
Endpoints: arguments, $ETCD_ENDPOINTS, or 127.0.0.1:2379.
"""

import asyncio
import os
import sys
import uuid

from etcd_aio import Client, EtcdError, Key, op
from etcd_aio.testing import FaultProxy

ORDER = "example/order"


async def put_once(client: Client, key: str, value: str, *, revision: int) -> bool:
    """Put a unique value; False if another writer was the first to change the key after `revision`.

    Raises:
        EtcdError: a round failed for good. Its `maybe_applied` is set if any round may have been applied.
    """
    guarded = client.txn().when(Key(key).mod_revision == revision).then(op.put(key, value))
    is_unknown = False
    while True:
        try:
            if await guarded.commit():
                return True
            # The current value proves nothing, since another writer may have overwritten ours. The first change does.
            async with client.watch(key, start_revision=revision + 1) as watcher:
                return (await anext(watcher)).value == value.encode()
        except EtcdError as error:
            is_unknown = is_unknown or error.maybe_applied
            if not error.maybe_applied:
                error.maybe_applied = is_unknown
                raise
            print("unknown:", error)


async def main() -> None:
    endpoint = Client(sys.argv[1:] or os.environ.get("ETCD_ENDPOINTS")).endpoints[0]
    # A proxy that forwards the request, and breaks the connection instead of forwarding the reply.
    url = endpoint if "://" in endpoint else f"http://{endpoint}"
    async with FaultProxy(url) as proxy, Client(proxy.endpoint) as client:
        before = await client.put(ORDER, "free")
        proxy.cut_after(0, "to_client", connection="open")
        is_ours = await put_once(client, ORDER, f"order {uuid.uuid4()}", revision=before.revision)
        print("the order is ours" if is_ours else "another writer was first")
        print("the key was written", (await client.delete(ORDER, prev_kv=True)).prev_kvs[0].version - 1, "time since")

        # The same for any write, without a revision to compare with, and without the loop above.
        async with client.exactly_once(prefix="example/once/") as once:
            while True:
                await once.put(ORDER, "free")
                proxy.cut_after(0, "to_client", connection="open")
                result = await once.put(ORDER, "ours")
                written = (await once.delete(ORDER, prev_kv=True)).prev_kvs[0].version - 1
                if result.is_replayed:  # otherwise the connection broke before the write had left
                    break
        print("exactly once: the reply was lost,", result.is_replayed, "and the key was written", written, "time since")


if __name__ == "__main__":
    asyncio.run(main())
