"""Errors of etcd_aio as those of python-etcd3, which tells them apart by their gRPC status."""

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

from etcd_aio.compat.etcd3.exceptions import (
    ConnectionFailedError,
    ConnectionTimeoutError,
    InternalServerError,
    PreconditionFailedError,
    RpcError,
)
from etcd_aio.errors import ClientUsageError, ConfigError, EtcdError, InvalidRequestError, StatusCode

_BY_STATUS: Final = {
    "INTERNAL": InternalServerError,
    "UNAVAILABLE": ConnectionFailedError,
    "DEADLINE_EXCEEDED": ConnectionTimeoutError,
    "FAILED_PRECONDITION": PreconditionFailedError,
}
_OF_THE_PROGRAM: Final = (ClientUsageError, ConfigError, InvalidRequestError)  # stay: nothing was sent


def rpc_error(error: Exception) -> Exception:
    """The error of a call as gRPC would raise it; a `grpc.RpcError` too if the program has imported grpc.

    Other exceptions stay as they are, and so do errors of etcd_aio that say how the program is to be corrected.
    """
    if not isinstance(error, EtcdError) or isinstance(error, _OF_THE_PROGRAM):
        return error
    kind: Any = RpcError
    base = _grpc_error()
    if base is not None:
        kind = type("RpcError", (RpcError, base), {"__module__": RpcError.__module__})
    made: RpcError = kind(StatusCode.UNKNOWN if error.code is None else error.code, str(error))
    made.__cause__ = error
    return made


def translated(error: Exception) -> Exception:
    """The exception of python-etcd3 for an error of etcd_aio, an `RpcError` or a `grpc.RpcError`, by its status.

    If there is none, the `RpcError` itself. Other exceptions stay as they are.
    """
    error = rpc_error(error)
    base = _grpc_error()
    if isinstance(error, RpcError) or (base is not None and isinstance(error, base)):
        code = getattr(error, "code", None)
        status = getattr(code(), "name", "") if code is not None else ""
        if status in _BY_STATUS:
            made = _BY_STATUS[status](str(error))
            made.__cause__ = error.__cause__ or error
            return made
    return error


class _Translation:
    """A block whose exceptions are replaced; one object serves every block."""

    def __init__(self, translate: Callable[[Exception], Exception]) -> None:
        self._translate = translate

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(exc, Exception):
            made = self._translate(exc)
            if made is not exc:
                raise made  # its cause is the error of etcd_aio


rpc_errors: Final = _Translation(rpc_error)
"""`with rpc_errors:` raises what fails in the block as a stub of gRPC does."""
translation: Final = _Translation(translated)
"""`with translation:` raises what fails in the block as a client of python-etcd3 does."""


def _grpc_error() -> type[Exception] | None:
    # A program that catches grpc.RpcError has imported grpc. Nothing here imports it.
    return getattr(sys.modules.get("grpc"), "RpcError", None)
