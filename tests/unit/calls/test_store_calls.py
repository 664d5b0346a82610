"""calls/store_calls.py, calls/writer.py: the calls of a client but those about the cluster."""

import inspect
from collections.abc import Callable, Mapping

import pytest

from etcd_aio import Client, Store
from etcd_aio.calls import StoreCalls, Writer


def parameters(function: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


@pytest.mark.parametrize("name", ["delete", "put", "txn"])
def test_a_store_takes_what_a_writer_takes(name: str) -> None:
    of_store = parameters(getattr(StoreCalls, name))
    for parameter, own in parameters(getattr(Writer, name)).items():
        theirs = of_store[parameter]
        assert own.kind is theirs.kind, parameter
        assert own.default is inspect.Parameter.empty or own.default == theirs.default, parameter


def test_a_store_has_every_call_of_a_client_but_those_about_the_cluster() -> None:
    names = {name for name in dir(Client) if not name.startswith("_")}
    about_the_cluster = {"auth", "cluster", "compact", "maintenance"}
    about_the_client = {"aclose", "connect", "endpoints", "from_env", "from_url", "ping", "set_endpoints"}
    about_the_client |= {"statistics", "streams", "sync", "wait_ready"}
    inside = {name for name in dir(Store) if not name.startswith("_")}
    assert names - inside == about_the_cluster | about_the_client
    assert not inside - names


def test_it_has_the_calls_that_recipes_need() -> None:
    needed = {"get", "range", "scan", "put", "delete", "txn", "update", "watch", "lease", "leases", "versions", "do"}
    needed |= {"wait_deleted", "default_timeout", "end_with_client", "is_exact", "key_space", "name"}
    assert needed == {name for name in dir(StoreCalls) if not name.startswith("_")}
