"""Fixtures that every test shares."""

import logging
from collections.abc import Generator
from typing import Any

import pytest

from tests.support import loops, seeds, tiers, virtual_time
from tests.support.canary import Watchman

_WATCHMAN = Watchman()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--nightly`."""
    parser.addoption("--nightly", action="store_true", help="run everything; see tests/support/tiers.py")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the tier and the seed, and watch logs, warnings and errors for the canary (`tests/support/canary.py`)."""
    tiers.choose(is_nightly=bool(config.getoption("nightly")))
    seeds.choose()
    config.add_cleanup(_WATCHMAN.install())


def pytest_sessionstart(session: pytest.Session) -> None:
    """Our own loggers log everything, for the watchman; tests and reports get what they would get without him."""
    logging.getLogger("etcd_aio").setLevel(logging.DEBUG)
    plugin: Any = session.config.pluginmanager.get_plugin("logging-plugin")
    for handler in (plugin.caplog_handler, plugin.report_handler):
        handler.addFilter(lambda record, own=handler: own.level > 0 or record.levelno >= logging.WARNING)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test in which a secret was seen has failed."""
    report = yield
    _WATCHMAN.look("captured output", *(text for title, text in report.sections if title.endswith(call.when)))
    if call.excinfo is not None:
        _WATCHMAN.look_at_error("raised by the test", call.excinfo.value)
    seen = _WATCHMAN.seen()
    if seen:
        report.outcome = "failed"
        told = f"a secret was seen (see tests/support/canary.py): {'; '.join(dict.fromkeys(seen))}"
        report.longrepr = told if report.longrepr is None else f"{report.longrepr}\n{told}"
    return report


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of random histories have the seed of the run in their ids."""
    if "run_seed" in metafunc.fixturenames:
        metafunc.parametrize("run_seed", [seeds.chosen()], ids=lambda seed: f"seed{seed}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only `--nightly` runs."""
    if config.getoption("nightly"):
        return
    left_out = [item for item in items if item.get_closest_marker("nightly") is not None]
    if left_out:
        items[:] = [item for item in items if item.get_closest_marker("nightly") is None]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> loops.Backend:
    """Asyncio is the one backend: the transports are asyncio protocols. It runs in real or in virtual time."""
    is_virtual = request.node.get_closest_marker("virtual_time") is not None
    return virtual_time.BACKEND if is_virtual else loops.DEFAULT
