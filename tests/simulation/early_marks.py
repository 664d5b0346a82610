"""Reports of progress that overtake events, as those of releases before 3.4.25 and 3.5.8 can (etcd-io/etcd#15220)."""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Final

from etcd_aio.codec import decode
from etcd_aio.fake.sessions import Session
from etcd_aio.types import WatchReply

RELEASES: Final[Mapping[str, str]] = {"3.4": "3.4.24", "3.5": "3.5.7"}
"""The last release of each line that has early marks."""

_DELAY: Final = 0.2  # seconds for which events are held back


class EarlyMarks(Session):
    """A stream of watches whose events come late, and whose reports of progress do not.

    Args:
        inner: the stream as it is without.
    """

    def __init__(self, inner: Session) -> None:
        super().__init__()
        self._inner = inner
        self._late: deque[bytes] = deque()
        self.cut_after = inner.cut_after
        inner.on_output = self._take
        self._take()

    def receive(self, payload: bytes, now: float) -> None:
        self._inner.receive(payload, now)

    def half_close(self) -> None:
        self._inner.half_close()

    def close(self) -> None:
        self._inner.close()

    def _take(self) -> None:
        while self._inner.out:
            payload = self._inner.out.popleft()
            reply = decode(WatchReply, payload)
            # Events, and what ends a watch behind them, come in their order.
            if reply.events or (reply.canceled and self._late):
                self._late.append(payload)
                asyncio.get_running_loop().call_later(_DELAY, self._pass_late)
            else:
                self._pass(payload)
        if self._inner.is_over:
            self.end(self._inner.refusal)

    def _pass_late(self) -> None:
        self._pass(self._late.popleft())  # not the one of this timer: timers of one instant have no order

    def _pass(self, payload: bytes) -> None:
        if not self.is_over:
            self.out.append(payload)
            self.on_output()
