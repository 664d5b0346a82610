"""compat/aetcd/exceptions.py: which error of aetcd stands for an error of etcd_aio."""

import pytest

from etcd_aio import errors
from etcd_aio.compat import aetcd
from etcd_aio.compat.aetcd.exceptions import translated, translating

EXPECTED: dict[type[aetcd.ClientError], list[errors.EtcdError]] = {
    aetcd.ConnectionFailedError: [
        errors.NoAvailableEndpointsError(errors={}),
        errors.ConnectionLostError("gone"),
        errors.NoLeaderError(),
        errors.UnavailableError("not now"),
    ],
    aetcd.ConnectionTimeoutError: [errors.EtcdTimeoutError("late"), errors.RequestDeadlineExceededError()],
    aetcd.InternalError: [errors.InternalServerError("oh")],
    aetcd.InvalidArgumentError: [errors.EmptyKeyError(), errors.AuthenticationFailedError()],
    aetcd.UnauthenticatedError: [errors.InvalidTokenError()],
    aetcd.PreconditionFailedError: [errors.AuthNotEnabledError()],
    aetcd.DuplicateLeaseError: [errors.LeaseExistsError()],
    aetcd.ClientError: [
        errors.CompactedError(),
        errors.LeaseNotFoundError(),
        errors.PermissionDeniedError(),
        errors.ClientClosedError("closed"),
        errors.CorruptError(),
    ],
}


@pytest.mark.parametrize(
    ("error", "expected"), [(one, kind) for kind, several in EXPECTED.items() for one in several], ids=repr
)
def test_each_error_is_one_of_aetcd_and_has_its_cause(
    error: errors.EtcdError, expected: type[aetcd.ClientError]
) -> None:
    with pytest.raises(aetcd.ClientError) as caught, translating():
        raise error
    assert type(caught.value) is expected
    assert caught.value.__cause__ is error
    assert error.message in str(caught.value)


def test_an_argument_that_was_not_sent_is_a_value_error_too() -> None:
    error = translated(errors.InvalidRequestError("no"))
    assert isinstance(error, aetcd.InvalidArgumentError)
    assert isinstance(error, ValueError)


def test_other_errors_stay() -> None:
    with pytest.raises(ZeroDivisionError), translating():
        raise ZeroDivisionError
