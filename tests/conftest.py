"""Fixtures that every test shares."""

import logging
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.support import loops
from tests.support.canary import Watchman

_FOLDERS = ("contract", "examples", "integration", "unit/testing", "unit/transport")
_REAL = tuple(Path(__file__).parent / name for name in _FOLDERS)
_WATCHMAN = Watchman()


def pytest_configure(config: pytest.Config) -> None:
    """Watch for the canary (`tests/support/canary.py`) in whatever the library tells anybody."""
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test on real servers and sockets a second chance, which the summary tells (`RERUN`).

    Their elections, restarts and silences take what a shared machine leaves them, thousands of times in a run. Whatever
    is pure has no such excuse and fails at once.
    """
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in _REAL):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture
def anyio_backend() -> loops.Backend:
    """Asyncio is the one backend: the transports are asyncio protocols."""
    return loops.DEFAULT
