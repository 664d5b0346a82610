"""Large reads beside a watch and a lease, on one client over TLS: `python -m benchmarks.big_reads`.

Ten tasks of a client read 10 MB each (ten keys of 1 MB), again and again. The same client watches a prefix and keeps
a lease of 5 seconds. Another process puts small keys under the prefix, with the time in their values. Measured are

latency    from before each put until the client has its event: p50, p99, the longest
lost       events that did not come, or not in order
reads      how many were finished
cpu        CPU time of the client's process for each of them, which other work on the machine changes least
lease      whether it lives at the end

Such reads let watches starve in etcd before 3.4.28 and 3.5.10, on servers with TLS (etcd-io/etcd#15402). The Go client
does the same in a process of its own, one after the other, on the same server.
"""

import argparse
import asyncio
import json
import ssl
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks import machine
from benchmarks.environments import ROOT, GoProgram, UnavailableError, default_cache
from etcd_aio import Client
from etcd_aio.testing import EtcdServer, ServerTLS

READERS: Final = 10
TTL: Final = 5
RATE: Final = 50  # puts a second
_BIG: Final = 10 * [b"x" * 1_000_000]
_CATCH_UP: Final = 30.0
_PATIENCE: Final = 120.0
_VERSIONS: Final = ("3.4.25", "3.5.35", "3.7.3")


@dataclass(frozen=True, slots=True)
class Found:
    """What a client found.

    Attributes:
        latencies: of the events, in seconds, sorted.
        seen: how many events came in order, none lost before them.
        puts: how many there should be.
        reads: how many large reads were finished.
        cpu: seconds of CPU time of the client's process, from its first read to its last.
        lives: the lease lives.
    """

    latencies: tuple[float, ...]
    seen: int
    puts: int
    reads: int
    cpu: float
    lives: bool

    def part(self, share: float) -> float:
        """The latency that this share of the events does not exceed."""
        return self.latencies[min(int(len(self.latencies) * share), len(self.latencies) - 1)]


@dataclass(frozen=True, slots=True)
class Authority:
    """The files of a server with TLS."""

    tls: ServerTLS
    ca: Path


def make_authority(directory: Path) -> Authority:
    """Make a certificate for 127.0.0.1."""
    import trustme

    authority = trustme.CA()
    own = authority.issue_cert("127.0.0.1")
    certificate, key, ca = (directory / name for name in ("server.pem", "server.key", "ca.pem"))
    own.cert_chain_pems[0].write_to_path(certificate)
    own.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(ca)
    return Authority(ServerTLS(certificate, key), ca)


@asynccontextmanager
async def server_of(version: str | None, authority: Authority) -> AsyncIterator[EtcdServer]:
    """A server with the large keys."""
    async with EtcdServer(version=version, tls=authority.tls, flags=["--unsafe-no-fsync"]) as server:
        async with Client(server.endpoint, tls=ssl.create_default_context(cafile=authority.ca)) as client:
            for number, value in enumerate(_BIG):
                await client.put(f"big/{number}", value)
        yield server


async def measure(command: Sequence[str], server: EtcdServer, ca: Path, seconds: float) -> Found:
    """Let a client read, while this process puts.

    Raises:
        RuntimeError: the client failed.
    """
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=2**24, cwd=ROOT)
    stdin, stdout = child.stdin, child.stdout
    assert stdin is not None
    assert stdout is not None
    try:
        async with asyncio.timeout(seconds + _PATIENCE):
            _checked(await stdout.readline())
            async with Client(server.endpoint, tls=ssl.create_default_context(cafile=ca), timeout=_PATIENCE) as client:
                puts = await _put(client, seconds)
            stdin.write(f"{puts}\n".encode())
            answer = _checked(await stdout.readline())
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()
    latencies = tuple(sorted(answer["latencies"]))
    return Found(latencies, answer["seen"], puts, answer["reads"], answer["cpu"], answer["lives"])


async def both(server: EtcdServer, ca: Path, seconds: float) -> tuple[Found, Found | None]:
    """What this client found, and the Go client; None if that cannot be built here."""
    try:
        (go,) = await asyncio.to_thread(GoProgram("benchmarks/go").prepare, default_cache())
    except UnavailableError as error:
        print(f"without Go: {error}")
        go = ""
    ours = (sys.executable, "-m", "benchmarks.big_reads", "--read", server.endpoint, "--ca", str(ca))
    found = await measure(ours, server, ca, seconds)
    if not go:
        return found, None
    return found, await measure((go, f"-endpoints={server.endpoint}", f"-big-reads={ca}"), server, ca, seconds)


