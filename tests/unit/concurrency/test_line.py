"""Line: what an error says of the trouble that was survived, in virtual time. The rest is in the integration tests."""

from asyncio import Task
from collections.abc import Coroutine
from typing import Any

import pytest

from etcd_aio.aio import start_background_task
from etcd_aio.concurrency.held import Subject
from etcd_aio.concurrency.lease_pool import OnLoss
from etcd_aio.concurrency.line import Line
from etcd_aio.concurrency.place import lock_keys
from etcd_aio.errors import LockLostError, LockTimeoutError, UnavailableError

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


class FakeLoan:
    """A lease that lives."""

    id = 1
    is_orphan = is_lost = was_idle = False

    def __init__(self) -> None:
        self.is_discarded = False

    def on_loss(self, callback: OnLoss | None) -> None:
        """It is never lost."""

    async def discard(self) -> bool:
        self.is_discarded = True
        return True


class FakeSource:
    """Lends one lease."""

    def __init__(self) -> None:
        self.loan = FakeLoan()

    async def borrow(self, key_prefix: bytes) -> FakeLoan:
        return self.loan

    def run(self, work: Coroutine[object, object, object], name: str) -> Task[object]:
        return start_background_task(work, name=name)


class SilentStore:
    """Answers nothing: each call fails, and may have been applied."""

    async def do(self, *args: object, **options: object) -> None:
        error = UnavailableError("no answer")
        error.maybe_applied = True
        raise error


async def test_a_timeout_has_the_trouble_as_its_cause_and_the_lease_in_doubt_is_discarded() -> None:
    source = FakeSource()
    subject = Subject("lock 'a'", LockLostError, LockTimeoutError)
    store: Any = SilentStore()  # as much of them as it needs
    lender: Any = source
    line = Line(store, lender, lock_keys(b"a"), b"", subject)
    with pytest.raises(LockTimeoutError, match="etcd has not answered in time") as caught:
        await line.stand(3.0)
    assert isinstance(caught.value.__cause__, UnavailableError)
    assert source.loan.is_discarded
