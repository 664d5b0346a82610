"""The layers, checked on the syntax tree: which package may import which, and what pure modules must not touch."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import etcd_aio
from etcd_aio import errors

PACKAGE = Path(__file__).parent.parent / "etcd_aio"

# Each package or module of the root, with those whose `__init__` it may import besides `BASE` and `MESSAGES`. Top to
# bottom: what a line names stands below it.
MAY_USE: dict[str, frozenset[str]] = {
    "__init__": frozenset(
        {"admin", "balancer", "calls", "client", "config", "error_handler", "kv", "lease", "store", "watch", "_version"}
    ),
    "__main__": frozenset({"cli"}),
    "cli": frozenset({"codec", "concurrency", "config", "fake", "kubernetes", "mirror", "offline", "pb", "services"}),
    "contrib": frozenset({"cache", "calls", "concurrency", "methods", "services", "sync"}),
    "compat": frozenset({"sync"}),
    "sync": frozenset(
        {
            *{
                "admin",
                "backend",
                "balancer",
                "cache",
                "client",
                "concurrency",
                "config",
                "error_handler",
                "fake",
                "kv",
            },
            *{"lease", "mirror", "once", "portal", "recipes", "services", "store", "transport", "views", "watch"},
        }
    ),
    "fake": frozenset({"transport"}),
    "client": frozenset(
        {
            *{"admin", "backend", "balancer", "config", "discovery", "error_handler", "late_parts", "lease", "store"},
            "transport",
            "views",
        }
    ),
    "late_parts": frozenset({"admin", "error_handler", "lease"}),
    "store": frozenset(
        {"cache", "calls", "concurrency", "kv", "lease", "once", "recipes", "services", "views", "watch"}
    ),
    "recipes": frozenset({"cache", "calls", "concurrency", "lease", "services", "watch"}),
    "services": frozenset({"cache", "calls", "lease", "watch"}),
    "mirror": frozenset({"calls", "watch"}),
    "views": frozenset({"backend", "kv", "watch"}),
    "cache": frozenset({"calls"}),
    "concurrency": frozenset({"calls", "lease"}),
    "once": frozenset({"calls", "lease"}),
    "calls": frozenset({"backend", "kv", "lease", "watch"}),
    "backend": frozenset({"error_handler", "kv", "lease", "watch"}),
    "config": frozenset({"balancer", "discovery", "error_handler", "transport"}),
    "watch": frozenset({"error_handler", "kv"}),
    "kv": frozenset({"error_handler"}),
    "lease": frozenset({"error_handler", "portal"}),
    "admin": frozenset({"error_handler"}),
    "discovery": frozenset({"balancer"}),
    "error_handler": frozenset({"balancer", "transport"}),
    "balancer": frozenset({"transport"}),
    "transport": frozenset({"http2"}),
    "http2": frozenset(),
    "codec": frozenset(),
    "methods": frozenset(),
    "pb": frozenset(),
    "kubernetes": frozenset(),
    "offline": frozenset(),
    "portal": frozenset(),
    "testing": frozenset(),
}
# What every package may use, and which uses nothing but itself.
BASE = frozenset(
    {
        "_exports",
        "_version",
        "arguments",
        "base",
        "dataclass",
        "errors",
        "exports",
        "fast_frozen",
        "observing",
        "types",
    }
)
# etcd's messages, and what reads and writes them.
MESSAGES = frozenset({"codec", "methods", "pb"})
MESSAGES_ORDER: dict[str, frozenset[str]] = {
    "pb": frozenset(),
    "codec": frozenset({"pb"}),
    "methods": frozenset({"pb"}),
}
# What stands on the public client, whose methods import it at its first use. Besides `BASE`, such a package
# may use the names of `etcd_aio.__all__`; no messages, and no other such package but those in `MAY_USE`.
ON_THE_CLIENT = frozenset(
    {"cache", "cli", "compat", "concurrency", "contrib", "mirror", "once", "recipes", "services", "sync", "views"}
)
# What a function may import when it runs, and annotations may name, although it stands above.
MAY_USE_LATER = {
    "fake": frozenset({"client", "config"}),
}
ALONE = frozenset({"http2"})  # could become a package of its own as it is
FOREIGN: dict[str, frozenset[str]] = {
    "grpclib": frozenset({"fake", "transport"}),
    "h2": frozenset({"fake", "transport"}),
    "hpack": frozenset({"http2"}),
    "dns": frozenset({"discovery"}),
    "websockets": frozenset({"transport"}),
    "click": frozenset({"cli"}),
    "rich": frozenset({"cli"}),
    "aiohttp": frozenset({"contrib"}),
    "grpc": frozenset({"contrib"}),
    "httpx": frozenset({"contrib"}),
    "httpx2": frozenset({"contrib"}),
    "opentelemetry": frozenset({"contrib"}),
    "prometheus_client": frozenset({"contrib"}),
    "fastapi": frozenset({"contrib"}),
    "litestar": frozenset({"contrib"}),
    "msgspec": frozenset({"contrib"}),
    "patroni": frozenset({"contrib"}),
    "pydantic": frozenset({"contrib"}),
    "pydantic_settings": frozenset({"contrib"}),
    "quart": frozenset({"contrib"}),
    "sanic": frozenset({"contrib"}),
    "starlette": frozenset({"contrib"}),
    "tooz": frozenset({"contrib"}),
    "torch": frozenset({"contrib"}),
    "betterproto2": frozenset({"pb", "codec"}),
}
IMPURE = frozenset({"asyncio", "logging", "os", "random", "select", "socket", "ssl", "subprocess", "threading", "time"})
PURE = (
    "admin/replies",
    "arguments",
    "base/backoff",
    "base/contention",
    "balancer/connection_set",
    "balancer/connectivity",
    "balancer/health_verdicts",
    "balancer/picker",
    "balancer/redial_schedule",
    "balancer/renewal_schedule",
    "balancer/store_doubts",
    "cache/base",
    "cache/conflation",
    "cache/results",
    "cache/rows",
    "cache/state",
    "cache/steps",
    "cache/tree",
    "base/call_options",
    "cli/dump_format",
    "cli/dump_tree",
    "cli/follow_text",
    "cli/format_fields",
    "cli/format_json",
    "cli/format_pretty",
    "cli/format_protobuf",
    "cli/format_simple",
    "cli/format_table",
    "cli/formats",
    "cli/go_text",
    "cli/messages",
    "cli/outcome",
    "cli/restore_plan",
    "cli/results",
    "cli/rows",
    "cli/top_metrics",
    "cli/top_model",
    "cli/txn_grammar",
    "codec",
    "compat/_limits",
    "compat/_ranges",
    "compat/aetcd/exceptions",
    "compat/aetcd/transactions",
    "compat/etcd3gw/_json",
    "compat/etcd3gw/_operations",
    "concurrency/leaders",
    "concurrency/permits",
    "concurrency/place",
    "config/validity",
    "contrib/config/dataclass",
    "contrib/config/document",
    "contrib/config/hints",
    "contrib/config/models",
    "contrib/discovery/addresses",
    "contrib/discovery/picking",
    "contrib/otel/addresses",
    "contrib/otel/semconv",
    "contrib/patroni/settings",
    "contrib/patroni/wakes",
    "contrib/tooz/silence",
    "contrib/tooz/url",
    "config/environ",
    "config/proxy_environment",
    "config/proxy_url",
    "config/settings",
    "config/text",
    "config/url",
    "base/deadline",
    "base/durations",
    "discovery/addresses",
    "discovery/member_urls",
    "discovery/resolver",
    "discovery/schedule",
    "discovery/srv_records",
    "discovery/tracked",
    "error_handler/description",
    "error_handler/outcome",
    "error_handler/credentials",
    "error_handler/retry_policy",
    "error_handler/token_state",
    "error_handler/retry_verdicts",
    "errors",
    "exports",
    "fake/alarms",
    "fake/auth_service",
    "fake/cluster",
    "fake/dispatch",
    "fake/documents",
    "fake/faults",
    "fake/guard",
    "fake/inspection",
    "fake/kv_service",
    "fake/lease_service",
    "fake/leases",
    "fake/maintenance_service",
    "fake/node",
    "fake/outcomes",
    "fake/permissions",
    "fake/ranges",
    "fake/refusals",
    "fake/releases",
    "fake/server_streams",
    "fake/store",
    "fake/tokens",
    "fake/txns",
    "fake/users",
    "fake/watch_stream",
    "fake/watchers",
    "http2",
    "kv/compare",
    "kv/endless_deletes",
    "kv/op",
    "kv/operations",
    "mirror/batching",
    "mirror/checkpoint",
    "services/endpoint_json",
    "services/last_list",
    "mirror/reconcile",
    "views/translate",
    "lease/keepalive_schedule",
    "lease/patience",
    "methods",
    "kubernetes/special",
    "kubernetes/wire",
    "offline/contents",
    "offline/crc32c",
    "offline/pages",
    "offline/tree",
    "once/guarded",
    "once/write_verdicts",
    "once/replay",
    "once/results",
    "once/slot",
    "recipes/queue/known_items",
    "recipes/group/hash_ring",
    "recipes/stm/isolation",
    "recipes/work_queue/claiming",
    "recipes/work_queue/jobs",
    "recipes/barrier/meeting",
    "recipes/stm/read_set",
    "recipes/counter/sums",
    "recipes/schedule/ticks",
    "transport/document_status",
    "transport/framing",
    "transport/gateway/http1",
    "transport/gateway/json_mapping",
    "transport/gateway/replies",
    "transport/liveness",
    "transport/metadata",
    "transport/patience",
    "transport/proxy/conversation",
    "transport/proxy/http_connect",
    "transport/response",
    "transport/uploads",
    "types",
    "watch/creations",
    "watch/fragments",
    "watch/open_stream",
    "watch/outages",
    "watch/progress",
    "watch/requests",
    "watch/compaction_resync",
    "watch/state",
    "watch/resuming_stream",
    "watch/open_watches",
)
MAY_READ_VARIABLES = frozenset({"base/accelerator"})  # pure but for one variable, which is read at import
LONGEST_FILE = 600
# Packages that few programs import, and use then, may have the dataclasses of the standard library. So may files with
# a class without slots.
LOADED_WITH_ALL_ELSE = frozenset({"contrib", "dataclass", "fake", "http2", "testing"})
COMPLETE = frozenset({"cli/restore"})
GENERATED = frozenset({"generated", "pb"})
# The pytest plugin stands above everything: what it enters, and the modules that pytest loads in every run.
PLUGIN = PACKAGE.parent / "pytest_etcd_aio"
PLUGIN_MAY_USE = frozenset(
    {"etcd_aio.admin", "etcd_aio.config", "etcd_aio.errors", "etcd_aio.fake", "etcd_aio.fake.time"}
    | {"etcd_aio.observing", "etcd_aio.testing"}
)
LOADED_IN_EVERY_RUN = (
    "__init__",
    "asyncio_loops",
    "factories",
    "fixtures",
    "hooks",
    "loops",
    "options",
    "runner",
    "wanted",
)
PUBLIC_NAMES = frozenset(vars(etcd_aio)["__all__"])
PUBLIC_ERRORS = frozenset(vars(errors)["__all__"])
# Users write `from etcd_aio import op`: the module is the name. `follow` is the function of a module of that name.
PUBLIC_MODULES = frozenset({"etcd_aio.kv.op", "etcd_aio.mirror.follow", "etcd_aio.services.naming"})


@cache
def sources() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if not GENERATED & {*path.relative_to(PACKAGE).parts[:-1]})


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").as_posix()


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def for_each_file(check: Callable[[Path], None]) -> Callable[[str], None]:
    """A test for each package, of what must hold for each of its files. A failure names the file."""

    @pytest.mark.parametrize("package", sorted({package_of(path) for path in sources()}))
    def test(package: str) -> None:
        for path in sources():
            if package_of(path) == package:
                try:
                    check(path)
                except AssertionError as failure:
                    failure.add_note(f"in {name_of(path)}")
                    raise

    test.__name__ = test.__qualname__ = check.__name__
    return test


def is_late(node: ast.AST) -> bool:
    """Whether what stands below runs only in a call, or never."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
        isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    )


