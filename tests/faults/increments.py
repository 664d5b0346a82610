"""Increments through a proxy that breaks connections: `python -m tests.faults.increments --count 200000`.

Each worker increments a counter of its own by txns with the condition that the counter has the last number it knows; it
never reads the counter. The proxy breaks the open connections again and again, most of them before an answer, some
within a request. In the end every counter must have been written as often as its worker was told, by one increment
each. With `--plain` the same txns are sent by `retry="always"` and without slots: then a repeated copy meets the effect
of the first, is told that the condition does not hold, and the worker, which cannot know, counts once more.
"""

import argparse
import asyncio
import random
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from etcd_aio import Client, Key, RetryPolicy, Writer, op
from etcd_aio.testing import EtcdServer, FaultProxy

PREFIX = "increments/"
_TIMEOUT = 60.0  # seconds for one increment, on a busy machine and over several cuts
_POLICY = RetryPolicy(throttling=None)  # the cuts are as many as the budget for retries is there to prevent


@dataclass(frozen=True, slots=True)
class Counts:
    """What happened.

    Attributes:
        told: increments that were acknowledged.
        stored: the sum of the counters in the store.
        refused: increments that were told that another writer was there, although there is none.
        ambiguous: writes whose answer was lost, and which the slot told apart.
        cuts: how often the proxy has broken its connections.
    """

    told: int
    stored: int
    refused: int
    ambiguous: int
    cuts: int

    @property
    def is_exact(self) -> bool:
        """Whether each increment was applied once."""
        return self.told == self.stored and not self.refused


async def count(writer: Writer, direct: Client, key: str, number: int) -> tuple[int, int]:
    """Increment a counter `number` times; returns how many were acknowledged, and how many refused."""
    known = int((await direct.update(key, lambda value: value or "0")).value)
    told = refused = 0
    while told < number:
        txn = writer.txn().when(Key(key).value == str(known)).then(op.put(key, str(known + 1)))
        if await txn.commit(retry="always", timeout=_TIMEOUT):
            told += 1
            known += 1
        else:
            # All that is left to a client that cannot know whether the last attempt was its own.
            refused += 1
            kv = await direct.get(key)
            known = int(kv.value) if kv is not None else 0
    return told, refused


async def cut_now_and_then(proxy: FaultProxy, seed: int, every: float) -> int:
    """Break the open connections again and again, after some more bytes in one direction; the first time at once."""
    chance = random.Random(seed)
    proxy.cut_after(chance.randrange(400), "to_client", "rst", connection="open")
    cuts = 1
    try:
        while True:
            await asyncio.sleep(chance.uniform(0, 2 * every))
            direction = "to_server" if chance.random() < 0.2 else "to_client"
            proxy.cut_after(chance.randrange(4000), direction, "rst", connection="open")  # type: ignore[arg-type]
            cuts += 1
    except asyncio.CancelledError:
        return cuts


async def increments(
    endpoint: str, number: int, *, workers: int = 64, seed: int = 0, every: float = 0.25, plain: bool = False
) -> Counts:
    """Run the load.

    Args:
        endpoint: of a server.
        number: of increments, by all workers.
        workers: tasks that count, each with a counter.
        seed: of the cuts.
        every: seconds from one cut to the next, on average.
        plain: without slots.
    """
    async with AsyncExitStack() as stack:
        direct = await stack.enter_async_context(Client(endpoint, timeout=_TIMEOUT))
        await direct.delete(prefix=PREFIX)
        proxy = await stack.enter_async_context(FaultProxy(endpoint))
        client = await stack.enter_async_context(Client(proxy.endpoint, timeout=_TIMEOUT, retry_policy=_POLICY))
        once = await stack.enter_async_context(client.exactly_once(slots=workers))
        await asyncio.gather(*(once.put("warm", "v") for _ in range(workers)))  # connects, and makes the slots
        cutting = asyncio.create_task(cut_now_and_then(proxy, seed, every))
        writer: Writer = client if plain else once
        shares = [number // workers + (worker < number % workers) for worker in range(workers)]
        results = await asyncio.gather(
            *(count(writer, direct, f"{PREFIX}{worker}", share) for worker, share in enumerate(shares))
        )
        cutting.cancel()
        cuts = await cutting
        proxy.heal()
        stored = sum([int(kv.value) async for kv in direct.scan(prefix=PREFIX)])
        told, refused = (sum(column) for column in zip(*results, strict=True))
        return Counts(told, stored, refused, once.statistics().replays, cuts)


async def main(arguments: Sequence[str]) -> int:
    """Run it on a server of its own; 0 if every increment was applied once."""
    parser = argparse.ArgumentParser(description="Increments through a proxy that breaks connections.")
    parser.add_argument("--count", type=int, default=20_000, help="increments")
    parser.add_argument("--every", type=float, default=0.25, help="seconds from one cut to the next")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--plain", action="store_true", help="without slots")
    options = parser.parse_args(arguments)
    async with EtcdServer(flags=["--quota-backend-bytes=8589934592", "--unsafe-no-fsync"]) as server:
        counts = await increments(
            server.endpoint, options.count, seed=options.seed, every=options.every, plain=options.plain
        )
    print(f"seed {options.seed}: {counts}")
    print("each increment was applied once" if counts.is_exact else "increments are counted twice, or not told")
    return 0 if counts.is_exact else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
