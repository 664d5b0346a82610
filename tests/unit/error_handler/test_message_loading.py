"""error_handler/message_loading.py: the first stream of a program loads etcd's messages in a thread."""

import subprocess
import sys

import pytest

from etcd_aio.error_handler import load_messages

CODE = """
import asyncio, sys, threading
from importlib import import_module
from etcd_aio.error_handler import load_messages, message_loading
async def main():
    threads = []
    message_loading.import_module = lambda name: threads.append(threading.current_thread()) or import_module(name)
    assert "etcd_aio.pb.etcdserverpb" not in sys.modules
    await load_messages()
    assert "etcd_aio.pb.etcdserverpb" in sys.modules
    await load_messages()
    assert len(threads) == 1 and threads[0] is not threading.main_thread()
asyncio.run(main())
"""


def test_messages_are_loaded_once_and_in_a_thread() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True)


@pytest.mark.anyio
async def test_messages_that_are_there_take_no_turn_of_the_loop() -> None:
    await load_messages()
    with pytest.raises(StopIteration):
        load_messages().send(None)
