"""Translation: text before status, printed statuses, and text that wants to be more than text."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio import errors
from etcd_aio.errors import RetryHint, ServerError, StatusCode, server_error
from etcd_aio.errors.table import BY_CODE, ROWS, Row
from etcd_aio.errors.text import MAX_MESSAGE_BYTES

CODES = st.sampled_from(StatusCode)
WATCH_REASON = "rpc error: code = PermissionDenied desc = etcdserver: permission denied"
GO_NAMES = {
    "Canceled": StatusCode.CANCELLED,
    "Unknown": StatusCode.UNKNOWN,
    "InvalidArgument": StatusCode.INVALID_ARGUMENT,
    "DeadlineExceeded": StatusCode.DEADLINE_EXCEEDED,
    "NotFound": StatusCode.NOT_FOUND,
    "AlreadyExists": StatusCode.ALREADY_EXISTS,
    "PermissionDenied": StatusCode.PERMISSION_DENIED,
    "ResourceExhausted": StatusCode.RESOURCE_EXHAUSTED,
    "FailedPrecondition": StatusCode.FAILED_PRECONDITION,
    "Aborted": StatusCode.ABORTED,
    "OutOfRange": StatusCode.OUT_OF_RANGE,
    "Unimplemented": StatusCode.UNIMPLEMENTED,
    "Internal": StatusCode.INTERNAL,
    "Unavailable": StatusCode.UNAVAILABLE,
    "DataLoss": StatusCode.DATA_LOSS,
    "Unauthenticated": StatusCode.UNAUTHENTICATED,
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.message)
def test_a_known_text_becomes_exactly_its_class(row: Row) -> None:
    error = server_error(row.code, row.message)
    assert type(error) is row.error
    assert error.code is row.code
    assert error.message == str(error) == row.message


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.message)
def test_the_text_decides_and_the_status_is_kept_as_sent(row: Row) -> None:
    for code in BY_CODE:
        error = server_error(code, row.message)
        assert type(error) is row.error
        assert error.code is code


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.message)
def test_a_text_without_a_status_takes_that_of_its_row(row: Row) -> None:
    error = server_error(None, row.message)
    assert type(error) is row.error
    assert error.code is row.code


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        # etcd 3.5 sends these two as UNAVAILABLE, newer ones as FAILED_PRECONDITION.
        (StatusCode.UNAVAILABLE, "etcdserver: rpc not supported for learner", errors.NotSupportedForLearnerError),
        (StatusCode.UNAVAILABLE, "etcdserver: not capable", errors.NotCapableError),
        # etcd wraps these two so that their status gets lost.
        (StatusCode.UNKNOWN, "etcdserver: too many requests", errors.TooManyRequestsError),
        (
            StatusCode.UNKNOWN,
            "etcdserver: re-configuration failed due to not enough started members",
            errors.MemberNotEnoughStartedError,
        ),
    ],
)
def test_servers_that_send_another_status_are_understood(
    code: StatusCode, message: str, expected: type[ServerError]
) -> None:
    error = server_error(code, message)
    assert type(error) is expected
    assert error.code is code


@pytest.mark.parametrize("code", sorted(BY_CODE), ids=lambda code: code.name)
def test_an_unknown_text_stays_in_the_family_of_its_status(code: StatusCode) -> None:
    error = server_error(code, "etcdserver: something new")
    assert type(error) is BY_CODE[code]
    assert error.code is code
    assert error.message == "etcdserver: something new"


# What an unknown text proves and allows, by its status.
@pytest.mark.parametrize(
    ("code", "retry_hint", "is_definite"),
    [
        (StatusCode.CANCELLED, RetryHint.RETRY_IF_REPEATABLE, False),
        (StatusCode.UNKNOWN, RetryHint.RAISE, False),
        (StatusCode.INVALID_ARGUMENT, RetryHint.RAISE, True),
        (StatusCode.DEADLINE_EXCEEDED, RetryHint.RETRY_IF_REPEATABLE, False),
        (StatusCode.NOT_FOUND, RetryHint.RAISE, False),
        (StatusCode.ALREADY_EXISTS, RetryHint.RAISE, False),
        (StatusCode.PERMISSION_DENIED, RetryHint.RAISE, True),
        (StatusCode.RESOURCE_EXHAUSTED, RetryHint.RAISE, False),
        (StatusCode.FAILED_PRECONDITION, RetryHint.RAISE, False),
        (StatusCode.ABORTED, RetryHint.RETRY_IF_REPEATABLE, False),
        (StatusCode.OUT_OF_RANGE, RetryHint.RAISE, False),
        (StatusCode.UNIMPLEMENTED, RetryHint.RAISE, True),
        (StatusCode.INTERNAL, RetryHint.RETRY_IF_REPEATABLE, False),
        (StatusCode.UNAVAILABLE, RetryHint.RETRY_IF_REPEATABLE, False),
        (StatusCode.DATA_LOSS, RetryHint.RAISE, False),
        (StatusCode.UNAUTHENTICATED, RetryHint.REFRESH_TOKEN, True),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_what_an_unknown_text_allows_and_proves(code: StatusCode, retry_hint: RetryHint, is_definite: bool) -> None:
    error = server_error(code, "etcdserver: something new")
    assert error.retry_hint is retry_hint
    assert error.is_definite is is_definite


@pytest.mark.parametrize(
    "near",
    [
        "ETCDSERVER: no leader",
        "no leader",
        "etcdserver: no leader ",
        "etcdserver: no leader\x00",
        "etcdserver: no leader at all",
        "election: no leader",
    ],
)
def test_a_text_that_only_resembles_a_row_is_unknown(near: str) -> None:
    assert type(server_error(StatusCode.UNAVAILABLE, near)) is errors.UnavailableError


def test_an_empty_watcher_range_is_no_matter_of_authentication() -> None:
    error = server_error(None, "mvcc: watcher range is empty")
    assert not isinstance(error, errors.AuthError)
    assert error.retry_hint is RetryHint.RAISE


@pytest.mark.parametrize("code", [StatusCode.DEADLINE_EXCEEDED, StatusCode.CANCELLED], ids=lambda code: code.name)
@pytest.mark.parametrize("message", ["context deadline exceeded", "context canceled", "whatever"])
def test_the_servers_own_timeout_or_cancellation_stays_a_server_error(code: StatusCode, message: str) -> None:
    error = server_error(code, message)
    assert isinstance(error, errors.ServerDeadlineExceededError | errors.ServerCancelledError)
    assert not isinstance(error, errors.EtcdTimeoutError)


def test_a_status_printed_into_the_text_is_taken_off_and_believed() -> None:
    for code in (None, StatusCode.OK, StatusCode.CANCELLED):
        error = server_error(code, WATCH_REASON)
        assert type(error) is errors.PermissionDeniedError
        assert error.code is StatusCode.PERMISSION_DENIED
        assert error.message == "etcdserver: permission denied"


@pytest.mark.parametrize("name", GO_NAMES)
def test_every_printed_status_is_understood(name: str) -> None:
    error = server_error(None, f"rpc error: code = {name} desc = something new")
    assert error.code is GO_NAMES[name]
    assert type(error) is BY_CODE[GO_NAMES[name]]
    assert error.message == "something new"


def test_of_several_printed_statuses_the_innermost_counts() -> None:
    outer = "rpc error: code = Unknown desc = rpc error: code = Unavailable desc = etcdserver: leader changed"
    error = server_error(StatusCode.UNKNOWN, outer)
    assert type(error) is errors.LeaderChangedError
    assert error.code is StatusCode.UNAVAILABLE


@pytest.mark.parametrize("name", ["Nonsense", "Code(77)", "unavailable"])
def test_a_printed_status_that_does_not_exist_leaves_the_sent_one(name: str) -> None:
    text = f"rpc error: code = {name} desc = etcdserver: no leader"
    assert server_error(StatusCode.INTERNAL, text).code is StatusCode.INTERNAL
    assert server_error(None, text).code is StatusCode.UNAVAILABLE  # its row's
    assert type(server_error(None, text)) is errors.NoLeaderError


def test_a_status_is_only_taken_off_where_it_stands_first() -> None:
    text = "failed: rpc error: code = Unavailable desc = etcdserver: no leader"
    error = server_error(StatusCode.UNKNOWN, text)
    assert type(error) is errors.UnknownServerError
    assert error.message == text


@pytest.mark.parametrize("message", ["", "fine"])
@pytest.mark.parametrize("code", [None, StatusCode.OK])
def test_an_error_without_a_real_status_is_unknown(code: StatusCode | None, message: str) -> None:
    error = server_error(code, message)
    assert type(error) is errors.UnknownServerError
    assert error.code is StatusCode.UNKNOWN


def test_an_error_without_a_text_still_says_something() -> None:
    assert str(server_error(StatusCode.UNAVAILABLE, "")) == "the server gave no reason"


@given(CODES, st.text())
def test_any_answer_becomes_one_printable_error(code: StatusCode, message: str) -> None:
    error = server_error(code, message)
    assert isinstance(error, ServerError)
    assert error.code is not StatusCode.OK
    assert str(error).isprintable()
    assert len(str(error).encode()) <= MAX_MESSAGE_BYTES


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("ok\r\n2030-01-01 ERROR forged line", "ok\\r\\n2030-01-01 ERROR forged line"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("a\u202egnp.exe", "a\\u202egnp.exe"),
        ("line\u2028separator\x85", "line\\u2028separator\\x85"),
        ("lone \ud800 surrogate", "lone \\ud800 surrogate"),
        ("naïve café 🦊", "naïve café 🦊"),
    ],
)
def test_text_that_wants_to_be_more_is_escaped(hostile: str, harmless: str) -> None:
    assert server_error(StatusCode.UNKNOWN, hostile).message == harmless


def test_a_long_run_of_printed_statuses_is_one_pass() -> None:
    text = "rpc error: code = Unknown desc = " * 100_000 + "etcdserver: no leader"
    assert type(server_error(None, text)) is errors.NoLeaderError


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.message)
def test_every_error_survives_pickling_and_copying(row: Row) -> None:
    error = server_error(StatusCode.INTERNAL, row.message)
    error.call, error.detail = "put 'k'", "a detail"
    attempt = errors.Attempt("m1:2379", StatusCode.INTERNAL, errors.Delivery.ANSWERED, 0.1, row.message)
    errors.with_history(error, (attempt,), maybe_applied=True, seconds=2.0)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)
        assert twin.code is StatusCode.INTERNAL
        assert twin.maybe_applied
        assert twin.__notes__ == error.__notes__
