"""Stream token: the token that one supervised stream was opened with, and how it gets another."""

from etcd_aio.deadline import NEVER
from etcd_aio.error_handler.token_manager import TokenManager
from etcd_aio.error_handler.token_state import is_spent
from etcd_aio.errors import EtcdError, TokenUnavailableError
from etcd_aio.transport import Metadata, token_of


class StreamToken:
    """The token of one supervised stream.

    Args:
        manager: has the client's token.
    """

    __slots__ = ("_manager", "_used")

    def __init__(self, manager: TokenManager) -> None:
        self._manager = manager
        self._used = ""

    @property
    def is_due(self) -> bool:
        """Whether a token must be fetched before the stream is opened."""
        return self._manager.state.is_due

    @property
    def is_old(self) -> bool:
        """Whether the stream was opened with another token than it would be now."""
        return self._manager.state.has_newer(self._used)

    def on_open(self, metadata: Metadata) -> None:
        """The stream is opened with this metadata."""
        self._used = token_of(metadata)

    def may_renew(self, error: EtcdError) -> bool:
        """Whether another token may help after this refusal."""
        return self._manager.may_renew(error)

    async def obtain(self) -> EtcdError | None:
        """Get a token if one is due, however long it takes; returns why there is none."""
        try:
            await self._manager.obtain(NEVER)
        except EtcdError as error:
            return error
        return None

    async def renew(self, error: EtcdError) -> EtcdError | None:
        """Get another token after a refusal, however long it takes; returns why there is none."""
        if not is_spent(error, self._used):
            return None  # the users were changed meanwhile, and the same token is still valid
        try:
            await self._manager.renew(self._used, error, NEVER)
        except EtcdError as no_token:
            return no_token
        return None


def may_pass(no_token: EtcdError) -> bool:
    """Whether there may be a token later: a function of the application that failed may succeed the next time."""
    return no_token.retryable or isinstance(no_token, TokenUnavailableError)
