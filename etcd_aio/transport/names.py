"""Resolves host names: one lookup at a time for each host, independent of the dials that need it.

getaddrinfo blocks, for seconds if a name server is dead. A dial waits for a lookup only until its timeout. The lookup
continues, and the next dial to the same host joins it or uses its result. So a lookup that takes longer than the
timeout of a dial still succeeds, and a dead name server costs one thread for each host.

Each address of a name may be another server, so the connections of a client begin with one after the other, and each
client with one at random. The resolver's order decides between the families of addresses, but not within one.
"""

import asyncio
import random as random_module
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

from etcd_aio.base.threads import in_thread
from etcd_aio.errors import ConnectError
from etcd_aio.transport.time_limit import TimeLimit

Address: TypeAlias = tuple[int, int, int, str, Any]
"""An entry of getaddrinfo: family, type, protocol, canonical name, socket address."""

_TURNS: Final = 2**20  # far more than addresses, so that each of them is as likely as the others
_HOLDS: Final = 5.0  # seconds for which an unused result is kept
_GIVEN_UP_AFTER: Final = 120.0  # seconds; a resolver gives up long before, so the thread must have been lost


def getaddrinfo(host: str | bytes, flags: int = 0) -> Sequence[Address]:
    """All TCP addresses of a host, without a port. Blocks, unless `flags` forbid a lookup."""
    return socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=flags)


class Names:
    """The lookups of one client. Its methods are called from the client's loop.

    Args:
        lookup: asks the system; it runs in a thread.
        random: returns a number in [0, 1).
    """

    def __init__(
        self,
        lookup: Callable[[str], Sequence[Address]] = getaddrinfo,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self._lookup = lookup
        self._random = random
        self._turns: dict[str, int] = {}
        self._lookups: dict[str, _Lookup] = {}

    def turn(self, host: str) -> None:
        """Begin with another address of `host` from now on. Call it before each connection."""
        self._turns[host] = self._turns.get(host, int(self._random() * _TURNS)) + 1

    async def addresses(self, host: str, port: int, seconds: float) -> Sequence[Address]:
        """The addresses of `host`, in the order in which to try them.

        If it is an address itself, this needs no thread and does not wait.

        Args:
            host: a name, or an IP address.
            port: of the service.
            seconds: how long to wait. The lookup goes on beyond that, and when this is cancelled.

        Raises:
            ConnectError: the name was not resolved in time.
            OSError: the resolver's reason.
            UnicodeError: it cannot be a name.
        """
        found = _numeric(host) if _is_address(host) else await self._resolved(host, seconds)
        ordered = _turned(found, self._turns[host]) if host in self._turns else found
        return [(*one[:4], (one[4][0], port, *one[4][2:])) for one in ordered]

    async def _resolved(self, host: str, seconds: float) -> Sequence[Address]:
        now = asyncio.get_running_loop().time()
        lookup = self._lookups.get(host)
        if lookup is None or lookup.is_stale(now):
            lookup = self._lookups[host] = _Lookup(lambda: self._lookup(host), host, now)
        with suppress(TimeoutError):
            async with TimeLimit(seconds):
                await asyncio.wait([lookup.future])  # not by awaiting it: a cancellation must not reach it
        if not lookup.future.done():
            raise ConnectError(f"the name {host!r} was not resolved in time: no answer from DNS within {seconds:g} s")
        if self._lookups.get(host) is lookup:
            del self._lookups[host]  # the next dial asks again
        return lookup.future.result()


def _turned(addresses: Sequence[Address], turn: int) -> list[Address]:
    """The addresses of each family from number `turn` on.

    They are sorted before, since the resolver may turn them as well.
    """
    families: dict[int, list[Address]] = {}
    for address in addresses:
        families.setdefault(address[0], []).append(address)
    turned: list[Address] = []
    for family in families.values():
        start = turn % len(family)
        family.sort(key=lambda address: address[4])
        turned += family[start:] + family[:start]
    return turned


def _numeric(host: str) -> Sequence[Address]:
    return getaddrinfo(host.encode(), socket.AI_NUMERICHOST)  # text would load the tables of international names


def _is_address(host: str) -> bool:
    for family, address in ((socket.AF_INET, host), (socket.AF_INET6, host.partition("%")[0])):
        with suppress(OSError, ValueError):
            socket.inet_pton(family, address)
            return True
    return False


class _Lookup:
    """One lookup, until its result has been taken."""

    def __init__(self, work: Callable[[], Sequence[Address]], host: str, now: float) -> None:
        self._begun = now
        self._ended = now
        self.future = in_thread(work, f"etcd_aio name {host}")
        self.future.add_done_callback(self._on_done)

    def _on_done(self, future: "asyncio.Future[Sequence[Address]]") -> None:
        self._ended = future.get_loop().time()

    def is_stale(self, now: float) -> bool:
        """Whether another lookup is better than this one, or its result."""
        return now - self._ended > _HOLDS if self.future.done() else now - self._begun > _GIVEN_UP_AFTER
