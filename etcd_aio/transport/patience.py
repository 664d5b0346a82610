"""Patience: for how long a peer that was reached may be silent before its dial is given up. Pure.

A member that is busy, because a whole fleet dials it, or because it hashes passwords, answers late. A client that gives
up and dials again throws the member's work away and asks for more of it, so a wave that takes longer than the timeout
would never end. So after each timeout the next dials wait twice as long. Every answer shows how much is enough.

Only a peer that was reached gets more time: its machine has accepted the connection, and a process that goes on after a
pause answers on it at once, so the wait costs nothing. A machine that does not even accept connections is dialled anew
as often as ever, since a network that works again is found by the next dial.
"""

from collections.abc import Callable, Hashable
from typing import Final

LONGEST: Final = 20.0
"""Seconds beyond which patience does not grow. A `connect_timeout` that is longer holds."""

_JITTER: Final = 0.2  # so that those that give up together do not dial together
_ENOUGH: Final = 2.0  # times what an answer took
_USUAL: Final = 1.0  # seconds; a peer that needs less is not known
_MOST_PEERS: Final = 1000


class Patience:
    """The waits for each peer that did not answer in time."""

    def __init__(self) -> None:
        self._seconds: dict[Hashable, float] = {}

    def of(self, peer: Hashable, least: float, random: Callable[[], float]) -> float:
        """Return how many seconds to wait for the peer's answer.

        Args:
            peer: whose.
            least: what the user asks for, in seconds.
            random: returns a number in [0, 1), for jitter.
        """
        seconds = self._seconds.get(peer, 0.0)
        return seconds * (1 + _JITTER * random()) if seconds > least else least

    def timed_out(self, peer: Hashable, seconds: float) -> None:
        """Note that a peer did not answer within these seconds. It counts once for all that waited as long."""
        grown = min(2 * seconds, LONGEST)
        if grown > self._seconds.get(peer, 0.0):
            if len(self._seconds) >= _MOST_PEERS:
                self._seconds.clear()  # it is learnt again
            self._seconds[peer] = grown

    def answered(self, peer: Hashable, seconds: float = 0.0) -> None:
        """Note that a peer answered, perhaps by a refusal, after these seconds."""
        known = self._seconds.pop(peer, 0.0)
        if known and _ENOUGH * seconds >= _USUAL:
            self._seconds[peer] = min(known, _ENOUGH * seconds)
