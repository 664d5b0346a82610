"""The options of every call: `timeout=` and `retry=`."""

from enum import Enum
from typing import Final, Literal, TypeAlias


class Unset(Enum):
    """The type of `UNSET`, the default of arguments for which None has a meaning."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""The default of `timeout=`, where None means no limit. A method that wraps a call passes it on."""

Timeout: TypeAlias = float | Unset | None
"""Seconds for the whole call with all its attempts; None for no limit; `UNSET` for the client's default."""

RetryMode: TypeAlias = Literal["safe", "never", "always"]
"""`"safe"` repeats what cannot be applied twice, `"never"` makes one attempt, `"always"` also repeats a write whose
outcome is unknown: the caller declares it idempotent. Its result may then be that of a repetition, after the first
attempt was applied, so `succeeded`, `deleted` and `prev_kv` can be wrong: do not use it for a transaction whose
result matters."""
