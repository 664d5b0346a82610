"""Finds what runs the loop of a test, pytest-asyncio or anyio, so that a client is opened and closed in that loop.

A fixture of a plugin cannot know whether anyio or pytest-asyncio runs the test. So the public fixtures are synchronous,
and get the loop from one of several private fixtures, each of which is for one runner.
"""

import inspect
from typing import TYPE_CHECKING, Final

import pytest

from pytest_etcd_aio.wanted import unusable

if TYPE_CHECKING:
    from pytest_etcd_aio.loops import ClientLoop

LOOP: "Final[pytest.StashKey[ClientLoop]]" = pytest.StashKey()
"""The loop of a test, at its item."""


def loop_of(request: pytest.FixtureRequest) -> "ClientLoop":
    """The loop of a test."""
    loop: ClientLoop = request.getfixturevalue(f"_etcd_loop_{runner_of(request)}")
    request.node.stash[LOOP] = loop
    return loop


def runner_of(request: pytest.FixtureRequest) -> str:
    """`anyio`, or the loop scope of pytest-asyncio. The test fails or is skipped if it has neither."""
    config = request.config
    is_asyncio = has_pytest_asyncio(config)
    if "anyio_backend" in request.fixturenames:
        if is_asyncio and (config.getoption("asyncio_mode") or config.getini("asyncio_mode")) == "auto":
            unusable(
                f"{request.fixturename} cannot serve a test of anyio while pytest-asyncio takes every async fixture: "
                "remove `asyncio_mode = auto` from the configuration of pytest, or the anyio marker from the test"
            )
        if request.getfixturevalue("anyio_backend_name") != "asyncio":
            pytest.skip("etcd_aio runs on asyncio only")
        return "anyio"
    marker = request.node.get_closest_marker("asyncio")
    if is_asyncio and marker is not None and _is_async(request.function):
        scope = marker.kwargs.get("loop_scope") or marker.kwargs.get("scope")
        return str(scope or config.getini("asyncio_default_test_loop_scope"))
    reason = "needs an async test; a sync test can use etcd_server, etcd_endpoints and etcd_namespace"
    if _is_async(request.function):
        reason = "needs a runner: mark the test with `pytest.mark.asyncio` or `pytest.mark.anyio`"
    return unusable(f"{request.fixturename} {reason}")


def has_pytest_asyncio(config: pytest.Config) -> bool:
    """Whether pytest-asyncio is active: by its entry point, or as `-p pytest_asyncio.plugin` names it."""
    return any(config.pluginmanager.hasplugin(name) for name in ("asyncio", "pytest_asyncio", "pytest_asyncio.plugin"))


def _is_async(function: object) -> bool:
    hypothesis = getattr(function, "hypothesis", None)
    return inspect.iscoroutinefunction(getattr(hypothesis, "inner_test", function))
