"""CPU that a namespace and ordered reads add to a call and to an event: `python -m benchmarks.views`.

call       microseconds of a `get` and of a `put` on a store that answers at once, in a namespace of it, and on an
           ordered view of it, in turns; and what the latter two add
event      microseconds to cut an event for a namespace, in batches of one, ten and a thousand
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from benchmarks.cache import each
from etcd_aio import Client, Event, EventType, Header, KeyValue, PutResult, RangeResult, Store, WatchBatch, op
from etcd_aio.backend import Backend
from etcd_aio.views.translate import Translation

CALLS: Final = 10_000


async def cpu(call: Callable[[], Awaitable[object]], calls: int) -> float:
    """Microseconds of CPU of a call."""
    began = time.process_time()
    for _ in range(calls):
        await call()
    return (time.process_time() - began) / calls * 1e6


class InstantBackend:
    """A backend that answers at once."""

    def __init__(self, backend: Backend) -> None:
        self.shared, self.key_space, self.leases = backend.shared, backend.key_space, backend.leases
        self.chunks, self.watch = backend.chunks, backend.watch

    async def do(self, operation: Any, **options: object) -> Any:
        match operation:
            case op.GetOp():
                return _KV
            case op.RangeOp():
                return RangeResult(_HEADER, (_KV,), False, 1)
            case _:
                return PutResult(_HEADER)


_HEADER: Final = Header(1, 2, 3, 4)
_KV: Final = KeyValue(b"app/k", b"v", 1, 2, 1)


async def calls(client: Store, rounds: int) -> None:
    """Print the CPU of a call."""
    stores: dict[str, Any] = {
        "client": client,
        "namespace": client.namespace("app/"),
        "ordered": client.ordered(),
    }
    kinds: dict[str, Callable[[Any], Callable[[], Awaitable[object]]]] = {
        "get": lambda store: lambda: store.get("k"),
        "put": lambda store: lambda: store.put("k", "v"),
    }
    for kind, of in kinds.items():
        taken: dict[str, list[float]] = {name: [] for name in stores}
        for _ in range(rounds):
            for name, store in stores.items():
                taken[name].append(await cpu(of(store), CALLS))
        base = taken["client"]
        for name, found in taken.items():
            added = statistics.median(mine - plain for mine, plain in zip(found, base, strict=True))
            print(f"{kind}, {name:<16} {statistics.median(found):8.2f} us {added:+8.2f} us")


def events() -> None:
    """Print the CPU of cutting an event."""
    translation = Translation(b"app/")
    for size in (1, 10, 1_000):
        kvs = [KeyValue(b"app/%06d" % number, b"v" * 64, 5, number + 10, 1) for number in range(size)]
        batch = WatchBatch(tuple(Event(EventType.PUT, kv) for kv in kvs), size + 10)

        def cut(batch: WatchBatch = batch) -> None:
            translation.short_batch(batch)

        print(f"event, batch of {size:<6} {each(cut, 50_000 // size) / size:8.3f} us")


async def main(arguments: Sequence[str]) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="What a namespace and ordered reads cost.")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args(arguments)
    await calls(Store(InstantBackend(Client().backend)), options.rounds)
    events()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
