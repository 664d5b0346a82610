"""Probes the servers: a tiny call directly to each member, every 10 ms, on a bare connection and without retries.

It uses only the transport of the library under test, so it shows what the best possible client could have got.

The protocol is that of `driver`. The result has, for each endpoint, a letter for each probe:

    {"probes": {"http://...": "ooorrss..."}, "connects": [[3.1, "http://..."], ...]}
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Mapping
from typing import Final

from benchmarks.failover.account import PROBE_EVERY, SLOW
from etcd_aio import pb
from etcd_aio.balancer import parse_endpoint
from etcd_aio.codec import encode
from etcd_aio.errors import AttemptFailure, Delivery, EtcdError, LocalReason
from etcd_aio.transport import Connection, Engine, TransportOptions, create_engine

_METADATA: Final = (("hasleader", "true"),)
_DIAL_SECONDS: Final = 0.5
_PAUSE: Final = 0.02
_DAY: Final = 86_400.0
_NEVER = "."


class Probed:
    """The probes of one member. It is also the owner of its connection."""

    def __init__(self, endpoint: str, engine: Engine, path: str, payload: bytes) -> None:
        self.endpoint = endpoint
        self.connected_at: list[float] = []
        self._target = parse_endpoint(endpoint).target(None)
        self._engine = engine
        self._path, self._payload = path, payload
        self._connection: Connection | None = None
        self._is_over = asyncio.Event()
        self.letters: list[str] = []

    def on_draining(self, reason: str) -> None:
        self._is_over.set()

    def on_lost(self, error: BaseException | None) -> None:
        self._connection = None
        self._is_over.set()

    async def stay_connected(self) -> None:
        """Keep a connection open."""
        while True:
            self._is_over.clear()
            try:
                self._connection = await self._engine.connect(self._target, self)
                self.connected_at.append(time.time())
                await self._is_over.wait()
            except (OSError, EtcdError):
                pass
            finally:
                connection, self._connection = self._connection, None
                if connection is not None:
                    await connection.aclose()
            await asyncio.sleep(_PAUSE)

    async def probe(self, number: int) -> None:
        """Make one attempt, and record its letter."""
        connection = self._connection
        if connection is None:
            self.letters[number] = "u"
            return
        now = asyncio.get_running_loop().time
        began = now()
        try:
            await connection.unary(self._path, self._payload, _METADATA, began + SLOW)
            letter = "o"
        except AttemptFailure as failure:
            letter = "r" if failure.delivery is Delivery.ANSWERED else "u"
            # The member knows the deadline too, and may report first that it has passed.
            if failure.reason is LocalReason.DEADLINE or now() - began > SLOW * 0.9:
                letter = "s"
        self.letters[number] = letter


async def _serve(endpoints: list[str], prefix: str, operation: str) -> None:
    if operation == "put":
        key = f"{prefix}probe".encode()
        path, payload = "/etcdserverpb.KV/Put", encode(pb.PutRequest(key=key, value=b"p"))
    else:
        path, payload = "/etcdserverpb.KV/Range", encode(pb.RangeRequest(key=f"{prefix}probe".encode()))
    # The prober must not close a connection: that of a frozen member continues when the member resumes.
    options = TransportOptions(connect_timeout=_DIAL_SECONDS, silence_time=_DAY, keepalive_time=_DAY)
    engine = create_engine("native", options)
    members = [Probed(endpoint, engine, path, payload) for endpoint in endpoints]
    async with asyncio.TaskGroup() as group:
        keepers = [group.create_task(member.stay_connected()) for member in members]
        await asyncio.sleep(0.2)
        _send({"versions": {}})
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = json.loads(line)
            await _probe_all(members, order["start"], order["seconds"])
            connects = [
                (round(at - order["start"], 4), member.endpoint) for member in members for at in member.connected_at
            ]
            probes = {member.endpoint: "".join(member.letters) for member in members}
            _send({"probes": probes, "connects": sorted(connects)})
        for keeper in keepers:
            keeper.cancel()


async def _probe_all(members: list[Probed], wall: float, seconds: float) -> None:
    start = time.monotonic() + wall - time.time()
    total = int(seconds / PROBE_EVERY)
    for member in members:
        member.letters = [_NEVER] * total
    number = 0
    tasks: set[asyncio.Task[None]] = set()
    while number < total:
        await asyncio.sleep(max(0.0, start + number * PROBE_EVERY - time.monotonic()))
        while number < total and start + number * PROBE_EVERY <= time.monotonic():
            for member in members:
                task = asyncio.create_task(member.probe(number))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            number += 1
    if tasks:
        await asyncio.wait(tuple(tasks), timeout=2.0)


def _send(message: Mapping[str, object]) -> None:
    print(json.dumps(message, separators=(",", ":")), flush=True)


def main() -> None:
    """Run until stdin ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--endpoints", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--operation", required=True)
    given = parser.parse_args()
    asyncio.run(_serve(given.endpoints.split(","), given.prefix, given.operation))


if __name__ == "__main__":
    main()