@cache
def imports_at_once(path: Path) -> frozenset[str]:
    """Every module that is imported with this one."""
    found: set[str] = set()
    waiting: list[ast.AST] = [tree_of(path)]
    while waiting:
        node = waiting.pop()
        found.update(imported_by(node))
        waiting += [child for child in ast.iter_child_nodes(node) if not is_late(child)]
    return frozenset(found)


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Every imported module, with the names of a from-import as if they were submodules where they are."""
    return tuple(module for node in ast.walk(tree_of(path)) for module in imported_by(node))


def imported_by(node: ast.AST) -> Iterator[str]:
    """The modules that a node of the tree imports itself."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative import"
        module = node.module or ""
        if module == "etcd_aio":
            yield from (f"etcd_aio.{alias.name}" for alias in node.names)
        elif module.count(".") == 1 and (PACKAGE / module.split(".")[1]).is_dir():
            for alias in node.names:
                is_submodule = (PACKAGE / module.split(".")[1] / f"{alias.name}.py").exists()
                yield f"{module}.{alias.name}" if is_submodule else module
        else:
            yield module


@for_each_file
def test_a_package_imports_only_lower_layers_and_through_their_init(path: Path) -> None:
    package = package_of(path)
    for module in imports(path):
        if not module.startswith("etcd_aio"):
            continue
        parts = module.split(".")
        other = parts[1] if len(parts) > 1 else "__init__"
        if other == package:
            continue
        assert package not in ALONE, f"{package} must not import the rest of the project"
        if package in BASE and other not in MAY_USE_LATER.get(package, ()):
            assert other in BASE, f"{package} is below {other}"
        elif package in MESSAGES:
            assert other in BASE | MESSAGES_ORDER[package], f"{package} must not import {other}"
        elif package in ON_THE_CLIENT:
            is_public = len(parts) == 2 and other in PUBLIC_NAMES
            assert is_public or other in BASE | MAY_USE[package], f"{package} must not import {other}"
        elif other in MAY_USE_LATER.get(package, ()):
            assert module not in imports_at_once(path), f"{package} imports {other} at once"
        else:
            assert other in BASE | MESSAGES | MAY_USE[package], f"{package} must not import {other}"
        if module in PUBLIC_MODULES:
            continue
        # `etcd_aio.base` has what recipes need; packages below it take the modules themselves.
        may_reach_in = other == "base" and package not in ON_THE_CLIENT
        is_public_part = other == "sync" and len(parts) == 3 and (PACKAGE / other / parts[2]).is_dir()
        goes_through_init = len(parts) == 2 or may_reach_in or is_public_part or not (PACKAGE / other).is_dir()
        assert goes_through_init, f"{module}: another package is imported through its __init__, etcd_aio.{other}"


