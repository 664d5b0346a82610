"""Prints the runs: one table for gets, one for puts."""

from collections.abc import Callable, Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.failover.account import Outage, Summary
from benchmarks.failover.faults import FAULTS, OPERATIONS, Fault, Operation
from benchmarks.failover.record import Run, Setting
from benchmarks.failover.verdict import unmet

_WIDTH = 230
_CLIENTS = ("etcd_aio", "go")
_TEXTS = {"fault": 20, "client": 8, "also": 24, "must hold": 30}
# On an idle machine it is a third of that.
_NOISE = 0.02
_TITLES = {"get": "linearizable gets", "put": "puts"}
_COLUMNS = ("fault", "client", "errors", "maybe", "last", ">200 ms", ">1 s", "slowest", "recovery")
_MORE = ("servers", "detect", "after", "whole", "p99 before", "also", "must hold")


def console() -> Console:
    """The console for the tables: as wide as the terminal; wide enough for the tables if the output is a file."""
    found = Console()
    return found if found.is_terminal else Console(width=_WIDTH)


def show(console: Console, setting: Setting, runs: Sequence[Run]) -> None:
    """Print everything."""
    console.print(
        f"\n{setting.date}, {setting.cpu}, {setting.cores} cores, {setting.system}; etcd {setting.server}, three "
        f"members on this machine, fsync off; {setting.rate:g} calls/s from each client, timeout {setting.timeout:g} s",
        highlight=False,
        soft_wrap=True,
    )
    for operation in OPERATIONS:
        if any(run.operation == operation for run in runs):
            console.print(_table(operation, runs))
    for client, versions in setting.versions.items():
        parts = ", ".join(f"{name} {version}" for name, version in versions.items())
        console.print(f"{client}: {parts}", highlight=False, soft_wrap=True)
    for line in errors(runs):
        console.print(escape(line), highlight=False, soft_wrap=True)


def errors(runs: Sequence[Run]) -> list[str]:
    """The errors, and the clients that were left out."""
    lines = []
    for fault, operation, client in sorted({(run.fault, run.operation, run.client) for run in runs}):
        mine = _of(runs, fault, operation, client)
        names: dict[str, int] = {}
        for run in mine:
            for name, count in ({} if run.found is None else run.found.errors).items():
                names[name] = names.get(name, 0) + count
        if names:
            parts = ", ".join(f"{count} {name}" for name, count in names.items())
            lines.append(f"errors: {fault}, {operation}, {client}: {parts}")
        lines += [
            f"left out: {fault}, {operation}, {client}: {run.left_out}" for run in mine if run.left_out is not None
        ]
    return lines


def _of(runs: Sequence[Run], fault: str, operation: Operation, client: str) -> list[Run]:
    return [run for run in runs if (run.fault, run.operation, run.client) == (fault, operation, client)]


def _table(operation: Operation, runs: Sequence[Run]) -> Table:
    title = f"{_TITLES[operation]}: the least and the most of all repetitions, seconds"
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for column in _COLUMNS + _MORE:
        width = _TEXTS.get(column)
        table.add_column(column, justify="right" if width is None else "left", no_wrap=width is None, min_width=width)
    for fault in FAULTS:
        title = fault.title
        for client in _CLIENTS:
            mine = [run for run in _of(runs, fault.name, operation, client) if run.found is not None]
            if mine:
                table.add_row(title, client, *cells(fault, operation, mine), end_section=client == _CLIENTS[-1])
                title = ""
    return table


def cells(fault: Fault, operation: Operation, runs: Sequence[Run]) -> list[str]:
    """The cells of one client under one fault."""
    found = [run.found for run in runs if run.found is not None]
    servers = [run.servers for run in runs if run.servers is not None]

    def each(of: Callable[[Summary], float | None], digits: int = 0) -> str:
        return _joined([of(one) for one in found], digits)

    def each_server(of: Callable[[Outage], float | None]) -> str:
        return _joined([of(one) for one in servers], 2)

    reasons = [_reasons(fault, operation, run) for run in runs]
    return [
        each(lambda one: one.failed),
        each(lambda one: one.maybe_applied),
        each(lambda one: one.last_error, 2),
        each(lambda one: one.over_slow),
        each(lambda one: one.over_very_slow),
        each(lambda one: one.slowest, 2),
        each(lambda one: one.recovery, 2),
        each_server(lambda one: one.all_members),
        each_server(lambda one: one.target),
        each(lambda one: one.after_heal, 2),
        each(lambda one: one.whole, 2),
        _joined([one.p99_before * 1000 for one in found], 0) + " ms",
        _also(fault, runs),
        _kept(reasons) if runs[0].client == _CLIENTS[0] else "",
    ]


def _kept(reasons: Sequence[Sequence[str]]) -> str:
    """The number of repetitions that met the requirements, and the violations of the worst one."""
    if not any(reasons):
        return "kept"
    worst = max(reasons, key=lambda one: len(one))
    return f"[red]{sum(not one for one in reasons)} of {len(reasons)}[/red]: {escape('; '.join(worst))}"


def _reasons(fault: Fault, operation: Operation, run: Run) -> list[str]:
    if run.found is None or run.servers is None:
        return []
    return unmet(fault.demand(operation), run.found, run.servers, run.idle_cpu)


def _also(fault: Fault, runs: Sequence[Run]) -> str:
    found = [run.found for run in runs if run.found is not None]
    parts = []
    if fault.name.startswith("slow-link"):
        parts.append(
            "median " + ", ".join(f"{one.median_before * 1e3:.1f}→{one.median_during * 1e3:.1f} ms" for one in found)
        )
    if fault.is_outage:
        parts.append("first success " + _joined([one.first_success for one in found], 2))
        parts.append("CPU waiting " + ", ".join("?" if run.idle_cpu is None else f"{run.idle_cpu:.2%}" for run in runs))
        parts.append("calling " + ", ".join(f"{one.cpu_during:.0%}" for one in found))
    if any(one.departures for one in found):
        parts.append(
            f"left {_joined([one.departures for one in found], 0)}, back {_joined([one.back for one in found], 2)}"
        )
    if noisy := sum(one.p99_before > _NOISE for one in found):
        parts.append(f"noisy machine in {noisy}")
    return "; ".join(parts)


def _joined(numbers: Sequence[float | None], digits: int) -> str:
    """The lowest and the highest number of all repetitions; "-" if there is none."""
    known = sorted(number for number in numbers if number is not None)
    shown = list(dict.fromkeys(f"{number:.{digits}f}" for number in (known[:1] + known[-1:])))
    return "…".join(shown) + ("" if len(known) == len(numbers) else "-" if not known else " or -")
