"""Errors of service registration and discovery."""

from etcd_aio.errors.base import EtcdError


class NamingError(EtcdError):
    """Base class for errors of service registration and discovery."""

    default_message = "the service registration failed"


class ServiceConflictError(NamingError):
    """The key of a registration has an entry of another process, which was not replaced.

    Attributes:
        lease: the id of the lease of that entry; 0 if it has none.
    """

    default_message = "the key has the entry of another process"
    retryable = True

    def __init__(self, message: str = "", *, lease: int = 0) -> None:
        super().__init__(message)
        self.lease = lease


class NoServiceEndpointError(NamingError, LookupError):
    """A service has no endpoint, so none can be picked."""

    default_message = "the service has no endpoint"
    retryable = True
