"""Answer: the error that a server's answer to one RPC means. Pure.

Knows: the answer, and what the RPC's row says of the servers that have it. Never knows: what follows from it.
"""

from etcd_aio.errors import AttemptFailure, ServerError, server_error
from etcd_aio.methods import AnyMethod


def answer(failure: AttemptFailure, method: AnyMethod) -> ServerError:
    """The error of an attempt that was answered; one about a missing RPC tells which, and the etcd that has it."""
    return server_error(failure.code, failure.message, feature=method.name, needs=method.since)
