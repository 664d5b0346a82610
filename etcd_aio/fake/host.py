"""Where the members of a fake cluster run: which can be reached, and in which order requests reach the server.

Requests that arrive in one turn of the loop are served in the next one, in an order that the seed decides; those of one
stream keep theirs. No request is served inside the function that sends it.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Protocol, TypeAlias

from etcd_aio.base.aio import wake
from etcd_aio.fake.node import Node

Arrival: TypeAlias = Callable[[], None]
"""Lets the server answer a request that was on its way to it."""


class HostedConnection(Protocol):
    """A connection, as the host sees it."""

    def lose(self, error: BaseException | None) -> None:
        """End at once."""

    def on_pause(self) -> None:
        """The host has stopped answering."""

    def on_resume(self) -> None:
        """The host goes on."""


class HostedListener(Protocol):
    """A listener for connections over sockets, as the host sees it."""

    def refuse(self) -> None:
        """Refuse connections."""

    def listen(self) -> None:
        """Accept connections again."""


class Inbox:
    """The requests that wait to be served.

    Args:
        random: decides their order.
        on_served: called after each turn in which something was served.
        latency: seconds from the sending of a request to its serving.
        enter: called in the loop of a client before it connects; raises if that loop may not.

    Attributes:
        is_closed: nothing is served any more.
    """

    def __init__(
        self, random: Random, on_served: Callable[[], None], latency: float, enter: Callable[[], None] = lambda: None
    ) -> None:
        self.random = random
        self.enter = enter
        self._on_served = on_served
        self._latency = latency
        self._arrivals: list[Arrival] = []
        self.is_closed = False

    def post(self, arrival: Arrival) -> None:
        """Let a request travel to the server."""
        if self._latency:
            asyncio.get_running_loop().call_later(self._latency, self._arrive, arrival)
        else:
            self._arrive(arrival)

    def close(self) -> None:
        """Serve nothing more."""
        self.is_closed = True
        self._arrivals = []

    def forget(self) -> None:
        """Forget the requests of a loop that has ended."""
        self._arrivals = []

    def _arrive(self, arrival: Arrival) -> None:
        if self.is_closed:
            return
        if not self._arrivals:
            asyncio.get_running_loop().call_soon(self._serve)
        self._arrivals.append(arrival)

    def _serve(self) -> None:
        arrivals, self._arrivals = self._arrivals, []
        if len(arrivals) > 1:
            self.random.shuffle(arrivals)
        for arrival in arrivals:
            arrival()
        self._on_served()


class Host:
    """The machine of one member.

    Attributes:
        node: the member.
        inbox: takes the requests.
        is_up: whether it accepts connections.
        is_paused: whether it is up, but answers nothing, as a frozen process.
        connections: the open ones.
        listeners: accept connections over sockets.
    """

    def __init__(self, node: Node, inbox: Inbox) -> None:
        self.node = node
        self.inbox = inbox
        self.is_up = True
        self.is_paused = False
        self.connections: dict[HostedConnection, None] = {}
        self.listeners: set[HostedListener] = set()
        self._held: list[Arrival] = []
        self._waiters: set[asyncio.Future[None]] = set()

    def hold(self, arrival: Arrival) -> bool:
        """Keep a request until the host goes on. Returns False if it does not stand still."""
        if self.is_paused:
            self._held.append(arrival)
        return self.is_paused

    def forget(self) -> None:
        """Forget the connections and requests of a loop that has ended."""
        self.connections.clear()
        self._held.clear()
        self._waiters.clear()

    async def running(self) -> None:
        """Wait until the host does not stand still."""
        while self.is_paused:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.add(waiter)
            try:
                await waiter
            finally:
                self._waiters.discard(waiter)

    def stop(self) -> None:
        """End the process: connections break, and further ones are refused."""
        self.is_up = False
        for listener in self.listeners:
            listener.refuse()
        self.resume()
        for connection in tuple(self.connections):
            connection.lose(ConnectionResetError("the peer reset the connection"))

    def start(self) -> None:
        """Start the process again."""
        if not self.is_up:
            self.is_up = True
            for listener in self.listeners:
                listener.listen()

    def pause(self) -> None:
        """Freeze the process, if it runs: connections stay, and nothing is answered."""
        if not self.is_up:
            return
        self.is_paused = True
        for connection in tuple(self.connections):
            connection.on_pause()

    def resume(self) -> None:
        """Let the process go on; it answers what it got meanwhile."""
        self.is_paused = False
        for waiter in self._waiters:
            wake(waiter)
        held, self._held = self._held, []
        for arrival in held:
            self.inbox.post(arrival)
        for connection in tuple(self.connections):
            connection.on_resume()
