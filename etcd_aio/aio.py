"""Tasks: how the package starts them.

`loop.create_task` is used nowhere else. With `asyncio.eager_task_factory` (Python 3.12) it runs the coroutine before it
returns: a task that finishes at once would be stored by its owner after the `finally` of its coroutine has cleared that
same attribute. The tasks made here take their first step in a later turn of the loop, whatever the factory.
"""

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from typing import TypeVar

T = TypeVar("T")


def start_task(work: Coroutine[object, object, T], *, name: str) -> "asyncio.Task[T]":
    """Start a task that belongs to the task that starts it, and has its context variables.

    Args:
        work: what the task runs, from the next turn of the loop on.
        name: of the task, for logs and debuggers.
    """
    return asyncio.Task(work, loop=asyncio.get_running_loop(), name=name)


def start_background_task(work: Coroutine[object, object, T], *, name: str) -> "asyncio.Task[T]":
    """Start a task that may outlive the call that starts it: it must not log, or trace, as if it were a part of that.

    Args:
        work: what the task runs, from the next turn of the loop on, in an empty context.
        name: of the task, for logs and debuggers.
    """
    return asyncio.Task(work, loop=asyncio.get_running_loop(), name=name, context=Context())
