"""Failover: which members the next attempt avoids, and how long it waits; `call_with_retries.py` makes the attempts.

Calls and streams avoid the members that failed, until all have failed; then only the last one. Both wait only after a
quorum of the endpoints has refused, or if every connected member has failed.

They differ in what they do if a server asks for a pause (`grpc-retry-pushback-ms`). A call makes its next attempt after
that time, as gRPC A6 says, and ends by its own deadline. A stream has no deadline: it takes the pause as being about
that one member, which it avoids meanwhile, and tries the others as usual. It waits only if every connected member has
asked for a pause.
"""

from collections.abc import Callable
from typing import Final

from etcd_aio.balancer import Balancer, SingleEndpointView, SubConnection
from etcd_aio.base.backoff import Backoff
from etcd_aio.error_handler.retry_verdicts import RetryVerdict
from etcd_aio.errors import ConnectError, EtcdError, NoAvailableEndpointsError
from etcd_aio.types import ConnectivityState

_MOST_RENEWALS: Final = 10  # of the token without a reply in between; users may be changed often, but not that often
_LONGEST_PUSHBACK: Final = 30.0  # seconds; a server can ask for months, and its member would be lost until then
_SHORT_LIFE: Final = 1.0  # seconds; streams that get a reply and still end sooner must not be reopened in a busy loop


def next_avoided(
    avoided: tuple[SubConnection, ...],
    failed: SubConnection,
    balancer: Balancer | SingleEndpointView,
    paused: tuple[SubConnection, ...] = (),
) -> tuple[tuple[SubConnection, ...], bool]:
    """Return what the attempt after a failure avoids, and whether a member is READY that has not failed.

    Args:
        avoided: what the failed attempt avoided.
        failed: where it was made.
        balancer: knows which members are READY.
        paused: members that do not count as READY, since they asked for a pause.
    """
    avoided = (*avoided, failed)
    is_another_ready = balancer.has_other((*avoided, *paused))
    return (avoided if is_another_ready else (failed,)), is_another_ready


