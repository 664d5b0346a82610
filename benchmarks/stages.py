"""Where the time of a large reply goes: `python -m benchmarks.stages`, with and without the accelerator, offline.

A watch's reply with many events, and a range, are decoded, handed over, iterated over and freed, by each back end in
turns, with and without the cyclic garbage collector. The table has nanoseconds of CPU time for each item: the minimum
and the median of all rounds.
"""

import argparse
import asyncio
import gc
import time
from collections.abc import Iterator
from statistics import median
from typing import Final

from etcd_aio import codec, pb
from etcd_aio.codec import compiled
from etcd_aio.codec.codegen import function_of
from etcd_aio.codec.decodable import Function
from etcd_aio.codec.decoder import Decoder
from etcd_aio.codec.speedups import ACCELERATOR, BACKEND, Accelerator
from etcd_aio.codec.targets import target_of
from etcd_aio.types import Event, KeyRange, RangeResult, WatchReply
from etcd_aio.watch.state import WatchOptions, WatchState

VALUE: Final = bytes(256)
HEADER: Final = pb.ResponseHeader(cluster_id=1 << 63, member_id=1 << 62, revision=200_000, raft_term=2)


def use(accelerator: Accelerator | None) -> None:
    """Decode in steps with this back end from now on."""

    def make(decodable: type[object]) -> Function:
        return function_of(Decoder(target_of(decodable), True, accelerator))

    compiled._stepwise_decoders = compiled._Functions(make)  # type: ignore[misc] # it is Final but for this program


def key_value(number: int) -> pb.KeyValue:
    revision = 100_000 + number // 100
    return pb.KeyValue(
        key=b"key/%07d" % number, value=VALUE, create_revision=revision, mod_revision=revision, version=1
    )


def decoded(data: bytes, kind: type[WatchReply] | type[RangeResult]) -> WatchReply | RangeResult:
    """The reply, decoded in steps as the client does."""
    collector = codec.IncrementalDecoder(kind)
    collector.feed(data)
    while collector.work():
        pass
    return collector.finish()


class Events:
    """Iterates over events as a watch does: an `await` for each."""

    def __init__(self, events: tuple[Event, ...]) -> None:
        self._events = events
        self._at = 0

    def __aiter__(self) -> "Events":
        return self

    async def __anext__(self) -> Event:
        at = self._at
        if at == len(self._events):
            raise StopAsyncIteration
        self._at = at + 1
        return self._events[at]


async def iterate(events: tuple[Event, ...]) -> int:
    size = 0
    async for event in Events(events):
        size += len(event.value)
    return size


def stages(watch: bytes, found: bytes) -> Iterator[tuple[str, float]]:
    """Run all stages once; yields the name and the seconds of each."""
    clock = time.thread_time
    began = clock()
    reply = decoded(watch, WatchReply)
    yield "events: decode", clock() - began
    assert isinstance(reply, WatchReply)
    state = WatchState(WatchOptions(KeyRange(b"key/", b"key0")), 1, lambda: None)
    began = clock()
    assert state.foreign_key(reply.events) is None
    state.add_events(reply.events, is_fragment=False, encoded_size=reply.encoded_size)
    batch = state.take()
    yield "events: hand over", clock() - began
    loop = asyncio.new_event_loop()
    began = clock()
    size = loop.run_until_complete(iterate(batch.events))
    yield "events: iterate", clock() - began
    loop.close()
    assert size == len(VALUE) * len(batch)
    began = clock()
    del reply, batch
    yield "events: free", clock() - began
    began = clock()
    kvs = decoded(found, RangeResult)
    yield "key-values: decode", clock() - began
    began = clock()
    del kvs
    yield "key-values: free", clock() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000, help="events, and key-values, of a reply")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    kvs = [key_value(number) for number in range(options.items)]
    watch = codec.encode(pb.WatchResponse(header=HEADER, watch_id=1, events=[pb.Event(kv=kv) for kv in kvs]))
    found = codec.encode(pb.RangeResponse(header=HEADER, kvs=kvs, count=len(kvs)))
    del kvs
    backends: dict[str, Accelerator | None] = {"pure": None}
    if ACCELERATOR is not None:
        backends["accelerated"] = ACCELERATOR
    else:
        print(f"No accelerator: {BACKEND}")
    times: dict[str, dict[str, list[float]]] = {}
    for _ in range(options.rounds):
        for name, accelerator in backends.items():
            use(accelerator)
            for is_collecting in (True, False):
                column = f"{name}{'' if is_collecting else ', gc off'}"
                gc.collect()
                if not is_collecting:
                    gc.disable()
                for stage, seconds in stages(watch, found):
                    times.setdefault(stage, {}).setdefault(column, []).append(seconds / options.items * 1e9)
                gc.enable()
    columns = list(next(iter(times.values())))
    print(f"{'ns for each item, minimum/median':34}", *(f"{column:>20}" for column in columns))
    for stage, by_column in times.items():
        cells = (f"{min(by_column[column]):.0f}/{median(by_column[column]):.0f}" for column in columns)
        print(f"{stage:34}", *(f"{cell:>20}" for cell in cells))


if __name__ == "__main__":
    main()
