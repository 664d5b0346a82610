"""gRPC status codes, the first half of every answer that is not a message.

Knows: the seventeen codes and their numbers. Never knows: etcd's messages, or what follows from a code.
"""

from enum import IntEnum
from typing import Self


class StatusCode(IntEnum):
    """A gRPC status code, by gRPC's own name and number."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16

    @classmethod
    def from_number(cls, number: int) -> Self:
        """The code of `number`; a number gRPC does not define is UNKNOWN, as gRPC's specification asks."""
        try:
            return cls(number)
        except ValueError:
            return cls(cls.UNKNOWN)
