"""exports.py, release/exports.py: the names of a package are imported when they are used, and none is forgotten."""

import importlib
import subprocess
import sys
from types import ModuleType

import pytest

import etcd_aio
from etcd_aio import _exports as exports_of_library
from etcd_aio import errors, services, types
from etcd_aio.exports import late_names
from release import exports
from release.public import INTERNAL


def names(package: ModuleType) -> list[str]:
    found: list[str] = vars(package)["__all__"]
    return found


def test_the_names_are_those_that_the_packages_import_for_type_checkers() -> None:
    assert exports.FILE.read_text() == exports.text(), "python -m release.exports --write"


def test_the_names_of_values_are_public_and_those_of_modules_are_not() -> None:
    assert "KeyValue" in names(types)
    assert not {"kv", "errors", "TYPE_CHECKING", "late_names"} & {*names(types), *names(etcd_aio)}
    assert {"op", "__version__"} <= {*names(etcd_aio)}
    assert "naming" in names(services), "a module that is a name"


def test_dir_has_the_names_before_they_are_used() -> None:
    code = "import etcd_aio; assert {'Client', 'op'} <= {*dir(etcd_aio)} - {*vars(etcd_aio)}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_module_is_an_attribute_without_an_import_of_its_own() -> None:
    code = "import etcd_aio; assert issubclass(etcd_aio.errors.LockLostError, etcd_aio.EtcdError)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["Missing", "_private", "__path_of_nothing__"])
def test_a_name_that_is_not_there_is_an_attribute_error(name: str) -> None:
    find, _, _ = late_names("etcd_aio.errors")
    with pytest.raises(AttributeError, match=f"module 'etcd_aio.errors' has no attribute '{name}'"):
        find(name)
    assert not hasattr(errors, name)


def test_a_module_that_lacks_one_of_its_own_imports_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "etcd_aio.errors.once", raising=False)
    monkeypatch.setitem(sys.modules, "etcd_aio.errors.base", None)
    find, _, _ = late_names("etcd_aio.errors")
    with pytest.raises(ModuleNotFoundError):
        find("once")


def test_a_name_that_is_also_that_of_its_module_is_the_name() -> None:
    code = "from etcd_aio.mirror import Mirror; from etcd_aio.mirror import follow; assert callable(follow), follow"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import etcd_aio.mirror.follow; import etcd_aio.mirror as it; assert callable(it.follow), it.follow"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("module", ["etcd_aio.arguments", "etcd_aio.base", "etcd_aio.calls"])
def test_what_own_recipes_import_from_has_no_internal_name(module: str) -> None:
    package = importlib.import_module(module)
    assert names(package)
    assert not {f"{module}.{name}" for name in names(package)} & INTERNAL
    everything = {name for found in exports_of_library.EXPORTS[module].values() for name in found.split()}
    assert {f"{module}.{name}" for name in everything - set(names(package))} <= INTERNAL


def test_the_pool_of_leases_is_exported_and_imported_at_its_first_use() -> None:
    from etcd_aio import lease
    from etcd_aio.lease import pool

    assert lease.LeasePool is pool.LeasePool
    with pytest.raises(AttributeError, match="no attribute 'PooledLeases'"):
        lease.PooledLeases  # type: ignore[attr-defined] # noqa: B018