def seconds_before_next(
    verdict: RetryVerdict,
    failures: int,
    balancer: Balancer | SingleEndpointView,
    backoff: Backoff,
    random: Callable[[], float],
    *,
    is_another_ready: bool,
    is_throttled: bool = False,
    pushback: float | None = None,
) -> float:
    """Return the seconds to wait before the attempt after a failure.

    Args:
        verdict: on the failure.
        failures: attempts that failed so far, at least 1.
        balancer: knows how many endpoints there are, and how many are READY.
        backoff: the series of waits.
        random: returns a number in [0, 1).
        is_another_ready: a member is READY that has not failed.
        is_throttled: the retry budget is exhausted.
        pushback: the wait that the server asked for, which takes precedence; it does not concern attempts at once.
    """
    if verdict is RetryVerdict.AT_ONCE:
        ready = balancer.ready_count
        if is_another_ready or not ready:
            return 0.0
        # "At once" is about the next endpoint. If only failed ones are left, all attempts would be used up in no time,
        # perhaps before the end of a connection is noticed.
        return backoff.wait(max(failures // ready - 1, 0), random)
    if pushback is not None:
        return max(pushback, 0.0)
    if is_throttled:
        return backoff.longest(random)
    quorum = len(balancer.endpoints) // 2 + 1
    return 0.0 if failures % quorum else backoff.wait(failures // quorum - 1, random)


class StreamFailures:
    """The failures of one supervised stream since the last reply.

    Args:
        balancer: knows which endpoints there are, and which are connected.
        backoff: the series of waits.
        random: returns a number in [0, 1).

    Attributes:
        no_token: why there is no token to open a stream with; None if there is one, or none is needed.
    """

    def __init__(self, balancer: Balancer, backoff: Backoff, random: Callable[[], float]) -> None:
        self._balancer = balancer
        self._backoff = backoff
        self._random = random
        self._avoided: tuple[SubConnection, ...] = ()
        self._paused: dict[SubConnection, float] = {}  # members that asked for a pause, with its end
        self._count = 0
        self._is_another_ready = False  # after the last failure
        self._short_lives = 0
        self._renewals = 0
        self._errors: dict[str, EtcdError] = {}
        self.no_token: EtcdError | None = None

    def on_reply(self) -> None:
        """The server serves the stream."""
        self._avoided = ()
        self._count = 0
        self._renewals = 0
        self._errors.clear()
        self.no_token = None

    def on_put_off(self) -> None:
        """The server rejected one request, so it serves the others; its stream did not end early for another reason."""
        self.on_reply()
        self._short_lives = 0

    def on_failure(
        self, sub_connection: SubConnection, error: EtcdError, now: float, *, pushback: float | None = None
    ) -> None:
        """A stream ended although it is needed, or could not be opened.

        Args:
            sub_connection: where.
            error: why.
            now: the instant.
            pushback: seconds of the pause that the server asks for; negative for "do not retry".
        """
        self._count += 1
        self._errors[sub_connection.endpoint_name] = error
        if pushback is not None:
            # "Do not retry" cannot be obeyed if there is no other member.
            seconds = self._backoff.longest(self._random) if pushback < 0 else min(pushback, _LONGEST_PUSHBACK)
            self._paused[sub_connection] = now + seconds
        self._avoided, self._is_another_ready = next_avoided(
            self._avoided, sub_connection, self._balancer, self._paused_at(now)
        )

    def avoid(self, now: float) -> tuple[SubConnection, ...]:
        """Return where the next stream should not be opened, if there is another member."""
        paused = self._paused_at(now)
        avoid = (*self._avoided, *paused)
        return avoid if self._balancer.has_other(avoid) else paused or avoid

    def paused_until(self, now: float) -> float | None:
        """Return when the next member may be tried, if every connected one has asked for a pause; else None."""
        paused = self._paused_at(now)
        if not self._balancer.ready_count or self._balancer.has_other(paused):
            return None
        return min(self._paused.values())

    def _paused_at(self, now: float) -> tuple[SubConnection, ...]:
        if self._paused:
            self._paused = {member: until for member, until in self._paused.items() if until > now}
        return tuple(self._paused)

    def is_everywhere(self, kind: type[EtcdError]) -> bool:
        """Whether the last stream on every endpoint ended with this kind of error."""
        return all(isinstance(self._errors.get(endpoint.name), kind) for endpoint in self._balancer.endpoints)

    def on_served_for(self, seconds: float) -> None:
        """A stream that had a reply ended after so many seconds."""
        self._short_lives = self._short_lives + 1 if seconds < _SHORT_LIFE else 0

    def wait(self, verdict: RetryVerdict) -> float:
        """Return the seconds to wait before the next stream."""
        endpoints = len(self._balancer.endpoints)
        if self._short_lives > endpoints:
            return self._backoff.wait(self._short_lives - endpoints - 1, self._random)
        return seconds_before_next(
            verdict,
            self._count,
            self._balancer,
            self._backoff,
            self._random,
            is_another_ready=self._is_another_ready,
        )

    @property
    def may_renew_token(self) -> bool:
        """Whether a refused token is worth a new one."""
        return self._renewals < _MOST_RENEWALS

    def on_renewal(self) -> float:
        """The refused token was renewed; returns the seconds to wait before the next stream.

        A new token may be refused as well: by a member that lags behind, or because users were changed again.
        """
        self._renewals += 1
        return self._backoff.wait(self._renewals - 2, self._random) if self._renewals > 1 else 0.0

    def wait_for_token(self) -> float:
        """Return the seconds to wait before the next attempt to get a token."""
        return self._backoff.longest(self._random)

    def outage_error(self) -> NoAvailableEndpointsError:
        """Return the error that says, for each endpoint, why there is no stream on it."""
        errors: dict[str, BaseException] = {}
        for member in self._balancer.statistics():
            if member.state is ConnectivityState.READY:
                last = self._errors.get(member.endpoint) or self.no_token
                errors[member.endpoint] = last or ConnectError("connected, but no stream was opened on it yet")
            else:
                errors[member.endpoint] = member.last_error or ConnectError("connecting was not finished in time")
        return NoAvailableEndpointsError(errors=errors)
