"""A worker with a background task, as a process: stamps in a file while it leads. `python -m ... ENDPOINT FILE TTL`.

It prints a line when it stands, and a SIGTERM ends it in order.
"""

import asyncio
import os
import signal
import sys
import time

from etcd_aio.concurrency import Leadership
from etcd_aio.contrib.web import EtcdApplication


async def main(endpoint: str, path: str, ttl: int) -> None:
    etcd = EtcdApplication(endpoint)
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    @etcd.leader_only("job", ttl=ttl)
    async def job(leadership: Leadership) -> None:
        token = leadership.fencing_token
        while True:
            now = time.monotonic()  # before the question, since the process may be stopped between any two steps
            if leadership.is_lost:  # right at once, also if the process was stopped
                break
            os.write(file, f"{now} {os.getpid()} {token}\n".encode())
            await asyncio.sleep(0.01)

    stops = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stops.set)
    async with etcd.running():
        print("stands", flush=True)
        await stops.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
