"""Errors of etcd_aio as those of etcd3gw, with the status of HTTP that etcd's gateway answers with."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from json import dumps
from typing import Final

from etcd_aio.compat.etcd3gw.exceptions import (
    ConnectionFailedError,
    ConnectionTimeoutError,
    Etcd3Exception,
    InternalServerError,
)
from etcd_aio.errors import EtcdError, EtcdTimeoutError, InvalidRequestError, StatusCode, TransportError

# As gRPC-gateway maps them.
_STATUSES: Final = {
    StatusCode.CANCELLED: HTTPStatus.REQUEST_TIMEOUT,
    StatusCode.UNKNOWN: HTTPStatus.INTERNAL_SERVER_ERROR,
    StatusCode.INVALID_ARGUMENT: HTTPStatus.BAD_REQUEST,
    StatusCode.DEADLINE_EXCEEDED: HTTPStatus.GATEWAY_TIMEOUT,
    StatusCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    StatusCode.ALREADY_EXISTS: HTTPStatus.CONFLICT,
    StatusCode.PERMISSION_DENIED: HTTPStatus.FORBIDDEN,
    StatusCode.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    StatusCode.RESOURCE_EXHAUSTED: HTTPStatus.TOO_MANY_REQUESTS,
    StatusCode.FAILED_PRECONDITION: HTTPStatus.BAD_REQUEST,
    StatusCode.ABORTED: HTTPStatus.CONFLICT,
    StatusCode.OUT_OF_RANGE: HTTPStatus.BAD_REQUEST,
    StatusCode.UNIMPLEMENTED: HTTPStatus.NOT_IMPLEMENTED,
    StatusCode.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
    StatusCode.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    StatusCode.DATA_LOSS: HTTPStatus.INTERNAL_SERVER_ERROR,
}
_CLASSES: Final = {
    HTTPStatus.INTERNAL_SERVER_ERROR: InternalServerError,
    HTTPStatus.SERVICE_UNAVAILABLE: ConnectionFailedError,
    HTTPStatus.REQUEST_TIMEOUT: ConnectionTimeoutError,
    HTTPStatus.GATEWAY_TIMEOUT: ConnectionTimeoutError,
}


def translated(error: EtcdError) -> Etcd3Exception:
    """The error of etcd3gw that stands for one of etcd_aio."""
    match error:
        case EtcdTimeoutError():
            return local(str(error), ConnectionTimeoutError)
        case TransportError():
            return local(str(error), ConnectionFailedError)
        case InvalidRequestError():
            return refused(error.message)
    code = StatusCode.UNKNOWN if error.code is None else error.code
    status = _STATUSES.get(code, HTTPStatus.INTERNAL_SERVER_ERROR)
    return _CLASSES.get(status, Etcd3Exception)(_body(error.message, code), status.phrase)


def local(reason: str, kind: type[Etcd3Exception] = Etcd3Exception) -> Etcd3Exception:
    """An error that no server has answered with: its text is the detail, too."""
    return kind(reason, reason)


def refused(reason: str) -> Etcd3Exception:
    """The error of a request that etcd's gateway could not read."""
    return Etcd3Exception(_body(reason, StatusCode.INVALID_ARGUMENT), HTTPStatus.BAD_REQUEST.phrase)


def unknown_route(path: str) -> Etcd3Exception:
    """The error of a path that is not served here."""
    return Etcd3Exception(_body(f"{path} is not served", StatusCode.NOT_FOUND), HTTPStatus.NOT_FOUND.phrase)


def _body(message: str, code: StatusCode) -> str:
    return dumps({"error": message, "code": code.value, "message": message})


@contextmanager
def translating() -> Iterator[None]:
    """Raise the errors of etcd3gw in a block that calls etcd_aio."""
    try:
        yield
    except EtcdError as error:
        raise translated(error) from error
