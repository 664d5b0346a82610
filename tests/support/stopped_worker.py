"""A process that works on one job, and tells what becomes of it when the process was stopped meanwhile.

It says "claimed" when it has the job. When it runs again after a stop, it says one JSON object:

    is_lost     what the first look at the job says, before anything else has run
    completed   what becomes of its completion: "done", "lost", or "in doubt"
    raised      what leaving the block raises
"""

import asyncio
import json
import sys
import time
from typing import Final

from etcd_aio import Client, EtcdError, op
from etcd_aio.errors import JobLostError
from etcd_aio.recipes import WorkQueue

TTL: Final = 2
_A_STOP: Final = 2.0 * TTL  # seconds; shorter ones are those of a busy machine


async def _main(endpoint: str, name: str) -> None:
    found: dict[str, object] = {"raised": ""}
    async with Client(endpoint) as client, WorkQueue(client, name, ttl=TTL).worker(on_lost="signal") as worker:
        try:
            async with await anext(worker) as job:
                print("claimed", flush=True)
                before = time.monotonic()
                while time.monotonic() - before < _A_STOP:
                    before = time.monotonic()
                    await asyncio.sleep(0)  # it is the next turn of the loop, so no timer comes before it
                found["is_lost"] = job.is_lost
                try:
                    await job.complete(op.put(f"{name}/result", "late"))
                    found["completed"] = "done"
                except JobLostError as error:
                    found["completed"] = "in doubt" if error.maybe_applied else "lost"
        except EtcdError as error:
            found["raised"] = type(error).__name__
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
