"""Login: how a token is got for credentials.

Knows: the RPC that gives tokens, and a user's function that does. Never knows: who needs the token, or how often.
"""

import asyncio
import copy
from typing import Final

from etcd_aio import codec
from etcd_aio.backoff import Backoff
from etcd_aio.error_handler.call import Call, CallContext
from etcd_aio.error_handler.credentials import Credentials, Password, TokenSource, is_token
from etcd_aio.errors import AuthNotEnabledError, ClientClosedError, EtcdError, TokenUnavailableError
from etcd_aio.methods import AUTHENTICATE
from etcd_aio.pb import AuthenticateRequest

TIMEOUT: Final = 120.0
"""Seconds a login may take with all its attempts. A member that many clients log in to at once needs as long; one that
is dead or frozen is found out by its connection within seconds."""
FUNCTION_TIMEOUT: Final = 10.0
"""Seconds that a user's function may take."""

_BACKOFF: Final = Backoff(initial=0.25, multiplier=2.0, maximum=5.0, jitter=0.5)
"""Waits between the attempts of one login. A connection that is lost under it may be that of a member which has so much
to hash that it answers no ping."""

_DOUBTS: Final = 5  # times that "not enabled" is not believed, if a member has just asked for a user
_DOUBT: Final = Backoff(initial=0.05, multiplier=2.0, maximum=0.4, jitter=0.2)


class Login:
    """Gets tokens.

    Args:
        context: what its calls share: they carry no token and need none.
        credentials: for whom.
    """

    __slots__ = ("_context", "_credentials")

    def __init__(self, context: CallContext, credentials: Credentials) -> None:
        self._context = copy.copy(context)
        self._context.may_move = False  # a login that is given up still costs the member its hash
        self._context.is_heavy = True
        self._context.backoff = _BACKOFF
        self._credentials = credentials

    async def fetch(self, why: EtcdError | None) -> str:
        """A token; empty if the cluster wants none.

        Args:
            why: the refusal that made it necessary, if one did.

        Raises:
            EtcdError: there is none.
        """
        credentials = self._credentials
        if isinstance(credentials, TokenSource):
            return await self._ask(credentials)
        if not isinstance(credentials, Password):
            raise ClientClosedError
        doubts = 0
        while True:
            try:
                return await self._authenticate(credentials)
            except AuthNotEnabledError:
                # A member that is behind has not heard yet of what another has refused a request for.
                if why is None or doubts == _DOUBTS:
                    return ""
            await self._context.lifetime.sleep(_DOUBT.wait(doubts, self._context.random))
            doubts += 1

    async def _authenticate(self, credentials: Password) -> str:
        now = asyncio.get_running_loop().time()
        call = Call(
            self._context,
            AUTHENTICATE,
            codec.encode(AuthenticateRequest(name=credentials.name, password=credentials.password)),
            self._context.metadata.with_leader,
            now + TIMEOUT,
            is_mutation=False,
            may_repeat=True,  # a second one costs the server a password hash and a token, no more
            may_retry=True,
        )
        return (await call.run(now)).token

    @staticmethod
    async def _ask(source: TokenSource) -> str:
        task = asyncio.current_task()
        scope = asyncio.timeout(FUNCTION_TIMEOUT)
        try:
            async with scope:
                token = await source.function()
        except asyncio.CancelledError as error:
            if task is None or task.cancelling():
                raise
            raise TokenUnavailableError("token= was cancelled") from error  # by something inside of it
        except Exception as error:
            if scope.expired() and isinstance(error, TimeoutError):
                raise TokenUnavailableError(f"token= gave no token within {FUNCTION_TIMEOUT:g} s") from None
            raise TokenUnavailableError(f"token= raised {type(error).__name__}") from error
        if not is_token(token):
            raise TokenUnavailableError("token= gave something that no header can carry")
        return token
