"""The format `table`: boxes, for members, endpoints and snapshot files only. Pure."""

from collections.abc import Sequence

from etcd_aio.cli.results import HashReport, HealthReport, Shown, StatusReport
from etcd_aio.cli.rows import (
    FILE_TITLES,
    HASH_TITLES,
    MEMBER_TITLES,
    STATUS_TITLES,
    Row,
    file_row,
    hash_rows,
    health_rows,
    health_titles,
    member_rows,
    status_rows,
)
from etcd_aio.cli.style import Style
from etcd_aio.types import MemberListResult, SnapshotStatus


def table(result: Shown, style: Style) -> str | None:
    """The result as a table; None if it has none."""
    match result:
        case MemberListResult():
            return _box(MEMBER_TITLES, member_rows(result.members))
        case HealthReport():
            return _box(health_titles(result), health_rows(result))
        case StatusReport():
            return _box(STATUS_TITLES, status_rows(result))
        case SnapshotStatus():
            return _box(FILE_TITLES, (file_row(result),))
        case HashReport():
            return _box(HASH_TITLES, hash_rows(result))
        case _:
            return None


def _box(titles: Row, rows: Sequence[Row]) -> str:
    names = [title.upper().replace("_", " ") for title in titles]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    head = (f"{' ' * ((width - len(name)) // 2)}{name}".ljust(width) for name, width in zip(names, widths, strict=True))
    body = ((cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    lines = (f"│ {' │ '.join(cells)} │\n" for cells in (head, *body))
    bars = ["─" * (width + 2) for width in widths]
    top, middle, bottom = (left + tee.join(bars) + right + "\n" for left, tee, right in ("┌┬┐", "├┼┤", "└┴┘"))
    first, *others = lines
    return "".join((top, first, middle, *others, bottom))
