"""Unit tests of the error handler run in virtual time."""

import pytest

from tests.support import loops, virtual_time


@pytest.fixture
def anyio_backend() -> loops.Backend:
    return virtual_time.BACKEND
