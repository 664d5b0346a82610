"""Threads: a daemon thread for each piece of blocking work, instead of the event loop's default executor.

That executor belongs to the application. If the application's jobs occupied all its threads, no connection could be
made; and `asyncio.run()` waits for every job in it, while a name lookup may take half a minute. Such work is rare: name
lookups, one at a time for each host, and reading certificate files, one at a time for each client.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def in_thread(work: Callable[[], T], name: str) -> "asyncio.Future[T]":
    """Run `work` in a new thread. Neither the loop nor the interpreter waits for the thread on exit.

    Args:
        work: the function to run.
        name: the thread's name.

    Returns:
        A future for the result or exception of `work`. Cancelling it does not stop the thread.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(outcome: "tuple[T] | BaseException") -> None:
        if future.done():
            return
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
            future.exception()  # marks it as retrieved, since the caller may have stopped waiting
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
        except RuntimeError:  # the loop was closed meanwhile
            return

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
