"""A client that is closed, and a watch whose task is cancelled, in every state: at once, and nothing is left behind."""

import asyncio
import re
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from etcd_aio import Client, Watcher
from etcd_aio.errors import ClientClosedError
from etcd_aio.testing import EtcdServer, FaultProxy
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.usefixtures("each_engine")]

# Seconds: one is promised, in any state, and held by unit tests in virtual time; here what hangs has to be seen.
PROMISED = 10.0
STATES = ["dialling", "refused", "opening", "live", "entering again", "listing", "paused", "outage", "black hole"]


class Stage:
    """A client whose watch is brought into a state, by what is done to the way to its server."""

    def __init__(self, server: EtcdServer, proxy: FaultProxy, direct: Client) -> None:
        self.server, self.proxy, self.direct = server, proxy, direct
        self.client = Client(proxy.endpoint, timeout=None)
        self.watcher: Watcher | None = None
        self.task: asyncio.Task[None] | None = None

    async def bring_to(self, state: str) -> None:
        proxy, client = self.proxy, self.client
        if state == "dialling":
            proxy.black_hole()
        elif state == "refused":
            proxy.refuse()
        else:
            await client.get("k/")
        if state == "opening":
            proxy.black_hole()
        bound = 10_000 if state == "paused" else 2**24
        self.watcher = watcher = client.watch(prefix="k/", on_compaction="resync", max_pending=bound, timeout=None)
        entered = asyncio.Event()

        async def follow() -> None:
            with suppress(ClientClosedError):
                async with watcher:
                    entered.set()
                    if state == "paused":
                        await asyncio.Event().wait()
                    async for _ in watcher:
                        pass

        self.task = asyncio.create_task(follow())
        if state in ("dialling", "refused", "opening"):
            await asyncio.sleep(0.2)
            assert not entered.is_set()
            return
        async with asyncio.timeout(PATIENCE):
            await entered.wait()
        if state == "entering again":
            proxy.cut_after(400, "to_client", "silence")  # its next connection has its preface, and few answers
            proxy.cut()
            await self._until(lambda: not watcher.statistics().is_connected)
            await asyncio.sleep(0.2)
        elif state == "listing":
            proxy.refuse()
            proxy.cut()
            await self._until(lambda: not watcher.statistics().is_connected)
            await self.direct.put("k/", "missed")
            last = await self.direct.put("k/", "there")
            await self.direct.compact(last.revision)
            is_hole = False

            def on_change() -> bool:
                nonlocal is_hole
                if not is_hole and "listing" in repr(watcher):
                    is_hole = True
                    proxy.black_hole()
                return is_hole

            proxy.accept()
            await self._until(on_change, pause=0)
            await asyncio.sleep(0.2)
            assert "listing" in repr(watcher)
        elif state == "paused":
            for number in range(20):
                await self.direct.put("k/", bytes(1000 + number))
            await self._until(lambda: watcher.statistics().pauses > 0)
        elif state == "outage":
            proxy.refuse()
            proxy.cut()
            await self._until(lambda: not watcher.statistics().is_connected)
        elif state == "black hole":
            proxy.black_hole()

    async def _until(self, condition: Callable[[], bool], pause: float = 0.005) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(pause)

    async def until_forgotten(self) -> None:
        """Wait until the server has no watcher; the proxy has to be healed before."""

        def read() -> str:
            with urllib.request.urlopen(f"{self.server.endpoint}/metrics", timeout=5) as reply:
                text: str = reply.read().decode()
                return text

        async with asyncio.timeout(PATIENCE):
            while True:
                text = await asyncio.to_thread(read)
                found = re.search(r"^etcd_debugging_mvcc_watcher_total (\S+)$", text, re.MULTILINE)
                if found is None or float(found[1]) == 0:
                    return
                await asyncio.sleep(0.02)


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    async with EtcdServer() as server, FaultProxy(server.endpoint) as proxy, Client(server.endpoint) as direct:
        await direct.put("k/", "first")
        yield Stage(server, proxy, direct)


def names(tasks: set["asyncio.Task[object]"], scene: Stage) -> set[str]:
    """The names of the library's tasks, but for the health stream of the direct client."""
    found = {task.get_name() for task in tasks if "etcd_aio" in task.get_name()}
    return found - {f"etcd_aio serving {scene.server.endpoint}"}


@pytest.mark.parametrize("state", STATES)
async def test_closing_the_client(state: str) -> None:
    async with stage() as scene:
        before = asyncio.all_tasks()
        known = names(before, scene)
        await scene.bring_to(state)
        assert scene.task is not None
        async with asyncio.timeout(PROMISED):
            await scene.client.aclose()
            if state != "paused":  # its consumer waits for something else
                await scene.task
        scene.task.cancel()
        await asyncio.wait([scene.task])
        left = asyncio.all_tasks() - before
        assert names(left, scene) <= known
        scene.proxy.heal()
        await scene.until_forgotten()


@pytest.mark.parametrize("timeout", [5.0, None])
async def test_a_consumer_that_watches_again_while_the_client_closes_is_refused_at_once(timeout: float | None) -> None:
    async with EtcdServer() as server:
        client = Client(server.endpoint)
        entered = asyncio.Event()
        refusals: list[ClientClosedError] = []

        async def consume() -> None:
            while len(refusals) < 4:
                try:
                    async with client.watch("k", timeout=timeout) as watcher:
                        entered.set()
                        async for _ in watcher:
                            pass
                except ClientClosedError as error:
                    refusals.append(error)

        task = asyncio.create_task(consume())
        async with asyncio.timeout(PATIENCE):
            await entered.wait()
        async with asyncio.timeout(PROMISED):
            await client.aclose()
            await task


@pytest.mark.parametrize("state", STATES)
async def test_cancelling_the_task_of_a_watch(state: str) -> None:
    async with stage() as scene:
        before = asyncio.all_tasks()
        await scene.bring_to(state)
        assert scene.task is not None
        scene.task.cancel()
        async with asyncio.timeout(PROMISED):
            with suppress(asyncio.CancelledError):
                await scene.task
            while any("watch" in name for name in names(asyncio.all_tasks() - before, scene)):  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.01)
        assert scene.task.cancelled()
        scene.proxy.heal()
        await scene.until_forgotten()
        # The client is as good as before.
        async with asyncio.timeout(PATIENCE), scene.client.watch("k/") as watcher:
            await scene.client.put("k/", "last")
            assert (await anext(watcher)).value == b"last"
        await scene.client.aclose()
        assert not names(asyncio.all_tasks() - before, scene)
