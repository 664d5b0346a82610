"""Tests of `etcd_aio.contrib`, for `nox -s contrib`. Elsewhere those are left out whose libraries are missing."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from etcd_aio.testing import EtcdServer
from tests.contrib.served import Served, serving

collect_ignore_glob = [
    pattern
    for pattern, library in (
        ("test_config*.py", "msgspec"),
        ("test_dashboard.py", "prometheus_client"),
        ("test_discovery_aiohttp.py", "aiohttp"),
        ("test_discovery_grpc.py", "grpc"),
        ("test_discovery_page.py", "aiohttp"),
        ("test_discovery_page.py", "grpc"),
        ("test_otel*.py", "opentelemetry.sdk"),
        ("test_patroni_[dfi]*.py", "patroni"),
        ("test_patroni_[df]*.py", "psycopg"),
        ("test_prometheus*.py", "prometheus_client"),
        ("test_pydantic_settings.py", "pydantic_settings"),
        ("test_service.py", "fastapi"),
        ("test_tooz*.py", "tooz"),
        ("test_sync_page.py", "flask"),
        ("test_sync_page.py", "gunicorn"),
        ("test_web_asgi.py", "fastapi"),
        ("test_web_frameworks.py", "fastapi"),
        ("test_web_page.py", "fastapi"),
        ("test_web_servers.py", "uvicorn"),
    )
    if find_spec(library.split(".")[0]) is None or find_spec(library) is None
]


@pytest.fixture
def served() -> Iterator[Served]:
    """A fake for applications that run in loops of their own."""
    with serving() as served:
        yield served


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    """A loop in a thread of its own, for blocking tests."""
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture(scope="module")
def server(portal: BlockingPortal) -> Iterator[EtcdServer]:
    """A real server for blocking tests."""
    with portal.wrap_async_context_manager(EtcdServer()) as server:
        yield server
