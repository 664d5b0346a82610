"""errors/server_error_table.py: the error table: every text in etcd's own list, printed statuses, and hostile texts."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio import errors
from etcd_aio.errors import RetryHint, ServerError, StatusCode, server_error
from etcd_aio.errors.attempt import MAX_MESSAGE_BYTES
from etcd_aio.errors.server_error_table import BY_CODE, BY_MESSAGE, NOT_SUPPORTED, ROWS, Row

# What etcd 3.7 lists, in its order: our class, the status, the text behind "etcdserver: ".
ETCD_LIST = """
EmptyKeyError                       INVALID_ARGUMENT     key is not provided
KeyNotFoundError                    INVALID_ARGUMENT     key not found
ValueProvidedError                  INVALID_ARGUMENT     value is provided
LeaseProvidedError                  INVALID_ARGUMENT     lease is provided
TooManyOpsError                     INVALID_ARGUMENT     too many operations in txn request
DuplicateKeyError                   INVALID_ARGUMENT     duplicate key given in txn request
InvalidClientAPIVersionError        INVALID_ARGUMENT     invalid client api version
InvalidSortOptionError              INVALID_ARGUMENT     invalid sort option
CompactedError                      OUT_OF_RANGE         mvcc: required revision has been compacted
FutureRevisionError                 OUT_OF_RANGE         mvcc: required revision is a future revision
NoSpaceError                        RESOURCE_EXHAUSTED   mvcc: database space exceeded
LeaseNotFoundError                  NOT_FOUND            requested lease not found
LeaseExistsError                    FAILED_PRECONDITION  lease already exists
LeaseTTLTooLargeError               OUT_OF_RANGE         too large lease TTL
WatchCancelledError                 CANCELLED            watch canceled
MemberExistsError                   FAILED_PRECONDITION  member ID already exist
PeerURLExistsError                  FAILED_PRECONDITION  Peer URLs already exists
MemberNotEnoughStartedError         FAILED_PRECONDITION  re-configuration failed due to not enough started members
MemberBadURLsError                  INVALID_ARGUMENT     given member URLs are invalid
MemberNotFoundError                 NOT_FOUND            member not found
MemberNotLearnerError               FAILED_PRECONDITION  can only promote a learner member
LearnerNotReadyError                FAILED_PRECONDITION  can only promote a learner member which is in sync with leader
TooManyLearnersError                FAILED_PRECONDITION  too many learner members in cluster
ClusterIDMismatchError              FAILED_PRECONDITION  cluster ID mismatch
RequestTooLargeError                INVALID_ARGUMENT     request is too large
TooManyRequestsError                RESOURCE_EXHAUSTED   too many requests
RootUserNotExistError               FAILED_PRECONDITION  root user does not exist
RootRoleNotExistError               FAILED_PRECONDITION  root user does not have root role
UserAlreadyExistsError              FAILED_PRECONDITION  user name already exists
UserEmptyError                      INVALID_ARGUMENT     user name is empty
UserNotFoundError                   FAILED_PRECONDITION  user name not found
RoleAlreadyExistsError              FAILED_PRECONDITION  role name already exists
RoleNotFoundError                   FAILED_PRECONDITION  role name not found
RoleEmptyError                      INVALID_ARGUMENT     role name is empty
AuthenticationFailedError           INVALID_ARGUMENT     authentication failed, invalid user ID or password
PermissionNotGivenError             INVALID_ARGUMENT     permission not given
PermissionDeniedError               PERMISSION_DENIED    permission denied
RoleNotGrantedError                 FAILED_PRECONDITION  role is not granted to the user
PermissionNotGrantedError           FAILED_PRECONDITION  permission is not granted to the role
AuthNotEnabledError                 FAILED_PRECONDITION  authentication is not enabled
InvalidTokenError                   UNAUTHENTICATED      invalid auth token
InvalidAuthManagementError          INVALID_ARGUMENT     invalid auth management
AuthOldRevisionError                INVALID_ARGUMENT     revision of auth store is old
NoLeaderError                       UNAVAILABLE          no leader
NotRaftLeaderError                  FAILED_PRECONDITION  not leader
LeaderChangedError                  UNAVAILABLE          leader changed
NotCapableError                     FAILED_PRECONDITION  not capable
ServerStoppedError                  UNAVAILABLE          server stopped
RequestTimedOutError                UNAVAILABLE          request timed out
TimeoutDueToLeaderFailError         UNAVAILABLE          request timed out, possibly due to previous leader failure
TimeoutDueToConnectionLostError     UNAVAILABLE          request timed out, possibly due to connection lost
TimeoutWaitAppliedIndexError        UNAVAILABLE          request timed out, waiting for the applied index took too long
UnhealthyClusterError               UNAVAILABLE          unhealthy cluster
CorruptError                        DATA_LOSS            corrupt cluster
NotSupportedForLearnerError         FAILED_PRECONDITION  rpc not supported for learner
BadLeaderTransfereeError            FAILED_PRECONDITION  bad leader transferee
WrongDowngradeVersionFormatError    INVALID_ARGUMENT     wrong downgrade target version format
InvalidDowngradeTargetVersionError  INVALID_ARGUMENT     invalid downgrade target version
ClusterVersionUnavailableError      FAILED_PRECONDITION  cluster version not found during downgrade
DowngradeInProcessError             FAILED_PRECONDITION  cluster has a downgrade job in progress
NoInflightDowngradeError            FAILED_PRECONDITION  no inflight downgrade job
RequestCancelledError               CANCELLED            request canceled
RequestDeadlineExceededError        DEADLINE_EXCEEDED    context deadline exceeded
"""

# Texts that servers send, though the list does not have them.
BARE = """
ProposalDroppedError                UNKNOWN              raft proposal dropped
NotPrimaryLessorError               UNKNOWN              not a primary lessor
TimeoutLeaderTransferError          UNKNOWN              etcdserver: request timed out, leader transfer took too long
EmptyWatcherRangeError              INVALID_ARGUMENT     mvcc: watcher range is empty
DuplicateWatchIDError               INVALID_ARGUMENT     mvcc: duplicate watch ID provided on the WatchStream
AuthOldRevisionError                UNKNOWN              auth: revision in header is old
UserEmptyError                      UNKNOWN              auth: user name is empty
InvalidTokenError                   UNKNOWN              auth: invalid auth token
PermissionDeniedError               UNKNOWN              auth: permission denied
AuthenticationFailedError           UNKNOWN              auth: authentication failed, password was given for no password user
ServerStoppedError                  UNKNOWN              raft: stopped
RequestCancelledError               UNKNOWN              etcdserver: request cancelled
RequestCancelledError               CANCELLED            context canceled
RequestDeadlineExceededError        DEADLINE_EXCEEDED    context deadline exceeded
"""  # noqa: E501

# By what an answer allows. A class in two groups, or in none, fails below.
REFRESH_TOKEN = {"InvalidTokenError", "AuthOldRevisionError", "UserEmptyError"}
RETRY_ELSEWHERE = {
    "NoLeaderError",
    "NotSupportedForLearnerError",
    "NotCapableError",
    "TooManyRequestsError",
    "ProposalDroppedError",
}
AMBIGUOUS_AND_REPEATABLE = {
    "LeaderChangedError",
    "ServerStoppedError",
    "NotPrimaryLessorError",
    "UnhealthyClusterError",
    "RequestTimedOutError",
    "TimeoutDueToLeaderFailError",
    "TimeoutDueToConnectionLostError",
    "TimeoutWaitAppliedIndexError",
    "TimeoutLeaderTransferError",
    "WatchCancelledError",
    "RequestCancelledError",
    "RequestDeadlineExceededError",
}
AMBIGUOUS_AND_FINAL = {"CorruptError", "NoSpaceError"}
DEFINITE_AND_FINAL = {
    # the request itself
    *("EmptyKeyError", "KeyNotFoundError", "ValueProvidedError", "LeaseProvidedError", "TooManyOpsError"),
    *("DuplicateKeyError", "InvalidClientAPIVersionError", "InvalidSortOptionError", "RequestTooLargeError"),
    *("EmptyWatcherRangeError", "DuplicateWatchIDError", "CompactedError", "FutureRevisionError"),
    *("LeaseNotFoundError", "LeaseExistsError", "LeaseTTLTooLargeError"),
    # members, leadership, downgrade
    *("MemberExistsError", "PeerURLExistsError", "MemberNotEnoughStartedError", "MemberBadURLsError"),
    *("MemberNotFoundError", "MemberNotLearnerError", "LearnerNotReadyError", "TooManyLearnersError"),
    *("ClusterIDMismatchError", "NotRaftLeaderError", "BadLeaderTransfereeError"),
    *("WrongDowngradeVersionFormatError", "InvalidDowngradeTargetVersionError", "ClusterVersionUnavailableError"),
    *("DowngradeInProcessError", "NoInflightDowngradeError"),
    # users and roles
    *("RootUserNotExistError", "RootRoleNotExistError", "UserAlreadyExistsError", "UserNotFoundError"),
    *("RoleAlreadyExistsError", "RoleNotFoundError", "RoleEmptyError", "AuthenticationFailedError"),
    *("PermissionNotGivenError", "PermissionDeniedError", "RoleNotGrantedError", "PermissionNotGrantedError"),
    *("AuthNotEnabledError", "InvalidAuthManagementError"),
}


def parse(text: str, prefix: str) -> list[tuple[str, StatusCode, str]]:
    rows = (line.split(maxsplit=2) for line in text.strip().splitlines())
    return [(name, StatusCode[code], prefix + message) for name, code, message in rows]


EXPECTED = parse(ETCD_LIST, "etcdserver: ") + parse(BARE, "")


def every_subclass(error: type[ServerError]) -> set[type[ServerError]]:
    return {error}.union(*map(every_subclass, error.__subclasses__()))


def by_name(error: type[ServerError]) -> str:
    return error.__name__


LEAVES: list[type[ServerError]] = sorted({row.error for row in ROWS}, key=by_name)
CLASSES: list[type[ServerError]] = sorted(every_subclass(ServerError), key=by_name)


@pytest.mark.parametrize(("name", "code", "message"), EXPECTED, ids=lambda value: str(value))
def test_a_row_has_its_exact_text_and_status(name: str, code: StatusCode, message: str) -> None:
    row = BY_MESSAGE[message]
    assert row.error is getattr(errors, name)
    assert row.code is code


def test_the_table_holds_nothing_else_and_each_text_once() -> None:
    assert sorted(row.message for row in ROWS) == sorted(message for _, _, message in EXPECTED)
    assert len(BY_MESSAGE) == len(ROWS)


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_class_of_the_table_carries_its_own_row(leaf: type[ServerError]) -> None:
    row = BY_MESSAGE[leaf.default_message]
    assert row.error is leaf
    assert row.code is leaf.default_code


def test_every_server_error_is_a_row_a_family_or_a_topic() -> None:
    topics = {errors.AuthError, errors.LeaseError, errors.WatchError, errors.MembershipError, errors.DowngradeError}
    assert set(CLASSES) == {ServerError, *topics, *BY_CODE.values(), *LEAVES}


def test_every_status_that_is_an_error_has_a_family_of_its_own() -> None:
    assert set(BY_CODE) == set(StatusCode) - {StatusCode.OK}
    assert {code: family.default_code for code, family in BY_CODE.items()} == {code: code for code in BY_CODE}


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_leaf_has_the_family_of_its_status(leaf: type[ServerError]) -> None:
    sent_as_unknown = {errors.ProposalDroppedError, errors.NotPrimaryLessorError, errors.TimeoutLeaderTransferError}
    assert leaf.default_code is not None
    family = errors.UnavailableError if leaf in sent_as_unknown else BY_CODE[leaf.default_code]
    assert issubclass(leaf, family)
    others = {other for other in BY_CODE.values() if issubclass(leaf, other)} - {family}
    assert not others


@pytest.mark.parametrize("leaf", LEAVES)
def test_what_a_row_allows_and_proves(leaf: type[ServerError]) -> None:
    groups = {
        (RetryHint.REFRESH_TOKEN, True): REFRESH_TOKEN,
        (RetryHint.RETRY_ELSEWHERE, True): RETRY_ELSEWHERE,
        (RetryHint.RETRY_IF_REPEATABLE, False): AMBIGUOUS_AND_REPEATABLE,
        (RetryHint.RAISE, False): AMBIGUOUS_AND_FINAL,
        (RetryHint.RAISE, True): DEFINITE_AND_FINAL,
    }
    assert [facts for facts, names in groups.items() if leaf.__name__ in names] == [(leaf.retry_hint, leaf.is_definite)]


def test_the_groups_name_nothing_that_is_gone() -> None:
    grouped = REFRESH_TOKEN | RETRY_ELSEWHERE | AMBIGUOUS_AND_REPEATABLE | AMBIGUOUS_AND_FINAL | DEFINITE_AND_FINAL
    assert grouped == {leaf.__name__ for leaf in LEAVES}


@pytest.mark.parametrize("error", CLASSES)
def test_the_facts_of_a_class_fit_each_other(error: type[ServerError]) -> None:
    # A mutation is repeated only with proof that it did not run.
    assert error.is_definite or error.retry_hint not in {RetryHint.REFRESH_TOKEN, RetryHint.RETRY_ELSEWHERE}
    assert not (error.is_definite and error.retry_hint is RetryHint.RETRY_IF_REPEATABLE)
    repeats = error.retry_hint in {RetryHint.RETRY_ELSEWHERE, RetryHint.RETRY_IF_REPEATABLE}
    assert error.retryable == (repeats or error is errors.LearnerNotReadyError)


@pytest.mark.parametrize("error", CLASSES)
def test_every_class_is_documented_and_public(error: type[ServerError]) -> None:
    assert error.__doc__ is not None
    assert error.__doc__ != (error.__base__ or object).__doc__
    assert error.__name__ in vars(errors)["__all__"]


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


@pytest.mark.parametrize("message", sorted(NOT_SUPPORTED))
@pytest.mark.parametrize("code", [StatusCode.UNKNOWN, StatusCode.INVALID_ARGUMENT], ids=lambda code: code.name)
def test_what_kine_lacks_is_not_supported_whatever_its_status(message: str, code: StatusCode) -> None:
    error = server_error(code, message, feature="Lease/LeaseRevoke", needs="3.5")
    assert isinstance(error, errors.NotSupportedByServerError)
    assert (error.code, error.is_definite) == (code, True)
    assert str(error) == f"Lease/LeaseRevoke is not served here: {message}", "no release of etcd helps"
