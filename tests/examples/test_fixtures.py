"""The fixtures of the page about testing: the tests that use them pass with the plugin of the fixtures."""

from pathlib import Path

import pytest

from tests.examples.blocks import Block, python_blocks, read
from tests.examples.paths import PAGES, Run

PAGE = PAGES / "how-to" / "testing.md"
IMPORTS = "from etcd_aio import Client\nfrom etcd_aio.testing import EtcdServer\n"
SETTINGS = "[pytest]\nfilterwarnings = error\nasyncio_default_fixture_loop_scope = function\n"


def block(text: str) -> Block:
    """The only block of the page that contains this text."""
    (match,) = (block for block in python_blocks(read(PAGE)) if text in block.code)
    return match


@pytest.mark.cluster
@pytest.mark.parametrize("plugin", ["import pytest_asyncio", "def anyio_backend"])
def test_the_fixtures_work(plugin: str, run: Run, tmp_path: Path) -> None:
    app = block("def test_greeting").code
    (tmp_path / "test_page.py").write_text(IMPORTS + block(plugin).code + app)
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    assert "2 passed" in run("-m", "pytest", "-p", "no:cacheprovider", "test_page.py")
