"""A background task that only one of several instances runs. Endpoints: arguments or $ETCD_ENDPOINTS."""

import asyncio
import os
import sys

from etcd_aio import Client, EtcdError, LeadershipLostError
from etcd_aio.concurrency import Leadership

NAME = "example/reports"


async def report(leadership: Leadership) -> None:
    """Write a report now and then, while this instance leads. Each write is refused by etcd if it does not lead any
    more, even if this process stood still in between and does not know that yet.
    """
    number = 0
    while True:
        number += 1
        try:
            await leadership.fenced.put(f"{NAME}-written", f"report {number} of leader {leadership.fencing_token}")
        except EtcdError as error:
            if not error.retryable:  # such as a lost leadership
                raise
            print("not written this time:", error)  # the next report is; an error that is raised would end the run
        await asyncio.sleep(0.1)


async def instance(client: Client, name: str) -> None:
    """One instance of the service: it stands as a candidate for as long as it runs, and works when it leads."""
    await client.election(NAME, ttl=5).run(report, name)


async def main() -> None:
    async with Client(sys.argv[1:] or os.environ.get("ETCD_ENDPOINTS")) as client, asyncio.timeout(30):
        instances = {name: asyncio.create_task(instance(client, name)) for name in ("web-1", "web-2", "web-3")}
        async with client.election(NAME).changes() as leaders:
            async for leader in leaders:
                if leader is None:
                    print("no instance leads")
                    if not instances:
                        break
                    continue
                print("the leader is", leader.text())
                await asyncio.sleep(0.3)
                stopped = instances.pop(leader.text())  # a shutdown: the instance resigns, and the next one leads
                stopped.cancel()
                await asyncio.wait([stopped])
        written = await client.get(f"{NAME}-written")
        assert written is not None
        print("written:", written.text())

        # The same for one block of code: the block is cancelled if the leadership is lost.
        try:
            async with client.election(NAME).lead("web-4") as leadership:
                await client.delete(leadership.key)  # as an operator might do
                await leadership.fenced.put(f"{NAME}-written", "too late")
        except LeadershipLostError as error:
            print("lost:", error)
        await client.delete(f"{NAME}-written")


if __name__ == "__main__":
    asyncio.run(main())
