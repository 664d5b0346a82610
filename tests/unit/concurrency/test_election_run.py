"""concurrency/election.py, arguments/functions.py: an argument of `run` that is no async function is named early."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from etcd_aio.concurrency import Leadership
from etcd_aio.fake import FakeEtcd

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


async def yields(_: object) -> AsyncIterator[int]:
    yield 1


class Work:
    """An object that is called."""

    async def __call__(self, _: Leadership) -> int:
        return 5


@pytest.mark.parametrize("work", [None, 5, yields])
async def test_no_async_function_is_refused_before_the_wait(work: Any) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        with pytest.raises(TypeError, match=r"^run\(\) takes an async function of a Leadership, got "):
            await client.election("e").run(work, "a")
        assert not fake.keys("e/")


async def test_a_function_that_returns_no_coroutine_is_named_and_the_candidate_resigns() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        with pytest.raises(TypeError, match=r"^run\(\) takes an async function of a Leadership: it returned int"):
            await client.election("e").run(lambda _: 5, "a")  # type: ignore[arg-type,return-value]
        assert not fake.keys("e/")


async def test_a_function_that_returns_a_coroutine_and_an_object_are_run() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        work = Work()
        assert await client.election("e").run(work, "a") == 5
        assert await client.election("e").run(lambda leadership: work(leadership), "a") == 5