def test_what_stands_on_the_client_imports_only_public_errors() -> None:
    for path in sources():
        for node in ast.walk(tree_of(path)) if package_of(path) in ON_THE_CLIENT else ():
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("etcd_aio.errors"):
                assert node.module == "etcd_aio.errors", path
                assert {alias.name for alias in node.names} <= PUBLIC_ERRORS, path


def test_the_layers_are_listed_from_top_to_bottom() -> None:
    order = list(MAY_USE)
    for package, lower in MAY_USE.items():
        assert all(order.index(other) > order.index(package) for other in lower - BASE), package


@for_each_file
def test_other_projects_are_imported_by_one_package_each(path: Path) -> None:
    for module in imports(path):
        foreign = module.split(".")[0]
        if foreign in FOREIGN:
            assert package_of(path) in FOREIGN[foreign], f"{foreign} must not be imported here"


@for_each_file
def test_dataclasses_are_completed_at_their_first_use(path: Path) -> None:
    """`etcd_aio.dataclass` makes them; the standard library's would take most of the time of an import."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module == "dataclasses" and name_of(path) not in COMPLETE:
            assert package_of(path) in LOADED_WITH_ALL_ELSE or "dataclass" not in {alias.name for alias in node.names}


@for_each_file
def test_pure_modules_use_no_clock_no_randomness_and_no_io(path: Path) -> None:
    name = name_of(path)
    if any(name == pure or name.startswith(f"{pure}/") for pure in PURE):
        touched = {module.split(".")[0] for module in imports(path)} & IMPURE
        touched -= {"os"} if name in MAY_READ_VARIABLES else set()
        assert not touched, f"pure, but imports {touched}"


@for_each_file
def test_a_module_that_calls_itself_pure_is_checked(path: Path) -> None:
    text = ast.get_docstring(tree_of(path)) or ""
    assert "Pure." not in text or any(f"{name_of(path)}/".startswith(f"{pure}/") for pure in PURE)


def test_every_pure_module_exists() -> None:
    names = {name_of(path) for path in sources()}
    for pure in PURE:
        assert any(name == pure or name.startswith(f"{pure}/") for name in names), pure


@for_each_file
def test_the_executor_of_the_loop_is_left_to_the_application(path: Path) -> None:
    """Its jobs may fill it, and calls of the client would wait for them: see `base/threads.py`."""
    if name_of(path) not in ("fake/time", "contrib/discovery/httpx"):  # the loop itself; a file that is read once
        assert not re.search(r"asyncio\.to_thread|\.run_in_executor\(", path.read_text())


@for_each_file
def test_files_stay_small_and_say_what_they_are(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= LONGEST_FILE
    docstring = ast.get_docstring(tree_of(path))
    assert docstring, "the first line of a file says what it is for"


def test_folders_are_two_levels_deep_at_most() -> None:
    for path in sources():
        # A folder for each project, recipe and engine that needs several files.
        parts = path.relative_to(PACKAGE / "sync" if package_of(path) == "sync" else PACKAGE).parts
        has_folders = parts[0] in ("compat", "contrib", "recipes", "transport")
        assert len(parts) <= (3 if has_folders else 2), path


# --- circles ---

Graph = Mapping[str, frozenset[str]]


def import_graph(trees: Mapping[str, ast.Module]) -> Graph:
    """Each module, with the modules that define what it imports: also late, and for type checkers only.

    A name that an `__init__` only hands on is defined where that has it from.
    """
    packages = {name.rpartition(".")[0] for name in trees}
    imported = {module: list(imported_names(tree)) for module, tree in trees.items()}
    handed_on = {package: dict(imported[package]) for package in packages & trees.keys()}

    def definer(module: str, name: str) -> str:
        submodule = f"{module}.{name}"
        if submodule in trees or not name:
            return submodule.removesuffix(".")
        source = handed_on.get(module, {}).get(name)
        return module if source is None else definer(*source)

    return {
        module: frozenset(definer(*source) for _, source in sources if source[0] in trees) - {module}
        for module, sources in imported.items()
    }


def imported_names(tree: ast.Module) -> Iterator[tuple[str, tuple[str, str]]]:
    """The names that a module imports, each with the module and its name there; that is empty for a whole module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, (alias.name, "")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, (node.module or "", alias.name)) for alias in node.names)


