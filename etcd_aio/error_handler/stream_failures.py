"""Stream failures: what one supervised stream has met since the server last said something on it.

Knows: the endpoints that failed, how often, and the wait that follows. Never knows: streams, clocks, what was said.

A server that asks to be left alone (`grpc-retry-pushback-ms`) speaks for its own member: that one is avoided meanwhile,
and the others are tried as usual. Only where every connected member has asked for it is there a wait.
"""

from collections.abc import Callable
from typing import Final

from etcd_aio.backoff import Backoff
from etcd_aio.balancer import Balancer, ConnectivityState, SubConnection
from etcd_aio.error_handler.retry import wait_before
from etcd_aio.error_handler.verdicts import Verdict
from etcd_aio.errors import ConnectError, EtcdError, NoAvailableEndpointsError

_MOST_RENEWALS: Final = 10  # of the token, with nothing said in between; users may be changed all the time, but not so
_LONGEST_PUSHBACK: Final = 30.0  # seconds; a server can ask for months, and its member would be lost until then
_SHORT_LIFE: Final = 1.0  # seconds; streams that answer and still end sooner must not be reopened in a busy loop


class StreamFailures:
    """A run of failures; a reply ends it.

    Args:
        balancer: knows which endpoints there are, and which are connected.
        backoff: the series of waits.
        random: returns a number in [0, 1).

    Attributes:
        no_token: why there is no token to open a stream with; None if that is not what is missing.
    """

    __slots__ = (
        "_backoff",
        "_balancer",
        "_count",
        "_errors",
        "_failed",
        "_is_another_ready",
        "_pushed_back",
        "_random",
        "_renewals",
        "_short_lives",
        "no_token",
    )

    def __init__(self, balancer: Balancer, backoff: Backoff, random: Callable[[], float]) -> None:
        self._balancer = balancer
        self._backoff = backoff
        self._random = random
        self._failed: tuple[SubConnection, ...] = ()  # until all have, then only the last
        self._pushed_back: dict[SubConnection, float] = {}  # until when
        self._count = 0
        self._is_another_ready = False  # one that has not failed, after the last failure
        self._short_lives = 0
        self._renewals = 0
        self._errors: dict[str, EtcdError] = {}
        self.no_token: EtcdError | None = None

    def on_reply(self) -> None:
        """The server serves the stream."""
        self._failed = ()
        self._count = 0
        self._renewals = 0
        self._errors.clear()
        self.no_token = None

    def on_failure(
        self, sub_connection: SubConnection, error: EtcdError, now: float, *, pushback: float | None = None
    ) -> None:
        """A stream ended though it is needed, or could not be opened.

        Args:
            sub_connection: where.
            error: why.
            now: the instant.
            pushback: seconds for which the server asks to be left alone; negative for "do not retry".
        """
        self._count += 1
        self._errors[sub_connection.endpoint_name] = error
        if pushback is not None:
            # "Do not retry" cannot be obeyed where there is no other member.
            wait = self._backoff.longest(self._random) if pushback < 0 else min(pushback, _LONGEST_PUSHBACK)
            self._pushed_back[sub_connection] = now + wait
        failed = (*self._failed, sub_connection)
        self._is_another_ready = self._balancer.has_other((*failed, *self._pushed_back_at(now)))
        self._failed = failed if self._is_another_ready else (sub_connection,)

    def avoid(self, now: float) -> tuple[SubConnection, ...]:
        """Where the next stream is not to be opened, if there is any other place."""
        pushed_back = self._pushed_back_at(now)
        avoid = (*self._failed, *pushed_back)
        return avoid if self._balancer.has_other(avoid) else pushed_back or avoid

    def pushed_back_until(self, now: float) -> float | None:
        """When the next member may be tried, if every connected one has asked to be left alone."""
        pushed_back = self._pushed_back_at(now)
        if not self._balancer.ready_count or self._balancer.has_other(pushed_back):
            return None
        return min(self._pushed_back.values())

    def _pushed_back_at(self, now: float) -> tuple[SubConnection, ...]:
        if self._pushed_back:
            self._pushed_back = {one: until for one, until in self._pushed_back.items() if until > now}
        return tuple(self._pushed_back)

    def is_everywhere(self, kind: type[EtcdError]) -> bool:
        """Whether this is how the last stream on each of the endpoints ended."""
        return all(isinstance(self._errors.get(one.name), kind) for one in self._balancer.endpoints)

    def on_served_for(self, seconds: float) -> None:
        """A stream on which the server had said something is over, after so many seconds."""
        self._short_lives = self._short_lives + 1 if seconds < _SHORT_LIFE else 0

    def wait(self, verdict: Verdict) -> float:
        """Seconds to wait before the next stream."""
        balancer = self._balancer
        endpoints = len(balancer.endpoints)
        if self._short_lives > endpoints:
            return self._backoff.wait(self._short_lives - endpoints - 1, self._random)
        if verdict is Verdict.AT_ONCE:
            ready = balancer.ready_count
            if not ready or self._is_another_ready:
                return 0.0
            # Only those are left that failed, perhaps before the end of a connection is noticed.
            return self._backoff.wait(max(self._count // ready - 1, 0), self._random)
        return wait_before(
            self._count,
            endpoints=endpoints,
            backoff=self._backoff,
            is_throttled=False,
            pushback=None,
            random=self._random,
        )

    @property
    def may_renew_token(self) -> bool:
        """Whether a refused token is worth a new one."""
        return self._renewals < _MOST_RENEWALS

    def on_renewal(self) -> float:
        """The refused token was renewed; returns the seconds to wait before the next stream.

        A new token may be refused as well: by a member that has not heard of it, or since the users were changed again.
        """
        self._renewals += 1
        return self._backoff.wait(self._renewals - 2, self._random) if self._renewals > 1 else 0.0

    def wait_for_token(self) -> float:
        """Seconds to wait before a token is asked for again."""
        return self._backoff.longest(self._random)

    def outage_error(self) -> NoAvailableEndpointsError:
        """The error that names, for each endpoint, why there is no stream on it."""
        errors: dict[str, BaseException] = {}
        for one in self._balancer.statistics():
            if one.state is ConnectivityState.READY:
                last = self._errors.get(one.endpoint)
                last = last or self.no_token
                errors[one.endpoint] = last or ConnectError("connected, but no stream was opened on it yet")
            else:
                errors[one.endpoint] = one.last_error or ConnectError("connecting was not finished in time")
        return NoAvailableEndpointsError(errors=errors)
