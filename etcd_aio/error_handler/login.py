"""Login: gets a token for credentials, by etcd's RPC or from a function of the application.

It is a module of its own since it makes calls: calls know the credentials (`credentials.py`), which are pure.
"""

import asyncio
import copy
from typing import Final

from etcd_aio import codec, pb
from etcd_aio.balancer import Balancer
from etcd_aio.base.backoff import Backoff
from etcd_aio.error_handler.call_with_retries import CallAttempts, CallContext
from etcd_aio.error_handler.credentials import Credentials, Password, TokenSource, is_token
from etcd_aio.errors import AuthNotEnabledError, ClientClosedError, EtcdError, TokenUnavailableError
from etcd_aio.methods import AUTHENTICATE

TIMEOUT: Final = 120.0
"""Seconds a login may take with all its attempts. A member that many clients log in to at once needs that long; the
connection detects a dead or frozen member within seconds."""
FUNCTION_TIMEOUT: Final = 10.0
"""Seconds that the application's function may take."""

_BACKOFF: Final = Backoff(initial=0.25, multiplier=2.0, maximum=5.0, jitter=0.5)
"""Waits between the attempts of one login. If the connection is lost during a login, the member may be so busy with
hashing that it answers no ping."""

NOT_ENABLED_RETRIES: Final = 5
"""How often a login is repeated if a member says that authentication is not enabled, although a member has just refused
a request for want of a token: the answer comes from a member that lags behind."""
_NOT_ENABLED_BACKOFF: Final = Backoff(initial=0.05, multiplier=2.0, maximum=0.4, jitter=0.2)


class Login:
    """Gets tokens.

    Args:
        context: of its calls, which carry no token and need none.
        balancer: the client's.
        credentials: of the user.
    """

    def __init__(self, context: CallContext, balancer: Balancer, credentials: Credentials) -> None:
        self._context = copy.copy(context)
        self._context.may_move = False  # the member hashes the password even if the login is given up
        self._context.is_heavy = True
        self._context.backoff = _BACKOFF
        self._balancer = balancer
        self._credentials = credentials

    async def fetch(self, why: EtcdError | None) -> str:
        """Return a token; empty if the cluster needs none.

        Args:
            why: the refusal that made the token necessary; None if there was none.

        Raises:
            EtcdError: there is no token.
        """
        credentials = self._credentials
        if isinstance(credentials, TokenSource):
            return await self._call(credentials)
        if not isinstance(credentials, Password):
            raise ClientClosedError
        retries = 0
        while True:
            try:
                return await self._authenticate(credentials)
            except AuthNotEnabledError:
                if why is None or retries == NOT_ENABLED_RETRIES:
                    return ""
            await self._context.lifetime.sleep(_NOT_ENABLED_BACKOFF.wait(retries, self._context.random))
            retries += 1

    async def _authenticate(self, credentials: Password) -> str:
        now = asyncio.get_running_loop().time()
        call = CallAttempts(
            self._context,
            self._balancer,
            None,
            AUTHENTICATE,
            codec.encode(pb.AuthenticateRequest(name=credentials.name, password=credentials.password)),
            now + TIMEOUT,
            is_mutation=False,
            may_repeat=True,  # a second login costs the server a password hash and a token, nothing else
            may_retry=True,
        )
        return (await call.run(now)).token

    @staticmethod
    async def _call(source: TokenSource) -> str:
        task = asyncio.current_task()
        scope = asyncio.timeout(FUNCTION_TIMEOUT)
        try:
            async with scope:
                token = await source.function()
        except asyncio.CancelledError as error:
            if task is None or task.cancelling():
                raise
            raise TokenUnavailableError("token= was cancelled") from error  # by the function itself
        except Exception as error:
            if scope.expired() and isinstance(error, TimeoutError):
                raise TokenUnavailableError(f"token= returned no token within {FUNCTION_TIMEOUT:g} s") from None
            raise TokenUnavailableError(f"token= raised {type(error).__name__}") from error
        if not is_token(token):
            raise TokenUnavailableError("token= returned something that a header cannot carry")
        return token
