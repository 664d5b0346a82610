"""compat/etcd3gw/_errors.py, compat/etcd3gw/exceptions.py, compat/etcd3gw/utils.py: errors as of HTTP, and Base64."""

import json

import pytest

from etcd_aio import errors
from etcd_aio.compat.etcd3gw import utils
from etcd_aio.compat.etcd3gw._errors import refused, translated, translating, unknown_route
from etcd_aio.compat.etcd3gw.exceptions import (
    ConnectionFailedError,
    ConnectionTimeoutError,
    Etcd3Exception,
    InternalServerError,
    WatchTimedOut,
)


@pytest.mark.parametrize(
    ("error", "kind", "reason", "code"),
    [
        (errors.LeaseExistsError(), Etcd3Exception, "Bad Request", 9),
        (errors.LeaseNotFoundError(), Etcd3Exception, "Not Found", 5),
        (errors.CompactedError(), Etcd3Exception, "Bad Request", 11),
        (errors.EmptyKeyError(), Etcd3Exception, "Bad Request", 3),
        (errors.PermissionDeniedError(), Etcd3Exception, "Forbidden", 7),
        (errors.InvalidTokenError(), Etcd3Exception, "Unauthorized", 16),
        (errors.NoSpaceError(), Etcd3Exception, "Too Many Requests", 8),
        (errors.NoLeaderError(), ConnectionFailedError, "Service Unavailable", 14),
        (errors.RequestDeadlineExceededError(), ConnectionTimeoutError, "Gateway Timeout", 4),
        (errors.UnknownServerError("oh"), InternalServerError, "Internal Server Error", 2),
    ],
    ids=repr,
)
def test_an_answer_of_etcd_is_a_status_of_http(
    error: errors.EtcdError, kind: type[Etcd3Exception], reason: str, code: int
) -> None:
    with pytest.raises(Etcd3Exception) as caught, translating():
        raise error
    found = caught.value
    assert (type(found), str(found), found.__cause__) == (kind, reason, error)
    assert found.detail_text is not None
    assert json.loads(found.detail_text) == {"error": error.message, "code": code, "message": error.message}


def test_errors_without_an_answer() -> None:
    lost, late = translated(errors.ConnectionLostError("gone")), translated(errors.EtcdTimeoutError("late"))
    assert (type(lost), type(late)) == (ConnectionFailedError, ConnectionTimeoutError)
    assert "gone" in str(lost)
    assert "late" in str(late.detail_text)
    assert type(translated(errors.ClientClosedError("closed"))) is InternalServerError


def test_a_request_that_is_not_sent() -> None:
    for error in (refused("no object"), translated(errors.InvalidRequestError("no object"))):
        assert str(error) == "Bad Request"
        assert "no object" in str(error.detail_text)
    assert str(unknown_route("auth/user/add")) == "Not Found"


def test_an_exception_has_the_detail_first() -> None:
    error = WatchTimedOut("detail", "reason")
    assert (error.detail_text, str(error), WatchTimedOut().detail_text) == ("detail", "reason", None)


def test_text_is_latin1_in_base64_and_utf8_in_ends_of_prefixes() -> None:
    assert utils._encode("k\u00e4") == utils._encode(b"k\xe4") == utils._encode(bytearray(b"k\xe4"))
    assert utils._decode(utils._encode(2001)) == b"2001"
    assert utils._increment_last_byte("foo") == utils._increment_last_byte(b"foo") == "fop"
    assert (utils.DEFAULT_TIMEOUT, utils.LOCK_PREFIX) == (30, "/locks/")
