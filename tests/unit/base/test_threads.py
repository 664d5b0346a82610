"""base/threads.py: they do their work, and neither a loop nor an interpreter waits for them."""

import asyncio
import gc
import subprocess
import sys
import threading

import pytest

from etcd_aio.base.threads import in_thread

pytestmark = pytest.mark.anyio


async def test_the_future_has_the_result_or_the_exception_of_the_work() -> None:
    def fail() -> int:
        raise ValueError("no")

    def where() -> threading.Thread:
        return threading.current_thread()

    thread = await in_thread(where, "etcd_aio test")
    assert thread is not threading.current_thread()
    assert (thread.name, thread.daemon) == ("etcd_aio test", True)
    with pytest.raises(ValueError, match="no"):
        await in_thread(fail, "etcd_aio test")


async def test_the_exception_of_work_whose_future_was_cancelled_is_not_reported() -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
    go = threading.Event()

    def fail() -> None:
        go.wait()
        raise ValueError("too late")

    futures = [in_thread(fail, "etcd_aio test") for _ in range(2)]
    futures[0].cancel()
    go.set()
    await asyncio.wait(futures)
    del futures
    gc.collect()
    await asyncio.sleep(0)
    assert reported == []


def test_neither_the_loop_nor_the_interpreter_waits() -> None:
    program = """
import asyncio, threading
from etcd_aio.base.threads import in_thread
for _ in range(2):
    async def main():
        in_thread(threading.Event().wait, "etcd_aio test")
    asyncio.run(main())
print(threading.active_count())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_work_that_ends_after_its_loop_is_closed_ends_quietly() -> None:
    go = threading.Event()

    async def main() -> None:
        in_thread(go.wait, "etcd_aio test")

    before = set(threading.enumerate())
    asyncio.run(main())
    (thread,) = set(threading.enumerate()) - before
    raised: list[object] = []
    hook, threading.excepthook = threading.excepthook, raised.append
    try:
        go.set()
        thread.join()
    finally:
        threading.excepthook = hook
    assert raised == []
