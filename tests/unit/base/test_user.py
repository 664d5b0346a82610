"""base/user.py: the user of an object is the present task, or the thread that a blocking client works for."""

import asyncio
from contextvars import copy_context
from threading import Thread

import pytest

from etcd_aio.base.user import CALLER, current_user, user_name


@pytest.mark.anyio
async def test_the_present_task_is_the_user_unless_a_thread_waits_for_it() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.set_name("a task")
    assert (current_user(), user_name()) == (task, "a task")
    thread = Thread(name="a thread")
    context = copy_context()
    context.run(CALLER.set, thread)
    assert (context.run(current_user), context.run(user_name)) == (thread, "a thread")


def test_outside_of_tasks_there_is_none() -> None:
    async def in_callback() -> tuple[object, str]:
        found: asyncio.Future[tuple[object, str]] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(lambda: found.set_result((current_user(), user_name())))
        return await found

    assert asyncio.run(in_callback()) == (None, "")
