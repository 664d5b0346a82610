"""sync/concurrency/lock.py, portal/block.py, portal/losable.py: blocks, their threads and ends, on a fake."""

import gc
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import pytest

from etcd_aio.errors import ClientUsageError, EtcdError, InvalidRequestError, LeaseLostError, LockLostError
from etcd_aio.sync import Client
from etcd_aio.sync.fake import FakeEtcd

SECONDS = 60.0  # ends what hangs


@pytest.fixture
def fake() -> Iterator[FakeEtcd]:
    with FakeEtcd() as fake:
        yield fake


@pytest.fixture
def client(fake: FakeEtcd) -> Iterator[Client]:
    with fake.client() as client:
        yield client


# Threads.


def test_a_reentrant_lock_is_entered_again_by_its_thread_alone(client: Client) -> None:
    lock = client.lock("l", reentrant=True)
    with lock, ThreadPoolExecutor(1) as pool:
        with lock:
            assert lock.try_acquire()
            lock.release()
        assert lock.is_held
        with pytest.raises(ClientUsageError, match="another thread"):
            pool.submit(lock.acquire).result()
    assert not lock.is_held


def test_a_lock_that_is_not_reentrant_is_refused_to_its_thread(client: Client) -> None:
    lock = client.lock("l")
    with lock, pytest.raises(ClientUsageError, match="reentrant"):
        lock.acquire()


def test_the_value_of_a_lock_names_the_thread(client: Client) -> None:
    def hold() -> str:
        with client.lock("l") as lock:
            return lock.contenders()[0].value.decode()

    with ThreadPoolExecutor(1, "holders") as pool:
        assert pool.submit(hold).result().endswith(" holders_0")
    assert hold().endswith(f" {threading.current_thread().name}")


def test_a_block_may_be_left_by_another_thread(client: Client) -> None:
    lock = client.lock("l")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lock.__enter__).result()
        lock.__exit__(None, None, None)
    assert client.lock("l").contenders() == ()


# Ends.


def test_closing_the_last_client_within_a_block_is_told_on_leaving(fake: FakeEtcd) -> None:
    lost: SimpleQueue[EtcdError] = SimpleQueue()
    client = fake.client()
    with pytest.raises(LockLostError, match="client is"), client.lock("l", on_lost=lost.put):
        client.close()
    assert isinstance(lost.get(timeout=SECONDS), LockLostError)
    client = fake.client()
    with pytest.raises(LeaseLostError, match="client is"), client.session(on_lost=lost.put):
        client.close()
    assert isinstance(lost.get(timeout=SECONDS), LeaseLostError)


def test_closing_what_has_ended_with_the_client_is_harmless(fake: FakeEtcd) -> None:
    client = fake.client()
    with client.cache(prefix="a") as cache, client.watch("b") as watcher:
        client.close()
        cache.close()
        watcher.close()


def test_closing_within_the_block_leaves_it(client: Client) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watcher = client.watch("a").__enter__()
        watcher.close()
        assert list(watcher) == []
        del watcher
        gc.collect()


def test_a_block_that_is_dropped_is_left_with_a_warning(client: Client) -> None:
    lock = client.lock("l", ttl=60)
    lock.__enter__()
    with pytest.warns(ResourceWarning, match="was not closed"):
        del lock
    with client.lock("l", timeout=SECONDS):  # it is free
        pass


# Functions.


@pytest.mark.parametrize("wrong", ["signal", "cancel", 5])
def test_a_function_of_a_loss_is_a_function(client: Client, wrong: Any) -> None:
    for make in (client.lock, client.election, client.rwlock):
        with pytest.raises(InvalidRequestError, match="on_lost is a function or None"):
            make("l", on_lost=wrong)


def test_what_is_no_function_is_refused_by_the_object_that_gets_it(client: Client) -> None:
    wrong: Any = "x"
    with pytest.raises(TypeError):
        client.cache(prefix="a", decode=bytes, on_error=wrong)
