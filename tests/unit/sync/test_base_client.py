"""sync/base_client.py: how a blocking client begins and ends."""

import asyncio
import copy
import gc
import pickle
import threading
import time
import warnings
from collections.abc import Callable

import pytest

from etcd_aio.errors import BlockingInLoopError, ClientClosedError, ConfigError
from etcd_aio.sync import Client

NOWHERE = "http://127.0.0.1:1"  # no connection is made before the first call


def loop_threads() -> int:
    return sum(one.name == "etcd_aio.loop" for one in threading.enumerate())


def test_the_thread_lives_as_long_as_a_client() -> None:
    first, second = Client(NOWHERE), Client(NOWHERE)
    assert loop_threads() == 1
    first.close()
    assert loop_threads() == 1
    second.close()
    second.close()
    assert loop_threads() == 0


def test_a_client_that_is_closed_refuses_calls() -> None:
    with Client(NOWHERE) as client, Client(NOWHERE) as other:
        store = client.namespace("a/")
        client.close()
        for call in (client.get, store.get):
            with pytest.raises(ClientClosedError):
                call("a")
    assert loop_threads() == 0
    with pytest.raises(ClientClosedError):
        other.get("a")


def test_options_that_are_wrong_leave_nothing() -> None:
    with pytest.raises(ConfigError):
        Client("ftp://m1")
    with pytest.raises(ConfigError):
        Client.from_url("ftp://m1")
    assert loop_threads() == 0


def test_a_client_that_is_collected_warns_and_is_closed() -> None:
    def forget() -> None:
        Client(NOWHERE)
        gc.collect()

    with pytest.warns(ResourceWarning, match="unclosed <"):
        forget()
    until = time.monotonic() + 30
    while loop_threads():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_where_a_loop_runs_the_constructor_works_and_calls_do_not() -> None:
    async def use() -> Client:
        client = Client(NOWHERE)
        for call in (client.ping, client.close, client.__enter__):
            with pytest.raises(BlockingInLoopError):
                call()
        await asyncio.to_thread(client.close)
        allowed = Client(NOWHERE, allow_in_loop=True)
        allowed.namespace("a/")
        return allowed

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(use()).close()
    assert loop_threads() == 0


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_copy_is_refused_since_its_end_would_close_the_client(duplicate: Callable[[object], object]) -> None:
    with Client(NOWHERE) as client:
        for one in (client, client.namespace("a/"), client.lock("a")):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                duplicate(one)
        gc.collect()
        client.namespace("b/")


def test_an_owner_that_closes_its_client_may_be_collected_in_the_loops_thread() -> None:
    client = Client(NOWHERE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client._portal.thread.call(client.close)
        del client
        gc.collect()
    until = time.monotonic() + 30
    while loop_threads():
        assert time.monotonic() < until
        time.sleep(0.01)
