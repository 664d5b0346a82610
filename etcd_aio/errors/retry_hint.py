"""RetryHint: what a server's error allows to be done about it.

Knows: four words. Never knows: which call failed, how often, or how much time is left; the error handler weighs those.
"""

from enum import Enum


class RetryHint(Enum):
    """What may follow an answer, as far as the answer alone can tell."""

    RAISE = "raise"
    """The same call would be answered in the same way: the caller has to know."""

    REFRESH_TOKEN = "refresh-token"  # noqa: S105 - a word, no token
    """Refused for its token before it could run: get another token if one is needed, and repeat. Mutations too."""

    RETRY_ELSEWHERE = "retry-elsewhere"
    """Refused before it could run, for a reason that passes or belongs to one member: repeat. Mutations too."""

    RETRY_IF_REPEATABLE = "retry-if-repeatable"
    """It may have run: repeat what is repeatable, raise the rest with `maybe_applied`."""