def circle_in(graph: Graph) -> list[str]:
    """A circle: each module imports the next one, and the last is the first again. Empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle[::-1]
    return []


@cache
def own_graph() -> Graph:
    paths = {f"etcd_aio/{name_of(path)}".removesuffix("/__init__"): path for path in PACKAGE.rglob("*.py")}
    return import_graph({name.replace("/", "."): tree_of(path) for name, path in paths.items()})


def test_no_imports_are_a_circle() -> None:
    circle = circle_in(own_graph())
    assert not circle, " imports ".join(circle)


@pytest.mark.parametrize(
    "line",
    [
        "from p.high import High",
        "from p.high.door import High",
        "import p.high.door",
        "from p.high import door",
        "def late():\n    from p.high import High",
        "if TYPE_CHECKING:\n    from p.high import High",
        "from p.high import High\nfrom x import High",
    ],
)
def test_a_circle_is_found(line: str) -> None:
    texts = {
        "p": "from p.low import Low as Low",
        "p.high": "from p.high.door import High as High",
        "p.high.door": "from p import Low\nHigh = Low",
        "p.low": line,
    }
    found = circle_in(import_graph({name: ast.parse(text) for name, text in texts.items()}))
    assert set(found) == {"p.high.door", "p.low"}
    texts["p.low"] = "Low = 1"
    assert not circle_in(import_graph({name: ast.parse(text) for name, text in texts.items()}))


# --- the pytest plugin ---


def plugin_sources() -> list[Path]:
    return sorted(PLUGIN.glob("*.py"))


def plugin_name_of(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", plugin_sources(), ids=plugin_name_of)
def test_the_pytest_plugin_stands_on_public_packages(path: Path) -> None:
    for module in imports(path):
        if module.split(".")[0] == "etcd_aio":
            is_public = module.count(".") == 1 and module.split(".")[1] in PUBLIC_NAMES
            assert is_public or module in PLUGIN_MAY_USE, module
    assert path.read_text().count("\n") <= LONGEST_FILE
    assert ast.get_docstring(tree_of(path)), "the first line of a file says what it is for"


@pytest.mark.parametrize("name", LOADED_IN_EVERY_RUN)
def test_what_pytest_loads_in_every_run_imports_nothing_of_the_client(name: str) -> None:
    at_once = set(imports_at_once(PLUGIN / f"{name}.py"))
    own = {module.split(".")[1] for module in at_once if module.startswith("pytest_etcd_aio.")}
    assert own <= set(LOADED_IN_EVERY_RUN)
    assert not {module.split(".")[0] for module in at_once} & {"etcd_aio", "anyio"}


def test_the_library_does_not_import_the_pytest_plugin() -> None:
    for path in sources():
        assert not {module.split(".")[0] for module in imports(path)} & {"pytest", "pytest_etcd_aio"}, path
