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
    NO_SPACE = StatusCode.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded"
    CORRUPT = StatusCode.DATA_LOSS, "etcdserver: corrupt cluster"
    STREAM_WITH_SORT = StatusCode.UNIMPLEMENTED, "RangeStream does not support custom sort orders"
    STREAM_WITH_FILTER = StatusCode.UNIMPLEMENTED, "RangeStream does not support revision filters"
    # Leases.
    LEASE_NOT_FOUND = StatusCode.NOT_FOUND, "etcdserver: requested lease not found"
    LEASE_EXISTS = StatusCode.FAILED_PRECONDITION, "etcdserver: lease already exists"
    LEASE_TTL_TOO_LARGE = StatusCode.OUT_OF_RANGE, "etcdserver: too large lease TTL"
    # Members.
    NO_LEADER = StatusCode.UNAVAILABLE, "etcdserver: no leader"
    NOT_LEADER = StatusCode.FAILED_PRECONDITION, "etcdserver: not leader"
    BAD_LEADER_TRANSFEREE = StatusCode.FAILED_PRECONDITION, "etcdserver: bad leader transferee"
    TIMEOUT = StatusCode.UNAVAILABLE, "etcdserver: request timed out"
    PROPOSAL_DROPPED = StatusCode.UNKNOWN, "raft proposal dropped"
    # Users and roles.
    ROOT_USER_NOT_EXIST = StatusCode.FAILED_PRECONDITION, "etcdserver: root user does not exist"
    ROOT_ROLE_NOT_EXIST = StatusCode.FAILED_PRECONDITION, "etcdserver: root user does not have root role"
    USER_ALREADY_EXIST = StatusCode.FAILED_PRECONDITION, "etcdserver: user name already exists"
    USER_EMPTY = StatusCode.INVALID_ARGUMENT, "etcdserver: user name is empty"
    USER_NOT_FOUND = StatusCode.FAILED_PRECONDITION, "etcdserver: user name not found"
    ROLE_ALREADY_EXIST = StatusCode.FAILED_PRECONDITION, "etcdserver: role name already exists"
    ROLE_NOT_FOUND = StatusCode.FAILED_PRECONDITION, "etcdserver: role name not found"
    ROLE_EMPTY = StatusCode.INVALID_ARGUMENT, "etcdserver: role name is empty"
    AUTH_FAILED = StatusCode.INVALID_ARGUMENT, "etcdserver: authentication failed, invalid user ID or password"
    NO_PASSWORD_USER = StatusCode.UNKNOWN, "auth: authentication failed, password was given for no password user"
    PERMISSION_NOT_GIVEN = StatusCode.INVALID_ARGUMENT, "etcdserver: permission not given"
    PERMISSION_DENIED = StatusCode.PERMISSION_DENIED, "etcdserver: permission denied"
    ROLE_NOT_GRANTED = StatusCode.FAILED_PRECONDITION, "etcdserver: role is not granted to the user"
    PERMISSION_NOT_GRANTED = StatusCode.FAILED_PRECONDITION, "etcdserver: permission is not granted to the role"
    AUTH_NOT_ENABLED = StatusCode.FAILED_PRECONDITION, "etcdserver: authentication is not enabled"
    INVALID_AUTH_TOKEN = StatusCode.UNAUTHENTICATED, "etcdserver: invalid auth token"
    INVALID_AUTH_MGMT = StatusCode.INVALID_ARGUMENT, "etcdserver: invalid auth management"

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
