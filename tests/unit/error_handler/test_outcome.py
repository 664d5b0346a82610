"""error_handler/outcome.py, base/unexpected.py: the error and the verdict of each failed attempt and stream."""

import pytest

from etcd_aio import methods
from etcd_aio.base.unexpected import as_etcd_error
from etcd_aio.error_handler.outcome import StreamEnd, local_error_of, meaning_of, server_error_of
from etcd_aio.error_handler.retry_verdicts import RetryVerdict, judge_stream
from etcd_aio.errors import (
    AttemptFailure,
    CompactedError,
    ConnectionLostError,
    Delivery,
    EtcdError,
    InvalidRequestError,
    LocalReason,
    MalformedReplyError,
    NoLeaderError,
    NotSupportedByServerError,
    NotSupportedForLearnerError,
    PermissionDeniedError,
    ReplyTooLargeError,
    RetryHint,
    StatusCode,
    UnknownServerError,
)
from etcd_aio.methods import AnyMethod
from tests.support.calls import answered, learner, no_leader, unknown, unprocessed, unsent

AT_ONCE, BACKOFF, END = RetryVerdict.AT_ONCE, RetryVerdict.BACKOFF, RetryVerdict.FAIL


@pytest.mark.parametrize("method", [row for row in methods.ALL if row.since], ids=lambda row: row.name)
def test_a_missing_rpc_is_named_with_the_release_that_has_it(method: AnyMethod) -> None:
    error = server_error_of(answered(StatusCode.UNIMPLEMENTED, "unknown method X for service Y"), method)
    assert type(error) is NotSupportedByServerError
    assert str(error) == f"{method.name} needs etcd {method.since} or newer: unknown method X for service Y"
    assert (error.feature, error.needs) == (method.name, method.since)


def test_an_rpc_that_every_etcd_has_may_be_missing_behind_a_proxy() -> None:
    failure = answered(StatusCode.UNIMPLEMENTED, "unknown service etcdserverpb.Lease")
    error = server_error_of(failure, methods.LEASE_GRANT)
    assert str(error) == "Lease/LeaseGrant is not served here: unknown service etcdserverpb.Lease"


def test_any_other_answer_is_the_error_of_its_text() -> None:
    text = CompactedError.default_message
    error = server_error_of(answered(StatusCode.OUT_OF_RANGE, text), methods.RANGE_STREAM)
    assert (type(error), str(error)) == (CompactedError, text)


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (unsent(), ConnectionLostError),
        (unknown(), ConnectionLostError),
        (unknown(StatusCode.CANCELLED), ConnectionLostError),
        (unknown(StatusCode.DEADLINE_EXCEEDED), ConnectionLostError),
        (unknown(StatusCode.INTERNAL), MalformedReplyError),
        (unknown(StatusCode.RESOURCE_EXHAUSTED, reason=LocalReason.REPLY_TOO_LARGE), ReplyTooLargeError),
    ],
)
def test_the_error_of_an_attempt_without_an_answer(failure: AttemptFailure, error: type[EtcdError]) -> None:
    found = local_error_of(failure)
    assert type(found) is error
    assert found.message == failure.message


@pytest.mark.parametrize("is_alone", [True, False])
@pytest.mark.parametrize("asks_for_leader", [True, False])
def test_what_the_errors_of_a_server_mean_for_a_request(is_alone: bool, asks_for_leader: bool) -> None:
    def meaning(error: EtcdError | None) -> tuple[RetryHint, bool]:
        return meaning_of(error, is_alone=is_alone, asks_for_leader=asks_for_leader)

    assert meaning(None) == meaning(ConnectionLostError("lost")) == (RetryHint.RAISE, False)
    no_leader = (RetryHint.RETRY_ELSEWHERE, True) if asks_for_leader else (RetryHint.RETRY_IF_REPEATABLE, False)
    assert meaning(NoLeaderError()) == no_leader
    assert meaning(NotSupportedForLearnerError()) == (RetryHint.RAISE if is_alone else RetryHint.RETRY_ELSEWHERE, True)
    assert meaning(CompactedError()) == (CompactedError.retry_hint, CompactedError.is_definite)


# Streams.


def cut_short() -> AttemptFailure:
    return AttemptFailure(StatusCode.INTERNAL, "the server cut its message short", Delivery.UNKNOWN)


def too_late() -> AttemptFailure:
    return AttemptFailure(StatusCode.DEADLINE_EXCEEDED, "too late", Delivery.UNSENT, reason=LocalReason.DEADLINE)


@pytest.mark.parametrize(
    ("failure", "error", "verdict"),
    [
        (unsent(), ConnectionLostError, AT_ONCE),
        (unprocessed(), ConnectionLostError, AT_ONCE),
        (unknown(), ConnectionLostError, AT_ONCE),
        (cut_short(), MalformedReplyError, AT_ONCE),
        (too_late(), ConnectionLostError, AT_ONCE),
        (unknown(StatusCode.INTERNAL, reason=LocalReason.MALFORMED), MalformedReplyError, END),
        (unknown(StatusCode.RESOURCE_EXHAUSTED, reason=LocalReason.REPLY_TOO_LARGE), ReplyTooLargeError, END),
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
def test_the_error_and_verdict_of_a_stream_that_failed(
    failure: AttemptFailure, error: type[EtcdError], verdict: RetryVerdict
) -> None:
    ending = StreamEnd.from_failure(failure, methods.WATCH, "m1", 1.5, is_alone=False)
    assert isinstance(ending.error, error)
    assert judge_stream(ending.facts) is verdict
    assert ending.error.endpoint == "m1"
    assert ending.error.attempts[0].seconds == 1.5
    assert not ending.error.maybe_applied


@pytest.mark.parametrize(("method", "watch_id"), [(methods.WATCH, 7), (methods.LEASE_KEEP_ALIVE, None)])
def test_the_error_of_a_message_that_was_too_large_names_its_watch_and_keeps_nothing_of_it(
    method: AnyMethod, watch_id: int | None
) -> None:
    failure = unknown(StatusCode.RESOURCE_EXHAUSTED, reason=LocalReason.REPLY_TOO_LARGE)
    failure.beginning = b"\x10\x07"
    error = StreamEnd.from_failure(failure, method, "m1", 1.5, is_alone=False).error
    assert isinstance(error, ReplyTooLargeError)
    assert (error.watch_id, failure.beginning) == (watch_id, b"")


def test_a_stream_on_the_only_endpoint_ends_if_it_is_a_learner() -> None:
    assert judge_stream(StreamEnd.from_failure(learner(), methods.WATCH, "m1", 0.0, is_alone=True).facts) is END


def test_the_verdict_on_streams_that_this_side_ended() -> None:
    assert judge_stream(StreamEnd.abandoned("too silent").facts) is AT_ONCE
    assert StreamEnd.abandoned("too silent").error.message == "too silent"
    assert StreamEnd.not_needed().is_unneeded
    assert judge_stream(StreamEnd.malformed(MalformedReplyError("cut")).facts) is END


def test_the_pushback_is_kept() -> None:
    failure = answered(StatusCode.UNAVAILABLE, "busy", 0.5)
    assert StreamEnd.from_failure(failure, methods.WATCH, "m1", 0.0, is_alone=False).pushback == 0.5


def test_an_as_etcd_error_is_named_without_its_text() -> None:
    raised = ValueError("a value of the user's")
    error = as_etcd_error(raised)
    assert error.__cause__ is raised
    assert "ValueError" in str(error)
    assert "user's" not in str(error)
    own = InvalidRequestError("no")
    assert as_etcd_error(own) is own
