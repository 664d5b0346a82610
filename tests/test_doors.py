"""The public names: every package exports what its `__init__` imports as itself or defines, each name once."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

PACKAGE = Path(__file__).parent.parent / "etcd_aio"
INITS = [PACKAGE / "__init__.py", *sorted(path for path in PACKAGE.glob("*/__init__.py") if path.parent.name != "pb")]
PUBLIC = ["etcd_aio", "etcd_aio.errors", "etcd_aio.testing"]


def name_of(path: Path) -> str:
    return ".".join(path.parent.relative_to(PACKAGE.parent).parts)


def exported(path: Path) -> list[str]:
    """What a type checker takes for exported: `import A as A`, and what the file defines itself."""
    names: list[str] = []
    body = ast.parse(path.read_text()).body
    for node in [*body, *(late for block in body if isinstance(block, ast.If) for late in block.body)]:
        match node:
            case ast.ImportFrom(names=aliases):
                names += [alias.name for alias in aliases if alias.asname == alias.name]
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                names.append(name)
    return names


@pytest.mark.parametrize("path", INITS, ids=name_of)
def test_a_package_exports_each_name_once_and_nothing_else(path: Path) -> None:
    package = importlib.import_module(name_of(path))
    names = exported(path)
    assert sorted(set(names)) == sorted(names)
    others = {
        name
        for name, value in vars(package).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name not in names
    }
    # What an `__init__` needs for itself, not what it offers.
    assert others <= {"Final", "Literal", "TYPE_CHECKING", "TypeAlias", "late_names"}


@pytest.mark.parametrize("path", INITS, ids=name_of)
def test_an_import_in_an_init_is_an_export_or_is_used(path: Path) -> None:
    tree = ast.parse(path.read_text())
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                assert alias.asname == alias.name or alias.name in used, alias.name


@pytest.mark.parametrize("name", PUBLIC)
def test_a_star_import_of_a_public_package_takes_what_it_exports(name: str) -> None:
    path = PACKAGE.parent.joinpath(*name.split("."), "__init__.py")
    taken: dict[str, object] = {}
    exec(f"from {name} import *", taken)
    del taken["__builtins__"]
    assert sorted(taken) == sorted(exported(path))
    assert sorted(importlib.import_module(name).__all__) == sorted(taken)


def test_the_library_imports_without_its_extras_and_without_other_grpc_or_protobuf_runtimes() -> None:
    code = (
        "import sys, etcd_aio\n"
        "contrib = ['opentelemetry', 'prometheus_client', 'starlette', 'fastapi', 'litestar', 'aiohttp', 'quart']\n"
        "contrib += ['sanic', 'pydantic_settings', 'msgspec', 'httpx', 'httpx2', 'uvicorn']\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "unwanted = {'grpc', 'google', 'dns', 'uvloop', 'click', 'rich', 'pytest', 'trustme', *contrib}\n"
        "assert not loaded & unwanted, loaded\n"
        "assert 'grpclib' not in loaded, 'an engine is imported only when a client asks for it'\n"
        "late = ('etcd_aio.cache', 'etcd_aio.cli.', 'etcd_aio.concurrency', 'etcd_aio.contrib', 'etcd_aio.mirror')\n"
        "late += ('etcd_aio.once', 'etcd_aio.recipes', 'etcd_aio.services', 'etcd_aio.views')\n"
        "late += ('anyio', 'difflib', 'hashlib', 'secrets')\n"
        "assert not [name for name in sys.modules if name.startswith(late)], 'imported at the first use'\n"
        "from etcd_aio.pb import message, PutRequest\n"
        "assert PutRequest in message._incomplete, 'completed at the first use'\n"
        "assert len(message._incomplete) > 100\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent.parent)
