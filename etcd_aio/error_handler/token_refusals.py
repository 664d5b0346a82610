"""Token refusals: what one call does when its token is refused, once or again and again. Pure.

Knows: etcd's two kinds of tokens, and which refusals a call has met. Never knows: clocks, members, how a token is got.

Theory. A refused request did nothing, so it may always be made again; the question is with which token, and how often.
  - "revision of auth store is old" says that users or roles were changed. A JWT holds the revision at which it was
    made, so another one is needed. A simple token holds none: the member notes its own revision when the request
    arrives, and a change that comes before the request is applied refuses it. So there it is enough to repeat, without
    a login. Both go on as often as there are changes, until the call's deadline. Two JWTs of one revision mean that
    there was none.
  - "invalid auth token" says that the token has expired, or was lost in a restart: another one is needed. If that one
    is refused too, the member may only be behind, since tokens are replicated: the others are asked first. A few
    tokens that every member refuses are a final answer.
  - Without a token ("user name is empty") one is fetched; if there still is none, the answer is final.
"""

import base64
import json
from enum import Enum
from typing import Final

from etcd_aio.errors import AuthOldRevisionError, EtcdError, UserEmptyError

_MOST_TOKENS: Final = 3  # of one call, that are refused as invalid
_JWT_PARTS: Final = 3


class TokenRemedy(Enum):
    """What to do about a refused token."""

    RENEW = "get another token"
    REPEAT = "repeat with the token that there is"
    RAISE = "it is a final answer"


class TokenRefusals:
    """The refusals that one call has met.

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
        """Note a refusal; returns what follows from it.

        Args:
            error: the refusal.
            token: that was refused; empty for none.
            may_renew: another token may help, and can be had; or without any the same request.
            endpoints: how many the call may be made on.
        """
        if isinstance(error, AuthOldRevisionError):
            return self._after_change(token, may_renew=may_renew)
        if token != self._token:
            self._token, self._count = token, 0
            self._tokens += 1
        self._count += 1
        if not may_renew:
            return TokenRemedy.RAISE
        is_new = self._tokens > 1 and not isinstance(error, UserEmptyError)
        enough = endpoints if is_new else 1
        if self._count < enough:
            return TokenRemedy.REPEAT
        if self._count == enough and self._tokens < _MOST_TOKENS:
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
    """Whether a token that was refused is of no more use."""
    return not isinstance(error, AuthOldRevisionError) or auth_revision(token) is not None


def auth_revision(token: str) -> int | None:
    """The revision of the users and roles at which a JWT was made; None for another kind of token."""
    parts = token.split(".")
    if len(parts) != _JWT_PARTS:
        return None
    try:
        claims: object = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
    except (ValueError, RecursionError):
        return None
    revision = claims.get("revision") if isinstance(claims, dict) else None
    return revision if isinstance(revision, int) else None
