"""fake/clock.py, fake/host.py: before there is a loop, in other threads, and in several loops in turn."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

import pytest

from etcd_aio import Client, Watcher
from etcd_aio.balancer import PolicyName
from etcd_aio.contrib.config import LiveConfig
from etcd_aio.errors import WrongLoopError
from etcd_aio.fake import FakeEtcd
from etcd_aio.fake.time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractAsyncContextManager


def test_everything_works_before_there_is_a_loop() -> None:
    fake = FakeEtcd(members=3)
    fake.load({"a": "1"})
    fake.compact(fake.revision)
    fake.elect(fake.members[1])
    for member in fake.members:
        member.pause()
        member.resume()
        member.stop()
        member.start()
    fake.members[0].isolate()
    fake.members[0].heal()
    assert (fake.leases, fake.watchers, fake.calls) == ((), (), ())

    async def read() -> bytes:
        async with fake.client(timeout=5.0) as client:
            kv = await client.get("a")
            assert kv is not None
            return kv.value

    assert asyncio.run(read()) == b"1"
    assert [call.method for call in fake.calls] == ["KV/Range"]


_LEFT_OPEN: list[object] = []
"""Is never collected: that would warn, and rightly so."""


@pytest.mark.parametrize("is_virtual", [False, True])
def test_loops_in_turn_share_the_content_and_the_leases(is_virtual: bool) -> None:
    """As an application does that a test starts twice."""
    factory: Callable[[], asyncio.AbstractEventLoop] = VirtualTimeLoop if is_virtual else asyncio.new_event_loop
    fake = FakeEtcd()

    async def first() -> None:
        async with fake.client() as client:
            lease = await client.leases.grant(ttl=60)
            await client.put("leased", "1", lease=lease)

    async def second() -> None:
        async with fake.client() as client, client.watch("leased") as watcher:
            assert await client.get("leased") is not None
            assert 50 < fake.leases[0].remaining <= 60
            await fake.advance(61.0)
            async with asyncio.timeout(5.0):
                assert (await anext(watcher)).is_delete

    for use in (first, second):
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(use())
    assert fake.leases == ()
    assert fake.keys() == {}


def test_a_lease_expires_in_the_next_loop_without_any_call() -> None:
    fake = FakeEtcd()

    async def grant() -> None:
        async with fake.client() as client:
            lease = await client.leases.grant(ttl=5)
            await client.put("leased", "1", lease=lease)

    async def wait() -> None:
        async with fake.client():
            await asyncio.sleep(10.0)

    for use in (grant, wait):
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(use())
    assert fake.keys() == {}


def test_what_a_loop_has_left_open_does_not_disturb_the_next_one() -> None:
    fake = FakeEtcd()

    async def leave() -> None:
        client = fake.client()
        await client.__aenter__()
        watcher = client.watch(prefix="a")
        await watcher.__aenter__()
        _LEFT_OPEN.extend((client, watcher, asyncio.ensure_future(client.put("a", "1"))))
        fake.members[0].pause()  # so the put is on its way when the loop ends

    async def go_on() -> None:
        fake.members[0].resume()
        async with fake.client(timeout=5.0) as client, client.watch(prefix="a") as watcher:
            await client.put("a", "2")
            assert (await anext(watcher)).value == b"2"
            assert len(fake.watchers) == 1

    asyncio.run(leave())
    fake.members[0].stop()
    fake.members[0].start()
    fake.load({"a": "0"})
    asyncio.run(go_on())


class _Application:
    """A client of the fake in a thread and a loop of its own, as Starlette's `TestClient` has."""

    def __init__(self, fake: FakeEtcd) -> None:
        self.fake = fake
        self.events: list[bytes] = []
        self.is_ready = threading.Event()

    def __enter__(self) -> Self:
        self.thread = threading.Thread(target=lambda: asyncio.run(self._live()))
        self.thread.start()
        assert self.is_ready.wait(20.0)
        return self

    def __exit__(self, *error: object) -> None:
        self.loop.call_soon_threadsafe(self.end.set)
        self.thread.join(20.0)
        assert not self.thread.is_alive()

    async def _live(self) -> None:
        self.loop, self.end = asyncio.get_running_loop(), asyncio.Event()
        async with self.fake.client(timeout=5.0) as self.client, self.client.watch(prefix="a") as watcher:
            await self.client.leases.grant(ttl=1000)
            reading = asyncio.ensure_future(self._read(watcher))
            self.is_ready.set()
            await self.end.wait()
            reading.cancel()

    async def _read(self, watcher: object) -> None:
        async for event in watcher:  # type: ignore[attr-defined]
            self.events.append(event.value)

    def call(self, coroutine: object) -> object:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(20.0)  # type: ignore[arg-type]


