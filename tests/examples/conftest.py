"""Fixtures that run scripts in their own process, on a real server."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from etcd_aio.testing import EtcdServer
from tests.examples.paths import ROOT, Run


@pytest.fixture(scope="session")
def server() -> Iterator[EtcdServer]:
    """One member for all tests, in its own loop and thread."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(EtcdServer()) as server:
        yield server


@pytest.fixture
def environment() -> dict[str, str]:
    """An environment in which this checkout is importable, without endpoints."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("ETCD_")}
    return variables | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}


@pytest.fixture
def run(environment: dict[str, str], tmp_path: Path) -> Run:
    """Run Python with these arguments and with warnings as errors. It must exit with 0. Returns its output."""

    def run(*arguments: str, **more: str) -> str:
        fork = "ignore:This process:DeprecationWarning"  # of Python 3.12: a page forks beside threads
        command = [sys.executable, "-X", "dev", "-W", "error", "-W", fork, *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment | more, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        # Warnings from finalizers (an unclosed socket, a forgotten task) cannot be raised, only printed.
        assert "Warning" not in done.stderr, done.stderr
        assert "never retrieved" not in done.stderr, done.stderr
        return done.stdout

    return run
