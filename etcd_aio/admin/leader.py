"""Finds the leader, and moves the leadership to another member.

Only the leader can transfer its leadership. So every endpoint is asked at once for its status, and the request goes
only to the member that claims to lead in the newest term. After a successful request that member leads no more.
Therefore an attempt without an answer is not repeated: the leader is looked up again, which shows whether the transfer
is done. Only if a third member leads, the request is sent again, to that member.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from etcd_aio import methods, pb
from etcd_aio.admin.status import ask_endpoints, status_of
from etcd_aio.base.call_options import RetryMode, Timeout
from etcd_aio.base.deadline import time_left
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import (
    EtcdError,
    EtcdTimeoutError,
    NoAvailableEndpointsError,
    NotRaftLeaderError,
    UnknownEndpointError,
)
from etcd_aio.types import MoveLeaderResult, StatusResult, newest_leader

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

_LOOK_SECONDS: Final = 1.0  # for one round of requests: a frozen member must not delay the answers of the others
_CONTRADICTION_SECONDS: Final = 0.1  # for the others to report a newer term, after a member has claimed to lead
_LOOK_AGAIN: Final = 0.05  # seconds between rounds; an election takes about a second


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader.

    Attributes:
        endpoint: its endpoint.
        status: its status.
    """

    endpoint: str
    status: StatusResult

    @property
    def id(self) -> int:
        """The member id."""
        return self.status.header.member_id


class LeaderTransfer:
    """Moves the leadership: see above."""

    def __init__(self, invoker: "Invoker") -> None:
        self._invoker = invoker

    async def move(self, target: int, timeout: Timeout, retry: RetryMode | None) -> MoveLeaderResult:
        """Move the leadership to the member `target`; nothing is done if it leads already. See `Maintenance`."""
        deadline = self._invoker.deadline(timeout, self._invoker.clock())
        leader = former = await self.find(deadline)
        while leader.id != target:
            try:
                await self._invoker.unary(
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
            else:
                break
        return MoveLeaderResult(former.status.header)

    async def find(self, deadline: float) -> Leader:
        """Find the leader, after an election if there is none now.

        Raises:
            UnknownEndpointError: the leader is not an endpoint of the client.
            NoAvailableEndpointsError: no endpoint answered by `deadline`.
            EtcdTimeoutError: no leader was found by `deadline`.
        """
        while True:
            answers = await self._ask_all(min(self._left(deadline), _LOOK_SECONDS))
            statuses = {name: answer for name, answer in answers.items() if isinstance(answer, StatusResult)}
            errors = {name: answer for name, answer in answers.items() if isinstance(answer, EtcdError)}
            leader = newest_leader(statuses)
            if leader is not None:
                return Leader(leader, statuses[leader])
            _check_may_be_found(statuses, errors)
            if self._left(deadline) <= _LOOK_AGAIN:
                if statuses:
                    raise EtcdTimeoutError("no leader was found in time")
                raise NoAvailableEndpointsError(errors=errors)
            await asyncio.sleep(_LOOK_AGAIN)

    async def _look_after(self, error: EtcdError, target: int, deadline: float, retry: RetryMode | None) -> Leader:
        """Find the leader after an attempt that failed with `error`; raise it if no other attempt may be made."""
        try:
            leader = await self.find(deadline)
        except EtcdError:
            raise error from None
        if leader.id != target:
            if retry == "never" or self._left(deadline) <= _LOOK_AGAIN:
                raise error
            await asyncio.sleep(_LOOK_AGAIN)  # two members that contradict each other must not make a busy loop
        return leader

    async def _ask_all(self, seconds: float) -> dict[str, StatusResult | EtcdError]:
        """Get the answer of every endpoint; slow ones get little time after a member has claimed to lead."""
        endpoints = self._invoker.endpoints
        answers = await ask_endpoints(
            endpoints,
            lambda endpoint: self._ask(endpoint, seconds),
            name="status",
            is_enough=lambda answer: isinstance(answer, StatusResult) and answer.is_leader,
            grace=_CONTRADICTION_SECONDS,
        )
        late = EtcdTimeoutError("no status in time")
        return {endpoint: answers.get(endpoint, late) for endpoint in endpoints}

    async def _ask(self, endpoint: str, seconds: float) -> StatusResult | EtcdError:
        try:
            return await status_of(self._invoker, endpoint, seconds)
        except EtcdError as error:
            return error

    def _left(self, deadline: float) -> float:
        return time_left(deadline, self._invoker.clock())


def _check_may_be_found(statuses: Mapping[str, StatusResult], errors: Mapping[str, EtcdError]) -> None:
    """Raise an error if another search is useless: permanent errors, or a leader that is not an endpoint."""
    for error in errors.values():
        if not statuses and not error.retryable:
            raise error
    newest = max((status.raft_term for status in statuses.values()), default=0)
    leader = max((status.leader for status in statuses.values() if status.raft_term == newest), default=0)
    if leader and not errors and leader not in {status.header.member_id for status in statuses.values()}:
        raise UnknownEndpointError(f"the leader, member {leader:x}, is not an endpoint of this client")
