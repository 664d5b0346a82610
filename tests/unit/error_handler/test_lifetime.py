"""error_handler/lifetime.py: the first use, other loops and processes, and sleeps that a close ends."""

import asyncio
import os
import threading
from collections.abc import Callable

import pytest

from etcd_aio.error_handler.lifetime import Lifetime
from etcd_aio.errors import ClientClosedError, ForkedError, WrongLoopError
from tests.support.virtual_time import tasks, timers, turns

pytestmark = pytest.mark.anyio


async def test_the_first_use_binds_it_to_its_loop() -> None:
    lifetime = Lifetime()
    assert not lifetime.is_used
    assert lifetime.enter() is asyncio.get_running_loop()
    assert lifetime.enter() is asyncio.get_running_loop()
    assert lifetime.is_used


async def test_only_the_first_use_starts_the_client() -> None:
    started: list[bool] = []
    lifetime = Lifetime(lambda: started.append(lifetime.is_used))
    assert not started
    lifetime.enter()
    lifetime.enter()
    assert started == [True]


async def test_a_client_that_is_closed_before_its_first_use_is_never_started() -> None:
    started: list[bool] = []
    lifetime = Lifetime(lambda: started.append(True))
    lifetime.close()
    with pytest.raises(ClientClosedError):
        lifetime.enter()
    assert not started


async def test_a_closed_client_stays_closed() -> None:
    lifetime = Lifetime()
    lifetime.enter()
    assert lifetime.close() is True
    assert lifetime.close() is False
    assert lifetime.is_closed
    with pytest.raises(ClientClosedError):
        lifetime.enter()


def test_a_client_that_was_never_used_can_be_closed_without_a_loop() -> None:
    assert Lifetime().close() is True


async def test_another_loop_is_rejected() -> None:
    lifetime = Lifetime()
    lifetime.enter()
    raised: list[type[BaseException]] = []

    async def use() -> None:
        for use_it in (lifetime.enter, lifetime.close):
            try:
                use_it()
            except WrongLoopError as error:
                raised.append(type(error))

    thread = threading.Thread(target=lambda: asyncio.run(use()))
    thread.start()
    thread.join()
    assert raised == [WrongLoopError, WrongLoopError]
    assert lifetime.enter() is asyncio.get_running_loop()


def in_a_child(check: Callable[[], bool]) -> bool:
    """Run `check` in a forked child; True if it was true there."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if check() else 1
        finally:
            os._exit(status)
    _, waited = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(waited) == 0


def raises_forked(use: Callable[[], object]) -> bool:
    try:
        use()
    except ForkedError:
        return True
    return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
async def test_a_forked_child_is_rejected() -> None:
    used, unused = Lifetime(), Lifetime()
    used.enter()
    assert in_a_child(lambda: raises_forked(used.enter))
    assert in_a_child(lambda: raises_forked(used.close))
    assert in_a_child(lambda: raises_forked(unused.enter))
    assert used.enter() is asyncio.get_running_loop(), "the parent goes on"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_client_that_a_child_makes_works_in_the_child() -> None:
    async def use() -> bool:
        return Lifetime().enter() is asyncio.get_running_loop()

    assert in_a_child(lambda: asyncio.run(use()))


# Sleeping.


async def test_a_sleep_lasts_as_long_as_it_should() -> None:
    lifetime = Lifetime()
    lifetime.enter()
    loop = asyncio.get_running_loop()
    started = loop.time()
    await lifetime.sleep(7.0)
    assert loop.time() - started == pytest.approx(7.0)


async def test_closing_ends_every_sleep_at_once() -> None:
    lifetime = Lifetime()
    lifetime.enter()
    loop = asyncio.get_running_loop()
    started = loop.time()
    sleepers = [asyncio.ensure_future(lifetime.sleep(3600.0)) for _ in range(3)]
    await turns()
    lifetime.close()
    outcomes = await asyncio.gather(*sleepers, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ClientClosedError] * 3
    assert loop.time() == started


async def test_a_cancelled_sleep_leaves_nothing() -> None:
    lifetime = Lifetime()
    lifetime.enter()
    sleeper = asyncio.ensure_future(lifetime.sleep(3600.0))
    await turns()
    sleeper.cancel()
    await asyncio.wait([sleeper])
    assert sleeper.cancelled()
    assert not tasks()
    assert not timers()
    lifetime.close()
