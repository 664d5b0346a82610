"""Store and Writer: what each method takes, the client's namesake takes too, with the same defaults."""

import inspect
from collections.abc import Callable, Mapping

import pytest

from etcd_aio import Client
from etcd_aio.store import Store, Writer
from etcd_aio.views import Namespace


def parameters(function: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


METHODS = sorted(
    {
        name
        for protocol in (Store, Writer)
        for name, member in vars(protocol).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }
)


@pytest.mark.parametrize("name", METHODS)
def test_a_client_takes_the_same_arguments_with_the_same_defaults(name: str) -> None:
    of_client = parameters(getattr(Client, name))
    for protocol in (Store, Writer):
        for parameter, own in parameters(getattr(protocol, name, lambda: None)).items():
            theirs = of_client[parameter]
            assert own.kind is theirs.kind, parameter
            assert own.default is inspect.Parameter.empty or own.default == theirs.default, parameter


@pytest.mark.parametrize("name", METHODS)
def test_a_namespace_takes_what_a_client_takes(name: str) -> None:
    of_client, of_namespace = parameters(getattr(Client, name)), parameters(getattr(Namespace, name))
    assert list(of_namespace) == list(of_client)
    for parameter, own in of_namespace.items():
        assert (own.kind, own.default) == (of_client[parameter].kind, of_client[parameter].default), parameter


def test_a_namespace_has_every_call_of_a_client_but_those_about_the_cluster() -> None:
    names = {name for name in dir(Client) if not name.startswith("_")}
    about_the_cluster = {"auth", "cluster", "compact", "maintenance"}
    about_the_client = {"aclose", "connect", "endpoints", "from_env", "from_url", "ping", "set_endpoints"}
    about_the_client |= {"statistics", "streams", "sync", "wait_ready"}
    inside = {name for name in dir(Namespace) if not name.startswith("_")}
    assert names - inside == about_the_cluster | about_the_client
    assert inside - names == {"prefix"}


def test_it_has_the_calls_that_the_layers_above_need() -> None:
    needed = {"get", "range", "scan", "put", "delete", "txn", "watch", "lease", "versions", "do"}
    assert needed == set(METHODS)
    assert isinstance(vars(Store)["leases"], property)
