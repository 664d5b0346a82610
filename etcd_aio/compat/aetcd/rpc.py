"""The names of `aetcd.rpc` that applications use: status codes, the error of a call, kinds of alarms. No messages."""

from enum import IntEnum
from typing import Final

from etcd_aio.errors import StatusCode as StatusCode


class AlarmType(IntEnum):
    """The kinds of alarms, by etcd's numbers."""

    NONE = 0
    NOSPACE = 1
    CORRUPT = 2


NONE: Final = AlarmType.NONE
NOSPACE: Final = AlarmType.NOSPACE
CORRUPT: Final = AlarmType.CORRUPT


class RpcError(Exception):
    """Base of the errors of gRPC. It is never raised here: every call raises a `ClientError`."""


class AioRpcError(RpcError):
    """The error of a call, for programs that name it.

    Args:
        code: the status.
        initial_metadata: not used.
        trailing_metadata: not used.
        details: the text.
    """

    def __init__(
        self,
        code: StatusCode,
        initial_metadata: object = None,
        trailing_metadata: object = None,
        details: str | None = None,
    ) -> None:
        super().__init__(details)
        self._code = code
        self._details = details

    def code(self) -> StatusCode:
        """The status."""
        return self._code

    def details(self) -> str | None:
        """The text."""
        return self._details
