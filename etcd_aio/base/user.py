"""User: the task that uses an object, or the thread that does so through a blocking client."""

import asyncio
from contextvars import ContextVar
from threading import Thread
from typing import Final, TypeAlias

User: TypeAlias = asyncio.Task[object] | Thread

CALLER: Final[ContextVar[Thread | None]] = ContextVar("etcd_aio.caller", default=None)
"""The thread that waits for the present task. Blocking clients set it, in the loop's thread."""


def current_user() -> User | None:
    """The user of what is called now: two calls of one thread are of one user, though each is a task of its own."""
    return CALLER.get() or asyncio.current_task()


def user_name() -> str:
    """The name of the present task or thread."""
    user = current_user()
    return "" if user is None else user.name if isinstance(user, Thread) else user.get_name()
