"""cli/signals.py: layers of signal handlers: the youngest counts, and leaving brings the one beneath back."""

import asyncio
import os
import signal

import pytest

from etcd_aio.cli.signals import INTERRUPTS, handled, wanted
from tests.support.until import until

pytestmark = pytest.mark.anyio


async def test_the_youngest_layer_gets_a_signal_and_the_one_beneath_comes_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    got: list[tuple[str, int]] = []

    async def send() -> None:
        count = len(got)
        os.kill(os.getpid(), signal.SIGTERM)
        await until(lambda: len(got) > count)

    with handled(INTERRUPTS, lambda number: got.append(("outer", number))):
        await send()
        with handled((signal.SIGTERM,), lambda number: got.append(("inner", number))):
            await send()
        await send()
    assert [who for who, _ in got] == ["outer", "inner", "outer"]
    assert {number for _, number in got} == {signal.SIGTERM}
    assert signal.getsignal(signal.SIGTERM) is before
    await asyncio.sleep(0)


def test_what_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert wanted(INTERRUPTS) == (signal.SIGINT, signal.SIGTERM)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert signal.SIGHUP in wanted(INTERRUPTS)
