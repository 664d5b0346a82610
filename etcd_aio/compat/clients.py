"""The other clients whose APIs there are, and what makes programs import them."""

import importlib
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Final

CLIENTS: Final = {
    "aetcd": "etcd_aio.compat.aetcd",
    "etcd3": "etcd_aio.compat.etcd3",
    "etcd3gw": "etcd_aio.compat.etcd3gw",
}
"""The names that programs import, and the packages that they get then."""


def install(*names: str) -> None:
    """Let `import NAME`, and the import of each of its public submodules, find the package here. Safe to repeat.

    Call it before the program imports the other client. Processes that are started by `spawn` call it again.

    Args:
        names: of `CLIENTS`; all of them if there is none.

    Raises:
        LookupError: a name is not in `CLIENTS`.
        ImportError: the other client itself is imported already.
    """
    _check(names)
    for name in names or CLIENTS:
        package = importlib.import_module(CLIENTS[name])
        present = sys.modules.get(name, package)
        if present is not package:
            where = getattr(present, "__file__", None) or "elsewhere"
            raise ImportError(f"{name} is imported already, from {where}: install before that", name=name)
        sys.modules[name] = package
        for module in _public_submodules(package):
            sys.modules[name + module.__name__.removeprefix(CLIENTS[name])] = module


def _check(names: Iterable[str]) -> None:
    unknown = sorted(set(names) - CLIENTS.keys())
    if unknown:
        raise LookupError(f"no such client: {', '.join(unknown)}; there are {', '.join(CLIENTS)}")


def _public_submodules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not found.name.rpartition(".")[2].startswith("_"):
            yield importlib.import_module(found.name)
