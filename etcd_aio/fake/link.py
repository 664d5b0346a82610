"""The way of one client to one member, which can break, swallow everything, or be slow."""

import asyncio
from collections.abc import Callable
from functools import partial

from etcd_aio.fake.host import Arrival, Host, HostedConnection


class Link:
    """One way.

    Attributes:
        host: the machine of the member.
        is_refusing: whether connections through it are refused.
        is_black_hole: whether it swallows everything, both ways.
        latency: seconds that a message takes in either direction: between none and twice as many.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self.is_refusing = False
        self.is_black_hole = False
        self.latency = 0.0
        self._connections: dict[HostedConnection, None] = {}
        self._held: list[Arrival] = []
        self._healed: list[asyncio.Event] = []

    # Faults.

    def reset(self) -> None:
        """Break the connections; new ones may be made at once."""
        for connection in tuple(self._connections):
            connection.lose(ConnectionResetError("the peer reset the connection"))

    def refuse(self) -> None:
        """Break the connections, and refuse new ones."""
        self.is_refusing = True
        self.reset()

    def black_hole(self) -> None:
        """Swallow everything, both ways: connections stay, and nothing comes through."""
        self.is_black_hole = True
        for connection in tuple(self._connections):
            connection.on_pause()

    def heal(self) -> None:
        """Let everything through again, also what was sent meanwhile on connections that are still there."""
        self.is_refusing = self.is_black_hole = False
        healed, self._healed = self._healed, []
        for event in healed:
            event.set()
        held, self._held = self._held, []
        for arrival in held:
            self.post(arrival)
        for connection in tuple(self._connections):
            connection.on_resume()

    def forget(self) -> None:
        """Forget the connections and requests of a loop that has ended."""
        self._connections.clear()
        self._held.clear()
        self._healed.clear()

    # For engines and connections.

    @property
    def is_up(self) -> bool:
        """Whether connections are accepted."""
        return self.host.is_up and not self.is_refusing

    @property
    def is_silent(self) -> bool:
        """Whether no answer comes, because of the way or of the member."""
        return self.is_black_hole or self.host.is_paused

    @property
    def is_lucky(self) -> bool:
        """Whether something happens that is as likely as not."""
        return self.host.inbox.random.random() < 0.5

    def add(self, connection: HostedConnection) -> None:
        """Carry a connection."""
        self._connections[connection] = self.host.connections[connection] = None

    def discard(self, connection: HostedConnection) -> None:
        """Forget a connection that has ended."""
        self._connections.pop(connection, None)
        self.host.connections.pop(connection, None)

    def post(self, arrival: Arrival) -> None:
        """Let a request travel to the member."""
        if self.latency:
            asyncio.get_running_loop().call_later(self._delay(), self.host.inbox.post, arrival)
        else:
            self.host.inbox.post(arrival)

    def hold(self, arrival: Arrival) -> bool:
        """Keep a request while nothing comes through. Returns False if it came through."""
        if self.is_black_hole:
            self._held.append(arrival)
            return True
        return self.host.hold(arrival)

    def answer(self, arrive: Callable[[], None]) -> None:
        """Let an answer travel to the client."""
        if self.latency:
            asyncio.get_running_loop().call_later(self._delay(), self._arrive, arrive)
        else:
            arrive()

    def answer_late(self, arrive: Callable[[], None]) -> None:
        """Let an answer that the member has kept for a while travel to the client: nothing may come through by now."""
        self.answer(partial(self._arrive, arrive))

    async def answering(self) -> None:
        """Wait until the way and the member let a connection be made."""
        while self.is_silent:
            if self.is_black_hole:
                healed = asyncio.Event()
                self._healed.append(healed)
                await healed.wait()
            else:
                await self.host.running()

    def _arrive(self, arrive: Callable[[], None]) -> None:
        """Let an answer arrive, as soon as something comes through."""
        if not self.hold(partial(self._arrive, arrive)):
            arrive()

    def _delay(self) -> float:
        return 2 * self.latency * self.host.inbox.random.random()
