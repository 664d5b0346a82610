"""fake/time.py: virtual time."""

import asyncio
import os
import subprocess
import sys
import time

import pytest

from etcd_aio.fake import FakeEtcd
from etcd_aio.fake.time import DeadlockError, VirtualTimeLoop

_SETS = """
import asyncio
from etcd_aio.fake.time import VirtualTimeLoop

async def main():
    loop = asyncio.get_running_loop()
    kept = [object() for _ in range({ballast})]
    futures = {{loop.create_future(): number for number in range(40)}}
    tasks = {{asyncio.ensure_future(asyncio.sleep(0)): number for number in range(40)}}
    shown = [futures[one] for one in set(futures)] + [tasks[one] for one in set(tasks)]
    print(shown)

with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
    runner.run(main())
"""


def run(work: object) -> object:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)  # type: ignore[arg-type]


def test_an_hour_passes_at_once() -> None:
    async def main() -> float:
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(3600.0)
        return asyncio.get_running_loop().time() - began

    began = time.monotonic()
    assert run(main()) == 3600.0
    assert time.monotonic() - began < 60.0


def test_timers_fire_in_their_order() -> None:
    async def main() -> list[float]:
        fired: list[float] = []
        loop = asyncio.get_running_loop()
        for delay in (3.0, 1.0, 2.0):
            loop.call_later(delay, fired.append, delay)
        await asyncio.sleep(5.0)
        return fired

    assert run(main()) == [1.0, 2.0, 3.0]


def test_a_wait_for_nothing_fails_and_names_the_tasks() -> None:
    async def main() -> None:
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def wait() -> None:
            await never

        async with asyncio.TaskGroup() as group:
            group.create_task(wait(), name="the cook")
            group.create_task(wait(), name="the guest")

    with pytest.raises(DeadlockError, match=r"nothing is ready.*the cook, the guest waits for ever"):
        run(main())


def test_a_timer_without_an_end_is_a_wait_for_nothing() -> None:
    with pytest.raises(DeadlockError, match="only timers without an end"):
        run(asyncio.sleep(1e10))


def test_only_some_of_many_tasks_are_named() -> None:
    async def main() -> None:
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await asyncio.gather(*(asyncio.shield(never) for _ in range(3)), *(asyncio.sleep(1e12) for _ in range(30)))

    with pytest.raises(DeadlockError, match=r"and 21 more waits for ever"):
        run(main())


@pytest.mark.slow
def test_sets_of_tasks_and_futures_have_the_same_order_in_every_process() -> None:
    shown = set()
    for ballast in (0, 1000, 12345):
        environment = {**os.environ, "PYTHONHASHSEED": str(ballast)}
        program = [sys.executable, "-c", _SETS.format(ballast=ballast)]
        shown.add(subprocess.run(program, env=environment, capture_output=True, check=True, text=True).stdout)
    assert len(shown) == 1
    assert shown.pop().strip()


def test_a_lease_lasts_for_an_hour_of_virtual_time() -> None:
    async def main() -> tuple[int, int]:
        async with FakeEtcd() as fake, fake.client() as client:
            lease = await client.leases.grant(3600)
            await client.put("a", "1", lease=lease.id)
            await asyncio.sleep(3599.0)
            before = len(fake.keys())
            await asyncio.sleep(2.0)
            return before, len(fake.keys())

    assert run(main()) == (1, 0)


@pytest.mark.anyio
@pytest.mark.virtual_time
async def test_the_age_of_a_cache_is_virtual_and_goes_on_while_the_machine_sleeps() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    async with FakeEtcd() as fake, fake.client() as client, client.cache(prefix="a") as cache:
        await cache.wait_current()
        before = cache.age
        await asyncio.sleep(60.0)
        assert cache.age == pytest.approx(before + 60.0)
        loop.suspend(60.0)
        assert cache.age == pytest.approx(before + 120.0)


def test_the_clock_waits_for_threads() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        await asyncio.to_thread(time.sleep, 0.02)  # nothing else is left to do, and this is no deadlock
        assert loop.time() == start
        sleeping = asyncio.ensure_future(asyncio.sleep(3600))
        async with asyncio.timeout(5):
            await asyncio.to_thread(time.sleep, 0.02)
        assert not sleeping.done()
        await sleeping
        assert loop.time() >= start + 3600

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())


_ENDS_LATER = (sys.executable, "-S", "-c", "import time; time.sleep(0.3); print('ended')")


@pytest.mark.parametrize("is_shell", [False, True])
def test_the_clock_waits_for_child_processes(is_shell: bool) -> None:
    async def main() -> tuple[bytes, int | None]:
        pipe = asyncio.subprocess.PIPE
        if is_shell:
            child = await asyncio.create_subprocess_shell("sleep 0.3; echo ended", stdout=pipe)
        else:
            child = await asyncio.create_subprocess_exec(*_ENDS_LATER, stdout=pipe)
        out, _ = await child.communicate()
        return out, child.returncode

    assert run(main()) == (b"ended\n", 0)


def test_the_clock_goes_on_beside_a_child_process_and_after_it() -> None:
    async def main() -> None:
        child = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", "import time; time.sleep(600)")
        await asyncio.sleep(60.0)
        child.kill()
        assert await child.wait() == -9
        with pytest.raises(FileNotFoundError):
            await asyncio.create_subprocess_exec("/nonexistent")
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError, match="nothing is ready"):
        run(main())


def test_a_wait_for_nothing_does_not_name_the_tasks_of_a_client() -> None:
    async def main() -> None:
        async with FakeEtcd() as fake, fake.client() as client:
            await client.put("a", "1")
            for member in fake.members:
                member.pause()
            inner = asyncio.ensure_future(asyncio.Event().wait())
            inner.set_name("etcd_aio dial")
            await asyncio.wait_for(asyncio.Event().wait(), 10e10)

    with pytest.raises(DeadlockError) as caught:
        run(main())
    assert "etcd_aio" not in str(caught.value)


def test_a_thread_that_waits_for_a_timer_of_the_loop_does_not_stop_it() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        work = asyncio.run_coroutine_threadsafe
        await asyncio.to_thread(lambda: work(asyncio.sleep(60), loop).result())

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())
