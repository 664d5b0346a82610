"""Fixtures that every test shares."""

from pathlib import Path

import pytest

_INTEGRATION = Path(__file__).parent / "integration"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test on real servers a second chance, which the summary tells (`RERUN`).

    Their elections and restarts take what a shared machine leaves them, a thousand times in a run. Whatever needs no
    server has no such excuse and fails at once.
    """
    for item in items:
        if item.path.is_relative_to(_INTEGRATION):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture
def anyio_backend() -> str:
    """Asyncio is the one backend: the transports are asyncio protocols."""
    return "asyncio"
