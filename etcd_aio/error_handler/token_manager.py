"""Token manager: the client's token, fetched once for all calls that need it.

At most one fetch runs at a time, in a task of its own: each call that waits may be cancelled or run out of time, and
the fetch goes on for the other calls and for the next one. The fetch has a deadline of its own, much longer than that
of a call: the server does not stop hashing the password of a login that is given up, so many clients that give up and
start over would keep it busy for ever. If a fetch fails for a temporary reason, the calls that have time left share
another one, which begins with the wait that `token_state.py` asks for.
"""

import asyncio
import copy
import logging
from collections.abc import Awaitable, Callable

from etcd_aio.base.aio import start_background_task
from etcd_aio.base.closing import TwoPartClose, Unwinding
from etcd_aio.base.deadline import NEVER
from etcd_aio.base.logs import log_of
from etcd_aio.base.unexpected import as_etcd_error
from etcd_aio.error_handler.token_state import TokenState, auth_revision, is_spent
from etcd_aio.errors import (
    ClientClosedError,
    EtcdError,
    EtcdTimeoutError,
    InvalidTokenError,
    NoAvailableEndpointsError,
    PermissionDeniedError,
    ServerError,
    TokenUnavailableError,
    UserEmptyError,
)
from etcd_aio.observing import LoginEnded
from etcd_aio.transport import RequestMetadata

logger = logging.getLogger("etcd_aio.auth")


