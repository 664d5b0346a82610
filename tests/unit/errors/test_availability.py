"""errors/availability.py: errors about the member that was asked: refused, open, or damaged."""

import pytest

from etcd_aio.errors import (
    CorruptError,
    DataLossError,
    EtcdTimeoutError,
    NoLeaderError,
    NotCapableError,
    NotSupportedForLearnerError,
    ProposalDroppedError,
    RequestTimedOutError,
    RetryHint,
    ServerError,
    TimeoutDueToConnectionLostError,
    TimeoutDueToLeaderFailError,
    TimeoutLeaderTransferError,
    TimeoutWaitAppliedIndexError,
    UnavailableError,
    availability,
)

HERE = [
    member
    for member in vars(availability).values()
    if isinstance(member, type) and issubclass(member, ServerError) and member.__module__ == availability.__name__
]
REFUSED = {NoLeaderError, NotSupportedForLearnerError, NotCapableError, ProposalDroppedError}


@pytest.mark.parametrize("error", HERE)
def test_each_is_refused_open_or_damage(error: type[ServerError]) -> None:
    if error in REFUSED:
        assert (error.retry_hint, error.is_definite) == (RetryHint.RETRY_ELSEWHERE, True)
    elif error is CorruptError:
        assert (error.retry_hint, error.is_definite) == (RetryHint.RAISE, False)
        assert issubclass(error, DataLossError)
    else:
        assert (error.retry_hint, error.is_definite) == (RetryHint.RETRY_IF_REPEATABLE, False)
        assert issubclass(error, UnavailableError)


@pytest.mark.parametrize(
    "error",
    [
        TimeoutDueToLeaderFailError,
        TimeoutDueToConnectionLostError,
        TimeoutWaitAppliedIndexError,
        TimeoutLeaderTransferError,
    ],
)
def test_every_timeout_of_the_server_is_caught_as_one(error: type[ServerError]) -> None:
    assert issubclass(error, RequestTimedOutError)
    assert issubclass(error, TimeoutError)
    assert not issubclass(error, EtcdTimeoutError), "that one is the caller's own deadline"


def test_no_leader_says_what_it_depends_on() -> None:
    assert "hasleader" in (NoLeaderError.__doc__ or "")
