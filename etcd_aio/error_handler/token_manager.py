"""Tokens: the client's token, fetched once for all who need it.

Knows: the one task that fetches, who waits for it. Never knows: what fetching is (`login.py` does), or what a refused
call does next.

Theory of operation. There is at most one fetch at a time, in a task of its own: those who wait may be cancelled or run
out of time, each by itself, and the fetch goes on for the others and for the next call. It has a deadline of its own,
much longer than that of a call: the server does not stop the hash of a login that is given up, so many clients that
give up and begin anew would keep it busy for ever. If a fetch ends for a reason that passes, those who have time left
share another, which begins with the wait that `token_state.py` asks for.
"""

import asyncio
import copy
import logging
from collections.abc import Awaitable, Callable

from etcd_aio.aio import start_background_task
from etcd_aio.closing import TwoPartClose, Unwinding
from etcd_aio.deadline import NEVER
from etcd_aio.error_handler.outcome import unexpected_error
from etcd_aio.error_handler.token_refusals import is_spent
from etcd_aio.error_handler.token_state import TokenState
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
from etcd_aio.transport import RequestMetadata

logger = logging.getLogger("etcd_aio.auth")


class TokenManager(TwoPartClose):
    """The token of one client. Making it touches nothing, not even the loop.

    Args:
        fetch: gets a token, given the refusal that made it necessary, if one did; None if nothing gets another.
        metadata: carries it.
        state: what is known of it.
        may_repeat: without a way to get one, whether a refused call may be made once more: somebody who is known by
            a certificate may be refused because the users were just changed.
        outage_error: makes the error of a wait in vain, where no endpoint is connected; None where one is.
        fails_fast: whether to raise the error of such a wait at once.
        random: returns a number in [0, 1).
    """

    __slots__ = (
        "_fails_fast",
        "_fetch",
        "_is_closed",
        "_may_repeat",
        "_metadata",
        "_outage_error",
        "_random",
        "_refresh_task",
        "state",
    )

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
    ) -> None:
        self.state = state
        self._fetch = fetch
        self._metadata = metadata
        self._may_repeat = may_repeat
        self._outage_error = outage_error
        self._fails_fast = fails_fast
        self._random = random
        self._refresh_task: asyncio.Task[EtcdError | None] | None = None
        self._is_closed = False

    def may_renew(self, error: EtcdError) -> bool:
        """Whether another token may help after this refusal, or without any the same request."""
        if self._fetch is None:
            return self._may_repeat and not isinstance(error, UserEmptyError | PermissionDeniedError)
        return True

    async def obtain(self, deadline: float) -> None:
        """Have a token, if one is due.

        Raises:
            EtcdTimeoutError: `deadline` came first; NoAvailableEndpointsError if nothing is connected.
            ClientClosedError: the client was closed meanwhile.
            EtcdError: there is none, for this reason.
        """
        if self.state.is_due:
            await self._wait(None, deadline)

    async def renew(self, used: str, error: EtcdError, deadline: float) -> bool:
        """Do what can be done about a refused request before it is repeated.

        Args:
            used: the token that it carried.
            error: the refusal.
            deadline: how long to wait.

        Returns:
            bool: whether a token was fetched for it. If not, there is a newer one already.

        Raises:
            EtcdError: as `obtain`.
        """
        if self._fetch is None:
            return True
        self.state.refused(used, asyncio.get_running_loop().time(), self._random)
        del used  # the wait may raise, and tracebacks show what is held here
        if not self.state.is_due:
            return False
        await self._wait(error, deadline)
        return True

    def refused_for_good(self, used: str, error: EtcdError, now: float, *, was_renewed: bool) -> None:
        """A call ends with this refusal: the next one begins with a new token, unless even that is no use.

        Args:
            used: the token that was refused.
            error: the refusal.
            now: the instant.
            was_renewed: it was fetched for this very call.
        """
        if self._fetch is None:
            return
        if was_renewed and isinstance(error, InvalidTokenError) and not self.state.has_newer(used):
            self.state.failed(private_copy(error), now, self._random)
        if is_spent(error, used):
            self.state.refused(used, now, self._random)

    def close(self) -> Unwinding:
        """Forget the token; who waits for one is told that the client is closed."""
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
            if task is None or task.done():  # a task that is cancelled before its first step ends without a trace
                task = self._start(why, now)
            # Not by awaiting the task: a cancellation of this one must not reach it.
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
        """The one fetch; returns why there is no token."""
        if self._fetch is None:
            raise TypeError("nothing fetches tokens")
        loop = asyncio.get_running_loop()
        try:
            wait = self.state.wait(loop.time())
            if wait > 0:
                await asyncio.sleep(wait)
            token = await self._fetch(why)
        except Exception as raised:  # a user's function may raise anything; whoever waits must hear of it
            error = unexpected_error(raised)
            self.state.failed(error, loop.time(), self._random)
            # What it says is not repeated: a user's function may tell its secrets.
            told = f": {error.message}" if isinstance(error, ServerError) else ""
            logger.warning("no token: %s%s", type(error).__name__, told)
            return error
        else:
            if not self._is_closed:
                self._metadata.carry(token)
                self.state.fetched(token)
                logger.debug("a token was fetched" if token else "no token is needed")
            return None
        finally:
            self._refresh_task = None


def private_copy(error: EtcdError) -> EtcdError:
    """The same error for another one who waits: whoever raises it adds a traceback and a history to it."""
    found = copy.copy(error)
    found.__traceback__ = None
    found.__cause__ = error.__cause__
    found.__notes__ = []
    return found
