"""Runs the faults: starts a cluster, the clients and the prober, injects each fault, and restores everything.

The clients run at the same time, under the same fault: elections take one to two seconds at random, so separate runs
would compare luck. 500 calls a second use only a tenth of a core. Where clients could disturb each other (`is_apart`,
or `--apart`) they take turns.
"""

import argparse
import asyncio
import json
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks import machine, store
from benchmarks.environments import GoProgram, UnavailableError, default_cache
from benchmarks.failover import record, table
from benchmarks.failover.account import Marks, Outage, buckets, calls_from, cpu_rate, outage, summary
from benchmarks.failover.driver import GRACE
from benchmarks.failover.faults import FAULTS, OPERATIONS, Fault, Operation
from benchmarks.failover.record import Run, Setting
from benchmarks.failover.stage import Stage
from benchmarks.process import DriverError, DriverProcess
from benchmarks.workload import VALUE, get_key
from etcd_aio.testing import EtcdStartError

CLIENTS: Final = ("etcd_aio", "go")
_TIMEOUT: Final = 5.0
_LEAD: Final = 0.3  # for the orders to arrive before the first call is due
_ANSWER_SECONDS: Final = 20.0
_IDLE_FROM: Final = 3.0  # after the fault: a client may query the members first
# Otherwise the Go client logs every retry.
_ENVIRON: Final = {"ETCD_CLIENT_DEBUG": "fatal"}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line."""

    faults: Sequence[Fault]
    operations: Sequence[Operation]
    clients: Sequence[str]
    repeat: int
    before: float
    seconds: float
    longest: float
    rate: float
    is_apart: bool
    json: Path | None
    is_added: bool
    raw: Path | None
    cache: Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit status, which does not depend on the numbers."""
    options, shown = _parse(arguments)
    if shown is not None:
        table.show(table.console(), *record.read(shown))
        return 0
    console = Console(stderr=True, highlight=False)
    try:
        asyncio.run(_run(options, console))
    except (store.StoreError, DriverError, EtcdStartError, OSError) as error:
        console.print(f"[red]cannot measure:[/red] {error}")
        return 1
    except KeyboardInterrupt:
        return 130  # the exit status of a shell after Ctrl-C
    return 0


