"""Names: while test modules are imported, the asyncio classes that they import are adapters of the blocking ones."""

import asyncio
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FunctionType
from typing import Any

import pytest

import etcd_aio
from tests.support.blocking.adapters import adapters, functions
from tests.support.blocking.threads import install


@contextmanager
def replaced() -> Iterator[None]:
    """The block in which test modules are imported.

    All of the library is imported before, so that no module of it gets an adapter. Test modules that were imported
    before, as `conftest.py` is, get the adapters for good.
    """
    for found in pkgutil.walk_packages(etcd_aio.__path__, "etcd_aio."):
        if not found.name.startswith(("etcd_aio.contrib.", "etcd_aio.__main__")):
            import_module(found.name)
    made = adapters() | functions()
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
    backends: Any = sys.modules.get("tests.support.backends")
    if backends is not None:
        backends.ClientWithADetour.send = _send
        backends._Around.do = _do


async def _send(self: Any, operation: Any, **options: Any) -> Any:
    """Stands for `ClientWithADetour.send`: from the test's loop to the client's."""
    return await self.in_its_loop(self._beneath.do, operation, **options)


async def _do(self: Any, operation: Any, **options: Any) -> Any:
    """Stands for the detour of such a client: from the client's loop to the test's."""
    detour = asyncio.run_coroutine_threadsafe(self._do(operation, **options), self._do.__self__.loop)
    return await asyncio.wrap_future(detour)


def _found(module: Any, made: dict[Any, Any]) -> list[tuple[str, Any]]:
    names = set(vars(module)) | set(vars(module).get("__all__", ()))
    values = [(name, getattr(module, name, None)) for name in names]
    return [(name, made[value]) for name, value in values if isinstance(value, type | FunctionType) and value in made]
