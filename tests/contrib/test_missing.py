"""contrib/missing.py: without its library, a module of `contrib` says what to install."""

import subprocess
import sys
from pathlib import Path

import pytest

EXTRAS = {
    "etcd_aio.contrib.discovery.aiohttp": ("aiohttp", "pip install aiohttp"),
    "etcd_aio.contrib.discovery.grpc": ("grpc", "pip install grpcio"),
    "etcd_aio.contrib.otel": ("opentelemetry", "etcd_aio[otel]"),
    "etcd_aio.contrib.prometheus": ("prometheus_client", "etcd_aio[prometheus]"),
    "etcd_aio.contrib.tooz": ("tooz", "etcd_aio[tooz]"),
    "etcd_aio.contrib.asgi": ("starlette", "pip install starlette"),
    "etcd_aio.contrib.fastapi": ("fastapi", "pip install fastapi"),
    "etcd_aio.contrib.litestar": ("litestar", "pip install litestar"),
    "etcd_aio.contrib.aiohttp": ("aiohttp", "pip install aiohttp"),
    "etcd_aio.contrib.quart": ("quart", "pip install quart"),
    "etcd_aio.contrib.sanic": ("sanic", "pip install sanic"),
    "etcd_aio.contrib.patroni.etcd3aio": ("patroni", "etcd_aio[patroni]"),
    "etcd_aio.contrib.pydantic_settings": ("pydantic_settings", "pip install pydantic-settings"),
}


@pytest.mark.parametrize("module", EXTRAS)
def test_a_module_without_its_library_names_the_extra(module: str) -> None:
    library, extra = EXTRAS[module]
    code = (
        "import importlib, sys\n"
        f"sys.modules[{library!r}] = None\n"
        "try:\n"
        f"    importlib.import_module({module!r})\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)\n"
    )
    root = Path(__file__).parent.parent.parent
    found = subprocess.run([sys.executable, "-c", code], check=True, cwd=root, capture_output=True, text=True)
    assert extra in found.stdout
