"""A steady load on a client, and an account of its calls."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from etcd_aio import EtcdError


@dataclass
class Account:
    """The outcomes of the calls of one kind.

    Attributes:
        answers: how many calls each member answered, by member id.
        errors: the errors, each with the instants at which its call began and ended.
        slowest: seconds of the longest call.
        calls: how many calls ended.
    """

    answers: Counter[int] = field(default_factory=Counter)
    errors: list[tuple[float, float, EtcdError]] = field(default_factory=list)
    slowest: float = 0.0
    calls: int = 0


@asynccontextmanager
async def load(call: Callable[[int], Awaitable[int]], *, workers: int) -> AsyncIterator[Account]:
    """Run `call` in a closed loop with so many workers during the block; it returns a member id."""
    account = Account()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def work(worker: int) -> None:
        while not stop.is_set():
            began = loop.time()
            try:
                account.answers[await call(worker)] += 1
            except EtcdError as error:
                account.errors.append((began, loop.time(), error))
            account.calls += 1
            account.slowest = max(account.slowest, loop.time() - began)

    tasks = [asyncio.create_task(work(worker)) for worker in range(workers)]
    try:
        yield account
    finally:
        stop.set()
        await asyncio.gather(*tasks)
