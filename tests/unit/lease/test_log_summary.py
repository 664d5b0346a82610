"""The log summary: at once for the first, one line for many, lines that keep a distance."""

import asyncio
import logging

import pytest

from etcd_aio.lease.log_summary import LogSummary
from tests.support.virtual_time import VirtualTimeLoop, timers, turns

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": VirtualTimeLoop}


def summary() -> LogSummary:
    return LogSummary(logging.getLogger("etcd_aio.test"), "%d were lost; the first: %s")


async def test_one_is_said_in_its_own_words_and_at_once(caplog: pytest.LogCaptureFixture) -> None:
    said = summary()
    said.add("a is 100 % lost")
    await turns(2)
    assert caplog.messages == ["a is 100 % lost"]
    assert caplog.records[0].levelno == logging.WARNING
    assert not timers()


async def test_many_of_one_turn_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    said = summary()
    for number in range(1000):
        said.add(f"{number} is lost")
    await asyncio.sleep(10)
    assert caplog.messages == ["1000 were lost; the first: 0 is lost"]


async def test_lines_are_a_second_apart_and_none_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    said = summary()
    for number in range(300):
        said.add(f"{number} is lost")
        await asyncio.sleep(0.01)
    await asyncio.sleep(2)
    counts = [1 if "were" not in line else int(line.split()[0]) for line in caplog.messages]
    assert sum(counts) == 300
    assert len(counts) == 4
    assert caplog.messages[1].endswith("the first: 1 is lost")
    said.add("later")
    await turns(2)
    assert caplog.messages[-1] == "later", "after a quiet time at once again"
