"""The private fixtures for tests that pytest-asyncio runs: one for each scope of a loop."""

import pytest_asyncio

from pytest_etcd_aio.loops import ClientLoop


@pytest_asyncio.fixture(loop_scope="function")
async def _etcd_loop_function() -> ClientLoop:
    return ClientLoop()


@pytest_asyncio.fixture(loop_scope="class")
async def _etcd_loop_class() -> ClientLoop:
    return ClientLoop()


@pytest_asyncio.fixture(loop_scope="module")
async def _etcd_loop_module() -> ClientLoop:
    return ClientLoop()


@pytest_asyncio.fixture(loop_scope="package")
async def _etcd_loop_package() -> ClientLoop:
    return ClientLoop()


@pytest_asyncio.fixture(loop_scope="session")
async def _etcd_loop_session() -> ClientLoop:
    return ClientLoop()
