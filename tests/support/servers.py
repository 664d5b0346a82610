"""How the real servers of tests are started."""

from typing import Final, TypedDict

from tests.support.versions import is_at_least


class _Elections(TypedDict):
    heartbeat_ms: int
    election_ms: int


# A leader is elected five times as fast as by default. Not where the subject is etcd's own second, or the shortest
# lease that it grants, which follows from it.
QUICK_ELECTIONS: Final[_Elections] = {"heartbeat_ms": 20, "election_ms": 200}

# A leader stays the leader though a process stands still for seconds: for tests of what it alone does. The first
# election of a cluster is quick all the same.
STEADY_LEADER: Final[_Elections] = {"heartbeat_ms": 100, "election_ms": 5000}


def progress_interval(milliseconds: int) -> str:
    """The flag by which a server tells so often how far its watches are."""
    word = "" if is_at_least("3.6") else "experimental-"
    return f"--{word}watch-progress-notify-interval={milliseconds}ms"
