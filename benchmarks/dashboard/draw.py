"""Draws the panels of a run as SVG."""

import math
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from benchmarks.dashboard.panels import Panel
from benchmarks.dashboard.run import Run, Series

_PER_LINE: Final = 3
_MARGIN: Final = 20
_GAP: Final = 28
_PANEL: Final = 340
_LEFT: Final = 46  # for the numbers at the axis
_CURVES: Final = 110
_TITLE: Final = 20
_LEGEND: Final = 14
_LEGENDS: Final = 3  # lines
_ROW: Final = _TITLE + _CURVES + 20 + _LEGENDS * _LEGEND + 14
_HEAD: Final = 60
_PICTURE: Final = 2 * _MARGIN + _PER_LINE * _PANEL + (_PER_LINE - 1) * _GAP
_INK, _FAINT, _GRID = "#1f2328", "#57606a", "#e4e8ec"
_SHADES: Final = ("#fdeeda", "#eef2fb")
_COLOURS: Final = ("#1f6feb", "#d97706", "#2e7d32", "#8250df", "#cf222e", "#0e7490", "#57606a", "#b45fa8")


def draw(panels: Sequence[Panel], run: Run) -> str:
    """Draw each panel with its lines; the faults are shaded."""
    rows = math.ceil(len(panels) / _PER_LINE)
    height = _HEAD + rows * _ROW + 10
    title = "The dashboard over a run in which members fail"
    parts = [_text(_MARGIN, 26, title, size=16, weight=600), *_faults_legend(run)]
    for number, (panel, lines) in enumerate(zip(panels, run.panels, strict=True)):
        left = _MARGIN + number % _PER_LINE * (_PANEL + _GAP)
        parts += _panel(left, _HEAD + number // _PER_LINE * _ROW, panel, lines, run)
    facts = f"etcd {run.server}, three members; queries evaluated by Prometheus {run.prometheus}, a scrape each second"
    parts.append(_text(_PICTURE - _MARGIN, 26, facts, size=10, fill=_FAINT, anchor="end"))
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_PICTURE} {height}" width="{_PICTURE}" '
        f'height="{height}" font-family="system-ui, sans-serif" role="img" aria-label="{title}">'
    )
    # Its own background, because the page may be dark.
    return "\n".join([opening, f'<rect width="{_PICTURE}" height="{height}" fill="#ffffff"/>', *parts, "</svg>", ""])


def _faults_legend(run: Run) -> list[str]:
    parts, left = [], _MARGIN
    for fault, shade in zip(run.faults, _SHADES, strict=False):
        parts.append(f'<rect x="{left}" y="36" width="14" height="12" fill="{shade}"/>')
        text = f"{fault.name}, from {fault.began:.0f} s to {fault.ended:.0f} s"
        parts.append(_text(left + 20, 46, text, size=11))
        left += 250
    return parts


def _panel(left: int, top: int, panel: Panel, lines: Sequence[Series], run: Run) -> list[str]:
    parts = [_text(left, top + 12, panel.title, size=12, weight=600)]
    values = [value for line in lines for _, value in line.points]
    # A revision does not begin at 0.
    low = min(values) if panel.unit == "none" and values else 0.0
    high = max(values, default=low)
    if panel.unit != "none":
        high = _rounded_up(high or 1.0)
    base = top + _TITLE + _CURVES

    def across(seconds: float) -> float:
        return left + _LEFT + seconds / run.seconds * (_PANEL - _LEFT)

    def up(value: float) -> float:
        return base - (value - low) / (high - low) * _CURVES

    for fault, shade in zip(run.faults, _SHADES, strict=False):
        width = across(fault.ended) - across(fault.began)
        parts.append(
            f'<rect x="{across(fault.began):.1f}" y="{top + _TITLE}" width="{width:.1f}" height="{_CURVES}" '
            f'fill="{shade}"/>'
        )
    for share in (0.0, 0.5, 1.0):
        value = low + share * (high - low)
        parts.append(f'<path d="M{left + _LEFT} {up(value):.1f}H{left + _PANEL}" stroke="{_GRID}"/>')
        parts.append(
            _text(left + _LEFT - 5, round(up(value)) + 4, _shown(value, panel.unit), size=9, fill=_FAINT, anchor="end")
        )
    parts += [
        _text(round(across(second)), base + 13, f"{second} s", size=9, fill=_FAINT, anchor="middle")
        for second in range(0, int(run.seconds) + 1, 30)
    ]
    for number, line in enumerate(lines):
        colour = _COLOURS[number % len(_COLOURS)]
        for piece in _pieces(line):
            points = " ".join(f"{across(at):.1f},{up(value):.1f}" for at, value in piece)
            parts.append(
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.4" '
                'stroke-linejoin="round"/>'
            )
    return parts + _legend(left + _LEFT, base + 28, lines)


def _legend(left: int, top: int, lines: Sequence[Series]) -> list[str]:
    """The names, in two columns if there are many."""
    parts = []
    for number, line in enumerate(lines[: 2 * _LEGENDS]):
        x = left + number // _LEGENDS * (_PANEL - _LEFT) // 2
        y = top + number % _LEGENDS * _LEGEND
        parts.append(f'<path d="M{x} {y - 3}h12" stroke="{_COLOURS[number % len(_COLOURS)]}" stroke-width="2.5"/>')
        parts.append(_text(x + 17, y, line.name, size=10))
    return parts


def _pieces(line: Series) -> list[list[tuple[float, float]]]:
    """The points in pieces: a gap of more than two scrapes interrupts the line."""
    pieces: list[list[tuple[float, float]]] = []
    before = -math.inf
    for at, value in line.points:
        if at - before > 2.5:
            pieces.append([])
        pieces[-1].append((at, value))
        before = at
    return pieces


def _rounded_up(value: float) -> float:
    """The next of 1, 2, 2.5, 5 and 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1.0, 2.0, 2.5, 5.0, 10.0) if step * power >= value * 0.999)


def _shown(value: float, unit: str) -> str:
    if unit == "bool_on_off":
        return {0.0: "down", 1.0: "up"}.get(value, "")
    if unit == "s" and 0 < value < 0.1:
        return f"{value * 1000:.3g} ms"
    text = f"{value:,.0f}".replace(",", " ") if value >= 1000 else f"{value:.3g}"
    return f"{text} s" if unit == "s" else text


def _text(
    left: int, base: int, text: str, *, size: int = 12, weight: int = 400, fill: str = _INK, anchor: str = "start"
) -> str:
    place = f'x="{left}" y="{base}" font-size="{size}" font-weight="{weight}" fill="{fill}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(text)}</text>"
