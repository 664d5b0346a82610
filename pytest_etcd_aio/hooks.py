"""The hooks of the plugin: options, the marker, healthy servers after each test, and what a failure reports."""

import sys
from collections.abc import Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pytest

from pytest_etcd_aio.options import add_options
from pytest_etcd_aio.runner import has_pytest_asyncio
from pytest_etcd_aio.wanted import MARKER, Wanted, merged, unusable, wanted_from

if TYPE_CHECKING:
    from pytest_etcd_aio.pool import Pool

_HIDDEN: Final = getattr(pytest, "HIDDEN_PARAM", "etcd")  # new in pytest 8.4

POOL: "Final[pytest.StashKey[Pool]]" = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the options."""
    add_options(parser)
    _import_as_usual(pluginmanager)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, and the fixtures that run in loops of pytest-asyncio where that is active."""
    config.addinivalue_line("markers", MARKER)
    if has_pytest_asyncio(config):
        from pytest_etcd_aio import asyncio_loops

        config.pluginmanager.register(asyncio_loops, "etcd_aio_asyncio_loops")


def arguments_of(node: pytest.Item) -> dict[str, object]:
    """The arguments of the marker of a test.

    Raises:
        ValueError: it has positional arguments.
    """
    markers = list(node.iter_markers("etcd"))
    if any(marker.args for marker in markers):
        raise ValueError(f"etcd() takes keyword arguments only; it is {MARKER}")
    return merged(marker.kwargs for marker in markers)


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None]:
    """Let the fixtures of a test know which server and which loop it asks for. The id of the test stays as it is."""
    if "_etcd_wanted" in metafunc.fixturenames:
        wanted = _wanted(metafunc)
        if wanted != Wanted():
            metafunc.parametrize("_etcd_wanted", [wanted], ids=[_HIDDEN], indirect=True)
    if "etcd_clock" in metafunc.fixturenames:
        _use_virtual_time(metafunc)
    return (yield)


def _wanted(metafunc: pytest.Metafunc) -> Wanted:
    try:
        arguments = arguments_of(metafunc.definition)
        is_cluster = "etcd_cluster" in metafunc.fixturenames
        owner = metafunc.definition.nodeid if arguments.get("private") else ""
        return wanted_from(arguments, is_cluster=is_cluster, owner=owner)
    except ValueError as error:
        unusable(f"{metafunc.definition.nodeid}: {error}")


def _use_virtual_time(metafunc: pytest.Metafunc) -> None:
    """Let the runner of a test make a loop in virtual time."""
    from pytest_etcd_aio import virtual_time

    if "anyio_backend" in metafunc.fixturenames:
        metafunc.parametrize("anyio_backend", [virtual_time.BACKEND], ids=[_HIDDEN])
    elif not metafunc.config.pluginmanager.is_registered(virtual_time):
        metafunc.config.pluginmanager.register(virtual_time, "etcd_aio_virtual_time")


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Say which etcd is used, if there are tests that use one."""
    used = {name for item in items for name in getattr(item, "fixturenames", ())}
    if config.option.collectonly or not used & {"_etcd_pool", "fake_etcd"}:
        return []
    from pytest_etcd_aio.report import header

    return [header(config, has_servers="_etcd_pool" in used, has_fakes=bool(used & {"fake_etcd", "etcd_any"}))]


def _import_as_usual(pluginmanager: pytest.PytestPluginManager) -> None:
    """Let pytest import the client as any other package.

    It rewrites the assertions of all packages that are installed together with a plugin. Where it cannot keep the
    result, as with PYTHONDONTWRITEBYTECODE, that makes the import of `etcd_aio` four times as slow. There is no public
    way to say so; if pytest keeps its list elsewhere one day, the import is slow there.
    """
    hook = getattr(pluginmanager, "rewrite_hook", None)
    marked, known = getattr(hook, "_must_rewrite", None), getattr(hook, "_marked_for_rewrite_cache", None)
    if isinstance(marked, set) and isinstance(known, dict):
        marked -= {"etcd_aio", "pytest_etcd_aio"}
        known.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the logs of the servers and the statistics of the clients to the report of a test that failed."""
    report = yield
    if report.failed and "etcd_aio" in sys.modules:
        from pytest_etcd_aio.report import sections

        pool = item.config.stash.get(POOL, None)
        report.sections.extend(sections(item, pool))
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Heal the servers before the fixtures of a test are torn down, which may need them, and again afterwards."""
    pool = item.config.stash.get(POOL, None)
    if pool is not None:
        with suppress(Exception):  # raised again below, after the fixtures are torn down
            pool.heal()
    try:
        return (yield)
    finally:
        if pool is not None:
            pool.end_test(item.nodeid)
