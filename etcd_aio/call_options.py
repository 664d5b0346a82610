"""What every call takes besides its own arguments: `timeout=` and `retry=`."""

from enum import Enum
from typing import Final, Literal, TypeAlias


class Unset(Enum):
    """The type of `UNSET`: an argument that was not given, where None has a meaning of its own."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""The default of `timeout=`, where None means no limit. A method that wraps a call passes it on."""

Timeout: TypeAlias = float | Unset | None
"""Seconds for the whole call with all its attempts; None waits for ever; `UNSET` takes the client's default."""

RetryMode: TypeAlias = Literal["safe", "never", "always"]
"""`"safe"` repeats what cannot be applied twice, `"never"` makes one attempt, `"always"` also repeats a write whose
outcome is unknown: the caller declares it idempotent. Its result may then be that of the last copy, sent after an
earlier one was applied, so `succeeded`, `deleted` and `prev_kv` can be wrong: do not use it for a transaction whose
result matters."""
