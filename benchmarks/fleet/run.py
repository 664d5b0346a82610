"""Runs the scenarios: starts three members and the processes of the fleet, injects the fault, restores everything."""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

from rich.console import Console

from benchmarks import machine
from benchmarks.environments import UnavailableError
from benchmarks.fleet import table
from benchmarks.fleet.account import Answer, Summary, summary
from benchmarks.fleet.worker import USER
from benchmarks.process import DriverError, DriverProcess
from etcd_aio import Client
from etcd_aio.testing import EtcdCluster, EtcdStartError

PATIENT: Final = "token-loss-patient"
SCENARIOS: Final = (PATIENT, "token-loss", "member-restart", "leader-death", "full-outage")
Trouble: TypeAlias = Callable[[], Awaitable[object]]

_LEAD: Final = 0.3  # for the orders to arrive
_READY_SECONDS: Final = 600.0
_HEALTHY_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line."""

    scenarios: Sequence[str]
    clients: int
    processes: int
    bcrypt_cost: int
    outage: float
    limit: float
    json: Path | None

    def sizes(self) -> list[int]:
        """The number of clients of each process."""
        return [
            self.clients // self.processes + (number < self.clients % self.processes)
            for number in range(self.processes)
        ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Returns 0 if every client was served and no storm grew, else 1."""
    options = _parse(arguments)
    console = Console(stderr=True, highlight=False)
    try:
        found, version = asyncio.run(_run(options, console))
    except (DriverError, UnavailableError, EtcdStartError, OSError) as error:
        console.print(f"[red]cannot measure:[/red] {error}")
        return 2
    except KeyboardInterrupt:
        return 130  # the exit status of a shell after Ctrl-C
    table.show(found, version)
    if options.json is not None:
        setting = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "cpu": machine.cpu_model(),
            "cores": machine.cores(),
            "system": machine.system(),
            "server": version,
            "processes": options.processes,
            "bcrypt_cost": options.bcrypt_cost,
            "outage": options.outage,
        }
        runs = [asdict(one) for one in found]
        options.json.write_text(json.dumps({"setting": setting, "runs": runs}, indent=2) + "\n")
    return 0 if all(one.is_good for one in found) else 1


def _parse(arguments: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description="many clients while members fail")
    parser.add_argument("--only", default=",".join(SCENARIOS), metavar="SCENARIOS", help="default: %(default)s")
    parser.add_argument("--clients", type=int, default=160, help="of all processes together (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=2, help="default: %(default)s")
    parser.add_argument("--bcrypt-cost", type=int, default=10, help="of a password; etcd's default: %(default)s")
    parser.add_argument("--outage", type=float, default=10.0, help="seconds of a full one (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds to wait for all (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything to FILE")
    given = parser.parse_args(arguments)
    chosen = given.only.split(",")
    for name in chosen:
        if name not in SCENARIOS:
            parser.error(f"not known: {name}")
    if not 1 <= given.processes <= given.clients or given.outage <= 0 or given.limit <= 0:
        parser.error("--processes, --clients, --outage and --limit must be positive, and no process without a client")
    return Options(
        [name for name in SCENARIOS if name in chosen],  # the reference first
        given.clients,
        given.processes,
        given.bcrypt_cost,
        given.outage,
        given.limit,
        given.json,
    )


async def _run(options: Options, console: Console) -> tuple[list[Summary], str]:
    async with AsyncExitStack() as stack:
        flags = (f"--bcrypt-cost={options.bcrypt_cost}",)
        cluster = await stack.enter_async_context(EtcdCluster(size=3, fsync=False, flags=flags))
        await _enable_auth(cluster)
        console.print(f"{options.clients} clients log in ...")
        workers = await asyncio.gather(*(_start(cluster, size) for size in options.sizes()))
        for worker in workers:
            stack.push_async_callback(worker.aclose)
        found = []
        for scenario in options.scenarios:
            console.print(f"{scenario} ...")
            found.append(await _scenario(scenario, cluster, workers, options))
            await _restore(cluster)
        return found, cluster.members[0].version


async def _start(cluster: EtcdCluster, clients: int) -> DriverProcess:
    command = [sys.executable, "-m", "benchmarks.fleet.worker", "--clients", str(clients)]
    command += ["--endpoints", ",".join(cluster.endpoints)]
    return await DriverProcess.start(command, {}, start_timeout=_READY_SECONDS)


async def _scenario(scenario: str, cluster: EtcdCluster, workers: Sequence[DriverProcess], options: Options) -> Summary:
    is_patient = scenario == PATIENT
    await _tell(workers, {"start": None, "is_patient": is_patient}, _READY_SECONDS)
    if is_patient:
        scenario = "token-loss"
    follower = (await cluster.followers())[0]
    troubles: dict[str, tuple[Trouble, Trouble | None]] = {
        "token-loss": (lambda: _lose_tokens(cluster), None),
        "member-restart": (follower.restart, None),
        "leader-death": ((await cluster.leader()).kill, None),
        "full-outage": (lambda: _all(member.kill for member in cluster.members), lambda: _restart(cluster)),
    }
    trouble, end = troubles[scenario]
    await trouble()
    start = time.time() + _LEAD
    order = {"start": start, "limit": options.limit, "is_patient": is_patient}
    working = asyncio.create_task(_tell(workers, order, options.limit + _READY_SECONDS), name="fleet")
    back = 0.0
    try:
        if end is not None:
            await asyncio.sleep(options.outage)
            await end()
            back = time.time() - start
        answers = await working
    finally:
        working.cancel()
    name = PATIENT if is_patient else scenario
    return summary(name, options.clients, [_answer(one) for one in answers], back)


async def _tell(
    workers: Sequence[DriverProcess], order: Mapping[str, object], timeout: float
) -> list[dict[str, object]]:
    return await asyncio.gather(*(worker.ask(json.dumps(order), timeout) for worker in workers))


def _answer(message: dict[str, Any]) -> Answer:
    return Answer(message["served"], message["errors"], message["calls"], message["cpu"], message["samples"])


async def _enable_auth(cluster: EtcdCluster) -> None:
    async with Client(cluster.endpoints, timeout=_HEALTHY_SECONDS) as client:
        await client.auth.user_add(*USER)
        await client.auth.role_add(USER[0])
        await client.auth.user_grant_role(USER[0], USER[0])
        await client.auth.enable()


async def _lose_tokens(cluster: EtcdCluster) -> None:
    """Let all members lose all tokens at once, as if they had been restarted at the same time."""
    async with Client(cluster.endpoints, auth=USER, allow_insecure_auth=True, timeout=_HEALTHY_SECONDS) as client:
        await client.auth.disable()
        await client.auth.enable()


async def _all(works: Iterable[Trouble]) -> None:
    await asyncio.gather(*(work() for work in works))


async def _restart(cluster: EtcdCluster) -> None:
    await _all(member.restart for member in cluster.members if not member.is_running)


async def _restore(cluster: EtcdCluster) -> None:
    await _restart(cluster)
    await cluster.wait_healthy(_HEALTHY_SECONDS)
