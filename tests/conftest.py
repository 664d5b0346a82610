"""Fixtures that every test shares."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Asyncio is the one backend: the transports are asyncio protocols."""
    return "asyncio"
