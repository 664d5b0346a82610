"""The two screens: a live picture for a terminal, plain lines for everything else.

Knows: how a scene looks. Never knows: how it came about.
"""

import time
from collections import deque
from dataclasses import dataclass, field
from math import ceil
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from etcd_aio import ConnectivityState

_CONNECTIONS = {
    ConnectivityState.IDLE: "idle",
    ConnectivityState.CONNECTING: "dialling",
    ConnectivityState.READY: "ready",
    ConnectivityState.TRANSIENT_FAILURE: "unreachable",
    ConnectivityState.SHUTDOWN: "closed",
}
BARS = " ▁▂▃▄▅▆▇█"
SLICES = 28  # as wide as the history of a member is drawn
_STYLES = {"running": "green", "starting": "yellow", "stopped": "bold red", "frozen": "bold cyan", "killed": "bold red"}


@dataclass
class Actor:
    """One member as the audience sees it.

    Attributes:
        name: its name.
        condition: what is done to it.
        is_leader: whether the others follow it.
        connection: the state of the client's connection to it.
        answered: the calls it has answered.
        history: calls answered in each of the last slices of time.
    """

    name: str
    condition: str = "running"
    is_leader: bool = False
    connection: ConnectivityState = ConnectivityState.IDLE
    answered: int = 0
    history: deque[int] = field(default_factory=lambda: deque([0] * SLICES, SLICES))

    @property
    def role(self) -> str:
        """Its part in raft, as far as it takes part."""
        if self.condition != "running":
            return "-"
        return "leader" if self.is_leader else "follower"

    def count(self, answered: int) -> None:
        """A slice of time is over; so many calls were answered since the beginning."""
        self.history.append(answered - self.answered)
        self.answered = answered


@dataclass
class Scene:
    """Everything there is to see.

    Attributes:
        version: of the servers.
        actors: the members.
        full: calls in a slice of time that fill a bar.
        title: what is going on.
        numbers: the account of the current act, in one line.
        told: what has happened, one paragraph for each act.
        began: when the curtain rose.
    """

    version: str
    actors: list[Actor]
    full: float
    title: str = ""
    numbers: str = ""
    told: list[tuple[str, str]] = field(default_factory=list)
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
    """Where a scene is shown; entered for as long as it lasts."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...

    def show(self, scene: Scene) -> None:
        """The scene as it is now; called a few times a second."""

    def turn(self, scene: Scene) -> None:
        """The scene's title or its tale has changed."""


class LiveScreen:
    """A picture that moves; what is over is told above it."""

    def __init__(self, console: Console) -> None:
        self._told = 0
        # Drawn when we say so, in our own loop: no thread.
        self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.stop()

    def show(self, scene: Scene) -> None:
        """See `Screen`."""
        self._live.update(scene, refresh=True)

    def turn(self, scene: Scene) -> None:
        """See `Screen`."""
        for title, what in scene.told[self._told :]:
            self._live.console.print(Text.assemble(("✔ ", "green"), (title, "bold"), "\n  ", what))
        self._told = len(scene.told)
        self.show(scene)


class PlainScreen:
    """Lines, each printed once."""

    def __init__(self) -> None:
        self._told = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None: ...

    def show(self, scene: Scene) -> None:
        """Nothing: a line that is printed does not change."""

    def turn(self, scene: Scene) -> None:
        """See `Screen`."""
        for _, what in scene.told[self._told :]:
            print(f"  {what}", flush=True)
            answered = ", ".join(f"{actor.name} {actor.answered:,}" for actor in scene.actors)
            print(f"  answered so far: {answered}", flush=True)
        self._told = len(scene.told)
        if scene.title:
            print(f"{time.monotonic() - scene.began:.0f} s: {scene.title}", flush=True)
