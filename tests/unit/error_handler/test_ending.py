import pytest

from etcd_aio import methods
from etcd_aio.error_handler.ending import failed, left, unexpected_error, unneeded, unreadable
from etcd_aio.error_handler.verdicts import Verdict, judge_stream
from etcd_aio.errors import (
    AttemptFailure,
    ConnectionLostError,
    Delivery,
    EtcdError,
    InvalidRequestError,
    MalformedReplyError,
    NoLeaderError,
    NotSupportedForLearnerError,
    PermissionDeniedError,
    ReplyTooLargeError,
    StatusCode,
    UnknownServerError,
)
from etcd_aio.methods import AnyMethod
from tests.support.calls import answered, learner, no_leader, unknown, unprocessed, unsent

AT_ONCE, BACKOFF, END = Verdict.AT_ONCE, Verdict.BACKOFF, Verdict.FAIL


def cut_short() -> AttemptFailure:
    return AttemptFailure(StatusCode.INTERNAL, "the server cut its message short", Delivery.UNKNOWN)


def too_late() -> AttemptFailure:
    return AttemptFailure(StatusCode.DEADLINE_EXCEEDED, "too late", Delivery.UNSENT, is_local_deadline=True)


@pytest.mark.parametrize(
    ("failure", "error", "verdict"),
    [
        (unsent(), ConnectionLostError, AT_ONCE),
        (unprocessed(), ConnectionLostError, AT_ONCE),
        (unknown(), ConnectionLostError, AT_ONCE),
        (cut_short(), MalformedReplyError, AT_ONCE),
        (too_late(), ConnectionLostError, AT_ONCE),
        (unknown(StatusCode.RESOURCE_EXHAUSTED, is_final=True), ReplyTooLargeError, END),
        (no_leader(), NoLeaderError, BACKOFF),
        (learner(), NotSupportedForLearnerError, BACKOFF),
        (answered(StatusCode.UNAVAILABLE, "something"), EtcdError, BACKOFF),
        (answered(StatusCode.INTERNAL, "something"), EtcdError, BACKOFF),
        (answered(StatusCode.UNKNOWN, "something"), UnknownServerError, BACKOFF),
        (answered(StatusCode.CANCELLED, "context canceled"), EtcdError, BACKOFF),
        (answered(StatusCode.DEADLINE_EXCEEDED, "context deadline exceeded"), EtcdError, BACKOFF),
        (answered(StatusCode.PERMISSION_DENIED, "etcdserver: permission denied"), PermissionDeniedError, END),
        (answered(StatusCode.UNAUTHENTICATED, "etcdserver: invalid auth token"), EtcdError, END),
        (answered(StatusCode.INVALID_ARGUMENT, "something"), EtcdError, END),
        (answered(StatusCode.UNIMPLEMENTED, "something"), EtcdError, END),
        (answered(StatusCode.FAILED_PRECONDITION, "something"), EtcdError, END),
        (answered(StatusCode.RESOURCE_EXHAUSTED, "grpc: received message larger than max"), EtcdError, END),
    ],
)
def test_what_the_transport_says(failure: AttemptFailure, error: type[EtcdError], verdict: Verdict) -> None:
    ending = failed(failure, methods.WATCH, "m1", 1.5, is_alone=False)
    assert isinstance(ending.error, error)
    assert judge_stream(ending.facts) is verdict
    assert ending.error.endpoint == "m1"
    assert ending.error.attempts[0].seconds == 1.5
    assert not ending.error.maybe_applied


@pytest.mark.parametrize(("method", "watch_id"), [(methods.WATCH, 7), (methods.LEASE_KEEP_ALIVE, None)])
def test_a_message_that_was_too_large_says_for_which_watch_and_nothing_is_kept_of_it(
    method: AnyMethod, watch_id: int | None
) -> None:
    failure = unknown(StatusCode.RESOURCE_EXHAUSTED, is_final=True)
    failure.beginning = b"\x10\x07"
    error = failed(failure, method, "m1", 1.5, is_alone=False).error
    assert isinstance(error, ReplyTooLargeError)
    assert (error.watch_id, failure.beginning) == (watch_id, b"")


def test_a_learner_that_is_alone_cannot_be_left() -> None:
    assert judge_stream(failed(learner(), methods.WATCH, "m1", 0.0, is_alone=True).facts) is END


def test_what_this_side_says() -> None:
    assert judge_stream(left("too silent").facts) is AT_ONCE
    assert left("too silent").error.message == "too silent"
    assert unneeded().is_unneeded
    assert judge_stream(unreadable(MalformedReplyError("cut")).facts) is END


def test_the_pushback_is_kept() -> None:
    assert (
        failed(answered(StatusCode.UNAVAILABLE, "busy", 0.5), methods.WATCH, "m1", 0.0, is_alone=False).pushback == 0.5
    )


def test_a_mistake_is_named_without_what_it_says() -> None:
    raised = ValueError("a value of the user's")
    error = unexpected_error(raised)
    assert error.__cause__ is raised
    assert "ValueError" in str(error)
    assert "user's" not in str(error)
    own = InvalidRequestError("no")
    assert unexpected_error(own) is own
