"""pytorch's tests of a rendezvous backend and of a Store, run on those of etcd_aio; see torch_suite.py.

It is copied beside pytorch's tests, and is not checked for types, since torch is not there.
"""

import multiprocessing
import os
import threading
import uuid
from datetime import timedelta
from importlib.metadata import entry_points
from unittest import TestCase

import pytest
import torch
import torch.distributed as dist
from rendezvous_backend_test import RendezvousBackendTestMixin
from test_store import StoreTestBase
from torch.distributed.elastic.rendezvous import (
    RendezvousConnectionError,
    RendezvousParameters,
    rendezvous_handler_registry,
)
from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler

from etcd_aio.contrib.torch import NAME, EtcdStore, create_backend, register
from etcd_aio.sync import Client

ENDPOINT = os.environ["JUDGE_ENDPOINT"]


def parameters(run_id=None, endpoint=ENDPOINT, **config):
    return RendezvousParameters(NAME, endpoint, run_id or uuid.uuid4().hex, 1, 2, **config)


class EtcdV3BackendTest(TestCase, RendezvousBackendTestMixin):
    def setUp(self):
        self.run_id = uuid.uuid4().hex
        self._backend, _ = create_backend(parameters(self.run_id))

    def _corrupt_state(self):
        with Client("http://" + ENDPOINT) as client:
            client.put(f"torch/elastic/rendezvous/{self.run_id}", b"non_base64")


class EtcdStoreTest(TestCase, StoreTestBase):
    def _create_store(self):
        _, store = create_backend(parameters())
        store.set_timeout(timedelta(seconds=300))
        return store

    def test_get_waits_for_a_key(self):
        store = self._create_store()
        threading.Timer(0.5, store.set, ("late", b"1")).start()
        assert store.get("late") == b"1"

    def test_missing_keys(self):
        store = self._create_store()
        store.set_timeout(timedelta(seconds=1))
        assert not store.check(["none"])
        with pytest.raises(LookupError):
            store.get("none")
        with pytest.raises(LookupError):
            store.wait(["none", "also none"], timedelta(milliseconds=100))
        store.set("a", "1")
        store.wait(["a"])
        assert store.check(["a"])

    def test_adds_of_threads(self):
        store = self._create_store()
        threads = [threading.Thread(target=lambda: [store.add("n", 1) for _ in range(25)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert store.get("n") == b"100"

    def test_a_forked_child(self):
        store = self._create_store()
        store.set("parent", b"1")
        pid = os.fork()
        if not pid:
            code = 1
            try:
                store.get("parent")
                store.add("child", 2)
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert store.get("child") == b"2"
        assert store.add("child", 1) == 3


class PrefixEtcdStoreTest(TestCase, StoreTestBase):
    """By the names that torch calls from C++."""

    def _create_store(self):
        _, store = create_backend(parameters())
        self.kept = store
        store.set_timeout(timedelta(seconds=300))
        return dist.PrefixStore("prefix", store)


class ProcessGroupTest(TestCase):
    def test_gloo_on_the_store(self):
        run = uuid.uuid4().hex
        context = multiprocessing.get_context("spawn")
        ranks = [context.Process(target=_rank, args=(run, rank)) for rank in range(2)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join(60)
        assert [r.exitcode for r in ranks] == [0, 0]


def _rank(run, rank):
    _, store = create_backend(parameters(run))
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=timedelta(seconds=30))
    value = torch.ones(1) * (rank + 1)
    dist.all_reduce(value)
    assert value.item() == 3, value
    dist.destroy_process_group()


class CreateBackendTest(TestCase):
    """As `CreateBackendTest` of torch's own backend, for the names of this one."""

    def test_create_backend(self):
        for config in ({}, {"protocol": "hTTp"}, {"read_timeout": "10"}):
            backend, store = create_backend(parameters(**config))
            assert backend.name == "etcd-v3"
            assert isinstance(store, EtcdStore)
            assert backend.set_state(b"dummy_state")[2]
            store.set("dummy_key", "dummy_value")
            assert store.get("dummy_key") == b"dummy_value"

    def test_several_endpoints(self):
        backend, _ = create_backend(parameters(endpoint=f"127.0.0.1:1,{ENDPOINT}"))
        assert backend.set_state(b"x")[2]

    def test_unreachable(self):
        failed = r"^The connection to etcd has failed. See inner exception for details.$"
        with pytest.raises(RendezvousConnectionError, match=failed):
            create_backend(parameters(endpoint="dummy:1234"))

    def test_invalid(self):
        with pytest.raises(ValueError, match=r"^The protocol must be HTTP or HTTPS.$"):
            create_backend(parameters(protocol="dummy"))
        for timeout in ("0", "-10"):
            with pytest.raises(ValueError, match=r"^The read timeout must be a positive integer.$"):
                create_backend(parameters(read_timeout=timeout))

    def test_handler(self):
        register()
        register()
        assert NAME in rendezvous_handler_registry._registry
        assert get_rendezvous_handler(parameters()).get_backend() == "etcd-v3"

    def test_entry_point(self):
        (point,) = entry_points(group="torchrun.handlers")
        assert point.name == "etcd-v3"
        creator = point.load()()
        assert creator(parameters()).get_backend() == "etcd-v3"
