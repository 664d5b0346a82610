"""The machines that compare the fake with real servers of every minor version, and what they run on."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from random import Random
from types import TracebackType
from typing import Any, Final, Self

from etcd_aio.testing import EtcdNotFoundError, find_etcd
from tests.support.differential import Difference, Pair, pair_of
from tests.support.differential_auth import play_users, user_history
from tests.support.differential_watch import play_watches
from tests.support.drawn_requests import history, watch_history
from tests.support.shortest import shortest

VERSIONS: Final = ("3.4.25", "3.5.35", "3.6.16", "3.7.3")


@dataclass(frozen=True)
class Machine:
    """One kind of histories.

    Attributes:
        name: the name of the machine.
        draw: draws a history.
        play: plays it on a fake and a real server, and raises `Difference`.
    """

    name: str
    draw: Callable[[Random], Sequence[Any]]
    play: Callable[[Pair, Sequence[Any]], Awaitable[None]]


KEYS_AND_LEASES: Final = Machine("keys", history, Pair.play)
WATCHES: Final = Machine("watches", watch_history, play_watches)
USERS: Final = Machine("users", user_history, play_users)
MACHINES: Final = {machine.name: machine for machine in (KEYS_AND_LEASES, WATCHES, USERS)}


def found_versions() -> list[str]:
    """The versions that are on this machine."""
    found = []
    for version in VERSIONS:
        with suppress(EtcdNotFoundError):
            find_etcd(version)
            found.append(version)
    return found


class Truth:
    """Pairs of a fake and a real server, one of each version, which play the same histories.

    Args:
        runner: runs their loop.
        versions: the versions.
    """

    def __init__(self, runner: asyncio.Runner, versions: Sequence[str]) -> None:
        self._runner = runner
        self._pairs: dict[str, Pair] = {}
        self._stacks: dict[str, AsyncExitStack] = {version: AsyncExitStack() for version in versions}

    def __enter__(self) -> Self:
        self._runner.run(self._start(self._stacks))
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for stack in self._stacks.values():
            self._runner.run(stack.aclose())

    def play(self, machine: Machine, items: Sequence[Any]) -> None:
        """Play one history on all pairs.

        Raises:
            Difference: the fake and a real server answered differently; with the shortest part that shows it.
        """
        self._runner.run(self._play(machine, items))

    def refusals(self) -> set[tuple[str, str]]:
        """The statuses and texts that the real servers have refused with, and the fakes too."""
        return set().union(*(pair.refusals for pair in self._pairs.values()))

    def run(self, machine: Machine, random: Random, steps: int) -> "Counter[tuple[str, str]]":
        """Play random histories until so many requests were compared with each version; see `play`.

        Returns:
            Counter: how often an RPC was compared, and had which status, with the first version.
        """
        first = next(iter(self._pairs.values()))
        before = Counter(first.tally)
        while (first.tally - before).total() < steps:
            self.play(machine, machine.draw(random))
        return first.tally - before

    async def _play(self, machine: Machine, items: Sequence[Any]) -> None:
        outcomes = await asyncio.gather(
            *(machine.play(pair, items) for pair in self._pairs.values()), return_exceptions=True
        )
        for version, outcome in zip(tuple(self._pairs), outcomes, strict=True):
            if isinstance(outcome, Difference):
                raise await self._shortest(machine, version, items) or outcome
            if isinstance(outcome, BaseException):
                raise outcome

    async def _shortest(self, machine: Machine, version: str, items: Sequence[Any]) -> Difference | None:
        """The difference that the shortest part of a history shows; None if new servers do not differ."""
        found: Difference | None = None

        async def fails(part: Sequence[Any]) -> bool:
            nonlocal found
            try:
                await machine.play(self._pairs[version], part)
            except Difference as difference:
                found = difference
                await self._renew(version)
                return True
            return False

        await self._renew(version)
        if await fails(items):
            await shortest(items, fails)
        return found

    async def _start(self, versions: Iterable[str]) -> None:
        pairs = await asyncio.gather(*(self._stacks[one].enter_async_context(pair_of(one)) for one in versions))
        self._pairs.update(zip(versions, pairs, strict=True))

    async def _renew(self, version: str) -> None:
        """Start new servers: after a difference the two are different for ever."""
        await self._stacks[version].aclose()
        await self._start([version])
