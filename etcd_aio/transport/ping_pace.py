"""Longer intervals between pings, for endpoints whose servers complained of too many.

A gRPC server or proxy that gets more pings than its policy allows ends the connection with GOAWAY, ENHANCE_YOUR_CALM
and "too_many_pings" (gRPC A8), without its limit. So all ping intervals are doubled for that endpoint, for as long as
the client lives: the next connection would be ended for the same reason.
"""

import logging
from typing import Final

from etcd_aio.base.logs import log_of
from etcd_aio.transport.interface import Target

logger = logging.getLogger("etcd_aio.transport")

SLOWEST: Final = 64  # times slower: from 10 s to 11 minutes; the strictest policy in use is 5 minutes
_REASON: Final = "ENHANCE_YOUR_CALM (too_many_pings)"


class PingPace:
    """The ping intervals of one engine's endpoints.

    Args:
        client: name of the client, for logs; empty if it has none.
    """

    def __init__(self, client: str = "") -> None:
        self._log = log_of(logger, client)
        self._factors: dict[tuple[str, int, str], int] = {}

    def factor(self, target: Target) -> int:
        """The factor for the time between pings."""
        return self._factors.get(target.place, 1)

    def went_away(self, target: Target, reason: str) -> None:
        """The endpoint sent GOAWAY, for this reason, which may be another."""
        if _REASON not in reason:
            return
        factor = min(2 * self.factor(target), SLOWEST)
        is_first = target.place not in self._factors
        self._factors[target.place] = factor
        if is_first:
            self._log.warning(
                "%s closed the connection because of too many keepalive pings: they are now sent half as often; "
                "a larger keepalive_time avoids this",
                target.authority,
            )
        else:
            self._log.debug(
                "%s still gets too many keepalive pings: the time between them is now %d times as long",
                target.authority,
                factor,
            )
