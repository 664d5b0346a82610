"""Prints the results of a run as tables, and writes them to a JSON file. Nothing is asserted."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.clients import Contestant, Suite
from benchmarks.results import Measured, Results, Setting
from benchmarks.workload import Case

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FORMAT: Final = 2
"""The version of the layout of the result file."""

_WIDTH: Final = 110


def console() -> Console:
    """The console for the tables: as wide as the terminal; wide enough for the tables if the output is a file."""
    found = Console()
    return found if found.is_terminal else Console(width=_WIDTH)


def where(is_own_server: bool, endpoints: int, *, is_apart: bool = False) -> str:
    """The location of the server, in words."""
    cores = ", one core for the server and one for the client" if is_apart else ""
    return f"on this machine, fsync off{cores}" if is_own_server else f"{endpoints} endpoint(s)"


def show(
    console: Console,
    setting: Setting,
    contestants: Sequence[Contestant],
    references: Sequence[str],
    results: Results,
) -> None:
    """Print one table per case, then the remarks on what limits the comparison."""
    console.print(
        f"\n{setting.date}, {setting.cpu}, {setting.cores} cores, {setting.system}", highlight=False, soft_wrap=True
    )
    console.print(
        f"etcd {setting.server}, {where(setting.is_own_server, setting.endpoints, is_apart=setting.is_apart)}; "
        f"medians of {setting.rounds} interleaved rounds, {setting.seconds:g} s each",
        highlight=False,
        soft_wrap=True,
    )
    for case in results.cases:
        console.print(_table(case, contestants, references, results))
    for line in _remarks(setting, contestants, results):
        console.print(escape(line), highlight=False, soft_wrap=True)


def _table(case: Case, contestants: Sequence[Contestant], references: Sequence[str], results: Results) -> Table:
    table = Table(title=case.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("client")
    for quantity in (f"{case.unit}s/s", f"CPU, µs/{case.unit}"):
        for column in (quantity, *(f"÷ {reference}" for reference in references)):
            table.add_column(column, justify="right")
    table.add_column("spread", justify="right")
    for contestant in contestants:
        name = contestant.name
        measured = results.of(name, case)
        mark = " *" if case.operation in contestant.notes else ""
        if measured is None:
            table.add_row(name, "left out", style="dim")
            continue
        ratios = [results.ratio(name, case, reference) for reference in references]
        table.add_row(
            name + mark,
            f"{measured.rate:,.0f}".replace(",", " "),
            *("" if ratio is None else f"{ratio.rate:.2f}" for ratio in ratios),
            f"{measured.cpu_us:.1f}",
            *("" if ratio is None else f"{ratio.cpu:.2f}" for ratio in ratios),
            f"{measured.spread:.0%}",
        )
    return table


def _remarks(setting: Setting, contestants: Sequence[Contestant], results: Results) -> list[str]:
    lines = []
    for contestant in contestants:
        operations = {case.operation for case in results.cases}
        lines += [
            f"* {contestant.name}, {name}: {note}" for name, note in contestant.notes.items() if name in operations
        ]
        if contestant.first_endpoint_only and setting.endpoints > 1:
            lines.append(f"{contestant.name}: takes one endpoint, so it used the first only")
    reasons: dict[tuple[str, str], list[str]] = {}
    for (client, case), reason in results.left_out.items():
        reasons.setdefault((client, reason), []).append(case)
    for (client, reason), cases in reasons.items():
        which = "every case" if len(cases) == len(results.cases) else ", ".join(cases)
        lines.append(f"left out: {client}, {which}: {reason}")
    for client, versions in setting.versions.items():
        lines.append(f"{client}: " + ", ".join(f"{name} {version}" for name, version in versions.items()))
    return lines


def write_json(path: Path, suite: Suite, setting: Setting, contestants: Sequence[Contestant], results: Results) -> None:
    """Write every round of the run to one file."""
    rows = []
    for contestant in contestants:
        for case in results.cases:
            row: dict[str, object] = {"client": contestant.name, "case": case.name}
            measured = results.of(contestant.name, case)
            if measured is None:
                row["left_out"] = results.left_out.get((contestant.name, case.name), "not measured")
            else:
                row.update(_numbers(measured))
                row["ratios"] = _ratios(contestant.name, case, suite.references, results)
            if note := contestant.notes.get(case.operation):
                row["note"] = note
            rows.append(row)
    content = {
        "format": FORMAT,
        "title": suite.title,
        "references": suite.references,
        "setting": asdict(setting),
        "cases": {case.name: case.title for case in results.cases},
        "units": {case.name: case.unit for case in results.cases},
        "results": rows,
    }
    _write(path, content)


def put(path: Path, name: str, part: "DataclassInstance") -> None:
    """Add a part to the result file, which is created if it is missing.

    Raises:
        ValueError: the file is not a result file.
    """
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"format": FORMAT}
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is no result of this program")
    _write(path, {**content, name: asdict(part)})


def _write(path: Path, content: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _ratios(client: str, case: Case, references: Sequence[str], results: Results) -> dict[str, object]:
    ratios = {reference: results.ratio(client, case, reference) for reference in references}
    return {reference: asdict(ratio) for reference, ratio in ratios.items() if ratio is not None}


def _numbers(measured: Measured) -> dict[str, object]:
    return {
        "calls_per_second": measured.rate,
        "client_cpu_us_per_call": measured.cpu_us,
        "spread": measured.spread,
        "rounds": [asdict(burst) for burst in measured.bursts],
    }
