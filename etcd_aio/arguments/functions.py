"""Functions of the application: whether one that is to be async is."""

import inspect


def check_async_function(function: object, takes: str) -> None:
    """Check what can be known before a function is called: others than `async def` may return a coroutine, too.

    Args:
        function: the argument.
        takes: what is wanted, such as "run() takes an async function of a Leadership".

    Raises:
        TypeError: it is none.
    """
    if inspect.isasyncgenfunction(function):
        raise TypeError(f"{takes}, got an async generator function")
    if not callable(function):
        raise TypeError(f"{takes}, got {type(function).__name__}")


def check_blocking_function(function: object) -> None:
    """Check a function that blocking code gives.

    Raises:
        TypeError: it is none, or an async one, whose coroutine nothing would await.
    """
    takes = "a blocking function is taken here"
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{takes}, not an async one: write `def` for it, or use etcd_aio.Client")
    if not callable(function):
        raise TypeError(f"{takes}, got {type(function).__name__}")


def check_awaitable(made: object, takes: str) -> None:
    """Check what a function has returned that was to be async; `takes` as of `check_async_function`.

    Raises:
        TypeError: it cannot be awaited.
    """
    if not inspect.isawaitable(made):
        raise TypeError(f"{takes}: it returned {type(made).__name__}; write `async def` for it")
