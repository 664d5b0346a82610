"""Runs the benchmarks: makes the environments, starts every driver, lets them take turns, reports."""

import argparse
import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from benchmarks import machine, report, store
from benchmarks.clients import SUITES, Contestant, Suite, of_checkout
from benchmarks.environments import UnavailableError, default_cache
from benchmarks.process import DriverError, DriverProcess
from benchmarks.results import Results, Setting
from benchmarks.workload import VALUE, Case, history
from etcd_aio.testing import EtcdServer

_T = TypeVar("_T")

# A default run writes about half a gigabyte; a longer one would exceed etcd's default quota of 2 GiB.
_SERVER_FLAGS = ("--quota-backend-bytes=8589934592",)
# Enough to connect, to fill caches, and for Python to specialise its bytecode.
_WARM_UP = 0.2


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line."""

    suite: Suite
    contestants: Sequence[Contestant]
    cases: Sequence[Case]
    endpoints: Sequence[str]
    rounds: int
    seconds: float
    json: Path | None
    cache: Path
    is_apart: bool = False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit status, which is 0 also if clients had to be left out."""
    options = _parse(arguments)
    console = Console(stderr=True, highlight=False)
    try:
        asyncio.run(_run(options, console))
    except (store.StoreError, OSError) as error:
        console.print(f"[red]cannot measure:[/red] {error}")
        return 1
    except KeyboardInterrupt:
        return 130  # the exit status of a shell after Ctrl-C
    return 0


def _parse(arguments: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="etcd clients side by side, in one run")
    parser.add_argument("suite", nargs="?", choices=SUITES, default="calls", help="what to measure (default: calls)")
    parser.add_argument("--endpoints", help="http://host:port,... of a running cluster; without it one is started")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default: 5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one burst (default: 1)")
    parser.add_argument("--quick", action="store_true", help="3 rounds of 0.3 s: a look, not a measurement")
    parser.add_argument("--clients", metavar="NAMES", help="some of the clients; an unknown name lists them")
    parser.add_argument("--cases", metavar="NAMES", help="some of the cases; an unknown name lists them")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every round to FILE")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="environments (default: %(default)s)")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="also measure another checkout's etcd_aio")
    parser.add_argument("--apart", action="store_true", help="one core for the server, and another for each client")
    given = parser.parse_args(arguments)
    if given.apart and given.endpoints:
        parser.error("--apart is for the server that is started here")
    suite = SUITES[given.suite]
    contestants = {contestant.name: contestant for contestant in suite.contestants}
    cases = {case.name: case for case in suite.cases}
    if given.against is not None:
        contestants |= {contestant.name: contestant for contestant in of_checkout(suite, given.against.resolve())}
    rounds, seconds = (3, 0.3) if given.quick else (given.rounds, given.seconds)
    if rounds < 1 or seconds <= 0:
        parser.error("--rounds and --seconds must be positive")
    try:
        return Options(
            suite=suite,
            contestants=_chosen(contestants, given.clients),
            cases=_chosen(cases, given.cases),
            endpoints=given.endpoints.split(",") if given.endpoints else (),
            rounds=rounds,
            seconds=seconds,
            json=given.json,
            cache=given.cache.expanduser().resolve(),
            is_apart=given.apart,
        )
    except KeyError as error:
        known = f"clients: {', '.join(contestants)}; cases: {', '.join(cases)}"
        parser.error(f"not known: {error.args[0]}; {known}")


def _chosen(known: dict[str, _T], names: str | None) -> Sequence[_T]:
    return list(known.values()) if names is None else [known[name.strip()] for name in names.split(",")]


