"""Names: while test modules are imported, the asyncio classes that they import are adapters of the blocking ones."""

import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pytest

import etcd_aio
from tests.support.blocking.adapters import adapters
from tests.support.blocking.threads import install


@contextmanager
def replaced() -> Iterator[None]:
    """The block in which test modules are imported.

    All of the library is imported before, so that no module of it gets an adapter. Test modules that were imported
    before, as `conftest.py` is, get the adapters for good.
    """
    for module in pkgutil.walk_packages(etcd_aio.__path__, "etcd_aio."):
        if not module.name.startswith(("etcd_aio.contrib.", "etcd_aio.__main__")):
            import_module(module.name)
    made = adapters()
    install()
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("etcd_aio.sync"):
                continue
            if name.partition(".")[0] == "etcd_aio" and hasattr(module, "__path__"):
                for word, adapter in _found(module, made):
                    patch.setattr(module, word, adapter)
            elif name.startswith(("tests.", "conftest")) and not name.startswith("tests.support.blocking"):
                for word, adapter in _found(module, made):
                    setattr(module, word, adapter)
        yield
    detour: Any = sys.modules.get("tests.support.backends")
    if detour is not None:
        detour.ClientWithADetour.send = _send


async def _send(self: Any, operation: Any, **options: Any) -> Any:
    """Stands for `ClientWithADetour.send`, which tests and the blocking client call in loops of their own."""
    return await self.in_its_loop(self._beneath.do, operation, **options)


def _found(module: Any, made: dict[type, Any]) -> list[tuple[str, Any]]:
    names = set(vars(module)) | set(vars(module).get("__all__", ()))
    values = [(name, getattr(module, name, None)) for name in names]
    return [(name, made[value]) for name, value in values if isinstance(value, type) and value in made]
