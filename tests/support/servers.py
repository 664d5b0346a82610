"""How the real servers of tests are started."""

from typing import Final, TypedDict


class _Elections(TypedDict):
    heartbeat_ms: int
    election_ms: int


# A leader is elected five times as fast as by default. Not where the subject is etcd's own second, or the shortest
# lease that it grants, which follows from it.
QUICK_ELECTIONS: Final[_Elections] = {"heartbeat_ms": 20, "election_ms": 200}
