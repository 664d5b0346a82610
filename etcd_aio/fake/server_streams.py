"""Streams, as the server sees them: requests in, replies out. Pure.

A stream puts its replies into `out`, calls `on_output`, and goes on whenever it is given a request or told that
something has happened. The other side takes the replies when it likes.
"""

from collections import deque
from collections.abc import Callable, Iterator
from math import inf
from typing import Any, TypeAlias

from etcd_aio import pb
from etcd_aio.codec import decode, encode
from etcd_aio.errors import StatusCode
from etcd_aio.fake.refusals import Refusal

Waits: TypeAlias = Callable[[pb.Message, float, Callable[[float], None], Callable[[Refusal], None]], bool]
"""Lets a request wait for a leader if it has to, and returns whether it waits. It is given the request, the time in
seconds, a function to go on with when there is a leader, and one for the answer if there is none in time."""


class Ending:
    """How a stream or a call has ended, without the objects that it had.

    Attributes:
        is_over: whether it has ended.
        code: the status at the end.
        text: the message of that status.
    """

    __slots__ = ("code", "is_over", "text")

    def __init__(self) -> None:
        self.is_over = False
        self.code, self.text = StatusCode.OK, ""

    @classmethod
    def of(cls, refusal: Refusal | None) -> "Ending":
        """The end by a refusal; None for OK."""
        ending = cls()
        ending.end(refusal)
        return ending

    def end(self, refusal: Refusal | None) -> None:
        """Note the end; a refusal of None is OK."""
        if refusal is not None:
            self.code, self.text = refusal.code, refusal.text
        self.is_over = True


class ServerStream:
    """One stream.

    Args:
        among: has the stream while it is open. Default: nothing has it.
        needs_leader: whether it ends when its member has no leader.

    Attributes:
        out: encoded replies that were not taken yet.
        ending: how it has ended, for those that outlive it.
        refusal: the status at the end; None for OK.
        cut_after: replies after which the connection breaks; None for no limit.
        on_output: called when there are replies to take, or the stream is over.
        due: when to call `tick` next; infinity for never.
    """

    def __init__(self, among: "dict[ServerStream, None] | None" = None, *, needs_leader: bool = False) -> None:
        self._among = {} if among is None else among
        self._among[self] = None
        self.needs_leader = needs_leader
        self.due = inf
        self.out: deque[bytes] = deque()
        self.ending = Ending()
        self.refusal: Refusal | None = None
        self.cut_after: int | None = None
        self.on_output: Callable[[], None] = lambda: None

    @property
    def is_over(self) -> bool:
        """Whether no reply will follow those in `out`."""
        return self.ending.is_over

    def receive(self, payload: bytes, now: float) -> None:
        """Take a request."""
        raise NotImplementedError  # each kind of stream has its own

    def half_close(self) -> None:
        """Take the end of the requests."""
        self.end()

    def end(self, refusal: Refusal | None = None) -> None:
        """End the stream, with OK or with a refusal."""
        if not self.is_over:
            self.refusal = refusal
            self.ending.end(refusal)
            self.close()
            self.on_output()

    def close(self) -> None:
        """Release what the stream holds; it is over, or its connection is."""
        self._among.pop(self, None)

    def tick(self, now: float) -> None:
        """Do what is due."""

    def send(self, message: pb.Message) -> None:
        """Send a reply."""
        if not self.is_over:
            self.out.append(encode(message))
            self.on_output()


class SilentStream(ServerStream):
    """A stream on which nothing is answered."""

    def receive(self, payload: bytes, now: float) -> None:
        """Do nothing."""

    def half_close(self) -> None:
        """Do nothing."""


class HealthStream(ServerStream):
    """A stream that tells at once, and after every change, whether its member serves.

    Args:
        status: returns the message with the status, at the time.
        among: see `ServerStream`.
    """

    def __init__(self, status: Callable[[pb.health.HealthCheckRequest], pb.Message], among: dict[ServerStream, None]):
        super().__init__(among)
        self._status = status
        self._request: pb.health.HealthCheckRequest | None = None

    def receive(self, payload: bytes, now: float) -> None:
        self._request = decode(pb.health.HealthCheckRequest, payload)
        self.tell()

    def half_close(self) -> None:
        """Do nothing, but for a stream without a request."""
        if self._request is None:
            self.end(_no_request())

    def tell(self) -> None:
        """Send the status."""
        if self._request is not None:
            self.send(self._status(self._request))


class ReplyStream(ServerStream):
    """A stream of replies to one request.

    Args:
        request: the class of the request.
        answer: yields the replies to the request, at a time.
        wait: lets the request wait for a leader.
    """

    def __init__(
        self, request: type[pb.Message], answer: Callable[[Any, float], Iterator[pb.Message]], wait: Waits
    ) -> None:
        super().__init__()
        self._request = request
        self._answer = answer
        self._wait = wait
        self._has_request = False

    def receive(self, payload: bytes, now: float) -> None:
        self._has_request = True
        request = decode(self._request, payload)
        if not self._wait(request, now, lambda at: self._reply(request, at), self.end):
            self._reply(request, now)

    def half_close(self) -> None:
        """Do nothing, unless there was no request: the replies end the stream."""
        if not self._has_request:
            self.end(_no_request())

    def _reply(self, request: pb.Message, now: float) -> None:
        try:
            for message in self._answer(request, now):
                self.send(message)
        except Refusal as refusal:
            self.end(refusal)
        else:
            self.end()


class EchoStream(ServerStream):
    """A stream with one reply to each request.

    Args:
        request: the class of the requests.
        answer: returns the reply to a request, at a time.
        wait: lets a request wait for a leader.
        among, needs_leader: see `ServerStream`.
    """

    def __init__(
        self,
        request: type[pb.Message],
        answer: Callable[[Any, float], pb.Message],
        wait: Waits,
        among: dict[ServerStream, None],
        *,
        needs_leader: bool,
    ) -> None:
        super().__init__(among, needs_leader=needs_leader)
        self._request = request
        self._answer = answer
        self._wait = wait
        self._waiting = 0  # requests that wait for a leader
        self._is_half_closed = False

    def receive(self, payload: bytes, now: float) -> None:
        request = decode(self._request, payload)
        if self._wait(request, now, lambda at: self._reply_late(request, at), self.end):
            self._waiting += 1
        else:
            self._reply(request, now)

    def half_close(self) -> None:
        """End the stream behind the answers to all requests."""
        self._is_half_closed = True
        if not self._waiting:
            self.end()

    def _reply_late(self, request: pb.Message, now: float) -> None:
        self._waiting -= 1
        self._reply(request, now)
        if self._is_half_closed and not self._waiting:
            self.end()

    def _reply(self, request: pb.Message, now: float) -> None:
        if self.is_over:  # a request before this one has ended it
            return
        try:
            self.send(self._answer(request, now))
        except Refusal as refusal:
            self.end(refusal)


def _no_request() -> Refusal:
    text = "cardinality violation: received no request message from non-client-streaming RPC"
    return Refusal.other(StatusCode.INTERNAL, text)
