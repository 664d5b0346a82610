"""A stream handler that records its calls, sends what a test wants, and checks the rules of `StreamHandler`."""

from collections.abc import Iterable
from math import inf
from typing import Generic

from etcd_aio.errors import EtcdError
from etcd_aio.methods import Reply, Request


class Recorder(Generic[Request, Reply]):
    """A `StreamHandler` that sends the same requests first on every stream.

    Attributes:
        heard: which of its methods were called, in order.
        gives_up: what `on_time` returns.
        persists: what `on_refused` returns.
        next_due: the `due` that follows an `on_time`.
        patience: seconds after a loss, or an opening, at which `on_time` is due; None for not at all.
    """

    def __init__(self, *greeting: Request) -> None:
        self.greeting = greeting
        self.wanted = True
        self.due = inf
        self.next_due = inf
        self.patience: float | None = None
        self.gives_up: str | None = None
        self.will_retry_differently = False
        self.persists = False
        self.heard: list[str] = []
        self.endpoints: list[str] = []
        self.replies: list[Reply] = []
        self.instants: list[float] = []
        self.losses: list[EtcdError] = []
        self.refusals: list[EtcdError] = []
        self.ends: list[EtcdError] = []
        self.waiting: list[Request] = []
        self._is_open = False

    @property
    def is_needed(self) -> bool:
        return self.wanted

    def requests(self, now: float) -> Iterable[Request]:
        assert self._is_open, "asked for requests without a stream"
        said, self.waiting = self.waiting, []
        return said

    def on_open(self, endpoint: str, now: float) -> None:
        assert not self._is_open, "opened twice"
        self._is_open = True
        self.heard.append("open")
        self.endpoints.append(endpoint)
        self._set_due(now)
        self.waiting = list(self.greeting)

    def on_reply(self, reply: Reply, now: float) -> None:
        assert self._is_open, "a reply without a stream"
        self.heard.append("reply")
        self.replies.append(reply)
        self.instants.append(now)

    def on_time(self, now: float) -> str | None:
        assert now >= self.due, "called before it was due"
        self.heard.append("time")
        self.instants.append(now)
        self.due = self.next_due
        return self.gives_up

    def on_lost(self, error: EtcdError, now: float) -> bool:
        assert self._is_open, "lost twice"
        self._is_open = False
        self.heard.append("lost")
        self.losses.append(error)
        self._set_due(now)
        return self.will_retry_differently

    def on_refused(self, error: EtcdError, now: float) -> bool:
        assert not self._is_open, "refused while open"
        self.heard.append("refused")
        self.refusals.append(error)
        return self.persists

    def on_end(self, error: EtcdError) -> None:
        assert not self._is_open, "ended while open"
        self.wanted = False
        self.heard.append("end")
        self.ends.append(error)

    def _set_due(self, now: float) -> None:
        if self.patience is not None:
            self.due = now + self.patience
