"""Loads etcd's messages beside the loop: the first stream or lease of a program needs them, which takes 50 ms."""

import sys
from importlib import import_module

from etcd_aio.base.threads import in_thread


async def load_messages() -> None:
    """Import the messages in a thread, unless they are there."""
    if "etcd_aio.pb.etcdserverpb" not in sys.modules:
        await in_thread(lambda: import_module("etcd_aio.pb.etcdserverpb"), "etcd_aio messages")
