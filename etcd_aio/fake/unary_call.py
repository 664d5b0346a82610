"""A unary call on its way to a member, within the process or over a socket."""

import asyncio
from collections.abc import Callable
from functools import partial

from etcd_aio.base.aio import resolve
from etcd_aio.errors import AttemptFailure, Delivery
from etcd_aio.fake.carrier import Carrier
from etcd_aio.fake.outcomes import NEVER, CallOutcome, PendingCall
from etcd_aio.fake.refusals import Refusal
from etcd_aio.transport import Metadata


class FakeUnaryCall:
    """One unary call: `serve` lets the server answer, and resolves `future`.

    Attributes:
        future: gets the encoded reply, or `AttemptFailure` with the status.
        deadline: the instant at which its sender gives it up.
        may_move: it may end without an answer, since it can be made elsewhere.
    """

    __slots__ = ("_connection", "_metadata", "_path", "_payload", "deadline", "future", "may_move")

    def __init__(
        self,
        connection: Carrier,
        path: str,
        payload: bytes,
        metadata: Metadata,
        deadline: float = NEVER,
        *,
        may_move: bool = False,
    ) -> None:
        self._connection = connection
        self._path = path
        self._payload = payload
        self._metadata = metadata
        self.deadline = deadline
        self.may_move = may_move
        self.future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def serve(self) -> None:
        link = self._connection.link
        if not link.is_up or link.hold(self.serve):
            return
        # The server may run a call that was given up, or hear of that first.
        if self.future.done() and link.is_lucky:
            return
        try:
            reply = self._connection.server.unary(link.host.node, self._path, self._payload, self._metadata)
        except Refusal as refusal:
            link.answer(partial(self._refuse, refusal))
        else:
            if isinstance(reply, CallOutcome):
                self._follow(reply)
            elif isinstance(reply, PendingCall):
                reply.is_wanted, reply.on_answer = lambda: not self.future.done(), partial(self._go_on, reply.on_answer)
            else:
                link.answer(partial(resolve, self.future, reply))

    def fail(self, failure: AttemptFailure) -> None:
        """End the call without a reply."""
        if not self.future.done():
            self.future.set_exception(failure)

    def _go_on(self, log: Callable[[bytes | Refusal], None], answer: bytes | Refusal) -> None:
        """Take the answer to a call that has waited."""
        log(answer)
        settle = partial(self._refuse, answer) if isinstance(answer, Refusal) else partial(resolve, self.future, answer)
        self._connection.link.answer_late(settle)

    def _follow(self, outcome: CallOutcome) -> None:
        """Let the outcome come, at its time."""
        if outcome.goes_away:
            self._connection.go_away("GOAWAY: injected by a test")
        if outcome.delay != NEVER:
            settle = partial(self._connection.link.answer_late, partial(self._settle, outcome))
            asyncio.get_running_loop().call_later(outcome.delay, settle)

    def _settle(self, outcome: CallOutcome) -> None:
        if outcome.loses_connection:
            self._connection.lose(ConnectionResetError("the peer reset the connection"))
        elif outcome.refusal is not None:
            self._refuse(outcome.refusal)
        elif outcome.reply is not None:
            resolve(self.future, outcome.reply)

    def _refuse(self, refusal: Refusal) -> None:
        self.fail(AttemptFailure(refusal.code, refusal.text, Delivery.ANSWERED))
