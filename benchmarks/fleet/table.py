"""Prints the results of a fleet: one row for each scenario."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.fleet.account import KINDS, Summary

_WIDTH = 160


def show(found: Sequence[Summary], version: str) -> None:
    """Print everything."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    where = f"{machine.cpu_model()}, {machine.cores()} cores, {machine.system()}"
    console.print(f"\n{where}; etcd {version}, three members, fsync off", highlight=False, soft_wrap=True)
    made = Table(box=box.SIMPLE_HEAD)
    made.add_column("scenario")
    for name in ("clients", "served", "half, s", "all, s", "calls", "errors", *KINDS, "CPU, ms", "grew"):
        made.add_column(name, justify="right" if name != "grew" else "left")
    for one in found:
        made.add_row(
            one.scenario,
            str(one.clients),
            str(one.served),
            f"{one.median:.1f}",
            f"{one.all_served:.1f}",
            str(one.calls),
            str(sum(one.errors.values())),
            *(f"{one.per_client[kind]:.2f}" for kind in KINDS),
            f"{one.cpu:.1f}",
            "; ".join(f"{storm.kind} ({storm.phase}) {storm.first:.2f} to {storm.last:.2f} /s" for storm in one.grown),
        )
    console.print(made)
    console.print("Authenticates, probes, dials and CPU are for each client.", highlight=False)
    for one in found:
        if one.errors:
            errors = ", ".join(f"{name} {count}" for name, count in one.errors.items())
            console.print(f"{one.scenario}: {errors}", highlight=False, soft_wrap=True)