def test_another_thread_may_look_change_and_break() -> None:
    fake = FakeEtcd(members=3)
    with _Application(fake) as application:
        for number in range(100):
            fake.load({f"a/{number}": str(number)})
        application.call(application.client.get("a/0"))
        assert application.events == [str(number).encode() for number in range(100)]
        assert len(fake.keys("a/")) == 100
        assert len(fake.changes()) == 100
        assert [lease.ttl for lease in fake.leases] == [1000]
        assert len(fake.watchers) == 1
        assert any(call.method == "Lease/LeaseGrant" for call in fake.calls)
        fake.elect(fake.members[1])
        fake.members[1].stop()
        application.call(application.client.put("b", "1"))
        fake.members[1].start()
        with fake.fault("KV/Put", status="PERMISSION_DENIED") as fault, pytest.raises(PermissionError):
            application.call(application.client.put("b", "2"))
        assert fault.hits == 1
        fake.compact(fake.revision)


def test_many_threads_at_once() -> None:
    fake = FakeEtcd()
    with _Application(fake) as application, ThreadPoolExecutor(8) as pool:

        def work(number: int) -> None:
            for one in range(25):
                fake.load({f"a/{number}/{one}": "1"})
                assert len(fake.keys(f"a/{number}/")) == one + 1
                assert fake.calls
                assert len(fake.watchers) == 1

        list(pool.map(work, range(8)))
        application.call(application.client.get("a"))
        assert len(application.events) == 200
        assert fake.revision == 201


def test_a_thread_of_the_loop_itself_may_be_asked() -> None:
    fake = FakeEtcd()

    async def main() -> None:
        async with fake.client() as client:
            await client.leases.grant(ttl=100)
            assert await asyncio.to_thread(lambda: len(fake.leases)) == 1

    asyncio.run(main())


_USES: "dict[str, Callable[[Client], Coroutine[object, object, object]]]" = {
    "get": lambda client: client.get("a"),
    "put": lambda client: client.put("a", "1"),
    "wait_ready": lambda client: client.wait_ready(),
    "status": lambda client: client.maintenance.status(client.endpoints[0]),
    "watch": lambda client: _enter(client.watch("a")),
    "lease": lambda client: _enter(client.lease(ttl=10)),
    "cache": lambda client: _enter(client.cache(prefix="a")),
    "lock": lambda client: _enter(client.lock("a")),
    "configuration": lambda client: _enter(LiveConfig(client, dict, prefix="a/")),
    "scan": lambda client: anext(client.scan(prefix="a")),
}


async def _enter(block: "AbstractAsyncContextManager[object]") -> None:
    async with block as entered:
        if isinstance(entered, Watcher):
            await anext(entered)


@pytest.mark.parametrize("use", _USES)
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("policy", ["round_robin", "pinned"])
def test_a_second_loop_is_refused_at_once_with_the_reason(use: str, members: int, policy: PolicyName) -> None:
    """The clock of that loop is virtual, so a wait or a retry would make it go on."""
    fake = FakeEtcd(members=members)

    async def refused() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with Client(fake.endpoints, engine=fake.engine, policy=policy) as client:
            with pytest.raises(WrongLoopError, match="the fake etcd belongs to another event loop"):
                async with asyncio.timeout(60.0):
                    await _USES[use](client)
        assert loop.time() - began < 0.1

    async def served() -> None:
        async with Client(fake.endpoints, engine=fake.engine) as client:
            await client.get("a")

    with _Application(fake) as application:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(refused())
        application.call(application.client.put("b", "1"))
    asyncio.run(served())


def test_a_client_of_the_second_loop_is_served_when_the_first_one_has_ended() -> None:
    fake = FakeEtcd()

    async def use(application: _Application) -> None:
        async with Client(fake.endpoints, engine=fake.engine) as client:
            with pytest.raises(WrongLoopError):
                await client.put("a", "1")
            await asyncio.to_thread(application.__exit__)
            async with asyncio.timeout(20.0):
                while True:
                    try:
                        await client.put("a", "2")
                        break
                    except WrongLoopError:
                        await asyncio.sleep(0.1)

    asyncio.run(use(_Application(fake).__enter__()))
    assert fake.keys() == {b"a": b"2"}
