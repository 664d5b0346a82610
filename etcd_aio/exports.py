"""The names of a package, each imported at its first use.

In every `__init__` of the library, `from module import A as A` exports A. This is all that type checkers and editors
need, and it stands under `if TYPE_CHECKING`, so that it is not run: to import all of a package for one of its names is
most of the time that a short program takes. `_exports.py` has the same names for `late_names`, made from these imports
by `python -m release.exports --write`.
"""

from collections.abc import Callable, Collection
from sys import modules
from types import ModuleType
from typing import TypeAlias

from etcd_aio._exports import EXPORTS

Door: TypeAlias = tuple[Callable[[str], object], Callable[[], list[str]], list[str]]


def _imported(module: str) -> ModuleType:
    """Import a module; unlike the functions of `importlib` this is seen by `python -X importtime`."""
    __import__(module)
    return modules[module]


def late_names(package: str, internal: Collection[str] = ()) -> Door:
    """The `__getattr__`, `__dir__` and `__all__` of a package. Its modules are attributes too, as if imported.

    Args:
        package: its name.
        internal: names that other packages of the library import, and that are not public: `__all__` lacks them.
    """
    homes = {name: module for module, names in EXPORTS[package].items() for name in names.split()}
    namespace = vars(modules[package])

    def find(name: str) -> object:
        home = homes.get(name, package)
        if home != package:
            found = namespace[name] = getattr(_imported(home), name)
            return found
        if not name.startswith("_"):
            try:
                return _imported(f"{package}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{package}.{name}":
                    raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*namespace, *homes})

    namespace["__getattr__"] = find
    for name, home in homes.items():
        if home == f"{package}.{name}":  # its module would take its place as soon as it is imported
            find(name)
    return find, names, sorted(set(homes).difference(internal))
