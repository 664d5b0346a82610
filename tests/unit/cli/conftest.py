"""A fake, and the command line in the process of the test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from etcd_aio.fake import FakeEtcd
from tests.support.command_here import CommandLine


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, in which there are no contexts."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("ETCD_AIO_CONTEXT", raising=False)
    return tmp_path


@pytest.fixture
async def fake() -> AsyncIterator[FakeEtcd]:
    """Three members."""
    async with FakeEtcd(members=3) as made:
        yield made


@pytest.fixture
def command(fake: FakeEtcd, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> CommandLine:
    """Runs commands on the fake."""
    return CommandLine(fake, monkeypatch, capfdbinary)
