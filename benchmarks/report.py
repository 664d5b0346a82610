"""How a run is shown: tables for people, one JSON file for programs.

Knows: rich, and the layout of the file. Never knows: how the numbers came about. It prints them and asserts nothing.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.clients import GO_REFERENCE, REFERENCE, Contestant
from benchmarks.results import Measured, Results, Setting
from benchmarks.workload import Case


def show(console: Console, setting: Setting, contestants: Sequence[Contestant], results: Results) -> None:
    """Print one table per case, then everything that makes the comparison uneven."""
    console.print(
        f"\n{setting.date}, {setting.cpu}, {setting.cores} cores, {setting.system}", highlight=False, soft_wrap=True
    )
    console.print(
        f"etcd {setting.server}, {setting.endpoints} endpoint(s); medians of {setting.rounds} interleaved rounds, "
        f"{setting.seconds:g} s each",
        highlight=False,
        soft_wrap=True,
    )
    for case in results.cases:
        console.print(_table(case, contestants, results))
    for line in _remarks(setting, contestants, results):
        console.print(escape(line), highlight=False, soft_wrap=True)


def _table(case: Case, contestants: Sequence[Contestant], results: Results) -> Table:
    table = Table(title=case.title, title_justify="left", title_style="bold")
    table.add_column("client")
    for column in ("calls/s", "spread", "client CPU, µs/call", f"to {REFERENCE}", f"to {GO_REFERENCE}"):
        table.add_column(column, justify="right")
    for contestant in contestants:
        name = contestant.name
        measured = results.of(name, case)
        mark = " *" if case.operation in contestant.notes else ""
        if measured is None:
            table.add_row(name, "left out", *[""] * 4, style="dim")
            continue
        table.add_row(
            name + mark,
            f"{measured.rate:,.0f}".replace(",", " "),
            f"{measured.spread:.0%}",
            f"{measured.cpu_us:.1f}",
            _times(results.ratio(name, case, REFERENCE)),
            _times(results.ratio(name, case, GO_REFERENCE)),
        )
    return table


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


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


def write_json(path: Path, setting: Setting, contestants: Sequence[Contestant], results: Results) -> None:
    """Write the run to one file, every round of it."""
    rows = []
    for contestant in contestants:
        for case in results.cases:
            row: dict[str, object] = {"client": contestant.name, "case": case.name}
            measured = results.of(contestant.name, case)
            if measured is None:
                row["left_out"] = results.left_out.get((contestant.name, case.name), "not measured")
            else:
                row.update(_numbers(measured))
                row["ratio_to_etcd_aio"] = results.ratio(contestant.name, case, REFERENCE)
                row["ratio_to_go"] = results.ratio(contestant.name, case, GO_REFERENCE)
            if note := contestant.notes.get(case.operation):
                row["note"] = note
            rows.append(row)
    content = {
        "format": 1,
        "setting": asdict(setting),
        "cases": {case.name: case.title for case in results.cases},
        "results": rows,
    }
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _numbers(measured: Measured) -> dict[str, object]:
    return {
        "calls_per_second": measured.rate,
        "client_cpu_us_per_call": measured.cpu_us,
        "spread": measured.spread,
        "rounds": [asdict(burst) for burst in measured.bursts],
    }
