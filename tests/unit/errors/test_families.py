"""errors/families.py: families, topics and builtins of server errors, as the head of the module draws them."""

import pickle

import pytest

from etcd_aio.errors import (
    AbortedError,
    AlreadyExistsError,
    AuthError,
    DataLossError,
    DowngradeError,
    EtcdError,
    FailedPreconditionError,
    InternalServerError,
    InvalidArgumentError,
    LeaseError,
    MembershipError,
    NotFoundError,
    NotSupportedByServerError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
    RetryHint,
    ServerCancelledError,
    ServerDeadlineExceededError,
    ServerError,
    StatusCode,
    TransportError,
    UnauthenticatedError,
    UnavailableError,
    UnknownServerError,
    WatchError,
)

BUILTINS = (
    *(ArithmeticError, AssertionError, ConnectionError, KeyError, LookupError, NotImplementedError),
    *(OSError, PermissionError, RuntimeError, TimeoutError, TypeError, ValueError),
)


@pytest.mark.parametrize(
    ("family", "builtins"),
    [
        (AbortedError, set()),
        (AlreadyExistsError, set()),
        (DataLossError, set()),
        (FailedPreconditionError, set()),
        (InternalServerError, set()),
        (InvalidArgumentError, {ValueError}),
        (NotFoundError, {LookupError}),
        (NotSupportedByServerError, {NotImplementedError, RuntimeError}),
        (OutOfRangeError, set()),
        (PermissionDeniedError, {PermissionError, OSError}),
        (ResourceExhaustedError, set()),
        (ServerCancelledError, set()),
        (ServerDeadlineExceededError, {TimeoutError, OSError}),
        (UnauthenticatedError, set()),
        (UnavailableError, set()),
        (UnknownServerError, set()),
    ],
)
def test_a_family_is_the_builtin_that_fits_and_no_other(
    family: type[ServerError], builtins: set[type[Exception]]
) -> None:
    assert issubclass(family, ServerError)
    assert {builtin for builtin in BUILTINS if issubclass(family, builtin)} == builtins


@pytest.mark.parametrize("topic", [AuthError, LeaseError, WatchError, MembershipError, DowngradeError])
def test_a_topic_says_nothing_about_status_or_remedy(topic: type[ServerError]) -> None:
    assert topic.__bases__ == (ServerError,)
    assert not {"default_code", "retry_hint", "is_definite", "retryable"} & vars(topic).keys()


def test_without_proof_a_server_error_is_neither_definite_nor_to_be_repeated() -> None:
    error = ServerError("?")
    assert error.retry_hint is RetryHint.RAISE
    assert not error.is_definite
    assert not error.retryable
    assert error.code is None


def test_a_server_error_is_an_answer_and_no_lost_connection() -> None:
    assert issubclass(ServerError, EtcdError)
    assert not issubclass(ServerError, TransportError)


def test_the_tokens_family_asks_for_a_new_token_and_the_permissions_one_does_not() -> None:
    assert issubclass(UnauthenticatedError, AuthError)
    assert issubclass(PermissionDeniedError, AuthError)
    assert UnauthenticatedError("?").retry_hint is RetryHint.REFRESH_TOKEN
    assert PermissionDeniedError("?").retry_hint is RetryHint.RAISE


def test_a_permission_error_keeps_its_text_and_status() -> None:
    # OSError takes its arguments apart: one is a text, two are a number and a text.
    error = PermissionDeniedError("no", code=StatusCode.UNKNOWN)
    assert str(error) == "no"
    assert error.args == ("no",)
    assert error.errno is None
    assert error.code is StatusCode.UNKNOWN


def test_what_a_server_lacks_is_named_with_the_release_that_has_it() -> None:
    error = NotSupportedByServerError("unknown method", feature="Auth/AuthStatus", needs="3.5")
    assert str(error) == error.message == "Auth/AuthStatus needs etcd 3.5 or newer: unknown method"
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.feature, again.needs) == (str(error), "Auth/AuthStatus", "3.5")
    assert str(NotSupportedByServerError("unknown method")) == "unknown method"
