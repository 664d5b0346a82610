"""The page about clients of HTTP and gRPC: its programs run, and print what it says."""

import asyncio
import re
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from pkgutil import resolve_name

import pytest

from etcd_aio.fake import FakeEtcd
from etcd_aio.services import naming
from tests.contrib.test_discovery_grpc import Echo
from tests.examples.blocks import python_blocks, read
from tests.examples.paths import PAGES, ROOT
from tests.support.http_service import HttpService

PAGE = read(PAGES / "how-to" / "http-and-grpc-clients.md")
PROGRAMS = {block.file: block for block in python_blocks(PAGE) if block.file is not None}


@pytest.mark.anyio
async def test_the_programs_print_what_the_page_says(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        fake = await stack.enter_async_context(FakeEtcd())
        endpoint = await stack.enter_async_context(fake.serve())
        client = await stack.enter_async_context(fake.client())
        http = await stack.enter_async_context(HttpService())
        grpc = await stack.enter_async_context(Echo(answers_alone=True))

        async def run(name: str) -> str:
            block = PROGRAMS[name]
            (tmp_path / name).write_text(
                block.code.replace("http://127.0.0.1:2379", endpoint).replace("timeout=5", "timeout=120")
            )
            command = [sys.executable, "-W", "error", str(tmp_path / name)]
            program = await asyncio.create_subprocess_exec(
                *command, env={"PYTHONPATH": str(ROOT)}, stdout=asyncio.subprocess.PIPE
            )
            output, _ = await program.communicate()
            return output.decode()

        await naming.update(client, "svc/api", add=[http.address])
        names = ["with_httpx.py", "with_aiohttp.py", "follow.py"]
        printed = dict(zip(names, await asyncio.gather(*map(run, names)), strict=True))
        await naming.update(client, "svc/api", add=[grpc.address], remove=[http.address])
        printed["with_grpc.py"] = await run("with_grpc.py")
    assert printed == {name: block.prints for name, block in PROGRAMS.items()}


def test_what_the_reference_shows_of_the_libraries_exists() -> None:
    page = read(PAGES / "reference" / "service-discovery.md")
    shown = re.findall(r"^::: (etcd_aio\.contrib\.\S+)$", page, re.MULTILINE)
    assert len(shown) == 6
    for name in shown:
        assert resolve_name(name) is not None
