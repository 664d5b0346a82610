"""Token state: which token requests carry, and what a refused one calls for. Pure.

Knows: the token, what came of the last attempts to get one, and until when that counts. Never knows: clocks, RPCs,
tasks, or who waits.

Theory. A token that was refused is fetched anew once, whoever notices first: what was refused is compared with what is
carried now, so that who comes late with an old token finds a newer one and only has to repeat. Getting a token costs
the server a password hash, which is slow on purpose. So a login that was refused is remembered for about a second, and
whoever needs the token meanwhile is told the same. The same holds for a token that was refused although it is new.
"""

from collections.abc import Callable
from typing import Final

from etcd_aio.errors import EtcdError

REMEMBERED: Final = 1.0
"""Seconds for which a refused login is not tried again. Long enough to be no load, short enough to be forgotten by the
time somebody has set the password right."""
_JITTER: Final = 0.2  # so that many clients with one wrong password do not come together


class TokenState:
    """What a client knows of its token.

    Args:
        is_due: whether a token has to be fetched before anything is sent.

    Attributes:
        token: what requests carry; empty for none.
        is_due: a token has to be fetched before the next request.
    """

    __slots__ = ("_error", "_until", "is_due", "token")

    def __init__(self, *, is_due: bool) -> None:
        self.token = ""
        self.is_due = is_due
        self._error: EtcdError | None = None
        self._until = 0.0

    def has_newer(self, used: str) -> bool:
        """Whether a request that carried `used` would now carry another token."""
        return not self.is_due and self.token != used

    def refused(self, used: str) -> None:
        """The server refused a request with this token; it is fetched before the next one, unless that was done."""
        if not self.has_newer(used):
            self.is_due = True

    def fetched(self, token: str) -> None:
        """This is the token now."""
        self.token = token
        self.is_due = False
        self._error = None

    def failed(self, error: EtcdError, now: float, random: Callable[[], float]) -> None:
        """No token is given, or a new one is refused: nobody has to ask again for a while."""
        self._error = error
        self._until = now + REMEMBERED * (1 + _JITTER * (2 * random() - 1))

    def remembered(self, now: float) -> EtcdError | None:
        """Why there is no token, if that was found out just now."""
        if self._error is not None and now >= self._until:
            self._error = None
        return self._error

    def forget(self) -> None:
        """The client is closed."""
        self.token = ""
        self._error = None
