"""The event loops that tests run on, and how they start tasks: chosen by the environment, for `nox -s pythons`.

ETCD_AIO_TEST_LOOP    asyncio (the default) or uvloop, for tests that do not choose a loop themselves
ETCD_AIO_TEST_TASKS   eager: every loop has `asyncio.eager_task_factory`, so that a task runs its first step before
                      `create_task` returns (Python 3.12 and newer). Not so on uvloop with Python 3.13.0 to 3.13.2:
                      there its `create_task` passes the factory an argument that it does not take.
"""

import asyncio
import importlib.util
import os
import sys
from collections.abc import Callable
from typing import Final, TypeAlias

import pytest

Backend: TypeAlias = tuple[str, dict[str, Callable[[], asyncio.AbstractEventLoop]]]

_DEFAULT: Final = os.environ.get("ETCD_AIO_TEST_LOOP") or "asyncio"
IS_EAGER: Final = os.environ.get("ETCD_AIO_TEST_TASKS") == "eager"


def with_tasks(loop: asyncio.AbstractEventLoop) -> asyncio.AbstractEventLoop:
    """The loop, which starts its tasks as this run wants it."""
    if IS_EAGER:
        loop.set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined,unused-ignore]
    return loop


class _Loop(asyncio.SelectorEventLoop):
    """A loop that closes what a test's own servers accepted and had no time left to close.

    A client's connection ends with its test; the server learns of it a turn later. Without this, the collector would
    find the server's socket in one of the next tests, and fail that. What the client leaves open still warns.
    """

    def close(self) -> None:
        if not self.is_closed():
            transports = list(self._transports.values())  # type: ignore[attr-defined]
            accepted = [transport for transport in transports if transport._server is not None]
            for transport in accepted:
                transport.abort()
            if accepted:
                self.run_until_complete(asyncio.sleep(0))
        super().close()


def asyncio_loop() -> asyncio.AbstractEventLoop:
    """A loop of the standard library."""
    return with_tasks(_Loop())


def uvloop_loop() -> asyncio.AbstractEventLoop:
    """A loop of uvloop."""
    import uvloop

    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop if (3, 13) <= sys.version_info < (3, 13, 3) else with_tasks(loop)


ASYNCIO: Final[Backend] = ("asyncio", {"loop_factory": asyncio_loop})
UVLOOP: Final[Backend] = ("asyncio", {"loop_factory": uvloop_loop})
DEFAULT: Final[Backend] = {"asyncio": ASYNCIO, "uvloop": UVLOOP}[_DEFAULT]

# For `pytest.fixture(params=...)` of tests that run on both.
NEEDS_UVLOOP: Final = pytest.mark.skipif(importlib.util.find_spec("uvloop") is None, reason="uvloop is not installed")
BOTH: Final = (pytest.param(ASYNCIO, id="asyncio"), pytest.param(UVLOOP, id="uvloop", marks=NEEDS_UVLOOP))


def is_uvloop(backend: object) -> bool:
    """Whether a backend's loop is one of uvloop."""
    return backend is UVLOOP
