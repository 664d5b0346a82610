"""One process of a fleet: some clients, each with a call for every member, and counts of their requests.

The protocol, one line of JSON each way; `start` is on the system's clock, other times are seconds after it:

    worker   {"versions": {...}}                                      when every client was served once
    program  {"start": 1.7e9, "limit": 60, "is_patient": false}
    worker   {"served": [0.8, ...], "errors": {"EtcdTimeoutError": 3}, "calls": 43, "cpu": 1.2,
              "samples": [[0.25, 12, 0, 3], ...]}                     time; Authenticates, probes, dials so far
    either   {"error": "what happened"}                               instead of a result
    program  closes stdin                                             the worker ends
"""

import argparse
import asyncio
import json
import platform
import resource
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any, Final

import etcd_aio
from etcd_aio import Client, EtcdError, RetryPolicy, codec
from etcd_aio.balancer import SubConnection
from etcd_aio.methods import AUTHENTICATE, RANGE
from etcd_aio.pb import RangeRequest
from etcd_aio.transport.native.connection import NativeConnection

USER: Final = ("root", "fleet")
KEY: Final = "fleet"
_PROBES: Final = {
    codec.encode(RangeRequest(key=b"health", keys_only=True, serializable=serializable))
    for serializable in (False, True)
}
_CALLS: Final = 3  # one for each member
_SAMPLE_EVERY: Final = 0.25
_AFTER_ERROR: Final = 0.1  # seconds between two calls of a client, as in a careful program
_PATIENCE: Final = 600.0
_AT_ONCE: Final = 8
_OPEN_FILES: Final = 16384


class Counts:
    """The requests of all clients of this process so far."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()

    def watch(self) -> None:
        """Count every request and dial of every client from now on."""
        connection: Any = NativeConnection
        kind: Any = SubConnection
        unary, on_dialling = connection.unary, kind.on_dialling
        sent = self.sent

        def counted_unary(one: NativeConnection, path: str, payload: bytes, *rest: Any, **more: Any) -> Any:
            if path == AUTHENTICATE.path:
                sent["Authenticate"] += 1
            elif path == RANGE.path and payload in _PROBES:
                sent["probe"] += 1
            return unary(one, path, payload, *rest, **more)

        def counted_dialling(one: SubConnection) -> Any:
            sent["dial"] += 1
            return on_dialling(one)

        connection.unary, kind.on_dialling = counted_unary, counted_dialling

    def now(self) -> tuple[int, int, int]:
        """Authenticates, probes, dials."""
        return self.sent["Authenticate"], self.sent["probe"], self.sent["dial"]


class Fleet:
    """The clients of this process.

    Args:
        clients: clients with default settings, or patient clients.
        counts: their requests.
    """

    def __init__(self, clients: list[Client], counts: Counts) -> None:
        self._clients = clients
        self._counts = counts
        self._errors: Counter[str] = Counter()
        self._calls = 0

    async def connect(self) -> None:
        """Let every client be served once, a few at a time, before the measurement."""
        turn = asyncio.Semaphore(_AT_ONCE)

        async def connected(client: Client) -> None:
            async with turn:
                await client.get(KEY, timeout=_PATIENCE)

        await asyncio.gather(*(connected(client) for client in self._clients))

    async def run(self, start: float, limit: float) -> dict[str, object]:
        """Let every client be served once more from `start` on. Returns the result."""
        begin = time.monotonic() + start - time.time()
        await asyncio.sleep(max(begin - time.monotonic(), 0.0))
        self._errors.clear()
        self._calls = 0
        before, cpu = self._counts.now(), time.process_time()
        samples: list[tuple[float, ...]] = []

        async def sample() -> None:
            while True:
                found = (now - then for now, then in zip(self._counts.now(), before, strict=True))
                samples.append((round(time.monotonic() - begin, 3), *found))
                await asyncio.sleep(_SAMPLE_EVERY)

        sampling = asyncio.create_task(sample(), name="samples")
        try:
            served = await asyncio.gather(*(self._served(client, begin, limit) for client in self._clients))
        finally:
            sampling.cancel()
        found = (now - then for now, then in zip(self._counts.now(), before, strict=True))
        samples.append((round(time.monotonic() - begin, 3), *found))
        return {
            "served": sorted(round(one, 3) for one in served if one is not None),
            "errors": dict(self._errors),
            "calls": self._calls,
            "cpu": round(time.process_time() - cpu, 3),
            "samples": samples,
        }

    async def _served(self, client: Client, begin: float, limit: float) -> float | None:
        """The time when the client was served; None if it was not served in time."""
        left = _CALLS
        while time.monotonic() - begin < limit:
            self._calls += 1
            try:
                await client.get(KEY)
                left -= 1
                if not left:
                    return time.monotonic() - begin
            except EtcdError as error:
                self._errors[type(error).__name__] += 1
                await asyncio.sleep(_AFTER_ERROR)
        return None


async def work(endpoints: list[str], count: int) -> None:
    """Execute the orders on stdin until it is closed."""
    counts = Counts()
    counts.watch()
    async with AsyncExitStack() as stack:

        async def fleet(make: Any) -> Fleet:
            found = Fleet([await stack.enter_async_context(make(number)) for number in range(count)], counts)
            await found.connect()
            return found

        fleets = {False: await fleet(lambda number: _default(endpoints))}
        _send({"versions": {"etcd_aio": etcd_aio.__version__, "python": platform.python_version()}})
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = json.loads(line)
            is_patient = bool(order["is_patient"])
            if order["start"] is None:  # only for the preparation
                if is_patient not in fleets:
                    fleets[is_patient] = await fleet(lambda number: _patient(endpoints[number % len(endpoints)]))
                _send({})
                continue
            _send(await fleets[is_patient].run(order["start"], order["limit"]))


def _default(endpoints: list[str]) -> Client:
    return Client(endpoints, auth=USER, allow_insecure_auth=True)


def _patient(endpoint: str) -> Client:
    """A patient client: one endpoint, one attempt, and a very long timeout."""
    policy = RetryPolicy(max_attempts=1)
    return Client(endpoint, auth=USER, allow_insecure_auth=True, timeout=_PATIENCE, retry_policy=policy)


def _send(answer: dict[str, object]) -> None:
    print(json.dumps(answer), flush=True)


def main() -> None:
    """Run the process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--endpoints", required=True)
    parser.add_argument("--clients", type=int, required=True)
    given = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_OPEN_FILES, most), most))
    try:
        asyncio.run(work(given.endpoints.split(","), given.clients))
    except Exception as error:
        _send({"error": f"{type(error).__name__}: {error}"})
        raise


if __name__ == "__main__":
    main()
