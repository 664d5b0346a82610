"""Draws a run as SVG: `python -m benchmarks.plot docs/performance.json` writes docs/performance.svg."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self
from xml.sax.saxutils import escape

from benchmarks.clients import SUITES
from benchmarks.report import FORMAT, where

_PER_LINE: Final = 2
_MARGIN: Final = 24
_PANEL: Final = 480
_GAP: Final = 36
_PICTURE: Final = 2 * _MARGIN + _PER_LINE * _PANEL + (_PER_LINE - 1) * _GAP
_HEAD: Final = 84
_TITLE: Final = 28
_ROW: Final = 19
_BAR: Final = 13
_BAR_START: Final = 118
_BAR_WIDTH: Final = 170
# The right edges of the columns of numbers, from the left edge of a panel.
_RATE, _RATIO, _CPU = 360, 408, _PANEL
_INK, _FAINT = "#1f2328", "#57606a"
_OURS, _OURS_TOO, _REFERENCE, _OTHER = "#1f6feb", "#8bb8f5", "#57606a", "#c4cad1"


@dataclass(frozen=True, slots=True)
class Bar:
    """One client in one case. `rate` is None if it was left out; `ratio` is None if there is no other client."""

    client: str
    rate: float | None
    ratio: float | None
    cpu_us: float
    has_note: bool


@dataclass(frozen=True, slots=True)
class Run:
    """A run from the result file.

    Attributes:
        title: of the picture.
        references: the clients that the ratios are taken to; the first one's are drawn.
        panels: the title, the unit and the bars of each case.
        facts: the lines below them.
    """

    title: str
    references: tuple[str, ...]
    panels: tuple[tuple[str, str, tuple[Bar, ...]], ...]
    facts: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a result file.

        Raises:
            ValueError: it is not a result file.
        """
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("format") != FORMAT or "results" not in content:
            raise ValueError(f"{path} holds no run of python -m benchmarks")
        # A file of the calls may be older than the suites.
        title = content.get("title", SUITES["calls"].title)
        references = tuple(content.get("references", SUITES["calls"].references))
        bars: dict[str, list[Bar]] = {case: [] for case in content["cases"]}
        notes: dict[str, None] = {}
        for row in content["results"]:
            ratio = row.get("ratios", {}).get(references[0])
            bars[row["case"]].append(
                Bar(
                    client=row["client"],
                    rate=row.get("calls_per_second"),
                    ratio=None if ratio is None else ratio["rate"],
                    cpu_us=row.get("client_cpu_us_per_call", 0.0),
                    has_note="note" in row,
                )
            )
            if "note" in row:
                notes[f"* {row['client']}, {row['case'].partition('-')[0]}: {row['note']}"] = None
        setting = content["setting"]
        facts = [
            f"{setting['date']}, {setting['cpu']}, {setting['cores']} cores, {setting['system']}, "
            f"etcd {setting['server']}, {where(setting['is_own_server'], setting['endpoints'])}; "
            f"medians of {setting['rounds']} interleaved rounds, {setting['seconds']:g} s each",
            *notes,
            *(
                f"{client}: " + ", ".join(f"{name} {version}" for name, version in versions.items())
                for client, versions in setting["versions"].items()
            ),
        ]
        units = content.get("units", {})  # older files have only calls
        panels = tuple((content["cases"][case], units.get(case, "call"), tuple(found)) for case, found in bars.items())
        return cls(title, references, panels, tuple(facts))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plot", description="draw a run of python -m benchmarks")
    parser.add_argument("results", type=Path, help="what `python -m benchmarks --json` wrote")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to draw (default: the same name with .svg)")
    given = parser.parse_args(arguments)
    out: Path = given.out or given.results.with_suffix(".svg")
    try:
        out.write_text(draw(Run.read(given.results)), encoding="utf-8")
    except (OSError, ValueError) as error:
        parser.error(str(error))
    print(out)
    return 0


def draw(run: Run) -> str:
    """Draw a panel of bars for each case, two in a row, and the facts below."""
    reference = run.references[0]
    subtitle = (
        f"Bar: longer is faster. To {reference}: times its rate. "
        "CPU: user and system time of the client's process for one call, event or turn."
    )
    parts = [_text(_MARGIN, 34, run.title, size=18, weight=600), _text(_MARGIN, 56, subtitle)]
    top = _HEAD
    for start in range(0, len(run.panels), _PER_LINE):
        line = run.panels[start : start + _PER_LINE]
        for column, (title, unit, bars) in enumerate(line):
            parts += _panel(_MARGIN + column * (_PANEL + _GAP), top, title, unit, bars, run.references)
        top += _TITLE + max(len(bars) for _, _, bars in line) * _ROW + _GAP
    for fact in run.facts:
        parts.append(_text(_MARGIN, top, fact, size=10, fill=_FAINT))
        top += 15
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_PICTURE} {top}" width="{_PICTURE}" height="{top}" '
        f'font-family="system-ui, sans-serif" role="img" aria-label="{escape(run.title)}">'
    )
    # Its own background, because the page may be dark.
    return "\n".join([opening, f'<rect width="{_PICTURE}" height="{top}" fill="#ffffff"/>', *parts, "</svg>", ""])


def _panel(left: int, top: int, title: str, unit: str, bars: Sequence[Bar], references: Sequence[str]) -> list[str]:
    parts = [_text(left, top, title, size=13, weight=600)]
    names = ((_RATE, f"{unit}s/s"), (_RATIO, f"to {references[0]}"), (_CPU, f"CPU, µs/{unit}"))
    parts += [_text(left + end, top + 18, name, size=10, fill=_FAINT, anchor="end") for end, name in names]
    most = max((bar.rate for bar in bars if bar.rate is not None), default=1.0)
    for number, bar in enumerate(bars):
        middle = top + _TITLE + number * _ROW + _ROW // 2
        base = middle + 4
        name = f"{bar.client} *" if bar.has_note else bar.client
        weight = 600 if bar.client.startswith("etcd_aio") else 400
        parts.append(_text(left + _BAR_START - 8, base, name, anchor="end", weight=weight))
        if bar.rate is None:
            parts.append(_text(left + _BAR_START, base, "left out", fill=_FAINT))
            continue
        width = max(bar.rate / most * _BAR_WIDTH, 1.0)
        parts.append(
            f'<rect x="{left + _BAR_START}" y="{middle - _BAR // 2}" width="{width:.1f}" height="{_BAR}" '
            f'fill="{_colour(bar.client, references)}"/>'
        )
        parts.append(_text(left + _RATE, base, _number(bar.rate), anchor="end"))
        if bar.ratio is not None:
            parts.append(_text(left + _RATIO, base, f"{bar.ratio:.2f}", anchor="end"))
        parts.append(_text(left + _CPU, base, _number(bar.cpu_us), anchor="end"))
    return parts


def _colour(client: str, references: Sequence[str]) -> str:
    if client == "etcd_aio":
        return _OURS
    if client.startswith("etcd_aio-"):
        return _OURS_TOO
    return _REFERENCE if client in references else _OTHER


def _number(number: float) -> str:
    return f"{number:.1f}" if number < 100 else f"{number:,.0f}".replace(",", " ")


def _text(
    left: int, base: int, text: str, *, size: int = 12, weight: int = 400, fill: str = _INK, anchor: str = "start"
) -> str:
    place = f'x="{left}" y="{base}" font-size="{size}" font-weight="{weight}" fill="{fill}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(text)}</text>"


if __name__ == "__main__":
    raise SystemExit(main())
