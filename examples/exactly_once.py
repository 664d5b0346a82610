"""Exactly-once writes: a counter that is right although replies are lost, a write in doubt, and an idempotency id.

Endpoints: arguments, $ETCD_ENDPOINTS, or 127.0.0.1:2379.
"""

import asyncio
import os
import sys

from etcd_aio import Client, Key, OutcomeUnknownError, op
from etcd_aio.testing import FaultProxy

COUNTER = "example/counter"
ORDER = "example/order-42"


async def main() -> None:
    endpoint = Client(sys.argv[1:] or os.environ.get("ETCD_ENDPOINTS")).endpoints[0]
    url = endpoint if "://" in endpoint else f"http://{endpoint}"
    async with (
        FaultProxy(url) as proxy,  # forwards requests, and breaks the connection instead of forwarding replies
        Client(proxy.endpoint, timeout=10) as client,
        client.exactly_once(prefix="example/once/", window=1) as once,
    ):
        await client.put(COUNTER, "0")
        for number in range(20):
            if number % 4 == 0:
                proxy.cut_after(0, "to_client", connection="open")
            step = once.txn().when(Key(COUNTER).value == str(number)).then(op.put(COUNTER, str(number + 1)))
            result = await step.commit()
            if result.is_replayed:
                print(f"step {number + 1}: the reply was lost; it was applied at revision {result.revision}")
        print("the counter is", (await client.delete(COUNTER, prev_kv=True)).prev_kvs[0].text())

        # No reply in time: the error says so, and settle() finds out.
        proxy.black_hole("to_client")
        try:
            await once.put(ORDER, "paid", timeout=0.5)
        except OutcomeUnknownError as error:
            proxy.heal()
            print("in doubt; settled: applied is", (await once.settle(error)).applied)

        # An id makes all writes that have it one write, also those of other processes.
        first = await once.put(ORDER, "sent", id="order-42/sent")
        again = await once.put(ORDER, "sent", id="order-42/sent")
        print("the second is a replay of the first:", again.is_replayed and again.revision == first.revision)
        await client.delete(ORDER)
        await client.wait_deleted("example/once/ids/order-42/sent")  # its window is a second, in this example


if __name__ == "__main__":
    asyncio.run(main())
