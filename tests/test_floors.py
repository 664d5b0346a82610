"""The floor plan, checked on the syntax tree: who may import whom, and what pure rooms must not touch."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "etcd_aio"

# room: the rooms whose doors it may use, besides floors 0 and 1. Top to bottom, as the README draws it.
MAY_USE: dict[str, frozenset[str]] = {
    "__init__": frozenset(
        {
            *("api", "auth_results", "balancer", "client", "cluster_results", "error_handler", "events", "results"),
            *("tls", "version"),
        }
    ),
    "client": frozenset(  # the composition root, with what it is told and what keeps its endpoints current
        {
            *("api", "balancer", "config", "error_handler", "tls", "transport"),
            *("connection_url", "discovery", "environment", "settings"),
        }
    ),
    "config": frozenset({"balancer", "error_handler", "tls", "tls_files", "transport"}),
    "connection_url": frozenset({"settings"}),
    "discovery": frozenset({"balancer"}),
    "environment": frozenset({"settings"}),
    "settings": frozenset({"balancer", "error_handler", "tls", "transport"}),
    "api": frozenset({"error_handler"}),
    "error_handler": frozenset({"balancer"}),
    "balancer": frozenset({"transport"}),
    "transport": frozenset({"http2"}),
    "http2": frozenset(),
    "codec": frozenset(),
    "methods": frozenset(),
    "pb": frozenset(),
    "tls": frozenset(),
    "tls_files": frozenset({"tls"}),
    "testing": frozenset(),
}
GROUND = frozenset(
    {
        *("aio", "auth_results", "backoff", "closing", "cluster_results", "deadline", "durations", "errors", "events"),
        *("frozen", "options", "results", "threads", "version"),
    }
)
FLOOR_ONE = frozenset({"codec", "methods", "pb"})
FLOOR_ONE_ORDER: dict[str, frozenset[str]] = {
    "pb": frozenset(),
    "codec": frozenset({"pb"}),
    "methods": frozenset({"pb"}),
}
ALONE = frozenset({"http2"})  # what could be lifted out as it is
FOREIGN: dict[str, frozenset[str]] = {
    "grpclib": frozenset({"transport"}),
    "h2": frozenset({"transport"}),
    "hpack": frozenset({"http2"}),
    "dns": frozenset({"balancer"}),
    "betterproto2": frozenset({"pb", "codec"}),
}
IMPURE = frozenset({"asyncio", "logging", "os", "random", "select", "socket", "ssl", "subprocess", "threading", "time"})
PURE = (
    "auth_results",
    "backoff",
    "cluster_results",
    "connection_url",
    "deadline",
    "durations",
    "environment",
    "events",
    "frozen",
    "options",
    "results",
    "methods",
    "codec",
    "errors",
    "http2",
    "balancer/advertised",
    "balancer/connectivity",
    "balancer/picker",
    "error_handler/credentials",
    "error_handler/request_metadata",
    "balancer/resolver",
    "balancer/srv_records",
    "error_handler/answer",
    "error_handler/retry",
    "error_handler/token_refusals",
    "error_handler/token_state",
    "error_handler/verdict",
    "transport/liveness",
    "transport/response",
    "api/keys",
    "api/compare",
    "api/enums",
    "api/keepalive",
    "api/op",
    "api/peer_urls",
    "api/replies",
    "api/requests",
)
LONGEST_FILE = 600
PUBLIC_MODULES = frozenset({"etcd_aio.api.op"})  # users write `from etcd_aio import op`: the module is the name


def sources() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "pb" not in path.relative_to(PACKAGE).parts[:-1])


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").as_posix()


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(path: Path) -> Iterator[str]:
    """Every imported module, with the names of a from-import as if they were submodules where they are."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            if module == "etcd_aio":
                yield from (f"etcd_aio.{alias.name}" for alias in node.names)
            elif module.count(".") == 1 and (PACKAGE / module.split(".")[1]).is_dir():
                for alias in node.names:
                    is_submodule = (PACKAGE / module.split(".")[1] / f"{alias.name}.py").exists()
                    yield f"{module}.{alias.name}" if is_submodule else module
            else:
                yield module


@pytest.mark.parametrize("path", sources(), ids=name_of)
def test_a_room_imports_only_what_is_beneath_it_and_by_the_door(path: Path) -> None:
    room = room_of(path)
    for module in imports(path):
        if not module.startswith("etcd_aio"):
            continue
        parts = module.split(".")
        other = parts[1] if len(parts) > 1 else "__init__"
        if other == room:
            continue
        assert room not in ALONE, f"{room} imports nothing of ours"
        if room in GROUND:
            assert other in GROUND, f"the ground floor does not stand on {other}"
        elif room in FLOOR_ONE:
            assert other in GROUND | FLOOR_ONE_ORDER[room], f"{room} must not import {other}"
        else:
            assert other in GROUND | FLOOR_ONE | MAY_USE[room], f"{room} must not import {other}"
        if module in PUBLIC_MODULES:
            continue
        enters_by_the_door = len(parts) == 2 or not (PACKAGE / other).is_dir()
        assert enters_by_the_door, f"{module}: a room is entered by its door, etcd_aio.{other}"


@pytest.mark.parametrize("path", sources(), ids=name_of)
def test_foreign_packages_stay_in_their_rooms(path: Path) -> None:
    for module in imports(path):
        foreign = module.split(".")[0]
        if foreign in FOREIGN:
            assert room_of(path) in FOREIGN[foreign], f"{foreign} must not be imported here"


@pytest.mark.parametrize("path", sources(), ids=name_of)
def test_pure_rooms_touch_neither_clock_nor_chance_nor_io(path: Path) -> None:
    name = name_of(path)
    if any(name == pure or name.startswith(f"{pure}/") for pure in PURE):
        touched = {module.split(".")[0] for module in imports(path)} & IMPURE
        assert not touched, f"pure, but imports {touched}"


def test_every_pure_room_exists() -> None:
    names = {name_of(path) for path in sources()}
    for pure in PURE:
        assert any(name == pure or name.startswith(f"{pure}/") for name in names), pure


@pytest.mark.parametrize("path", sources(), ids=name_of)
def test_files_stay_small_and_say_what_they_are(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= LONGEST_FILE
    docstring = ast.get_docstring(ast.parse(text))
    assert docstring, "the first line of a file names its one idea"


def test_folders_are_two_levels_deep_at_most() -> None:
    for path in sources():
        assert len(path.relative_to(PACKAGE).parts) <= 2, path
