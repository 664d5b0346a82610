"""A configuration that reloads itself. Endpoints: arguments or $ETCD_ENDPOINTS."""

import asyncio
import os
import sys

from etcd_aio import Client
from etcd_aio.cache import Cache

PREFIX = "example/config/"


def live_config(client: Client, prefix: str) -> Cache[str]:
    """The settings under a prefix, kept up to date inside the block, over any outage."""
    # A value that cannot be decoded is logged, and the setting keeps the one before. With `keep_current`, `config.age`
    # says how old the settings may be: a second, or more while etcd is out of reach.
    return client.cache(prefix=prefix, decode=bytes.decode, keep_current=1.0)


async def report(config: Cache[str], expected: int) -> None:
    """Print the log level whenever it changes. What is read here is one revision, however many keys changed at once."""
    changes = config.changes()
    print("log level:", config[f"{PREFIX}log"])
    async for revision, changed in changes:
        if f"{PREFIX}log".encode() in changed:
            print("log level:", config[f"{PREFIX}log"])
        if revision >= expected:
            return


async def main() -> None:
    async with Client(sys.argv[1:] or os.environ.get("ETCD_ENDPOINTS")) as client, asyncio.timeout(30):
        info = await client.put(f"{PREFIX}log", "info")
        async with live_config(client, PREFIX) as config:
            reporting = asyncio.create_task(report(config, info.revision + 1))
            await asyncio.sleep(0)
            await client.put(f"{PREFIX}log", "debug")
            await reporting
            # After an own write, wait for its revision.
            gone = await client.delete(prefix=PREFIX)
            await config.wait_revision(gone.revision)
            print("settings left:", len(config))


if __name__ == "__main__":
    asyncio.run(main())
