"""Keeping: which endpoints are to be connected. Pure.

Knows: how each endpoint stands, and the instant. Never knows: connections, dials, clocks.

Most policies keep a connection to every endpoint, so that a failure costs nothing but the next pick. Two keep one, as
the official client did before etcd 3.4, for whoever must spare the members' connections; both switch when it fails. A
new connection begins with a dial at once, so switching has a backoff of its own: after every endpoint has had its turn.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from math import inf
from typing import TypeAlias

from etcd_aio.backoff import Backoff


class Standing(Enum):
    """How an endpoint stands."""

    UNUSED = "not connected, nor to be"
    TRYING = "being connected"
    GOOD = "connected, and healthy"
    FAILED = "it could not be connected, or was lost; it is dialled again by itself"
    BAD = "connected, but it looks bad"


Keep: TypeAlias = Callable[[Mapping[str, Standing], Callable[[], float]], tuple[str, ...]]
"""Given how every endpoint stands, in the order given, and randomness: the endpoints to be connected."""


def keep_all(standings: Mapping[str, Standing], random: Callable[[], float]) -> tuple[str, ...]:
    """Every endpoint."""
    del random
    return tuple(standings)


def keep_first(standings: Mapping[str, Standing], random: Callable[[], float]) -> tuple[str, ...]:
    """The first that is connected; every endpoint until one is, and again once it fails.

    The official client with gRPC 1.7 (etcd 3.2 and 3.3).
    """
    del random
    good = tuple(name for name, standing in standings.items() if standing is Standing.GOOD)
    rest = tuple(name for name, standing in standings.items() if standing is not Standing.BAD)
    return good[:1] or rest or tuple(standings)


def keep_random(standings: Mapping[str, Standing], random: Callable[[], float]) -> tuple[str, ...]:
    """One drawn by lot; another one once it fails. The official client with gRPC 1.0 (etcd 3.1)."""
    kept = tuple(name for name, standing in standings.items() if standing in (Standing.GOOD, Standing.TRYING))
    if kept:
        return kept[:1]
    unused = [name for name, standing in standings.items() if standing is Standing.UNUSED] or list(standings)
    return (unused[int(random() * len(unused))],)


class Keeper:
    """Says what is to be connected, and not more often than it should change its mind.

    Args:
        keep: the policy's way.
        backoff: waits between two changes, once every endpoint had its turn in vain.
        random: returns a number in [0, 1).

    Attributes:
        ask_again: the instant at which to ask again even if nothing changes.
    """

    __slots__ = ("_backoff", "_changes", "_endpoints", "_keep", "_not_before", "_random", "_wanted", "ask_again")

    def __init__(self, keep: Keep, backoff: Backoff, random: Callable[[], float]) -> None:
        self._keep = keep
        self._backoff = backoff
        self._random = random
        self._endpoints: tuple[str, ...] = ()
        self._wanted: tuple[str, ...] = ()
        self._changes = 0  # in vain, in a row
        self._not_before = -inf
        self.ask_again = inf

    @property
    def in_vain(self) -> int:
        """Changes in a row, beyond one for each endpoint, that brought no connection."""
        return max(self._changes - len(self._endpoints), 0)

    def wanted(self, standings: Mapping[str, Standing], now: float) -> tuple[str, ...]:
        """The endpoints to be connected now."""
        self.ask_again = inf
        endpoints = tuple(standings)
        if Standing.GOOD in standings.values() or endpoints != self._endpoints:
            self._endpoints, self._changes, self._not_before = endpoints, 0, -inf
        if now < self._not_before:
            self.ask_again = self._not_before
            return self._wanted
        found = self._keep(standings, self._random)
        if found != self._wanted:
            self._wanted = found
            self._changes += 1
            if self._changes >= len(endpoints):
                self._not_before = now + self._backoff.wait(self.in_vain, self._random)
        return found
