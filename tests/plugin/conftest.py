"""Fixtures of the tests of the pytest plugin."""

from pathlib import Path

import pytest

from tests.support.suites import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty project, in which pytest runs with the plugin."""
    return Project(tmp_path)
