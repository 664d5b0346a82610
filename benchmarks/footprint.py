"""Measures start, memory, blocking of the loop and decoding of etcd_aio: `python -m benchmarks.footprint`.

The probes in `probes/` take the numbers; this module runs them and prints the tables. Nothing is asserted.
"""

import argparse
import asyncio
import json
import secrets
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import machine, report, store
from benchmarks.clients import CONTESTANTS
from benchmarks.environments import ROOT, UnavailableError, default_cache
from benchmarks.probes.peer import silent_peer
from benchmarks.probes.starting import import_seconds, process_seconds
from etcd_aio.testing import EtcdServer

Rows: TypeAlias = dict[str, dict[str, float]]

_ROWS: Final = {
    "etcd_aio": ("--engine", "native"),
    "etcd_aio-uvloop": ("--engine", "native", "--uvloop"),
    "etcd_aio-grpclib": ("--engine", "grpclib"),
}
_STUB: Final = "grpc.aio-stub"
_LARGE_VALUE: Final = 1024
_MEGABYTES: Final = 50
_MOST_PACKAGES: Final = 8
_MILLI: Final = 1e3
_MICRO: Final = 1e6

_IMPORT: Final = "import etcd_aio"
_FIRST_ANSWER: Final = """
import asyncio
from etcd_aio import Client
async def main():
    async with Client({endpoint!r}, engine={engine!r}) as client:
        await client.get("key")
asyncio.run(main())
"""
_STUB_FIRST_ANSWER: Final = """
import asyncio, grpc, rpc_pb2, rpc_pb2_grpc
async def main():
    async with grpc.aio.insecure_channel({target!r}) as channel:
        await rpc_pb2_grpc.KVStub(channel).Range(rpc_pb2.RangeRequest(key=b"key"))
asyncio.run(main())
"""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The results of one run: rows by name, in seconds and bytes."""

    date: str
    cpu: str
    cores: int
    system: str
    server: str
    start: dict[str, float]
    imports: dict[str, float]
    memory: Rows
    reading: Rows
    left_out: dict[str, str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.footprint", description="what etcd_aio costs besides calls"
    )
    parser.add_argument("--rounds", type=int, default=15, help="cold processes of each kind (default: 15)")
    parser.add_argument("--repeat", type=int, default=5, help="large ranges read by each row (default: 5)")
    parser.add_argument("--quick", action="store_true", help="3 rounds, 2 ranges: a look, not a measurement")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write to FILE too; if it holds a run, this is put into it"
    )
    parser.add_argument("--cache", type=Path, default=default_cache(), help="environments (default: %(default)s)")
    given = parser.parse_args(arguments)
    rounds, repeat = (3, 2) if given.quick else (given.rounds, given.repeat)
    if rounds < 1 or repeat < 1:
        parser.error("--rounds and --repeat must be positive")
    console = Console(stderr=True, highlight=False)
    try:
        footprint = asyncio.run(_measure(rounds, repeat, given.cache.expanduser().resolve(), console))
    except (store.StoreError, OSError, RuntimeError) as error:
        console.print(f"[red]cannot measure:[/red] {error}")
        return 1
    except KeyboardInterrupt:
        return 130  # the exit status of a shell after Ctrl-C
    _show(report.console(), footprint)
    if given.json is not None:
        try:
            report.put(given.json, "footprint", footprint)
        except (OSError, ValueError) as error:
            console.print(f"[red]cannot write:[/red] {error}")
            return 1
    return 0


async def _measure(rounds: int, repeat: int, cache: Path, console: Console) -> Footprint:
    left_out: dict[str, str] = {}
    memory: Rows = {}
    reading: Rows = {}
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(EtcdServer())
        peer = await stack.enter_async_context(silent_peer())
        prefix = f"etcd_aio-benchmarks/{secrets.token_hex(4)}/"
        large = f"{prefix}large/"
        console.print(f"storing {_MEGABYTES} MB")
        version = await asyncio.to_thread(store.server_version, server.endpoint)
        await asyncio.to_thread(store.fill, server.endpoint, prefix)
        keys = [f"{large}{number:05}" for number in range(_MEGABYTES * 1_000_000 // _LARGE_VALUE)]
        await asyncio.to_thread(store.put_all, server.endpoint, keys, b"x" * _LARGE_VALUE)

        console.print("cold processes")
        commands = {
            "python alone": [sys.executable, "-c", "pass"],
            "import asyncio": [sys.executable, "-c", "import asyncio"],
            _IMPORT: [sys.executable, "-c", _IMPORT],
        }
        for engine in ("native", "grpclib"):
            code = _FIRST_ANSWER.format(endpoint=server.endpoint, engine=engine)
            commands[f"first answer, engine {engine}"] = [sys.executable, "-c", code]
        try:
            python = await asyncio.to_thread(_stub_python, cache)
            target = server.endpoint.removeprefix("http://")
            commands["import grpc.aio and stubs"] = [python, "-c", "import grpc.aio, rpc_pb2_grpc"]
            commands["first answer, grpc.aio stub"] = [python, "-c", _STUB_FIRST_ANSWER.format(target=target)]
        except UnavailableError as error:
            left_out[_STUB] = str(error)
        start = await asyncio.to_thread(process_seconds, commands, rounds)
        imports = await asyncio.to_thread(import_seconds, sys.executable, _IMPORT, rounds)

        for name, row in _ROWS.items():
            console.print(f"memory and ranges: {name}")
            try:
                memory[name] = {}
                for kind in ("heap", "rss"):
                    found = await _probe("memory", "--endpoint", peer, "--kind", kind, *row)
                    memory[name].update((f"{what}_{kind}", size) for what, size in found.items())
                arguments = (
                    "--endpoint",
                    server.endpoint,
                    "--prefix",
                    prefix,
                    "--large",
                    large,
                    "--repeat",
                    str(repeat),
                )
                reading[name] = await _probe("reading", *arguments, *row)
            except RuntimeError as error:
                memory.pop(name)
                left_out[name] = str(error)
    return Footprint(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        cpu=machine.cpu_model(),
        cores=machine.cores(),
        system=machine.system(),
        server=version,
        start=start,
        imports=dict(list(imports.items())[:_MOST_PACKAGES]),
        memory=memory,
        reading=reading,
        left_out=left_out,
    )


def _stub_python(cache: Path) -> str:
    home = next(contestant.home for contestant in CONTESTANTS if contestant.name == _STUB)
    return home.prepare(cache)[0]


async def _probe(name: str, *arguments: str) -> dict[str, float]:
    """Run one probe in a new process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        f"benchmarks.probes.{name}",
        *arguments,
        cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        lines = errors.decode(errors="replace").strip().splitlines()
        raise RuntimeError(f"the probe of {name} failed: {lines[-1] if lines else 'no output'}")
    return {str(what): float(number) for what, number in json.loads(out).items()}


