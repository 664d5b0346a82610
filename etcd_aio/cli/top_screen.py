"""The screen of `top`, made by rich: a header, a row for each member, its metrics, a row for each watched prefix."""

from typing import Literal

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from etcd_aio.cli.go_text import size
from etcd_aio.cli.top_model import MemberRow, TopSnapshot
from etcd_aio.errors import printable

_TITLES = ("member", "role", "version", "db", "use%", "quota%", "index", "lag", "behind", "term", "ms", "errors")
_NARROWED = frozenset({"errors", "features"})
_ALIGNED_LEFT = frozenset({"member", "role", "version", "errors", "prefix", "features"})


def screen(snapshot: TopSnapshot) -> RenderableType:
    """A snapshot for people."""
    parts: list[RenderableType] = [_header(snapshot), _members(snapshot)]
    if any(_has_metrics(row) for row in snapshot.members):
        parts.append(_metrics(snapshot))
    if snapshot.prefixes:
        prefixes = _table(("prefix", "events/s", "bytes/s", "lag", "errors"))
        for row in snapshot.prefixes:
            prefixes.add_row(
                _text(row.prefix or "(all)"), f"{row.events:g}", f"{row.bytes:g}", f"{row.lag}", _reason(row.error)
            )
        parts.append(prefixes)
    return Group(*parts)


def _header(snapshot: TopSnapshot) -> Text:
    count = f"{snapshot.answering}/{len(snapshot.members)}"
    quorum = (f"quorum ok {count}", "green") if snapshot.has_quorum else (f"no quorum {count}", "bold red")
    alarms = (printable(", ".join(snapshot.alarms)), "bold red") if snapshot.alarms else ("none", "")
    return Text.assemble(
        f" cluster {snapshot.cluster_id or '?'}  etcd {printable(snapshot.version) or '?'}  ",
        quorum,
        f"  leader {printable(snapshot.leader) or '-'}  term {snapshot.term}  alarms ",
        alarms,
        f"  r {snapshot.revision}",
    )


def _members(snapshot: TopSnapshot) -> Table:
    table = _table(_TITLES)
    for row in snapshot.members:
        if row.silent is not None:
            cells = (_text(row.name or row.endpoint), _text(f"silent {row.silent:.0f} s"), _text(row.version))
            table.add_row(*cells, *[""] * (len(_TITLES) - 4), _reason(row.error), style="red")
        else:
            table.add_row(*_cells(row), style="bold" if row.role == "leader" else "")
    return table


def _has_metrics(row: MemberRow) -> bool:
    return (row.watchers, row.slow_applies, row.pending) != (None, None, None)


def _metrics(snapshot: TopSnapshot) -> Table:
    """The table of the members' metrics: its own, since a terminal has no room for so many columns."""
    has_features = any(row.features for row in snapshot.members)
    titles = ("member", "watchers", "events/s", "slow applies", "fsync p99 ms", "pending", "peers")
    table = _table((*titles, "features") if has_features else titles)
    for row in snapshot.members:
        numbers = (row.watchers, row.events, row.slow_applies, row.fsync_p99_ms, row.pending, row.known_peers)
        style = "red" if row.silent is not None else ""
        table.add_row(
            _text(row.name or row.endpoint),
            *("-" if number is None else f"{number}" for number in numbers),
            *((_text(" ".join(row.features)),) if has_features else ()),
            style=style,
        )
    return table


def _cells(row: MemberRow) -> tuple[Text, ...]:
    quota = "-" if row.quota is None else f"{row.quota}"
    numbers = (f"{row.raft_index}", f"{row.lag}", f"{row.behind}", f"{row.term}", f"{row.answer_ms:.0f}")
    words = (row.name, row.role, row.version, size(row.db_size), f"{row.in_use}", quota, *numbers)
    return (*map(_text, words), _reason(", ".join((*_readiness(row), *row.errors))))


def _readiness(row: MemberRow) -> tuple[str, ...]:
    """Why a member is not ready, if it says so; a member that does not say it may have no leader."""
    return (f"not ready: {' '.join(row.failed_checks)}",) if row.ready is False else ()


def _reason(text: str) -> Text:
    """A text that is cut off where the terminal ends."""
    return Text(printable(text), style="red", no_wrap=True, overflow="ellipsis")


def _text(text: str) -> Text:
    """A text from a member, which must not control the terminal."""
    return Text(printable(text))


def _table(titles: tuple[str, ...]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=True)
    for title in titles:
        side: Literal["left", "right"] = "left" if title in _ALIGNED_LEFT else "right"
        # A column that may wrap is narrowed before the others are.
        table.add_column(title, justify=side, no_wrap=title not in _NARROWED, overflow="ellipsis")
    return table
