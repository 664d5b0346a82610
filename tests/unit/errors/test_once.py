"""errors/once.py: errors of exactly-once writes: what they carry, also when pickled or copied."""

import copy
import pickle

from etcd_aio.errors import EtcdError, OutcomeUnknownError, ResultLostError


def test_an_unknown_outcome_may_have_been_applied() -> None:
    error = OutcomeUnknownError()
    assert isinstance(error, EtcdError)
    assert error.maybe_applied
    assert "settle()" in str(error)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert twin.maybe_applied
        assert str(twin) == str(error)


def test_a_lost_result_says_where_the_write_was_applied_and_which_branch_ran() -> None:
    error = ResultLostError(revision=7, succeeded=False)
    for twin in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (twin.revision, twin.succeeded) == (7, False)
        assert twin.maybe_applied, "False would promise that it was not applied, and invite a repetition"
    assert ResultLostError().succeeded
