"""Callbacks of blocking code: in the thread that made the call, or in a thread of their own; never in the loop's."""

import logging
import queue
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar

from etcd_aio.arguments import check_blocking_function
from etcd_aio.base.threads import in_thread
from etcd_aio.portal.call import InCaller

T = TypeVar("T")

_log: Final = logging.getLogger("etcd_aio.sync")

_IDLE_SECONDS: Final = 1.0  # after which a thread without work ends


def in_caller(function: Callable[..., object], wrap: Callable[[object], object] | None = None) -> Any:
    """An asynchronous function for the loop, which runs a blocking one in the thread of the call that it is given to.

    Args:
        function: the blocking function; what it raises, the asynchronous one raises.
        wrap: makes its arguments of those that the asynchronous one is given.

    Raises:
        TypeError: it is no blocking function.
    """
    check_blocking_function(function)
    return InCaller(function if wrap is None else lambda *given: function(*map(wrap, given)))


def in_worker(function: Callable[..., T], name: str) -> Callable[..., Awaitable[T]]:
    """An asynchronous function for the loop, which runs a blocking one in a thread of its own.

    What it raises that no task of the loop should end by, such as `SystemExit`, becomes a `RuntimeError`.

    Args:
        function: the blocking function.
        name: of the thread.

    Raises:
        TypeError: it is no blocking function.
    """
    check_blocking_function(function)

    def work(*arguments: object) -> T:
        try:
            return function(*arguments)
        except BaseException as error:  # a future takes no StopIteration, and an exit would end no program here
            if isinstance(error, Exception) and not isinstance(error, StopIteration):
                raise
            raise RuntimeError(f"the function raised {error!r}") from error

    async def run(*arguments: object) -> T:
        return await in_thread(partial(work, *arguments), name)

    return run


def own_thread(function: Callable[..., object], name: str) -> Callable[..., None]:
    """A function for the loop, which returns at once and runs another one in a daemon thread of its own.

    The runs come one after the other, in the order of the calls. What one raises is logged, and ends nothing.

    Args:
        function: the function to run.
        name: of the thread, and in the log.

    Raises:
        TypeError: it is no blocking function.
    """
    check_blocking_function(function)
    return OwnThread(function, name).add


class OwnThread:
    """Runs a function for each event, in a thread that lives while there is work.

    Args:
        function: the function.
        name: of the thread.
    """

    def __init__(self, function: Callable[..., object], name: str) -> None:
        self._function = function
        self._name = name
        self._events: queue.SimpleQueue[tuple[object, ...]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_running = False

    def add(self, *event: object) -> None:
        """Run the function with these arguments, soon."""
        self._events.put(event)
        with self._lock:
            if self._is_running:
                return
            self._is_running = True
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                event = self._events.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._events.empty():
                        self._is_running = False
                        return
                continue
            try:
                self._function(*event)
            except BaseException:  # the next event must not be lost with it
                _log.exception("%s: the function raised", self._name)
            del event
