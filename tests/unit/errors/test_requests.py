"""errors/requests.py: errors about one request: builtins, topics, and what CompactedError carries."""

import copy
import pickle

import pytest

from etcd_aio.errors import (
    CompactedError,
    EmptyKeyError,
    FutureRevisionError,
    InvalidArgumentError,
    KeyNotFoundError,
    LeaseError,
    LeaseExistsError,
    LeaseNotFoundError,
    LeaseTTLTooLargeError,
    NotFoundError,
    OutOfRangeError,
    RequestDeadlineExceededError,
    RetryHint,
    ServerError,
    StatusCode,
    TooManyRequestsError,
    server_error,
)


@pytest.mark.parametrize(
    ("error", "parents"),
    [
        (EmptyKeyError, (InvalidArgumentError, ValueError)),
        (KeyNotFoundError, (InvalidArgumentError, KeyError, LookupError, ValueError)),
        (LeaseNotFoundError, (LeaseError, NotFoundError, LookupError)),
        (LeaseExistsError, (LeaseError,)),
        (LeaseTTLTooLargeError, (LeaseError, OutOfRangeError, ValueError)),
        (FutureRevisionError, (OutOfRangeError,)),
        (RequestDeadlineExceededError, (TimeoutError,)),
    ],
)
def test_it_is_caught_by_all_its_parents(error: type[ServerError], parents: tuple[type[Exception], ...]) -> None:
    for parent in parents:
        with pytest.raises(parent):
            raise error


def test_a_missing_key_reads_as_text_and_not_as_a_quoted_key() -> None:
    assert str(KeyNotFoundError()) == "etcdserver: key not found"


def test_a_compacted_error_knows_no_revision_unless_it_is_told() -> None:
    unknown = server_error(StatusCode.OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted")
    assert isinstance(unknown, CompactedError)
    assert unknown.compact_revision == 0
    assert CompactedError(compact_revision=7).compact_revision == 7


def test_a_compacted_error_keeps_its_revision_when_pickled_or_copied() -> None:
    error = CompactedError("gone", code=StatusCode.CANCELLED, compact_revision=7)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert twin.compact_revision == 7
        assert twin.code is StatusCode.CANCELLED
        assert str(twin) == "gone"


def test_a_member_that_is_behind_may_be_passed_over_even_by_a_mutation() -> None:
    assert TooManyRequestsError().retry_hint is RetryHint.RETRY_ELSEWHERE
    assert TooManyRequestsError().is_definite
