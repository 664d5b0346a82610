"""Retry policy and budget: how often, how soon, and how many retries at once, in the terms of gRPC A6. Pure."""

from typing import Final

from etcd_aio.base.backoff import Backoff
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import ConfigError

_MAX_TOKENS: Final = 1000.0  # gRPC A6's upper bound for maxTokens


@dataclass(frozen=True, slots=True)
class RetryThrottling:
    """A budget for retries, as in gRPC A6: each failed attempt costs one token, each success earns a fraction.

    Below half of the tokens retries are throttled. gRPC then fails the call; here the call waits for the policy's
    longest backoff instead: that stops a retry storm too, and a call with time left loses nothing by waiting.

    Attributes:
        max_tokens: size of the budget. The default lets all calls of one connection fail over at once.
        token_ratio: tokens earned by a success.
    """

    max_tokens: float = _MAX_TOKENS
    token_ratio: float = 0.1  # A6's example: one retry for ten successes, in the long run

    def __post_init__(self) -> None:
        if not 0 < self.max_tokens <= _MAX_TOKENS:
            raise ConfigError(f"max_tokens must be above 0 and at most {_MAX_TOKENS:g}, as gRPC A6 says")
        if not self.token_ratio > 0:
            raise ConfigError("token_ratio must be above 0")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How calls are retried. Waits are in seconds.

    A call waits only after it has tried a quorum of the endpoints: while another member may answer, there is no reason
    to wait.

    Attributes:
        max_attempts: most attempts of a call, including the first. The default is that of etcd's Go client; the
            deadline ends most calls long before.
        initial_backoff: the first wait. The default is that of etcd's Go client.
        backoff_multiplier: growth from one wait to the next.
        max_backoff: the longest wait. An election takes about a second, and longer waits would miss its end.
        jitter: fraction by which a wait is spread to both sides.
        throttling: the budget that all calls of a client share; None for no budget.
    """

    max_attempts: int = 100
    initial_backoff: float = 0.025
    backoff_multiplier: float = 1.6
    max_backoff: float = 1.0
    jitter: float = 0.2
    throttling: RetryThrottling | None = RetryThrottling()

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ConfigError("max_attempts must be at least 1")
        try:
            self.backoff()
        except ValueError as error:
            raise ConfigError(str(error)) from None

    def backoff(self) -> Backoff:
        """Return the series of waits."""
        return Backoff(self.initial_backoff, self.backoff_multiplier, self.max_backoff, self.jitter)


class RetryBudget:
    """The throttling tokens of one client."""

    def __init__(self, throttling: RetryThrottling) -> None:
        self._max_tokens = throttling.max_tokens
        self._token_ratio = throttling.token_ratio
        self._tokens = throttling.max_tokens

    @property
    def is_exhausted(self) -> bool:
        """Whether retries are throttled now."""
        return self._tokens <= self._max_tokens / 2

    def on_success(self) -> None:
        """An attempt succeeded."""
        if self._tokens < self._max_tokens:
            self._tokens = min(self._tokens + self._token_ratio, self._max_tokens)

    def on_failure(self) -> None:
        """An attempt failed, perhaps since the cluster is overloaded."""
        self._tokens = max(self._tokens - 1, 0.0)
