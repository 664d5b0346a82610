"""Token state: which token requests carry, and what a refused one calls for. Pure.

Knows: the token, what came of the last attempts to get one, and until when that counts. Never knows: clocks, RPCs,
tasks, or who waits.

Theory. A token that was refused is fetched anew once: what was refused is compared with what is carried now, so a call
that comes late with an old token finds a newer one and only has to repeat. Getting a token costs the server a password
hash, which is slow on purpose, so the client is careful with it:
  - a login that was refused is remembered for about a second, and calls that need the token meanwhile fail with the
    same error. So is a token that was refused although it is new;
  - a login that failed for a reason that passes is followed by a wait, which grows with each failure;
  - a second loss of the token soon after another one means that the cluster loses tokens (a rolling restart, users that
    are changed again and again), for all clients at once: the next login is put off by a random fraction of a second.
"""

from collections.abc import Callable
from math import inf
from typing import Final

from etcd_aio.backoff import Backoff, jittered
from etcd_aio.errors import EtcdError

REMEMBERED: Final = 1.0
"""Seconds for which a refused login is not tried again. Long enough to be no load, short enough to be forgotten by the
time somebody has set the password right."""
_JITTER: Final = 0.2  # so that many clients with one wrong password do not come together
_BACKOFF: Final = Backoff(initial=0.1, multiplier=2.0, maximum=2.0, jitter=0.5)
"""Waits after logins that failed for a reason that passes. Calls wait with them, so they stay well below a timeout."""
_SPREAD: Final = 1.0  # seconds over which clients that lose their tokens together log in
_SOON: Final = 10.0  # seconds between two losses that are no coincidence


class TokenState:
    """What a client knows of its token.

    Args:
        is_due: whether a token has to be fetched before anything is sent.

    Attributes:
        token: what requests carry; empty for none.
        is_due: a token has to be fetched before the next request.
    """

    __slots__ = ("_error", "_failures", "_lost_at", "_not_before", "_until", "is_due", "token")

    def __init__(self, *, is_due: bool) -> None:
        self.token = ""
        self.is_due = is_due
        self._error: EtcdError | None = None
        self._until = 0.0
        self._failures = 0  # in a row, that pass
        self._not_before = -inf
        self._lost_at = -inf

    def has_newer(self, used: str) -> bool:
        """Whether a request that carried `used` would now carry another token."""
        return not self.is_due and self.token != used

    def refused(self, used: str, now: float, random: Callable[[], float]) -> None:
        """The server refused a request with this token; it is fetched before the next one, unless that was done.

        Args:
            used: the token.
            now: the instant.
            random: returns a number in [0, 1).
        """
        if self.is_due or self.token != used:
            return
        self.is_due = True
        if now - self._lost_at < _SOON:
            self._put_off(now + _SPREAD * random())
        self._lost_at = now

    def fetched(self, token: str) -> None:
        """This is the token now."""
        self.token = token
        self.is_due = False
        self._error = None
        self._failures = 0

    def failed(self, error: EtcdError, now: float, random: Callable[[], float]) -> None:
        """There is no token, or a new one is refused.

        Args:
            error: the reason. One that is `retryable` only puts the next login off.
            now: the instant.
            random: returns a number in [0, 1).
        """
        if error.retryable:
            self._put_off(now + _BACKOFF.wait(self._failures, random))
            self._failures += 1
        else:
            self._error = error
            self._until = now + jittered(REMEMBERED, _JITTER, random)

    def wait(self, now: float) -> float:
        """Seconds before the next login may begin."""
        return max(self._not_before - now, 0.0)

    def remembered(self, now: float) -> EtcdError | None:
        """Why there is no token, if that was found out just now."""
        if self._error is not None and now >= self._until:
            self._error = None
        return self._error

    def forget(self) -> None:
        """The client is closed."""
        self.token = ""
        self._error = None

    def _put_off(self, until: float) -> None:
        self._not_before = max(self._not_before, until)
