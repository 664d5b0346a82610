"""errors/auth.py: errors about authentication: one family for all, and the three that a new token cures."""

import pytest

from etcd_aio.errors import (
    AuthenticationFailedError,
    AuthError,
    AuthOldRevisionError,
    InvalidTokenError,
    RetryHint,
    RoleNotFoundError,
    ServerError,
    StatusCode,
    UserEmptyError,
    UserNotFoundError,
    auth,
    server_error,
)

HERE = [
    member
    for member in vars(auth).values()
    if isinstance(member, type) and issubclass(member, ServerError) and member.__module__ == auth.__name__
]


@pytest.mark.parametrize("error", HERE)
def test_all_are_auth_errors_and_definite(error: type[ServerError]) -> None:
    assert issubclass(error, AuthError)
    assert error.is_definite


def test_three_of_them_are_cured_by_a_new_token() -> None:
    cured = {error for error in HERE if error.retry_hint is RetryHint.REFRESH_TOKEN}
    assert cured == {InvalidTokenError, AuthOldRevisionError, UserEmptyError}


def test_a_wrong_password_is_not_cured_by_logging_in_again() -> None:
    assert AuthenticationFailedError().retry_hint is RetryHint.RAISE


def test_the_raw_text_of_older_servers_asks_for_a_new_token_too() -> None:
    error = server_error(StatusCode.UNKNOWN, "auth: revision in header is old")
    assert type(error) is AuthOldRevisionError
    assert error.retry_hint is RetryHint.REFRESH_TOKEN
    assert error.is_definite


@pytest.mark.parametrize("error", [UserNotFoundError, RoleNotFoundError])
def test_what_is_looked_up_in_vain_is_a_lookup_error(error: type[ServerError]) -> None:
    assert issubclass(error, LookupError)
