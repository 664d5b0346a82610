"""Fake members that require a token and issue tokens for a password."""

from collections import deque

from etcd_aio import codec
from etcd_aio.errors import AttemptFailure, Delivery, StatusCode
from etcd_aio.methods import AUTHENTICATE, STATUS
from etcd_aio.pb import AuthenticateRequest, AuthenticateResponse
from tests.support.answers import header
from tests.support.calls import Calls, reply
from tests.support.fake_engine import FakeAttempt


class Doorman:
    """The authentication of a fake cluster.

    Attributes:
        is_enabled: whether authentication is on.
        password: the password of every user.
        valid: the valid tokens.
        given: the number of issued tokens.
        refusals: the number of refused calls.
        logins: the failures of the next logins, in turn.
    """

    def __init__(self, calls: Calls) -> None:
        self.is_enabled = True
        self.password = "pw-c4n4ry"
        self.valid: set[str] = set()
        self.given = 0
        self.refusals = 0
        self.logins: deque[AttemptFailure] = deque()
        self._well = reply()
        for name in calls.names:
            calls.engine[name].otherwise = self.answer

    def answer(self, attempt: FakeAttempt) -> bytes:
        """Answer an attempt on any member."""
        if attempt.path == STATUS.path:
            return self._well(attempt)
        if attempt.path == AUTHENTICATE.path:
            return self._login(attempt)
        token = dict(attempt.metadata).get("token", "")
        if self.is_enabled and token not in self.valid:
            self.refusals += 1
            if token:
                raise _refusal(StatusCode.UNAUTHENTICATED, "etcdserver: invalid auth token")
            raise _refusal(StatusCode.INVALID_ARGUMENT, "etcdserver: user name is empty")
        return self._well(attempt)

    def _login(self, attempt: FakeAttempt) -> bytes:
        if self.logins:
            raise self.logins.popleft()
        if not self.is_enabled:
            raise _refusal(StatusCode.FAILED_PRECONDITION, "etcdserver: authentication is not enabled")
        if codec.decode(AuthenticateRequest, attempt.payload).password != self.password:
            text = "etcdserver: authentication failed, invalid user ID or password"
            raise _refusal(StatusCode.INVALID_ARGUMENT, text)
        self.given += 1
        token = f"t{self.given}-c4n4ry"
        self.valid.add(token)
        return codec.encode(AuthenticateResponse(header=header(), token=token))


def _refusal(code: StatusCode, message: str) -> AttemptFailure:
    return AttemptFailure(code, message, Delivery.ANSWERED)
