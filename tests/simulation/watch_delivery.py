"""How the replies of a watch stream come: late, in parts, and with reports of progress that overtake events.

Late: a follower applies an entry a while after the leader has answered the writer.

In parts: a message of many events is handed over while it arrives, and a server that is asked to sends it in fragments.
Here that happens to messages of two events, so that connections break inside of them.

Reports that overtake: releases before 3.4.25 and 3.5.8 can do that (etcd-io/etcd#15220).
"""

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping
from random import Random
from typing import Final

from etcd_aio import pb
from etcd_aio.codec import decode, encode
from etcd_aio.fake.server_streams import ServerStream

RELEASES: Final[Mapping[str, str]] = {"3.4": "3.4.24", "3.5": "3.5.7"}
"""The last release of each line that has early marks."""

_OVERTAKEN: Final = 0.2  # seconds for which events are held back, at least, where reports overtake them
_LONGEST_PART: Final = 3  # events
_GAP: Final = 0.05  # seconds from one part to the next, at most


class WatchDelivery(ServerStream):
    """A stream of watches, as it comes to the client.

    Args:
        inner: the stream as it is at the server.
        lag: seconds by which everything but the answers to requests is late.
        divides: whether messages come in parts.
        has_early_marks: whether reports of progress overtake events.
        chance: of the parts.
    """

    def __init__(
        self, inner: ServerStream, lag: float, chance: Random, *, divides: bool, has_early_marks: bool
    ) -> None:
        super().__init__()
        self._inner = inner
        self._lag = max(lag, _OVERTAKEN) if has_early_marks else lag
        self._divides = divides
        self._has_early_marks = has_early_marks
        self._random = chance
        self._late: deque[bytes] = deque()
        self._due = 0.0  # when the last of them is
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
            reply = decode(pb.WatchResponse, payload)
            is_mark = not (reply.events or reply.canceled)
            if reply.created or (is_mark and self._has_early_marks):
                self._pass(payload)
                continue
            gap = 0.0
            for part in self._parts(reply, payload):
                self._pass_late(part, gap)
                gap = self._random.random() * _GAP
        if self._inner.is_over:
            self.end(self._inner.refusal)

    def _parts(self, reply: pb.WatchResponse, payload: bytes) -> Iterator[bytes]:
        events = reply.events
        if len(events) < 2 or not self._divides:
            yield payload
            return
        was_fragment, start = reply.fragment, 0
        while start < len(events):
            stop = start + self._random.randint(1, _LONGEST_PART)
            reply.events, reply.fragment = events[start:stop], was_fragment or stop < len(events)
            yield encode(reply)
            start = stop

    def _pass_late(self, payload: bytes, gap: float) -> None:
        """Pass a message on, behind all that wait already."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._due = max(now + self._lag, self._due) + gap
        if self._due > now or self._late:
            self._late.append(payload)
            loop.call_at(self._due, self._pass_oldest)
        else:
            self._pass(payload)

    def _pass_oldest(self) -> None:
        self._pass(self._late.popleft())  # not the one of this timer: timers of one instant have no order

    def _pass(self, payload: bytes) -> None:
        if not self.is_over:
            self.out.append(payload)
            self.on_output()
