"""A resolver, what is known from it, and when it is asked next."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from math import inf
from typing import TYPE_CHECKING

from etcd_aio.discovery.schedule import Schedule

if TYPE_CHECKING:
    from etcd_aio.balancer import Endpoint
    from etcd_aio.discovery.resolver import Resolver


class Tracked:
    """A resolver of a client, and its last answer.

    Args:
        resolver: see above.
        random: returns a number in [0, 1).
        due: when to ask for the first time.

    Attributes:
        endpoints: its last answer.
        ttl: of that answer; infinity before the first.
        was_answered: whether there is an answer.
        schedule: when it is asked.
    """

    def __init__(self, resolver: "Resolver", random: Callable[[], float], due: float = -inf) -> None:
        self.resolver = resolver
        self.endpoints: tuple[Endpoint, ...] = ()
        self.ttl = inf
        self.was_answered = False
        self.schedule = Schedule(due, random)
        self._random = random

    def renewed(self) -> "Tracked":
        """The same resolver on the same schedule, without an answer: that of a question under way is not its own."""
        other = Tracked(self.resolver, self._random)
        other.schedule, other.ttl, other.was_answered = self.schedule, self.ttl, self.was_answered
        return other

    def note_connections(self, ready: AbstractSet[str], dialled: AbstractSet[str], now: float) -> None:
        """Ask soon if none of its endpoints is connected; if none of them is dialled, those of the client count.

        Args:
            ready: the endpoints that are connected.
            dialled: these, and those that are to be connected.
            now: the instant.
        """
        own = {endpoint.name for endpoint in self.endpoints} & dialled
        if (own or dialled).isdisjoint(ready):
            self.schedule.note_outage(now)
        else:
            self.schedule.note_connected()
