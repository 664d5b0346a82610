"""Token state: the client's token, and what a refusal of it calls for. Pure.

Knows: the token, etcd's two kinds of tokens, the refusals, until when a failure counts. Never knows: clocks, RPCs,
tasks, members.

`TokenState` is about the client. A token that was refused is replaced once: the refused token is compared with the
current one, so a call that comes late with an old token finds a newer one and only has to repeat its request. A login
costs the server a password hash, which is slow on purpose, so the client is careful with logins:
  - a login that was refused is remembered for about a second, and calls that need the token meanwhile fail with the
    same error. The same holds for a new token that is refused;
  - a login that failed for a temporary reason is followed by a wait, which grows with each failure;
  - if a token is lost soon after another one, the cluster is losing tokens (a rolling restart, users that are changed
    again and again), for all clients at once: the next login is put off by a random fraction of a second.

`TokenRefusals` is about one call. A refused request did nothing, so it may always be sent again; the question is with
which token.
  - "revision of auth store is old" means that users or roles were changed. A JWT holds the revision at which it was
    made, so another one is needed. A simple token holds none: the member notes its own revision when the request
    arrives, and refuses the request if users change before the request is applied. So it is enough to repeat the
    request, without a login. Both go on as often as there are changes, until the call's deadline. Two JWTs of one
    revision mean that there was no change.
  - "invalid auth token" means that the token has expired, or was lost in a restart: another one is needed. If that one
    is refused too, the member may only lag behind, since simple tokens are replicated: the other members are tried
    first, and then all once more, with the waits between the attempts of a call. If all refuse it even then, it was
    lost too, as in a rolling restart, and there is another one, until the call's deadline. Each further one is tried
    twice as often: it has to become older than the members lag. A JWT is not replicated: if every member refuses a few
    of them, the answer is final.
  - Without a token ("user name is empty") one is fetched; if there still is none, the answer is final.
"""

import base64
from collections.abc import Callable
from enum import Enum
from math import inf
from typing import Final

from etcd_aio.base.backoff import Backoff, jittered
from etcd_aio.errors import AuthOldRevisionError, EtcdError, UserEmptyError

REMEMBERED: Final = 1.0
"""Seconds for which a refused login is not tried again: long enough to be no load, short enough that a corrected
password works at once."""
_JITTER: Final = 0.2  # so that many clients with the same wrong password do not log in together
_BACKOFF: Final = Backoff(initial=0.1, multiplier=2.0, maximum=2.0, jitter=0.5)
"""Waits after logins that failed for a temporary reason. Calls wait with them, so they stay well below a timeout."""
_SPREAD: Final = 1.0  # seconds over which clients that lose their tokens together log in
_SOON: Final = 10.0  # seconds between two losses that are no coincidence
_MOST_TOKENS: Final = 3  # JWTs of one call, that are refused as invalid
_MORE_ROUNDS: Final = 2  # times as many over all members, with each further simple token of a call
_JWT_PARTS: Final = 3


class TokenState:
    """The token of a client.

    Args:
        is_due: whether a token has to be fetched before anything is sent.

    Attributes:
        token: the token in requests; empty for none.
        is_due: a token has to be fetched before the next request.
    """

    def __init__(self, *, is_due: bool) -> None:
        self.token = ""
        self.is_due = is_due
        self._error: EtcdError | None = None
        self._until = 0.0
        self._failures = 0  # in a row, for a temporary reason
        self._not_before = -inf
        self._lost_at = -inf

    def has_newer(self, used: str) -> bool:
        """Whether a request that carried `used` would now carry another token."""
        return not self.is_due and self.token != used

    def refused(self, used: str, now: float, random: Callable[[], float]) -> None:
        """The server refused a request with this token: another one is due, unless there is one already.

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
        """Take a new token."""
        self.token = token
        self.is_due = False
        self._error = None
        self._failures = 0

    def failed(self, error: EtcdError, now: float, random: Callable[[], float]) -> None:
        """Note that no token was obtained, or that a new one is refused.

        Args:
            error: the reason. A `retryable` one only puts the next login off.
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
        """Return the seconds before the next login may begin."""
        return max(self._not_before - now, 0.0)

    def remembered(self, now: float) -> EtcdError | None:
        """Return why there is no token, if the last login failed just now."""
        if self._error is not None and now >= self._until:
            self._error = None
        return self._error

    def forget(self) -> None:
        """Forget the token: the client is closed."""
        self.token = ""
        self._error = None

    def _put_off(self, until: float) -> None:
        self._not_before = max(self._not_before, until)


class TokenRemedy(Enum):
    """The next step after a refused token."""

    RENEW = "get another token"
    REPEAT = "repeat with the current token"
    RAISE = "the answer is final"


class TokenRefusals:
    """The refusals of one call.

    Attributes:
        has_renewed: a token was fetched for this call.
    """

    __slots__ = ("_count", "_revision", "_token", "_tokens", "has_renewed")

    def __init__(self) -> None:
        self.has_renewed = False
        self._token: str | None = None  # that was refused last as invalid
        self._count = 0  # refusals of it
        self._tokens = 0
        self._revision: int | None = None  # of the last JWT that was refused as old

    def judge(self, error: EtcdError, token: str, *, may_renew: bool, endpoints: int) -> TokenRemedy:
        """Note a refusal, and return the next step.

        Args:
            error: the refusal.
            token: the refused token; empty for none.
            may_renew: another token can be fetched; or, without tokens, the same request may succeed.
            endpoints: how many endpoints the call may go to.
        """
        if isinstance(error, AuthOldRevisionError):
            return self._after_change(token, may_renew=may_renew)
        if token != self._token:
            self._token, self._count = token, 0
            self._tokens += 1
        self._count += 1
        if not may_renew:
            return TokenRemedy.RAISE
        is_replicated = bool(token) and auth_revision(token) is None
        is_new = self._tokens > 1 and not isinstance(error, UserEmptyError)
        enough = 1 if not is_new else endpoints
        if is_new and is_replicated:
            enough *= _MORE_ROUNDS ** (self._tokens - 1)
        if self._count < enough:
            return TokenRemedy.REPEAT
        if self._count == enough and (is_replicated or self._tokens < _MOST_TOKENS):
            return TokenRemedy.RENEW
        return TokenRemedy.RAISE  # also if the other token is the same

    def _after_change(self, token: str, *, may_renew: bool) -> TokenRemedy:
        revision = auth_revision(token)
        if revision is None:
            return TokenRemedy.REPEAT
        if not may_renew or revision == self._revision:
            return TokenRemedy.RAISE
        self._revision = revision
        return TokenRemedy.RENEW


def is_spent(error: EtcdError, token: str) -> bool:
    """Whether a refused token is of no more use."""
    return not isinstance(error, AuthOldRevisionError) or auth_revision(token) is not None


def auth_revision(token: str) -> int | None:
    """Return the revision of users and roles at which a JWT was made; None for another kind of token."""
    parts = token.split(".")
    if len(parts) != _JWT_PARTS:
        return None
    try:
        import json

        claims: object = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
    except (ValueError, RecursionError):
        return None
    revision = claims.get("revision") if isinstance(claims, dict) else None
    return revision if isinstance(revision, int) else None