class TokenManager(TwoPartClose):
    """The token of one client. The constructor touches nothing, not even the loop.

    Args:
        fetch: gets a token, given the refusal that made it necessary, if any; None if there is no way to get another.
        metadata: carries the token.
        state: of the token.
        may_repeat: if there is no way to get a token, whether a refused call may be made once more: a user that a
            certificate names may be refused because the users were just changed.
        outage_error: returns the error of a wait that timed out while no endpoint was connected; None if one is.
        fails_fast: whether to raise the error of an outage at once.
        random: returns a number in [0, 1).
        on_login: called after each fetch; None if that is not observed.
        client: name of the client; empty if it has none.
    """

    def __init__(
        self,
        fetch: Callable[[EtcdError | None], Awaitable[str]] | None,
        metadata: RequestMetadata,
        state: TokenState,
        *,
        may_repeat: bool = True,
        outage_error: Callable[[], EtcdError | None] = lambda: None,
        fails_fast: Callable[[], bool] = lambda: False,
        random: Callable[[], float],
        on_login: Callable[[LoginEnded], None] | None = None,
        client: str = "",
    ) -> None:
        self.state = state
        self._on_login = on_login
        self._client = client
        self._log = log_of(logger, client)
        self._fetch = fetch
        self._metadata = metadata
        self._may_repeat = may_repeat
        self._outage_error = outage_error
        self._fails_fast = fails_fast
        self._random = random
        self._refresh_task: asyncio.Task[EtcdError | None] | None = None
        self._is_closed = False

    def may_renew(self, error: EtcdError) -> bool:
        """Whether another token, or without tokens the same request again, may help after this refusal."""
        if self._fetch is None:
            return self._may_repeat and not isinstance(error, UserEmptyError | PermissionDeniedError)
        return True

    async def obtain(self, deadline: float) -> None:
        """Get a token, if one is due.

        Raises:
            EtcdTimeoutError: `deadline` came first; NoAvailableEndpointsError if nothing is connected.
            ClientClosedError: the client was closed meanwhile.
            EtcdError: there is no token, for this reason.
        """
        if self.state.is_due:
            await self._wait(None, deadline)

    async def renew(self, used: str, error: EtcdError, deadline: float) -> bool:
        """Get another token after a refused request, before it is repeated.

        Args:
            used: the token of the request.
            error: the refusal.
            deadline: how long to wait.

        Returns:
            bool: whether a token was fetched for this request. If not, there was a newer one already.

        Raises:
            EtcdError: as `obtain`.
        """
        if self._fetch is None:
            return True
        self.state.refused(used, asyncio.get_running_loop().time(), self._random)
        del used  # the wait may raise, and tracebacks show local variables
        if not self.state.is_due:
            return False
        await self._wait(error, deadline)
        return True

    def refused_for_good(
        self, used: str, error: EtcdError, now: float, *, was_renewed: bool, by_one: bool = False
    ) -> None:
        """A call ends with this refusal: the next call gets a new token, unless that would not help.

        Args:
            used: the token that was refused.
            error: the refusal.
            now: the instant.
            was_renewed: the token was fetched for this very call.
            by_one: by one member, and no other was asked.
        """
        if self._fetch is None:
            return
        if by_one and was_renewed and auth_revision(used) is None:
            return  # it lags behind, and the others know the token
        if was_renewed and isinstance(error, InvalidTokenError) and not self.state.has_newer(used):
            self.state.failed(private_copy(error), now, self._random)
        if is_spent(error, used):
            self.state.refused(used, now, self._random)

    def close(self) -> Unwinding:
        """Forget the token; calls that wait for one raise `ClientClosedError`."""
        self.state.forget()
        self._metadata.carry("")
        task = self._refresh_task
        if task is not None and not self._is_closed:
            task.cancel()
        self._is_closed = True
        return () if task is None else (task,)

    async def _wait(self, why: EtcdError | None, deadline: float) -> None:
        """Return once there is a token."""
        loop = asyncio.get_running_loop()
        last: EtcdError | None = None
        while self.state.is_due:
            if self._is_closed:
                raise ClientClosedError
            now = loop.time()
            if now >= deadline:
                text = "the deadline passed while a token was fetched"
                raise self._outage_error() or (EtcdTimeoutError(text) if last is None else private_copy(last))
            task = self._refresh_task
            if task is None or task.done():  # a task that was cancelled before its first step ran no `finally`
                task = self._start(why, now)
            # Not by awaiting the task: a cancellation of this call must not reach it.
            done, _ = await asyncio.wait([task], timeout=None if deadline == NEVER else deadline - now)
            if self._is_closed:
                raise ClientClosedError
            if done and task.cancelled():
                raise TokenUnavailableError("the task that fetches the token was cancelled")
            if done:
                last = task.result()
                is_out = isinstance(last, NoAvailableEndpointsError) and self._fails_fast()
                if last is not None and (is_out or not last.retryable):
                    raise private_copy(last)

    def _start(self, why: EtcdError | None, now: float) -> "asyncio.Task[EtcdError | None]":
        known = self.state.remembered(now)
        if known is not None:
            raise private_copy(known)
        self._refresh_task = start_background_task(self._refresh(why), name="etcd_aio token")
        return self._refresh_task

    async def _refresh(self, why: EtcdError | None) -> EtcdError | None:
        """Fetch a token; returns why there is none."""
        if self._fetch is None:
            raise TypeError("nothing fetches tokens")
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            wait = self.state.wait(began)
            if wait > 0:
                await asyncio.sleep(wait)
            token = await self._fetch(why)
        except Exception as raised:  # the application's function may raise anything; the waiting calls must get it
            error = as_etcd_error(raised)
            self.state.failed(error, loop.time(), self._random)
            # Only a server's text is logged: that of the application's function may hold secrets.
            text = f": {error.message}" if isinstance(error, ServerError) else ""
            self._log.warning("no token: %s%s", type(error).__name__, text)
            self._tell(loop.time() - began, error)
            return error
        else:
            if not self._is_closed:
                self._metadata.carry(token)
                self.state.fetched(token)
                self._log.debug("a token was fetched" if token else "no token is needed")
                self._tell(loop.time() - began, None)
            return None
        finally:
            self._refresh_task = None

    def _tell(self, seconds: float, error: EtcdError | None) -> None:
        if self._on_login is not None:
            self._on_login(LoginEnded(seconds, error, self._client))


def private_copy(error: EtcdError) -> EtcdError:
    """Return a copy of an error for one of the calls that wait: each adds its own traceback and history."""
    private = copy.copy(error)
    private.__traceback__ = None
    private.__cause__ = error.__cause__
    private.__notes__ = []
    return private
