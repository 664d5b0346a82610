"""The exceptions of python-etcd3. `__cause__` is the error of etcd_aio, with the endpoint and every attempt.

Etcd3Exception
├─ ConnectionFailedError      status UNAVAILABLE
├─ ConnectionTimeoutError     status DEADLINE_EXCEEDED
├─ PreconditionFailedError    status FAILED_PRECONDITION
├─ InternalServerError        status INTERNAL
├─ RevisionCompactedError     a watch begins before the oldest revision
├─ NoServerAvailableError     never raised here: there for programs that catch it
└─ WatchTimedOut              no watch, or no event, in time
RpcError                      every other status; a `grpc.RpcError` too in programs that import grpc
"""

import sys
from typing import Any

from etcd_aio.errors import StatusCode


class Etcd3Exception(Exception):
    """Base class of the exceptions of python-etcd3."""


class WatchTimedOut(Etcd3Exception):
    """The watch was not created in time, or the event that was waited for did not come."""


class InternalServerError(Etcd3Exception):
    """The server failed inside."""


class ConnectionFailedError(Etcd3Exception):
    """No server could be reached, or the one that was reached could not serve the call."""

    def __str__(self) -> str:
        return "etcd connection failed"


class ConnectionTimeoutError(Etcd3Exception):
    """The call was not answered in time."""

    def __str__(self) -> str:
        return "etcd connection timeout"


class PreconditionFailedError(Etcd3Exception):
    """The state of the cluster does not allow the call."""


class NoServerAvailableError(Etcd3Exception):
    """No endpoint is left to fail over to. The client here tries every endpoint in each call."""


class RevisionCompactedError(Etcd3Exception):
    """The history that the watch needs is compacted.

    Attributes:
        compacted_revision: the oldest revision that can be watched.
    """

    def __init__(self, compacted_revision: int) -> None:
        super().__init__()
        self.compacted_revision = compacted_revision

    def __reduce__(self) -> tuple[type["RevisionCompactedError"], tuple[int]]:
        return type(self), (self.compacted_revision,)


class RpcError(Exception):
    """A status for which python-etcd3 has no exception, and lets `grpc.RpcError` through."""

    def __init__(self, status: StatusCode, details: str) -> None:
        super().__init__(status, details)
        self._status = status
        self._details = details

    def code(self) -> Any:
        """The status: a `grpc.StatusCode` if the program has imported grpc, else a `StatusCode` of etcd_aio."""
        grpc = sys.modules.get("grpc")
        return self._status if grpc is None else grpc.StatusCode[self._status.name]

    def details(self) -> str:
        """The reason."""
        return self._details

    def __str__(self) -> str:
        return f"{self._status.name}: {self._details}"
