"""A put into a queue or a work queue, as the histories of both remember it."""

from dataclasses import dataclass


@dataclass(slots=True)
class Put:
    """One call of `put`.

    Attributes:
        value: of the item or the job; each one is put once.
        key: that the call has returned.
        is_refused: the call says that nothing was put.
    """

    value: bytes
    key: bytes | None = None
    is_refused: bool = False
