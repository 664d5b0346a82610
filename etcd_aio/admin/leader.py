"""Leadership: who leads, and how it is moved.

Knows: two RPCs, and that only the leader serves the second. Never knows: elections, or why it is to be moved.

Theory of operation. Nobody but the leader can hand its leadership over, so every endpoint is asked at once who leads,
and the request goes to the endpoint of the one that says "I do" in the latest term, and nowhere else. After it got
through, the member that was asked leads no more; so an attempt without an answer is not repeated but looked at: whoever
leads by then says whether it is done. Only if another one leads, the same is asked of that one.
"""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from etcd_aio import methods, pb
from etcd_aio.aio import start_task
from etcd_aio.call_options import RetryMode, Timeout
from etcd_aio.deadline import time_left
from etcd_aio.errors import (
    EtcdError,
    EtcdTimeoutError,
    NoAvailableEndpointsError,
    NotRaftLeaderError,
    UnknownEndpointError,
)
from etcd_aio.types import MoveLeaderResult, StatusResult

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

_LOOK_SECONDS: Final = 1.0  # for one round of questions: a frozen member must not hold up what the others know
_CONTRADICTION_SECONDS: Final = 0.1  # for the others to name a later term, once one says that it leads
_LOOK_AGAIN: Final = 0.05  # seconds between rounds; an election takes about a second


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads.

    Attributes:
        endpoint: where it serves this client.
        status: what it said.
    """

    endpoint: str
    status: StatusResult

    @property
    def id(self) -> int:
        """Its member id."""
        return self.status.header.member_id


class Leadership:
    """See the theory above.

    Args:
        invoker: runs the calls.
    """

    def __init__(self, invoker: "Invoker") -> None:
        self._invoker = invoker

    async def move(self, target: int, timeout: Timeout, retry: RetryMode | None) -> MoveLeaderResult:
        """Move the leadership to the member `target`; nothing is done if it leads already. See `Maintenance`."""
        deadline = self._invoker.deadline(timeout, self._invoker.clock())
        leader = await self.find(deadline)
        while leader.id != target:
            try:
                return await self._invoker.unary(
                    methods.MOVE_LEADER,
                    pb.MoveLeaderRequest(target_id=target),
                    timeout=self._left(deadline),
                    retry=retry,
                    repeatable=False,
                    endpoint=leader.endpoint,
                )
            except EtcdError as error:
                if not error.maybe_applied and not isinstance(error, NotRaftLeaderError):
                    raise
                leader = await self._look_after(error, target, deadline, retry)
        return MoveLeaderResult(leader.status.header)

    async def find(self, deadline: float) -> Leader:
        """Who leads, waiting for an election if nobody does.

        Raises:
            UnknownEndpointError: the leader is none of the client's endpoints.
            NoAvailableEndpointsError: no endpoint has answered by `deadline`.
            EtcdTimeoutError: nobody leads that could be asked.
        """
        while True:
            answers = await self._ask_all(min(self._left(deadline), _LOOK_SECONDS))
            heard = {name: one for name, one in answers.items() if isinstance(one, StatusResult)}
            errors = {name: one for name, one in answers.items() if isinstance(one, EtcdError)}
            latest = max((status.raft_term for status in heard.values()), default=0)
            current = {name: status for name, status in heard.items() if status.raft_term == latest}
            for name, status in current.items():
                if status.is_leader:
                    return Leader(name, status)
            for error in errors.values():
                if len(errors) == len(answers) and not error.retryable:
                    raise error
            elsewhere = max((status.leader for status in current.values()), default=0)
            if elsewhere and not errors and elsewhere not in {status.header.member_id for status in heard.values()}:
                raise UnknownEndpointError(f"member {elsewhere:x} leads, and none of the client's endpoints is its own")
            if self._left(deadline) <= _LOOK_AGAIN:
                if heard:
                    raise EtcdTimeoutError("no leader was found in time")
                raise NoAvailableEndpointsError(errors=errors)
            await asyncio.sleep(_LOOK_AGAIN)

    async def _look_after(self, error: EtcdError, target: int, deadline: float, retry: RetryMode | None) -> Leader:
        """Who leads after an attempt that ended with `error`, which is raised if nothing may be tried again."""
        try:
            leader = await self.find(deadline)
        except EtcdError:
            raise error from None
        if leader.id != target:
            if retry == "never" or self._left(deadline) <= _LOOK_AGAIN:
                raise error
            await asyncio.sleep(_LOOK_AGAIN)  # else two members that contradict each other would keep this busy
        return leader

    async def _ask_all(self, seconds: float) -> dict[str, StatusResult | EtcdError]:
        """What every endpoint says; those that are slow to answer are not waited for once somebody leads."""
        tasks = {
            name: start_task(self._ask(name, seconds), name=f"etcd_aio status {name}")
            for name in self._invoker.endpoints
        }
        pending = set(tasks.values())
        grace: float | None = None
        try:
            while pending:
                done, pending = await asyncio.wait(pending, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    break
                if any(isinstance(one := task.result(), StatusResult) and one.is_leader for task in done):
                    grace = _CONTRADICTION_SECONDS
        finally:
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)  # a cancelled call ends at once
        late = EtcdTimeoutError("it did not say in time who leads")
        return {name: late if task in pending else task.result() for name, task in tasks.items()}

    async def _ask(self, endpoint: str, seconds: float) -> StatusResult | EtcdError:
        try:
            return await self._invoker.unary(
                methods.STATUS, pb.StatusRequest(), timeout=seconds, needs_leader=False, endpoint=endpoint
            )
        except EtcdError as error:
            return error

    def _left(self, deadline: float) -> float:
        return time_left(deadline, self._invoker.clock())
