"""All randomness of this process from a seed, while a block runs: jitter from `random`, ids from `secrets` and `os`.

The clocks of queues, which name their items, go with the loop's.
"""

import asyncio
import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock

from etcd_aio.lease import keeper
from etcd_aio.recipes.queue import numbers
from etcd_aio.recipes.work_queue import following, job, work_queue, worker

_BEGIN = 1_900_000_000  # seconds since 1970, when the loop's clock is at 0


def _now() -> float:
    return _BEGIN + asyncio.get_running_loop().time()


_CLOCK = SimpleNamespace(time=_now, time_ns=lambda: int(_now() * 1e9))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Replace the system's entropy, and what `random` draws, by what follows from a seed."""
    before = random.getstate()
    random.seed(f"jitter {seed}")
    ids = random.Random(f"ids {seed}")
    with (
        mock.patch.object(secrets, "randbits", ids.getrandbits),
        mock.patch.object(secrets, "token_bytes", ids.randbytes),
        mock.patch.object(keeper, "os", SimpleNamespace(urandom=ids.randbytes)),
        mock.patch.object(numbers, "_last", 0),
        mock.patch.object(numbers, "time", _CLOCK),
        mock.patch.object(job, "time", _CLOCK),
        mock.patch.object(work_queue, "time", _CLOCK),
        mock.patch.object(worker, "time", _CLOCK),
        mock.patch.object(following, "time", _CLOCK),
    ):
        try:
            yield
        finally:
            random.setstate(before)
