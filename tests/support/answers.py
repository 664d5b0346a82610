"""Answers of fake members to cluster and maintenance calls."""

from collections.abc import Callable
from typing import TypeVar

from etcd_aio import codec, pb
from etcd_aio.errors import AttemptFailure as Failure
from etcd_aio.errors import Delivery, StatusCode
from etcd_aio.methods import AnyMethod
from tests.support.calls import CLUSTER, Calls
from tests.support.fake_engine import FakeAttempt

M = TypeVar("M", bound=pb.Message)


def header(member: int = 1, term: int = 2) -> pb.ResponseHeader:
    return pb.ResponseHeader(cluster_id=CLUSTER, member_id=member, revision=7, raft_term=term)


def refused(message: str, code: StatusCode = StatusCode.FAILED_PRECONDITION) -> Failure:
    return Failure(code, message, Delivery.ANSWERED)


def asked(calls: Calls, method: AnyMethod) -> list[str]:
    """The members that this was sent to, in order."""
    return [attempt.member.authority[:2] for attempt in calls.engine.attempts if attempt.path == method.path]


def requests(calls: Calls, method: AnyMethod, message_class: type[M]) -> list[M]:
    """What the attempts of this RPC asked for."""
    return [
        codec.decode(message_class, attempt.payload) for attempt in calls.engine.attempts if attempt.path == method.path
    ]


def always(message: pb.Message) -> Callable[[FakeAttempt], bytes]:
    """The same answer to every request."""
    raw = codec.encode(message)
    return lambda attempt: raw
