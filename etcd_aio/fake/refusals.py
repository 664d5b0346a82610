"""The statuses that etcd refuses requests with: codes and texts, byte for byte. Pure."""

from enum import Enum
from typing import Self

from etcd_aio.errors import StatusCode


class Reason(Enum):
    """The reasons of etcd, each with its status and its text."""

    # Keys and transactions.
    EMPTY_KEY = StatusCode.INVALID_ARGUMENT, "etcdserver: key is not provided"
    KEY_NOT_FOUND = StatusCode.INVALID_ARGUMENT, "etcdserver: key not found"
    VALUE_PROVIDED = StatusCode.INVALID_ARGUMENT, "etcdserver: value is provided"
    LEASE_PROVIDED = StatusCode.INVALID_ARGUMENT, "etcdserver: lease is provided"
    TOO_MANY_OPS = StatusCode.INVALID_ARGUMENT, "etcdserver: too many operations in txn request"
    DUPLICATE_KEY = StatusCode.INVALID_ARGUMENT, "etcdserver: duplicate key given in txn request"
    INVALID_SORT_OPTION = StatusCode.INVALID_ARGUMENT, "etcdserver: invalid sort option"
    REQUEST_TOO_LARGE = StatusCode.INVALID_ARGUMENT, "etcdserver: request is too large"
    COMPACTED = StatusCode.OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted"
    FUTURE_REVISION = StatusCode.OUT_OF_RANGE, "etcdserver: mvcc: required revision is a future revision"
    STREAM_WITH_SORT = StatusCode.UNIMPLEMENTED, "RangeStream does not support custom sort orders"
    STREAM_WITH_FILTER = StatusCode.UNIMPLEMENTED, "RangeStream does not support revision filters"
    # Leases.
    LEASE_NOT_FOUND = StatusCode.NOT_FOUND, "etcdserver: requested lease not found"
    LEASE_EXISTS = StatusCode.FAILED_PRECONDITION, "etcdserver: lease already exists"
    LEASE_TTL_TOO_LARGE = StatusCode.OUT_OF_RANGE, "etcdserver: too large lease TTL"

    @property
    def code(self) -> StatusCode:
        """The gRPC status."""
        return self.value[0]

    @property
    def text(self) -> str:
        """The text of the status."""
        return self.value[1]


class Refusal(Exception):  # noqa: N818 - an answer, not a failure of the fake
    """The answer to a request that is refused.

    Args:
        reason: one of etcd's.

    Attributes:
        code: the gRPC status.
        text: the text of the status.
    """

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.text)
        self.code = reason.code
        self.text = reason.text

    @property
    def printed(self) -> str:
        """The status as Go prints it, such as in the cancel reason of a watch."""
        return f"rpc error: code = {self.code.name.title().replace('_', '')} desc = {self.text}"

    @classmethod
    def other(cls, code: StatusCode, text: str) -> Self:
        """A refusal with a text that is not in the table, such as one of gRPC."""
        refusal = cls.__new__(cls)
        Exception.__init__(refusal, text)
        refusal.code, refusal.text = code, text
        return refusal
