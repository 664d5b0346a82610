"""Unexpected errors: exceptions that are no `EtcdError`, such as a bug of the application's backend, view or policy.

They go to the caller as they are. A task that has no caller, or must go on, takes them for an error that does not pass.
"""

from etcd_aio.errors import EtcdError


def as_etcd_error(error: Exception) -> EtcdError:
    """The error for an exception that code of this side, or of the application, should not have raised.

    Its text may hold values, so only its type is shown. The exception itself is the cause; an `EtcdError` stays.
    """
    if isinstance(error, EtcdError):
        return error
    wrapped = EtcdError(f"unexpected {type(error).__name__} in the client or in a function that it was given")
    wrapped.__cause__ = error
    return wrapped
