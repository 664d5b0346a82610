"""Errors: those of the client become those of tooz."""

from collections.abc import Iterator
from contextlib import contextmanager

from tooz import ToozError
from tooz.coordination import OperationTimedOut, ToozConnectionError

from etcd_aio.errors import EtcdError, EtcdTimeoutError, ServerDeadlineExceededError, TransportError, UnavailableError


@contextmanager
def translated() -> Iterator[None]:
    """A block whose errors are those of tooz; the client's is the cause.

    Raises:
        ToozConnectionError: no member can be reached, or the cluster cannot serve.
        OperationTimedOut: there was no answer in time.
        ToozError: any other error of the client.
    """
    try:
        yield
    except (TransportError, UnavailableError) as error:
        raise ToozConnectionError(str(error)) from error
    except (EtcdTimeoutError, ServerDeadlineExceededError) as error:
        raise OperationTimedOut(str(error)) from error
    except EtcdError as error:
        raise ToozError(str(error)) from error