def _parse(arguments: Sequence[str] | None) -> tuple[Options, Path | None]:
    faults = {fault.name: fault for fault in FAULTS}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.failover", description="clients while members fail")
    parser.add_argument("--only", metavar="CASES", help=f"some of: {','.join(faults)}")
    parser.add_argument("--operations", default=",".join(OPERATIONS), help="default: %(default)s")
    parser.add_argument("--clients", default=",".join(CLIENTS), help="default: %(default)s")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions of everything (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long faults last (default: %(default)s)")
    parser.add_argument(
        "--rate", type=float, default=500.0, help="calls a second of each client (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="once, 3 s faults: a look, not a measurement")
    parser.add_argument("--apart", action="store_true", help="clients take turns, instead of one fault for all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every run to FILE")
    parser.add_argument("--add", action="store_true", help="keep the runs that FILE has already")
    parser.add_argument("--raw", type=Path, metavar="DIR", help="also write every call of every run to files there")
    parser.add_argument("--show", type=Path, metavar="FILE", help="measure nothing, print the tables of FILE")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="environments (default: %(default)s)")
    given = parser.parse_args(arguments)
    chosen = list(faults) if given.only is None else given.only.split(",")
    operations, clients = given.operations.split(","), given.clients.split(",")
    for known, names in ((faults, chosen), (OPERATIONS, operations), (CLIENTS, clients)):
        for name in names:
            if name not in known:
                parser.error(f"not known: {name}")
    if given.repeat < 1 or given.seconds <= 0 or given.rate <= 0:
        parser.error("--repeat, --seconds and --rate must be positive")
    options = Options(
        faults=[faults[name] for name in chosen],
        operations=operations,
        clients=clients,
        repeat=1 if given.quick else given.repeat,
        before=1.0 if given.quick else 2.0,
        seconds=3.0 if given.quick else given.seconds,
        longest=10.0 if given.quick else 60.0,
        rate=given.rate,
        is_apart=given.apart,
        json=given.json,
        is_added=given.add,
        raw=given.raw,
        cache=given.cache.expanduser().resolve(),
    )
    return options, given.show


async def _run(options: Options, console: Console) -> None:
    commands, reasons = _prepare(options, console)
    runs: list[Run] = []
    versions: dict[str, Mapping[str, str]] = {}
    if options.is_added and options.json is not None and options.json.exists():
        old, runs = record.read(options.json)
        versions.update(old.versions)
    server = ""
    for repetition in range(options.repeat):
        # Consecutive faults of one kind share a stage, so that members start rarely.
        for peer_proxies in (False, True):
            faults = [fault for fault in options.faults if fault.peer_proxies is peer_proxies]
            if not faults:
                continue
            async with Stage(peer_proxies=peer_proxies) as stage:
                server = stage.version
                for fault in faults:
                    for operation in options.operations:
                        attempt = Attempt(options, stage, fault, operation, commands, versions)
                        for run in [*await attempt.run(), *_missing(fault, operation, reasons)]:
                            runs.append(run)
                            console.print(f"{repetition + 1}/{options.repeat} {_line(run)}", soft_wrap=True)
                        await stage.restore()
                        setting = _setting(options, server, versions)
                        if options.json is not None:
                            record.write(options.json, setting, runs)  # after Ctrl-C the results so far are kept
    table.show(table.console(), _setting(options, server, versions), runs)


def _prepare(options: Options, console: Console) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The command of each client that can run on this machine, and the reason why others cannot."""
    commands = {"etcd_aio": [sys.executable, "-m", "benchmarks.failover.driver"]}
    reasons: dict[str, str] = {}
    if "go" in options.clients:
        try:
            with console.status("building the Go client"):
                commands["go"] = [*GoProgram("benchmarks/go").prepare(options.cache), "-failover"]
        except UnavailableError as error:
            reasons["go"] = str(error)
    return {name: command for name, command in commands.items() if name in options.clients}, reasons


def _missing(fault: Fault, operation: Operation, reasons: Mapping[str, str]) -> list[Run]:
    return [
        Run(fault.name, operation, client, left_out=reason)
        for client, reason in reasons.items()
        if client in fault.clients
    ]


def _setting(options: Options, server: str, versions: Mapping[str, Mapping[str, str]]) -> Setting:
    return Setting(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        cpu=machine.cpu_model(),
        cores=machine.cores(),
        system=machine.system(),
        server=server,
        rate=options.rate,
        timeout=_TIMEOUT,
        versions=versions,
    )


def _line(run: Run) -> str:
    name = f"{run.fault:17} {run.operation} {run.client:9}"
    if run.found is None or run.servers is None:
        return f"{name} left out: {run.left_out}"
    found = run.found
    return (
        f"{name} {found.failed:4} errors, {found.over_slow:4} slow, slowest {found.slowest:.2f}, recovery "
        f"{found.recovery:.2f} (servers {run.servers.all_members:.2f}, detection {run.servers.target:.2f}), "
        f"p99 before {found.p99_before * 1e3:.1f} ms"
    )


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of one fault and one operation, for all clients."""

    options: Options
    stage: Stage
    fault: Fault
    operation: Operation
    commands: Mapping[str, Sequence[str]]
    versions: dict[str, Mapping[str, str]]

    async def run(self) -> list[Run]:
        """Measure. The caller restores the stage."""
        clients = [client for client in self.commands if client in self.fault.clients]
        if not (self.fault.is_apart or self.options.is_apart):
            return await self._together(clients)
        runs = []
        for client in clients:
            runs += await self._together([client])
            await self.stage.restore()
        return runs

    @property
    def _lasts(self) -> float:
        return min(self.fault.lasts or self.options.seconds, self.options.longest)

    @property
    def _seconds(self) -> float:
        return self.options.before + self._lasts + self.fault.after

    async def _together(self, clients: Sequence[str]) -> list[Run]:
        prefix = f"etcd_aio-failover/{secrets.token_hex(4)}/"
        await asyncio.to_thread(store.put_all, self.stage.members[0].endpoint, [get_key(prefix)], VALUE)
        async with AsyncExitStack() as stack:
            started = await asyncio.gather(*(self._start(stack, client, prefix) for client in clients))
            drivers = {name: one for name, one in zip(clients, started, strict=True) if isinstance(one, DriverProcess)}
            idle: dict[str, DriverProcess] = {}
            if self.fault.is_outage:
                more = await asyncio.gather(*(self._start(stack, client, prefix) for client in drivers))
                idle = {name: one for name, one in zip(drivers, more, strict=True) if isinstance(one, DriverProcess)}
            prober = await self._start_prober(stack, prefix)
            result = await self._act(drivers, idle, prober)
        failed = [
            Run(self.fault.name, self.operation, client, left_out=str(one))
            for client, one in zip(clients, started, strict=True)
            if not isinstance(one, DriverProcess)
        ]
        return [*result, *failed]

    async def _start(self, stack: AsyncExitStack, client: str, prefix: str) -> DriverProcess | UnavailableError:
        endpoints = ",".join(self.stage.endpoints(via_proxies=self.fault.via_proxies))
        command = [*self.commands[client], "--endpoints", endpoints, "--prefix", prefix]
        if client == "etcd_aio":
            command += ["--policy", self.fault.policy, "--timeout", str(_TIMEOUT)]
        try:
            driver = await DriverProcess.start(command, _ENVIRON)
        except UnavailableError as error:
            return error
        stack.push_async_callback(driver.aclose)
        self.versions.setdefault(client, {k: v for k, v in driver.versions.items() if k != "policy"})
        return driver

    async def _start_prober(self, stack: AsyncExitStack, prefix: str) -> DriverProcess:
        endpoints = ",".join(self.stage.endpoints(via_proxies=False))
        command = [sys.executable, "-m", "benchmarks.failover.prober", "--endpoints", endpoints]
        command += ["--prefix", prefix, "--operation", self.operation]
        prober = await DriverProcess.start(command, {})
        stack.push_async_callback(prober.aclose)
        return prober

    async def _act(
        self, drivers: Mapping[str, DriverProcess], idle: Mapping[str, DriverProcess], prober: DriverProcess
    ) -> list[Run]:
        """Run all drivers, and inject the fault."""
        targets = await self.stage.choose(self.fault.who)
        start = time.time() + _LEAD
        timeout = self._seconds + _TIMEOUT + GRACE + _ANSWER_SECONDS
        order = json.dumps(self._order(start))
        idle_order = json.dumps({**self._order(start), "rate": 0, "burst": 0, "stall": 0})
        async with asyncio.TaskGroup() as group:
            answers = {name: group.create_task(_ask(one, order, timeout)) for name, one in drivers.items()}
            resting = {name: group.create_task(_ask(one, idle_order, timeout)) for name, one in idle.items()}
            probing = group.create_task(_ask(prober, order, timeout))
            await asyncio.sleep(start + self.options.before - time.time())
            fault = time.time() - start
            await self.fault.begin(self.stage, targets)
            await asyncio.sleep(max(0.0, start + fault + self._lasts - time.time()))
            heal = time.time() - start
            await self.fault.end(self.stage, targets)
        marks = Marks(fault, heal)
        probed = probing.result()
        self._keep("probes", probed, marks)
        if "error" in probed:
            raise DriverError(f"the prober: {probed['error']}")
        # The results of drivers and probers are JSON, whose values have the type object.
        servers = outage(probed["probes"], probed["connects"], marks, [one.endpoint for one in targets])  # type: ignore[arg-type]
        return [
            self._run_of(name, task.result(), marks, servers, resting[name].result() if name in resting else None)
            for name, task in answers.items()
        ]

    def _order(self, start: float) -> dict[str, object]:
        return {
            "operation": self.operation,
            "start": start,
            "seconds": self._seconds,
            "rate": self.options.rate,
            "timeout": _TIMEOUT,
            "burst_at": self.options.before,
            "burst": self.fault.burst,
            "stall_at": self.options.before,
            "stall": self.fault.stall,
        }

    def _run_of(
        self,
        client: str,
        answer: Mapping[str, object],
        marks: Marks,
        servers: Outage,
        resting: Mapping[str, object] | None,
    ) -> Run:
        if "error" in answer:
            return Run(self.fault.name, self.operation, client, left_out=str(answer["error"]))
        calls = calls_from(answer, is_generator_stopped=bool(self.fault.stall))
        up = marks.heal + servers.up if self.fault.is_outage and servers.up is not None else None
        self._keep(client, answer, marks)
        return Run(
            self.fault.name,
            self.operation,
            client,
            seconds=self._seconds,
            marks=marks,
            found=summary(calls, marks, up=up, cpu=answer["cpu"], states=answer["states"]),  # type: ignore[arg-type]
            servers=servers,
            idle_cpu=None if resting is None else cpu_rate(resting["cpu"], marks.fault + _IDLE_FROM, marks.heal),  # type: ignore[arg-type]
            buckets=buckets(calls, self._seconds),
            states=answer["states"],  # type: ignore[arg-type]
        )

    def _keep(self, client: str, answer: Mapping[str, object], marks: Marks) -> None:
        if self.options.raw is not None:
            self.options.raw.mkdir(parents=True, exist_ok=True)
            name = f"{self.fault.name}-{self.operation}-{client}-{time.time():.0f}.json"
            content = {"fault": marks.fault, "heal": marks.heal, **answer}
            (self.options.raw / name).write_text(json.dumps(content, separators=(",", ":")))


async def _ask(driver: DriverProcess, line: str, timeout: float) -> dict[str, object]:
    """Ask one driver. If it fails, its reply has the error, and the other drivers continue."""
    try:
        return await driver.ask(line, timeout)
    except DriverError as error:
        return {"error": str(error)}
