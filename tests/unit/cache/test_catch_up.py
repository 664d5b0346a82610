"""cache/catch_up.py: catching up: when marks are asked for, when a validation takes their place, and when it ends."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from etcd_aio import EtcdError, KeyRange, KeyValue, WatchBatch
from etcd_aio.base.deadline import NEVER
from etcd_aio.cache.catch_up import CatchUp
from etcd_aio.cache.state import Replica
from etcd_aio.cache.waiting import RevisionWaiters
from etcd_aio.errors import PermissionDeniedError
from etcd_aio.types import EarlyProgress
from tests.support.virtual_time import tasks, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

KEYS = KeyRange.of(prefix="p/")


class Scene:
    """A replica at revision 10 with one key, and what is done to bring it further; instants begin at 0."""

    def __init__(self) -> None:
        self.replica: Replica[KeyValue] = Replica(is_decoded=False)
        base = self.replica.new_base()
        page = [KeyValue(b"p/a", b"", 3, 3, 1)]
        deque(base.add(page, page, {}))
        self.replica.loaded(base, 10, 0.0)
        self.waiters = RevisionWaiters(self.replica)
        self.asked: list[float] = []
        self.validated: list[float] = []
        self.sent: list[dict[str, Any]] = []
        self.denied: list[Exception] = []
        self.answer: asyncio.Future[Any] | None = None  # None: an error at once
        store: Any = self  # `range` is all that is used
        self.catch_up = CatchUp(
            store,
            KEYS,
            self.replica,
            self.waiters,
            ask=self.ask,
            on_moved=self.moved,
            on_denied=self.denied.append,
            timeout=2.0,
        )
        self._began = asyncio.get_running_loop().time()

    def now(self) -> float:
        return round(asyncio.get_running_loop().time() - self._began, 4)

    async def ask(self) -> None:
        self.asked.append(self.now())

    async def range(self, key: bytes, **arguments: Any) -> Any:
        self.validated.append(self.now())
        self.sent.append({"key": key, **arguments})
        if self.answer is None:
            raise EtcdError("no member")
        return await self.answer

    def answers(self, revision: int, count: int = 1, *, is_newer: bool = False) -> None:
        """From here on validations are answered."""
        self.answer = asyncio.get_running_loop().create_future()
        self.answer.set_result(SimpleNamespace(revision=revision, count=count, kvs=[object()] * is_newer))

    def moved(self) -> None:
        self.waiters.moved()
        self.catch_up.moved()

    def mark(self, revision: int) -> None:
        self.replica.mark(WatchBatch((), revision))
        self.moved()

    def wait(self, revision: int, seconds: float | None = None) -> "asyncio.Task[bool]":
        """As `Freshness` does."""
        deadline = NEVER if seconds is None else asyncio.get_running_loop().time() + seconds

        async def caller() -> bool:
            self.catch_up.start()
            return await self.waiters.wait(revision, deadline)

        return asyncio.create_task(caller())


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    scene = Scene()
    yield scene
    unwinding = scene.catch_up.close()
    await asyncio.gather(*unwinding, return_exceptions=True)
    assert not tasks()


async def test_marks_are_asked_for_at_growing_distances(scene: Scene) -> None:
    assert not await scene.wait(12, 0.5)
    assert scene.asked[:7] == [0.002, 0.006, 0.014, 0.03, 0.062, 0.126, 0.226], "doubled up to a tenth of a second"
    assert scene.validated == []


async def test_it_ends_when_the_revision_is_there(scene: Scene) -> None:
    waiting = scene.wait(12)
    await asyncio.sleep(0.01)
    scene.mark(11)
    await turns()
    assert not waiting.done()
    scene.mark(12)
    assert await waiting
    asked = len(scene.asked)
    await asyncio.sleep(5)
    assert len(scene.asked) == asked
    assert not tasks()


async def test_it_ends_when_no_task_waits_any_more(scene: Scene) -> None:
    waiting = scene.wait(12)
    await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.sleep(0.2)
    assert not tasks()
    scene.catch_up.start()
    await turns()
    assert not tasks(), "there is nothing to do"
    assert scene.catch_up.close() == ()


async def test_a_new_caller_need_not_wait_for_a_long_distance(scene: Scene) -> None:
    first = scene.wait(12, 0.5)
    await asyncio.sleep(0.3)
    asked, began = len(scene.asked), scene.now()
    second = scene.wait(12, 0.1)
    await asyncio.sleep(0.01)
    assert len(scene.asked) > asked
    assert scene.asked[asked] <= began + 0.002
    assert [await first, await second] == [False, False]


async def test_a_validation_takes_the_place_of_a_mark_that_does_not_come(scene: Scene) -> None:
    scene.answers(15)
    assert await scene.wait(12, 5)
    assert 1.0 <= scene.validated[0] <= 1.1
    assert len(scene.validated) == scene.catch_up.validations == 1
    assert scene.replica.revision == 15
    assert scene.sent == [
        {
            "key": b"p/",
            "range_end": b"p0",
            "from_key": None,
            "limit": 1,
            "keys_only": True,
            "min_mod_revision": 11,
            "timeout": 2.0,
        }
    ]


async def test_it_waits_a_second_from_the_last_change_of_the_revision(scene: Scene) -> None:
    waiting = scene.wait(20, 2.5)
    for revision in (11, 12, 13):
        await asyncio.sleep(0.6)
        scene.mark(revision)
    assert scene.validated == []
    assert not await waiting
    assert len(scene.validated) == 0, "the third change was 0.7 s before"
    waiting = scene.wait(20, 3.0)
    assert not await waiting
    assert len(scene.validated) >= 2, "again and again, a second apart"
    assert all(later - earlier >= 1.0 for earlier, later in pairwise(scene.validated))


async def test_where_marks_do_not_count_it_validates_at_once(scene: Scene) -> None:
    for _ in range(2):
        scene.replica.mark(EarlyProgress((), 99))
    scene.answers(15)
    assert await scene.wait(12)
    assert scene.validated == [0.0]
    assert (scene.asked, scene.replica.revision) == ([], 15)


async def test_marks_that_turn_out_not_to_count_wake_it(scene: Scene) -> None:
    scene.answers(15)
    waiting = scene.wait(12)
    await asyncio.sleep(0.07)
    for _ in range(2):
        scene.replica.mark(EarlyProgress((), 99))
        scene.moved()
    began = scene.now()
    assert await waiting
    assert scene.validated == [began]


@pytest.mark.parametrize("answer", ["error", "newer", "fewer"])
async def test_a_validation_that_says_nothing_is_repeated(scene: Scene, answer: str) -> None:
    for _ in range(2):
        scene.replica.mark(EarlyProgress((), 99))
    if answer == "newer":
        scene.answers(15, is_newer=True)
    elif answer == "fewer":
        scene.answers(15, count=0)
    assert not await scene.wait(12, 0.5)
    assert len(scene.validated) >= 5
    assert scene.replica.revision == 10


async def test_a_validation_that_is_denied_is_told(scene: Scene) -> None:
    for _ in range(2):
        scene.replica.mark(EarlyProgress((), 99))
    scene.answer = asyncio.get_running_loop().create_future()
    denied = PermissionDeniedError("no")
    scene.answer.set_exception(denied)
    assert not await scene.wait(12, 0.05)
    assert set(scene.denied) == {denied}
    assert scene.replica.revision == 10


async def test_the_answer_about_another_store_is_ignored(scene: Scene) -> None:
    for _ in range(2):
        scene.replica.mark(EarlyProgress((), 99))
    scene.answer = asyncio.get_running_loop().create_future()
    waiting = scene.wait(12)
    await turns()
    scene.replica.store_replaced()
    scene.answer.set_result(SimpleNamespace(revision=15, count=1, kvs=[]))
    await turns()
    assert scene.replica.revision == 10
    await asyncio.sleep(0.5)
    assert len(scene.validated) == 1, "a content that is not exact has no questions"
    scene.waiters.restart()
    assert not await waiting


async def test_closing_ends_it_in_the_middle_of_a_validation(scene: Scene) -> None:
    for _ in range(2):
        scene.replica.mark(EarlyProgress((), 99))
    scene.answer = asyncio.get_running_loop().create_future()
    waiting = scene.wait(12)
    await turns()
    scene.waiters.close(EtcdError("closed"))
    assert len(scene.catch_up.close()) == 1
    with pytest.raises(EtcdError, match="closed"):
        await waiting
    await turns()
    assert scene.answer.cancelled()
