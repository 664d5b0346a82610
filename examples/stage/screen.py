"""Two screens: a live table for a terminal, plain lines for everything else."""

import time
from collections import deque
from dataclasses import dataclass, field
from math import ceil
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from etcd_aio.observing import ConnectivityState

_CONNECTIONS = {
    ConnectivityState.IDLE: "idle",
    ConnectivityState.CONNECTING: "connecting",
    ConnectivityState.READY: "ready",
    ConnectivityState.TRANSIENT_FAILURE: "unreachable",
    ConnectivityState.SHUTDOWN: "closed",
}
BARS = " ▁▂▃▄▅▆▇█"
SLICES = 28  # the width of a member's history
_STYLES = {"running": "green", "starting": "yellow", "stopped": "bold red", "frozen": "bold cyan", "killed": "bold red"}


@dataclass
class Actor:
    """One member on the screen.

    Attributes:
        name: its name.
        condition: the state of its process: running, killed, frozen and so on.
        is_leader: whether it is the leader of the cluster.
        connection: the state of the client's connection to it.
        answered: the number of calls that it has answered.
        history: the number of calls that it answered in each of the last slices of time.
    """

    name: str
    condition: str = "running"
    is_leader: bool = False
    connection: ConnectivityState = ConnectivityState.IDLE
    answered: int = 0
    history: deque[int] = field(default_factory=lambda: deque([0] * SLICES, SLICES))

    @property
    def role(self) -> str:
        """Leader or follower, while it is running."""
        if self.condition != "running":
            return "-"
        return "leader" if self.is_leader else "follower"

    def count(self, answered: int) -> None:
        """Add a slice of time; `answered` is the number of answered calls since the start."""
        self.history.append(answered - self.answered)
        self.answered = answered


@dataclass
class Scene:
    """Everything on the screen.

    Attributes:
        version: the version of the servers.
        actors: the members.
        full: the number of calls in a slice of time that fills a bar.
        title: the current act.
        numbers: the account of the current act, in one line.
        finished: the title and the report of each act that has ended.
        began: when the demonstration started.
    """

    version: str
    actors: list[Actor]
    full: float
    title: str = ""
    numbers: str = ""
    finished: list[tuple[str, str]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def __rich__(self) -> Group:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for heading in ("member", "process", "role", "connection", "answered", "the last seconds"):
            table.add_column(heading, header_style="dim", justify="right" if heading == "answered" else "left")
        for actor in self.actors:
            connection = _CONNECTIONS[actor.connection]
            table.add_row(
                Text(actor.name, "bold"),
                Text(actor.condition, _STYLES[actor.condition]),
                Text(actor.role, "bold yellow" if actor.role == "leader" else ""),
                Text(connection, "green" if connection == "ready" else "red"),
                Text(f"{actor.answered:,}"),
                Text("".join(BARS[min(ceil(count * 8 / self.full), 8)] for count in actor.history), "blue"),
            )
        seconds = f"{time.monotonic() - self.began:.0f} s"
        now = Text.assemble(("▶ ", "yellow"), (self.title, "bold yellow"), "\n  ", self.numbers)
        head = Text(f"\none client, three real members of etcd {self.version}, {seconds}", "dim")
        return Group(head, table, *([now] if self.title else []))


class Screen(Protocol):
    """Shows a scene, as a context manager around the whole demonstration."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...

    def show(self, scene: Scene) -> None:
        """Show the scene as it is now. Called several times a second."""

    def turn(self, scene: Scene) -> None:
        """Show that an act has started or ended."""


class LiveScreen:
    """A live table, with the reports of finished acts above it."""

    def __init__(self, console: Console) -> None:
        self._shown = 0
        # `show` refreshes the table, so rich needs no thread.
        self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.stop()

    def show(self, scene: Scene) -> None:
        """Refresh the table."""
        self._live.update(scene, refresh=True)

    def turn(self, scene: Scene) -> None:
        """Print the reports of acts that have ended since, and refresh the table."""
        for title, report in scene.finished[self._shown :]:
            self._live.console.print(Text.assemble(("✔ ", "green"), (title, "bold"), "\n  ", report))
        self._shown = len(scene.finished)
        self.show(scene)


class PlainScreen:
    """Prints a line for each event."""

    def __init__(self) -> None:
        self._shown = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None: ...

    def show(self, scene: Scene) -> None:
        """Do nothing: a printed line cannot change."""

    def turn(self, scene: Scene) -> None:
        """Print the reports of acts that have ended since, and the title of the next."""
        for _, report in scene.finished[self._shown :]:
            print(f"  {report}", flush=True)
            answered = ", ".join(f"{actor.name} {actor.answered:,}" for actor in scene.actors)
            print(f"  answered so far: {answered}", flush=True)
        self._shown = len(scene.finished)
        if scene.title:
            print(f"{time.monotonic() - scene.began:.0f} s: {scene.title}", flush=True)
