"""The fixtures of the page about testing: each block is a test file that passes with its plugin."""

from pathlib import Path

import pytest

from tests.examples.blocks import Block, python_blocks, read
from tests.examples.paths import PAGES, Run

PAGE = PAGES / "how-to" / "testing.md"
IMPORTS = "from etcd_aio import Client\nfrom etcd_aio.testing import EtcdServer\n"
SETTINGS = "[pytest]\nfilterwarnings = error\nasyncio_default_fixture_loop_scope = function\n"


def block(text: str) -> Block:
    """The one block of the page that contains this text."""
    (found,) = (one for one in python_blocks(read(PAGE)) if text in one.code)
    return found


@pytest.mark.cluster
@pytest.mark.parametrize("plugin", ["import pytest_asyncio", "def anyio_backend"])
def test_the_fixtures_work(plugin: str, run: Run, tmp_path: Path) -> None:
    app = block("def test_greeting").code
    (tmp_path / "test_page.py").write_text(IMPORTS + block(plugin).code + app)
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    assert "2 passed" in run("-m", "pytest", "-p", "no:cacheprovider", "test_page.py")
