"""The errors of aetcd, and which of them stands for an error of etcd_aio."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from etcd_aio.errors import (
    EtcdError,
    EtcdTimeoutError,
    InvalidRequestError,
    LeaseExistsError,
    StatusCode,
    TransportError,
)


class ClientError(Exception):
    """Base of every error of a call."""


class ConnectionFailedError(ClientError):
    """The server cannot be reached, or cannot serve now."""


class ConnectionTimeoutError(ClientError):
    """No answer came in time."""


class InternalError(ClientError):
    """The server had an error of its own."""


class InvalidArgumentError(ClientError):
    """The server refuses the arguments."""


class UnauthenticatedError(ClientError):
    """The server refuses the token."""


class PreconditionFailedError(ClientError):
    """The cluster is not in the state that the call needs."""


class DuplicateLeaseError(ClientError):
    """A lease with this id exists already."""


class RevisionCompactedError(ClientError):
    """The revision was compacted.

    Attributes:
        compacted_revision: the oldest revision that can be watched.
    """

    def __init__(self, compacted_revision: int) -> None:
        self.compacted_revision = compacted_revision
        super().__init__(f"the history before revision {compacted_revision} was compacted")


class WatchTimeoutError(ClientError):
    """A watch was not created in time, or no event came in time."""


class WrongArgumentError(InvalidArgumentError, ValueError):
    """An argument that no server was asked about. Programs catch it as either of its bases."""


_BY_CODE: Final[dict[StatusCode, type[ClientError]]] = {
    StatusCode.DEADLINE_EXCEEDED: ConnectionTimeoutError,
    StatusCode.FAILED_PRECONDITION: PreconditionFailedError,
    StatusCode.INTERNAL: InternalError,
    StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    StatusCode.UNAUTHENTICATED: UnauthenticatedError,
    StatusCode.UNAVAILABLE: ConnectionFailedError,
}


def translated(error: EtcdError) -> ClientError:
    """The error of aetcd that stands for one of etcd_aio."""
    match error:
        case LeaseExistsError():
            return DuplicateLeaseError(error.message)
        case InvalidRequestError():
            return WrongArgumentError(error.message)
        case EtcdTimeoutError():
            return ConnectionTimeoutError(str(error))
        case TransportError():
            return ConnectionFailedError(str(error))
        case _:
            found = ClientError if error.code is None else _BY_CODE.get(error.code, ClientError)
            return found(error.message)


@contextmanager
def translating() -> Iterator[None]:
    """Raise the errors of aetcd in a block that calls etcd_aio."""
    try:
        yield
    except EtcdError as error:
        raise translated(error) from error
