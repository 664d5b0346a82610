"""A process that holds many locks, and tells what each holder finds at its first look after the process was stopped.

It says "held" when it holds all of them. When it runs again after a stop, it says one JSON object for each holder:

    is_lost     what the first look at the lock says, before anything else has run
    fenced      what becomes of a fenced write: "written", "refused", or "in doubt"
    ended       how the body ends: "cancelled", or that it goes on
    raised      what leaving the block raises
"""

import asyncio
import json
import sys
import time
from typing import Final

from etcd_aio import Client, EtcdError, LockLostError

HOLDERS: Final = 100
TTL: Final = 2
_A_STOP: Final = 2.0 * TTL  # seconds; shorter ones are those of a busy machine


async def _hold(client: Client, number: int, count: list[int]) -> dict[str, object]:
    found: dict[str, object] = {"ended": "goes on", "raised": ""}
    try:
        async with client.lock(f"lock/{number}", ttl=TTL) as lock:
            count.append(number)
            if len(count) == HOLDERS:
                print("held", flush=True)
            before = time.monotonic()
            while time.monotonic() - before < _A_STOP:
                before = time.monotonic()
                await asyncio.sleep(0)  # it is the next turn of the loop, so no timer comes before it
            found["is_lost"] = lock.is_lost
            try:
                await lock.fenced.put(f"data/{number}", "late")
                found["fenced"] = "written"
            except LockLostError as error:
                found["fenced"] = "in doubt" if error.maybe_applied else "refused"
            try:
                await asyncio.sleep(10 * TTL)
            except asyncio.CancelledError:
                found["ended"] = "cancelled"
                raise
    except EtcdError as error:
        found["raised"] = type(error).__name__
    return found


async def _main(endpoint: str) -> None:
    count: list[int] = []
    async with Client(endpoint) as client:
        for found in await asyncio.gather(*(_hold(client, number, count) for number in range(HOLDERS))):
            print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
