"""The schedule of dials beside a connection, while no connected member serves. Pure.

Knows: since when nothing was served. Never knows: connections, or whether the endpoint leads to one member or to many.

Behind one address may be several members: a load balancer, the service of a Kubernetes cluster, a name with several
addresses. If the member behind the connection is cut off from the others, only another connection helps.

    nothing served    dials
    --------------    -------------------------------------------------------------------------------------------
    for a moment      none: an election ends by itself, and a dial would come at the worst of times
    for `PATIENCE`    one; then more, at distances that grow to half a minute, since a balancer may choose the same
                      member again, and a cluster without a quorum has no better one
    no longer         none; the distances start anew only after calm
"""

from collections.abc import Callable
from math import inf
from typing import Final

from etcd_aio.base.backoff import Backoff, jittered

PATIENCE: Final = 2.5
"""Seconds for which nothing is served before the first dial: longer than etcd's elections, which take one or two."""

REDIAL_BACKOFF: Final = Backoff(initial=0.5, multiplier=2.0, maximum=30.0, jitter=0.2)
"""Distances between the dials. The first are short, since a balancer of three may well choose the same member twice."""

CALM: Final = 30.0
"""Seconds of service after which the distances start from the shortest again."""

_JITTER: Final = 0.2  # of the patience: the clients of a fleet lose the same member in the same moment


class RedialSchedule:
    """The schedule of one client, for all its endpoints.

    Args:
        random: returns a number in [0, 1).

    Attributes:
        dials: how many were due, without calm in between.
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self.dials = 0
        self._random = random
        self._since = inf  # the outage that was seen last
        self._seen_at = -inf  # when it was
        self._due = inf
        self._not_before = -inf

    def is_due(self, unserved_since: float, now: float) -> bool:
        """Whether a dial is due; if so, the next one is due later.

        Args:
            unserved_since: the instant since when nothing was served; infinity if that is not so.
            now: the instant.
        """
        if unserved_since == inf:
            return False
        if unserved_since - self._seen_at >= CALM:
            self.dials, self._not_before = 0, -inf
        if unserved_since != self._since:
            self._since = unserved_since
            self._due = unserved_since + jittered(PATIENCE, _JITTER, self._random)
        self._seen_at = now
        if now < max(self._due, self._not_before):
            return False
        self._not_before = now + REDIAL_BACKOFF.wait(self.dials, self._random)
        self.dials += 1
        return True
