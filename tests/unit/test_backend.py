"""backend.py: what all stores of a client share, and the streams of its watches."""

from math import inf

import pytest

from etcd_aio import Client, InvalidRequestError
from etcd_aio.backend import Shared
from etcd_aio.base.call_options import UNSET
from etcd_aio.fake import FakeEtcd
from tests.support.backends import no_versions

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


def made(timeout: float | None) -> Shared:
    return Shared("orders", timeout, lambda: 100.0, no_versions)


def test_a_timeout_that_is_not_given_is_that_of_the_client() -> None:
    shared = made(30.0)
    assert (shared.timeout, shared.seconds(UNSET), shared.seconds(2.0), shared.seconds(None)) == (30.0, 30.0, 2.0, None)
    assert (shared.deadline(UNSET), shared.deadline(2.0), shared.deadline(None)) == (130.0, 102.0, inf)
    assert (made(None).timeout, made(None).seconds(UNSET), made(None).deadline(UNSET)) == (None, None, inf)


@pytest.mark.parametrize("timeout", [-1.0, float("nan"), "1"])
def test_a_wrong_timeout_is_refused(timeout: float) -> None:
    for check in (made(5.0).seconds, made(5.0).deadline):
        with pytest.raises((InvalidRequestError, TypeError)):
            check(timeout)


async def test_all_stores_of_a_client_share_it() -> None:
    async with FakeEtcd() as fake, fake.client(timeout=7.0, name="orders") as client:
        for store in (client, client.namespace("a/"), client.ordered(), client.ordered().namespace("a/")):
            assert store.backend.shared is client.backend.shared
            assert (store.name, store.default_timeout) == ("orders", 7.0)
            assert store.leases.pool is client.leases.pool


async def test_a_namespace_of_a_namespace_is_one_of_both_prefixes() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        store = client.namespace("a/").namespace("b/")
        assert store.key_space.prefix == b"a/b/"
        assert repr(store).startswith("<Namespace 'a/b/' of <Client")
        await store.put("k", "v")
        assert fake.keys() == {b"a/b/k": b"v"}


def test_a_client_with_a_namespace_stands_on_a_view() -> None:
    assert Client(namespace="a/").key_space.prefix == b"a/"
    assert Client().key_space.prefix == b""
