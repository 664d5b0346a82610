"""Fixtures that every test shares."""

import gc
import logging
import signal
from collections.abc import Generator
from typing import Any

import pytest

from tests.support import left_out, loops, seeds, tiers, virtual_time
from tests.support.canary import LeakDetector

_LEAK_DETECTOR = LeakDetector()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--nightly`, `--quick`, `--engines`, `--on-fake`, `--on-served-fake` and `--blocking`."""
    for tier, help_text in (("nightly", "run everything"), ("quick", "leave out what is slow")):
        help_text += "; see tests/support/tiers.py"
        parser.addoption(
            f"--{tier}", dest="tier", action="store_const", const=tier, default="default tier", help=help_text
        )
    parser.addoption("--engines", help="the engines of tests that run on several, such as gateway or native,grpclib")
    for option, way, help_text in (
        ("--on-fake", "engine", "run what shares a server on a fake: tests/support/on_fake.py"),
        ("--on-served-fake", "sockets", "the same, through sockets"),
    ):
        parser.addoption(option, dest="on_fake", action="store_const", const=way, help=help_text)
    help_text = "run the integration tests through `etcd_aio.sync`: tests/support/blocking/suite.py"
    parser.addoption("--blocking", action="store_true", help=help_text)


def pytest_configure(config: pytest.Config) -> None:
    """Choose the tier and the seed, and guard all tests.

    `tests/support/canary.py` searches logs, warnings and errors for secrets; `tests/support/left_out.py` guards the
    fields that etcd may leave out of an answer.
    """
    tiers.choose(str(config.getoption("tier")))
    seeds.choose()
    config.add_cleanup(_LEAK_DETECTOR.install())
    config.add_cleanup(left_out.install())
    if config.getoption("blocking"):
        from tests.support.blocking.suite import Blocking

        config.pluginmanager.register(Blocking())


def pytest_sessionstart(session: pytest.Session) -> None:
    """Log at DEBUG for the leak detector; tests and reports still get warnings only, and none about a slow machine.

    A run that `nohup` started ignores SIGHUP, one in the background of a script SIGINT and SIGQUIT, and so would each
    program that a test starts.
    """
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGQUIT"):
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    logging.getLogger("etcd_aio").setLevel(logging.DEBUG)
    logging.getLogger("asyncio").addFilter(lambda record: not record.msg.startswith("Executing %s took"))
    plugin: Any = session.config.pluginmanager.get_plugin("logging-plugin")
    for handler in (plugin.caplog_handler, plugin.report_handler):
        handler.addFilter(lambda record, own=handler: own.level > 0 or record.levelno >= logging.WARNING)


def pytest_collection_finish() -> None:
    """Exempt the collected tests, which stay to the end, from garbage collections: most of the time goes into them."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test in which a secret was found, or in which the library has read a field that etcd may leave out."""
    report = yield
    _LEAK_DETECTOR.look("captured output", *(text for title, text in report.sections if title.endswith(call.when)))
    if call.excinfo is not None:
        _LEAK_DETECTOR.look_at_error("raised by the test", call.excinfo.value)
    for what, seen in (
        ("a secret was seen (see tests/support/canary.py)", list(dict.fromkeys(_LEAK_DETECTOR.seen()))),
        ("a field that etcd may leave out was read (see tests/support/left_out.py)", left_out.seen()),
    ):
        if seen:
            report.outcome = "failed"
            text = f"{what}: {'; '.join(seen)}"
            report.longrepr = text if report.longrepr is None else f"{report.longrepr}\n{text}"
    return report


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of random histories have the seed of the run in their ids."""
    if "run_seed" in metafunc.fixturenames:
        metafunc.parametrize("run_seed", [seeds.chosen()], ids=lambda seed: f"seed{seed}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the tier does not run."""
    marks = {"nightly": (), "default tier": ("nightly",), "quick": ("nightly", "slow")}[str(config.getoption("tier"))]
    left_out = [item for item in items if any(map(item.get_closest_marker, marks))]
    if left_out:
        items[:] = [item for item in items if not any(map(item.get_closest_marker, marks))]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> loops.Backend:
    """Run on asyncio, the only backend of the library, in real or in virtual time."""
    is_virtual = request.node.get_closest_marker("virtual_time") is not None
    return virtual_time.BACKEND if is_virtual else loops.DEFAULT
