"""Draws the Grafana dashboard over a real run: `python -m benchmarks.dashboard` writes docs/dashboard.svg.

Grafana is not needed, and Prometheus is: its program evaluates the queries of the panels.
"""

import argparse
import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

from benchmarks.dashboard.draw import draw
from benchmarks.dashboard.panels import DASHBOARD, read_panels
from benchmarks.dashboard.run import measure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dashboard", description="draw docs/dashboard.json")
    parser.add_argument("--prometheus", metavar="PROGRAM", default="prometheus", help="default: the one on PATH")
    parser.add_argument("--out", type=Path, metavar="FILE", default=DASHBOARD.with_suffix(".svg"))
    given = parser.parse_args(arguments)
    program = shutil.which(given.prometheus)
    if program is None:
        parser.error(f"there is no {given.prometheus}: install Prometheus, or name its program by --prometheus")
    panels = read_panels()
    run = asyncio.run(measure(panels, program))
    given.out.write_text(draw(panels, run), encoding="utf-8")
    for panel, lines in zip(panels, run.panels, strict=True):
        print(f"{panel.title}: {', '.join(line.name for line in lines) or 'no data'}")
    print(given.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
