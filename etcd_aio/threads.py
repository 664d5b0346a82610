"""Threads: a daemon thread for each piece of blocking work, apart from the executor of the application.

The event loop's default executor belongs to the application. If its jobs hold all threads, nothing could be dialled;
and `asyncio.run()` waits for every job in it, while a name lookup may take half a minute. Work for these threads is
rare: name lookups, one at a time for each host, and the reading of certificate files, one at a time for each client.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def in_thread(work: Callable[[], T], name: str) -> "asyncio.Future[T]":
    """Run `work` in a thread of its own; neither the loop nor the interpreter waits for it at their end.

    Args:
        work: what to run; what it raises, the future raises.
        name: of the thread.

    Returns:
        Its outcome. Cancelling it does not stop the thread.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(outcome: "tuple[T] | BaseException") -> None:
        if future.done():
            return
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
            future.exception()  # those who have given up waiting need not retrieve it
        else:
            future.set_result(outcome[0])

    def run() -> None:
        outcome: tuple[T] | BaseException
        try:
            outcome = (work(),)
        except BaseException as error:
            outcome = error
        try:
            loop.call_soon_threadsafe(settle, outcome)
        except RuntimeError:  # the loop was closed meanwhile, and everything that waited in it
            return

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
