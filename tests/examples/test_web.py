"""The registration on the page about web frameworks, when it cannot succeed."""

import asyncio
import logging
from typing import Any

import pytest

from etcd_aio import Client, ClientClosedError
from tests.examples.blocks import python_blocks, read
from tests.examples.paths import PAGES

pytestmark = pytest.mark.anyio


async def test_a_final_error_ends_the_registration_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    names: dict[str, Any] = {"Client": Client}
    for block in python_blocks(read(PAGES / "how-to" / "web-frameworks.md")):
        if "async def register" in block.code:
            exec(block.code.partition("@asynccontextmanager")[0], names)
    register = names["register"]
    client = Client("http://127.0.0.1:2379")
    await client.aclose()
    with caplog.at_level(logging.CRITICAL), pytest.raises(ClientClosedError):
        async with asyncio.timeout(30):
            await register(client)
    assert "the client is closed" in caplog.text