def _show(console: Console, footprint: Footprint) -> None:
    console.print(f"\n{footprint.date}, {footprint.cpu}, {footprint.cores} cores, {footprint.system}", soft_wrap=True)
    console.print(f"etcd {footprint.server}; medians", soft_wrap=True)
    alone = footprint.start["python alone"]
    table = _table(console, "a cold process, from start to end", "ms", "more than python alone, ms")
    for name, seconds in footprint.start.items():
        table.add_row(name, f"{seconds * _MILLI:.0f}", f"{(seconds - alone) * _MILLI:.0f}")
    console.print(table)
    table = _table(console, f"what `{_IMPORT}` takes by package, under -X importtime, which slows it down", "ms")
    for name, seconds in footprint.imports.items():
        table.add_row(name, f"{seconds * _MILLI:.1f}")
    console.print(table)
    table = _table(
        console,
        "memory, bytes: Python heap (resident set)",
        "connected idle client",
        "call in flight, with its task",
        "bare task",
    )
    for name, row in footprint.memory.items():
        columns = ("client", "call", "bare_task")
        table.add_row(name, *(f"{row[f'{what}_heap']:.0f} ({row[f'{what}_rss']:.0f})" for what in columns))
    console.print(table)
    table = _table(
        console, f"one range of {_MEGABYTES} MB, values of {_LARGE_VALUE} B", "s", "loop blocked, ms", "worst", "idle"
    )
    for name, row in footprint.reading.items():
        gaps = (row["longest_gap"], row["longest_gap_worst"], row["longest_gap_idle"])
        table.add_row(name, f"{row['read_seconds']:.2f}", *(f"{gap * _MILLI:.1f}" for gap in gaps))
    console.print(table)
    table = _table(
        console, "CPU of one key-value in a range of 10 000, values of 256 B, µs", "transport", "decoding", "together"
    )
    for name, row in footprint.reading.items():
        whole, transport = row["cpu_per_key"] * _MICRO, row["cpu_per_key_transport"] * _MICRO
        table.add_row(name, f"{transport:.2f}", f"{whole - transport:.2f}", f"{whole:.2f}")
    console.print(table)
    for name, reason in footprint.left_out.items():
        console.print(f"left out: {name}: {reason}", markup=False, soft_wrap=True)


def _table(console: Console, title: str, *columns: str) -> Table:
    # The title of a table would be wrapped to the width of the table.
    console.print(f"\n{title}", style="bold", soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right")
    return table


if __name__ == "__main__":
    raise SystemExit(main())
