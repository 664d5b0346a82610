"""transport/crowd.py: one for all that runs in a loop, and none is left when the loop is gone."""

import asyncio
import gc
from weakref import ref

from etcd_aio.transport.crowd import Crowd, crowd, shared_patience


async def ask() -> "ref[Crowd]":
    assert crowd() is crowd()
    assert shared_patience() is crowd().patience
    return ref(crowd())


def test_a_loop_has_one_and_it_ends_with_the_loop() -> None:
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
    one, other = first.run_until_complete(ask()), second.run_until_complete(ask())
    assert one() is first.run_until_complete(ask())() is not other()
    first.close()
    second.close()
    del first, second
    gc.collect()
    assert one() is None
    assert other() is None
