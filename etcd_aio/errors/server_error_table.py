"""etcd's error table: the class of every text that etcd sends, and the class of a status whose text is unknown.

A class has its text as `default_message`; the texts below are further ones. No other text in the project decides
anything about a server's answer.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType, ModuleType
from typing import Final

from etcd_aio.dataclass import dataclass
from etcd_aio.errors import auth, availability, cluster, families, requests
from etcd_aio.errors.attempt import StatusCode, sanitize
from etcd_aio.errors.families import NotSupportedByServerError, ServerError

# A status as Go prints it. A watch's cancel reason contains one, and each proxy may add another.
_PRINTED_STATUS: Final = re.compile(r"(?:rpc error: code = (\w+|Code\(\d+\)) desc = )+")

_GO_NAMES: Final = {code.name.title().replace("_", ""): code for code in StatusCode} | {
    "Canceled": StatusCode.CANCELLED
}


@dataclass(frozen=True, slots=True)
class Row:
    """One text and its error class.

    Attributes:
        error: the class.
        code: the status that etcd sends with the text.
        message: the complete text.
    """

    error: type[ServerError]
    code: StatusCode
    message: str


def _classes(module: ModuleType) -> Iterator[tuple[type[ServerError], StatusCode]]:
    """The classes that a module defines, with their statuses; not the topics, which have none."""
    for error in vars(module).values():
        if isinstance(error, type) and issubclass(error, ServerError) and error.__module__ == module.__name__:
            code = error.default_code
            if code is not None:
                yield error, code


ROWS: Final[tuple[Row, ...]] = (
    *(
        Row(error, code, error.default_message)
        for module in (requests, cluster, auth, families, availability)
        for error, code in _classes(module)
        if "default_message" in vars(error)
    ),
    # Further texts of these classes.
    Row(auth.AuthOldRevisionError, StatusCode.UNKNOWN, "auth: revision in header is old"),
    # Answers of etcd 3.4 and 3.5 to Hash and Snapshot without permission.
    Row(auth.UserEmptyError, StatusCode.UNKNOWN, "auth: user name is empty"),
    Row(auth.InvalidTokenError, StatusCode.UNKNOWN, "auth: invalid auth token"),
    Row(families.PermissionDeniedError, StatusCode.UNKNOWN, "auth: permission denied"),
    Row(
        auth.AuthenticationFailedError,
        StatusCode.UNKNOWN,
        "auth: authentication failed, password was given for no password user",
    ),
    Row(availability.ServerStoppedError, StatusCode.UNKNOWN, "raft: stopped"),
    Row(requests.RequestCancelledError, StatusCode.UNKNOWN, "etcdserver: request cancelled"),
    Row(requests.RequestCancelledError, StatusCode.CANCELLED, "context canceled"),
    Row(requests.RequestDeadlineExceededError, StatusCode.DEADLINE_EXCEEDED, "context deadline exceeded"),
)
"""Every known text, once. A class may have several; its own is its `default_message`."""

BY_MESSAGE: Final[Mapping[str, Row]] = MappingProxyType({row.message: row for row in ROWS})
"""The row of each text."""

NOT_SUPPORTED: Final[frozenset[str]] = frozenset(
    {"etcdserver: unsupported operations in txn request", "etcdserver: unsupported options in watch request"}
    | {
        f"{call} is not supported"
        for call in (
            *("lease revoke", "lease keep alive", "lease time to live", "lease leases"),
            *("alarm", "defragment", "hash", "hash kv", "snapshot", "move leader", "downgrade"),
            *("member add", "member remove", "member update", "member promote"),
        )
    }
)
"""Texts of kine, which has a part of etcd's API, for what it lacks; it sends them with other statuses than
UNIMPLEMENTED."""

BY_CODE: Final[Mapping[StatusCode, type[ServerError]]] = MappingProxyType(
    {code: error for error, code in _classes(families) if "default_code" in vars(error)}
)
"""The family of each status that is an error."""


def server_error(code: StatusCode | None, message: str, *, feature: str = "", needs: str = "") -> ServerError:
    """The error for a server's status and text.

    The text decides, and the status only if the text is unknown: releases of etcd send the same text with different
    statuses. A printed status before the text (`rpc error: code = ... desc = ...`, as in a watch's cancel reason) is
    removed and used as the status; of several the innermost one.

    Args:
        code: the status; None if the text came without one, as a watch's cancel reason does.
        message: the text. The error keeps it sanitized and at most `MAX_MESSAGE_BYTES` long.
        feature: the RPC or option, for the error that the server does not have it.
        needs: the first release of etcd that has it, if not all do.

    Returns:
        The error. Its code is the status; without one, the status that belongs to the text.
    """
    printed = _PRINTED_STATUS.match(message)
    if printed is not None:
        code = _GO_NAMES.get(printed[1], code)
        message = message[printed.end() :]
    if code is StatusCode.OK:
        code = StatusCode.UNKNOWN  # an error must not have the status OK
    row = BY_MESSAGE.get(message)
    if row is not None:
        return row.error(message, code=row.code if code is None else code)
    if code is None:
        code = StatusCode.UNKNOWN
    if message in NOT_SUPPORTED:
        return NotSupportedByServerError(message, code=code, feature=feature)
    if code is StatusCode.UNIMPLEMENTED:
        return NotSupportedByServerError(sanitize(message), code=code, feature=feature, needs=needs)
    return BY_CODE[code](sanitize(message), code=code)
