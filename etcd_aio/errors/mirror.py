"""Errors of mirrors."""

from etcd_aio.errors.base import EtcdError


class MirrorError(EtcdError):
    """Base class for errors of mirrors.

    Raised itself if a mirror would copy its own writes, since its source and its destination overlap in one cluster;
    and if the key of the checkpoint has another value.
    """

    default_message = "the mirror failed"


class MirrorConflictError(MirrorError):
    """Another mirror writes the same checkpoint. It goes on; this one has ended, and no copy of its writes is applied.

    Attributes:
        writer: the other mirror, by the random name that stands in the checkpoint.
    """

    default_message = "another mirror writes this checkpoint"

    def __init__(self, message: str = "", *, writer: str = "") -> None:
        super().__init__(message)
        self.writer = writer
