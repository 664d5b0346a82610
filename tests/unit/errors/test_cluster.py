"""errors/cluster.py: errors about the cluster: refusals, by topic."""

import pytest

from etcd_aio.errors import (
    BadLeaderTransfereeError,
    DowngradeError,
    LearnerNotReadyError,
    MemberNotFoundError,
    MembershipError,
    NotRaftLeaderError,
    RetryHint,
    ServerError,
    cluster,
)

HERE = [
    member
    for member in vars(cluster).values()
    if isinstance(member, type) and issubclass(member, ServerError) and member.__module__ == cluster.__name__
]


@pytest.mark.parametrize("error", HERE)
def test_all_are_refusals_that_stand(error: type[ServerError]) -> None:
    assert error.is_definite
    assert error.retry_hint is RetryHint.RAISE


@pytest.mark.parametrize("error", HERE)
def test_each_has_one_topic_unless_it_is_about_leadership(error: type[ServerError]) -> None:
    topics = [topic for topic in (MembershipError, DowngradeError) if issubclass(error, topic)]
    assert len(topics) == (0 if error in {NotRaftLeaderError, BadLeaderTransfereeError} else 1)


def test_a_learner_that_lags_is_worth_another_try_later() -> None:
    assert [error for error in HERE if error.retryable] == [LearnerNotReadyError]


def test_a_missing_member_is_a_lookup_error() -> None:
    assert issubclass(MemberNotFoundError, LookupError)
