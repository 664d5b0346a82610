"""recipes/calls.py: a backend in place of a store, or the reverse: the constructor says what to write."""

import inspect
from typing import Any, Final

import pytest

import etcd_aio.recipes
from etcd_aio import Client, Store
from etcd_aio.concurrency import Election
from etcd_aio.contrib.config import LiveConfig
from etcd_aio.mirror import Mirror, follow
from etcd_aio.recipes import Kubernetes
from tests.support.recipe_cases import CASES

pytestmark = pytest.mark.anyio

_OPTIONS: Final[dict[str, dict[str, Any]]] = {"DoubleBarrier": {"count": 2}, "Schedule": {"every": 60.0}}
RECIPES: Final = [
    each
    for each in vars(etcd_aio.recipes).values()
    if isinstance(each, type) and list(inspect.signature(each).parameters)[:2] == ["client", "name"]
]


def client() -> Client:
    return Client("http://127.0.0.1:1")


def test_all_recipes_are_tried() -> None:
    assert len(RECIPES) == len(CASES)


@pytest.mark.parametrize("recipe", RECIPES)
async def test_a_recipe_refuses_a_backend(recipe: Any) -> None:
    options = _OPTIONS.get(recipe.__name__, {})
    with pytest.raises(
        TypeError, match=r"client must be a client or a store, got ClientBackend: write Store\(backend\)"
    ):
        recipe(client().backend, "name", **options)
    with pytest.raises(TypeError, match=r"client must be a client or a store, got str$"):
        recipe("name", "name", **options)


async def test_other_objects_refuse_a_backend() -> None:
    backend: Any = client().backend
    refused = pytest.raises(TypeError, match=r"got ClientBackend: write Store\(backend\)")
    with refused:
        Kubernetes(backend)
    with refused:
        LiveConfig(backend, dict, prefix="a/")
    with refused:
        follow(backend, "a/")
    with refused:
        Mirror(backend, client(), prefix="a/")
    with refused:
        Mirror(client(), backend, prefix="a/")
    with refused:
        Election(backend, client().leases.pool, "e", ttl=10)


async def test_a_store_refuses_a_store() -> None:
    with pytest.raises(TypeError, match=r"backend must be a backend, got Client: write Store\(store\.backend\)"):
        Store(client())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"got Store: write Store\(store\.backend\)"):
        Store(client().namespace("a/"))  # type: ignore[arg-type]
