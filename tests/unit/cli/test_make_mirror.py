"""cli/mirror.py: make-mirror between two fakes: other prefixes, from a revision on, over a compaction, and again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from etcd_aio.cli import mirror
from etcd_aio.fake import FakeEtcd
from tests.support.command_here import CommandLine
from tests.support.until import until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def other() -> AsyncIterator[FakeEtcd]:
    async with FakeEtcd() as made:
        yield made


@asynccontextmanager
async def mirroring(command: CommandLine, *words: str) -> AsyncIterator[None]:
    running = asyncio.create_task(command("make-mirror", *words, is_served=True))
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_prefix_is_copied_from_a_revision_on_under_another_prefix(
    fake: FakeEtcd, other: FakeEtcd, command: CommandLine
) -> None:
    first = fake.load({"app/old": "1", "far": "1"})
    async with fake.serve(), other.serve() as destination:
        words = (destination, "--prefix=app/", "--dest-prefix=copy/", f"--rev={first + 1}", "--state-key=state")
        async with mirroring(command, *words):
            await until(lambda: bool(other.keys("state")))
            fake.load({"app/new": "2", "far": "2"})
            await until(lambda: bool(other.keys("copy/")))
        assert other.keys("copy/") == {b"copy/new": b"2"}
        fake.load({"app/later": "3"})
        async with mirroring(command, *words):
            await until(lambda: len(other.keys("copy/")) == 2)
        assert other.keys("copy/") == {b"copy/new": b"2", b"copy/later": b"3"}


async def test_a_compaction_during_an_outage_makes_all_keys_compared_which_is_said_once(
    fake: FakeEtcd, other: FakeEtcd, command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "_LOOK_EVERY", 0.01)
    fake.load({"a": "1", "b": "1"})
    told: list[str] = []

    def tells(number: int) -> bool:
        lines = command.capture.readouterr().err.decode().splitlines()
        told.extend(line for line in lines if line.startswith("all keys"))
        return len(told) == number

    async with fake.serve(), other.serve() as destination, mirroring(command, destination):
        await until(lambda: tells(1))
        await until(lambda: other.keys("a") == {b"a": b"1"})
        for member in fake.members:
            member.stop()
        for value in "23":
            fake.load({"a": value, "c": value})
        fake.compact(fake.revision)
        for member in fake.members:
            member.start()
        await until(lambda: other.keys("c") == {b"c": b"3"} and tells(2))
    assert told == [
        "all keys were compared: the first copy",
        "all keys were compared: the history was compacted in the meantime",
    ]
    assert fake.keys() == {key: value for key, value in other.keys().items() if not key.startswith(b"__")}


async def test_what_excludes_each_other_is_refused(command: CommandLine) -> None:
    assert await command("make-mirror") == 128
    assert await command("make-mirror", "a:1", "--dest-prefix=x", "--no-dest-prefix") == 128
    assert await command("make-mirror", "a:1", "--dest-user=u") == 128