async def _run(options: Options, console: Console) -> None:
    results = Results(options.cases)
    commands = _prepare(options, results, console)
    prefix = f"etcd_aio-benchmarks/{secrets.token_hex(4)}/"
    cores = machine.cores()
    async with _cluster(options.endpoints, is_apart=options.is_apart) as endpoints:
        version = await asyncio.to_thread(store.server_version, endpoints[0])
        if options.suite.is_filled:
            await asyncio.to_thread(store.fill, endpoints[0], prefix)
        drivers: dict[str, DriverProcess] = {}
        try:
            for contestant in options.contestants:
                if contestant.name in commands:
                    own = ["--endpoints", ",".join(endpoints), "--prefix", prefix, *contestant.arguments]
                    try:
                        command = [*commands[contestant.name], *own]
                        started = await DriverProcess.start(command, contestant.environ, contestant.root)
                    except UnavailableError as error:
                        results.leave_out(contestant.name, options.cases, str(error))
                    else:
                        drivers[contestant.name] = started
            for part in _parts(options.cases):
                revision = await _begin(part, endpoints[0], prefix, console)
                await _take_turns(part, revision, options, drivers, results, console)
        finally:
            for driver in drivers.values():
                await driver.aclose()
            await asyncio.to_thread(store.clear, endpoints[0], prefix)
    setting = Setting(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        cpu=machine.cpu_model(),
        cores=cores,
        system=machine.system(),
        server=version,
        is_own_server=not options.endpoints,
        endpoints=len(endpoints),
        rounds=options.rounds,
        seconds=options.seconds,
        versions={name: driver.versions for name, driver in drivers.items()},
        is_apart=options.is_apart,
    )
    references = options.suite.references
    report.show(report.console(), setting, options.contestants, references, results)
    if options.json is not None:
        report.write_json(options.json, options.suite, setting, options.contestants, results)


def _prepare(options: Options, results: Results, console: Console) -> dict[str, list[str]]:
    """The command of each client that can run on this machine. The others are left out, with the reason."""
    commands: dict[str, list[str]] = {}
    for contestant in options.contestants:
        with console.status(f"preparing {contestant.name}"):
            try:
                commands[contestant.name] = contestant.home.prepare(options.cache)
            except UnavailableError as error:
                results.leave_out(contestant.name, options.cases, str(error))
    return commands


def _parts(cases: Sequence[Case]) -> list[Sequence[Case]]:
    """The groups of cases that take turns. A case with a history has its own rounds, before anything else is written:
    etcd reads its whole history from the first revision of a watch on.
    """
    alone = [case for case in cases if case.operation == "watch"]
    together = [case for case in cases if case not in alone]
    return [*([case] for case in alone), *([together] if together else [])]


async def _begin(part: Sequence[Case], endpoint: str, prefix: str, console: Console) -> int:
    """Write the history of a case, if it has one. Returns its first revision."""
    first = part[0]
    if first.operation != "watch":
        return 0
    console.print(f"writing {first.keys} events for {first.name}")
    return await store.write_history(endpoint, history(prefix, first.keys), VALUE, first.per_txn)


async def _take_turns(
    cases: Sequence[Case],
    revision: int,
    options: Options,
    drivers: dict[str, DriverProcess],
    results: Results,
    console: Console,
) -> None:
    """Run the rounds. Each visits every case and every driver, so that a drift of the machine affects all alike."""
    names = list(drivers)
    for round_number in range(-1, options.rounds):
        console.print("warming up" if round_number < 0 else f"round {round_number + 1} of {options.rounds}")
        # Each round begins with another driver, so that no driver always follows the same one.
        shift = max(round_number, 0) % max(len(names), 1)
        for case in cases:
            for name in names[shift:] + names[:shift]:
                if results.is_left_out(name, case):
                    continue
                seconds = _WARM_UP if round_number < 0 else options.seconds
                try:
                    burst = await drivers[name].measure(case, seconds, revision)
                except DriverError as error:
                    results.leave_out(name, [case], str(error))
                    continue
                if round_number >= 0:
                    results.add(name, case, burst)


@asynccontextmanager
async def _cluster(endpoints: Sequence[str], *, is_apart: bool) -> AsyncIterator[Sequence[str]]:
    """The endpoints of the command line, or of a member that is started for this run, perhaps on a core of its own."""
    if endpoints:
        store.check_plain(endpoints)
        yield endpoints
        return
    of_server, of_clients = machine.two_cores() if is_apart else (None, None)
    if of_server is not None:
        machine.use_core(of_server)
    async with EtcdServer(flags=_SERVER_FLAGS) as server:
        if of_clients is not None:
            machine.use_core(of_clients)
        yield [server.endpoint]
