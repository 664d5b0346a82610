"""exports.py: the names of values are public, and those of modules are not."""

import importlib

import pytest

from etcd_aio import errors, exports, types
from etcd_aio.exports import public_names
from release.public import INTERNAL


def test_the_names_of_values_are_public_and_those_of_modules_are_not() -> None:
    assert public_names({"b": 1, "A": int, "errors": errors, "_private": 2}) == ["A", "b"]


def test_what_computes_the_names_is_not_public() -> None:
    assert public_names(vars(exports) | {"TYPE_CHECKING": False}) == ["Collection", "Final", "Mapping", "ModuleType"]
    assert "KeyValue" in public_names(vars(types))


@pytest.mark.parametrize("module", ["etcd_aio.arguments", "etcd_aio.backend", "etcd_aio.base", "etcd_aio.calls"])
def test_what_own_recipes_import_from_has_no_internal_name(module: str) -> None:
    names = importlib.import_module(module).__all__
    assert names
    assert not {f"{module}.{name}" for name in names} & INTERNAL
    if module != "etcd_aio.backend":  # it is no package: it has imports of its own, too
        left_out = set(public_names(vars(importlib.import_module(module)))) - set(names)
        assert {f"{module}.{name}" for name in left_out} <= INTERNAL


def test_the_pool_of_leases_is_exported_and_imported_at_its_first_use() -> None:
    from etcd_aio import lease
    from etcd_aio.lease import pool

    assert lease.LeasePool is pool.LeasePool
    with pytest.raises(AttributeError, match="no attribute 'PooledLeases'"):
        lease.PooledLeases  # noqa: B018