def _checked(line: bytes) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(line) if line else {"error": "it ended"}
    if "error" in answer:
        raise RuntimeError(f"the client that reads: {answer['error']}")
    return answer


async def _put(client: Client, seconds: float) -> int:
    """Put for some seconds at the rate, or slower if the server is; returns how often."""
    begin, number = time.monotonic(), 0
    while time.monotonic() < begin + seconds:
        await client.put(f"small/{number % 100}", f"{number} {time.time_ns()}")
        number += 1
        await asyncio.sleep(max(0.0, begin + number / RATE - time.monotonic()))
    return number


async def read(endpoint: str, ca: str) -> None:
    """The client that reads; `go/bigreads.go` does the same."""
    latencies: list[float] = []
    reads = seen = 0
    is_over = False

    async def follow() -> None:
        nonlocal seen
        async for event in watcher:
            number, sent = event.value.split()
            latencies.append((time.time_ns() - int(sent)) / 1e9)
            seen += int(number) == seen

    async def read_on() -> None:
        nonlocal reads
        while not is_over:
            found = await client.range(prefix="big/", timeout=_PATIENCE)
            assert len(found.kvs) == len(_BIG)
            reads += 1

    async with (
        Client(endpoint, tls=ssl.create_default_context(cafile=ca)) as client,
        client.lease(TTL) as lease,
        client.watch(prefix="small/") as watcher,
    ):
        following, before = asyncio.ensure_future(follow()), time.process_time()
        readers = [asyncio.ensure_future(read_on()) for _ in range(READERS)]
        print(json.dumps({"ready": True}), flush=True)
        last = int(await asyncio.to_thread(sys.stdin.readline))
        is_over = True
        ends = await asyncio.gather(*readers, return_exceptions=True)
        cpu = time.process_time() - before
        end = time.monotonic() + _CATCH_UP
        while seen != last and not following.done() and time.monotonic() < end:  # noqa: ASYNC110 - bounded in time
            await asyncio.sleep(0.01)
        following.cancel()
        failures = [one for one in ends if one is not None]
        if failures:
            print(json.dumps({"error": repr(failures[0])}), flush=True)
            return
        lives = not (await client.leases.time_to_live(lease)).is_expired
        answer = {"latencies": latencies, "seen": seen, "reads": reads, "cpu": cpu, "lives": lives}
        print(json.dumps(answer), flush=True)


def shown(found: Found) -> dict[str, float | bool | None]:
    """The figures of a client."""
    return {
        "p50": round(found.part(0.5), 4),
        "p99": round(found.part(0.99), 4),
        "longest": round(found.latencies[-1], 4),
        "puts": found.puts,
        "lost": found.puts - found.seen,
        "reads": found.reads,
        "cpu": round(found.cpu / found.reads, 5) if found.reads else None,
        "lives": found.lives,
    }


async def main(arguments: Sequence[str]) -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description="Large reads beside a watch and a lease, over TLS.")
    parser.add_argument("--seconds", type=float, default=20.0, help="of the puts, for each client")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    parser.add_argument("--read", metavar="ENDPOINT", help="only read: the client that is measured")
    parser.add_argument("--ca", help="of that endpoint")
    parser.add_argument("versions", nargs="*", default=_VERSIONS, help="of etcd")
    options = parser.parse_args(arguments)
    if options.read is not None:
        await read(options.read, options.ca)
        return
    results = []
    with TemporaryDirectory() as name:
        authority = make_authority(Path(name))
        for version in options.versions:
            async with server_of(version, authority) as server:
                ours, go = await both(server, authority.ca, options.seconds)
            results.append({"server": version, "etcd_aio": shown(ours), "go": None if go is None else shown(go)})
            print(json.dumps(results[-1]))
    if options.json is not None:
        setting = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "cpu": machine.cpu_model(),
            "cores": machine.cores(),
            "system": machine.system(),
            "seconds": options.seconds,
        }
        options.json.write_text(json.dumps({"setting": setting, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
