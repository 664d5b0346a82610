"""Draws runs as SVG: `python -m benchmarks.failover.plot docs/failover.json` writes docs/failover.svg."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from benchmarks.failover.account import BUCKET
from benchmarks.failover.faults import FAULTS, OPERATIONS, Fault, Operation
from benchmarks.failover.record import Run, Setting, read

_MARGIN: Final = 24
_PANEL: Final = 480
_GAP: Final = 36
_PICTURE: Final = 2 * _MARGIN + 2 * _PANEL + _GAP
_HEAD: Final = 96
_ROW: Final = 128  # title, curves, axis
_TITLE: Final = 20
_CURVES: Final = 64
_LEFT: Final = 40  # for the labels of the axis
_INK, _FAINT, _GRID, _SHADE = "#1f2328", "#57606a", "#d8dee4", "#fff1e5"
_COLOURS: Final = {"etcd_aio": "#1f6feb", "go": "#8b949e"}
_NAMES: Final = {"etcd_aio": "etcd_aio", "go": "official Go client"}
_HEADINGS: Final = {"get": "linearizable gets", "put": "puts"}
_BEFORE: Final = 1.0  # seconds before the fault that are shown


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.failover.plot", description="draw runs under faults")
    parser.add_argument("results", type=Path, help="what `python -m benchmarks.failover --json` wrote")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to draw (default: the same name with .svg)")
    given = parser.parse_args(arguments)
    out: Path = given.out or given.results.with_suffix(".svg")
    try:
        out.write_text(draw(*read(given.results)), encoding="utf-8")
    except (OSError, ValueError) as error:
        parser.error(str(error))
    print(out)
    return 0


def draw(setting: Setting, runs: Sequence[Run]) -> str:
    """Draw a row of two panels for each fault: gets and puts."""
    faults = [fault for fault in FAULTS if any(_has(run, fault) for run in runs)]
    height = _HEAD + len(faults) * _ROW + 32
    subtitle = (
        "Share of the calls issued in each tenth of a second that were answered within 200 ms; "
        "seconds from the fault on. Shaded: the fault holds."
    )
    parts = [
        _text(_MARGIN, 34, "Calls while members fail", size=18, weight=600),
        _text(_MARGIN, 56, subtitle, size=11),
        *_legend(80),
    ]
    for line, fault in enumerate(faults):
        for column, operation in enumerate(OPERATIONS):
            left = _MARGIN + column * (_PANEL + _GAP)
            parts += _panel(left, _HEAD + line * _ROW, fault, operation, runs)
    go = setting.versions.get("go", {}).get("go.etcd.io/etcd/client/v3", "")
    facts = (
        f"The repetition with the median recovery. {setting.date}, {setting.cpu}, {setting.cores} cores, "
        f"{setting.system}, three members of etcd {setting.server} on this machine, Go client {go}, "
        f"{setting.rate:g} calls/s each, timeout {setting.timeout:g} s"
    )
    parts.append(_text(_MARGIN, height - 14, facts, size=10, fill=_FAINT))
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_PICTURE} {height}" width="{_PICTURE}" '
        f'height="{height}" font-family="system-ui, sans-serif" role="img" aria-label="Calls while members fail">'
    )
    # Its own background, because the page may be dark.
    return "\n".join([opening, f'<rect width="{_PICTURE}" height="{height}" fill="#ffffff"/>', *parts, "</svg>", ""])


def chosen(runs: Sequence[Run], fault: Fault, operation: Operation, client: str) -> Run | None:
    """The repetition to show: that with the median recovery; None if there is none."""
    mine = [run for run in runs if _has(run, fault) and (run.operation, run.client) == (operation, client)]
    mine.sort(key=lambda run: run.found.recovery if run.found is not None else 0.0)
    return mine[len(mine) // 2] if mine else None


def _has(run: Run, fault: Fault) -> bool:
    return run.fault == fault.name and run.found is not None and run.marks is not None


def _panel(left: int, top: int, fault: Fault, operation: Operation, runs: Sequence[Run]) -> list[str]:
    parts = [_text(left, top + 12, f"{fault.title}: {_HEADINGS[operation]}", size=12, weight=600)]
    # etcd_aio last, so that its curve is on top.
    shown = [run for client in ("go", "etcd_aio") if (run := chosen(runs, fault, operation, client)) is not None]
    if not shown:
        return [*parts, _text(left + _LEFT, top + _TITLE + _CURVES // 2, "not measured", fill=_FAINT)]
    first = shown[0]
    assert first.marks is not None
    until = first.seconds - first.marks.fault
    base = top + _TITLE + _CURVES

    def across(seconds: float) -> float:
        return left + _LEFT + (seconds + _BEFORE) / (until + _BEFORE) * (_PANEL - _LEFT)

    lasted = first.marks.heal - first.marks.fault
    parts.append(
        f'<rect x="{across(0):.1f}" y="{top + _TITLE}" width="{across(lasted) - across(0):.1f}" height="{_CURVES}" '
        f'fill="{_SHADE}"/>'
    )
    for share in (0, 100):
        height = base - share * _CURVES // 100
        parts.append(f'<path d="M{left + _LEFT} {height}H{left + _PANEL}" stroke="{_GRID}"/>')
        parts.append(_text(left + _LEFT - 6, height + 4, f"{share} %", size=10, fill=_FAINT, anchor="end"))
    step = 1 if until < 15 else 5
    parts += [
        _text(round(across(second)), base + 14, str(second), size=10, fill=_FAINT, anchor="middle")
        for second in range(0, int(until) + 1, step)
    ]
    for run in shown:
        assert run.marks is not None
        pieces: list[list[str]] = [[]]
        for number, (issued, good) in enumerate(zip(run.buckets["issued"], run.buckets["good"], strict=True)):
            seconds = (number + 0.5) * BUCKET - run.marks.fault
            if issued and -_BEFORE <= seconds <= until:
                pieces[-1].append(f"{across(seconds):.1f},{base - good / issued * _CURVES:.1f}")
            elif pieces[-1]:
                pieces.append([])  # without calls there is neither success nor failure
        parts += [
            f'<polyline points="{" ".join(points)}" fill="none" stroke="{_COLOURS[run.client]}" stroke-width="1.6" '
            'stroke-linejoin="round"/>'
            for points in pieces
            if points
        ]
    return parts


def _legend(base: int) -> list[str]:
    parts, left = [], _MARGIN
    for client, colour in _COLOURS.items():
        parts.append(f'<path d="M{left} {base - 4}h22" stroke="{colour}" stroke-width="2.5"/>')
        parts.append(_text(left + 28, base, _NAMES[client], size=12))
        left += 130
    return parts


def _text(
    left: int, base: int, text: str, *, size: int = 12, weight: int = 400, fill: str = _INK, anchor: str = "start"
) -> str:
    place = f'x="{left}" y="{base}" font-size="{size}" font-weight="{weight}" fill="{fill}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(text)}</text>"


if __name__ == "__main__":
    raise SystemExit(main())
