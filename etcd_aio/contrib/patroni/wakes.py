"""Wakes: which changes in etcd are a reason to run Patroni's loop at once. Pure.

A loop writes the member of its node, and that of the primary the status. Were each such write a reason, the nodes would
wake each other without an end. So a member counts when it comes, goes, or changes its state or role, and what the
primary writes counts for the others.
"""

import json
from collections.abc import Mapping
from typing import Final

_ALWAYS: Final = ("leader", "failover", "config")
_UNLESS_LEADER: Final = ("sync", "status", "optime/leader")
_MEMBERS: Final = "members/"


def wakes(changed: Mapping[str, str | None], before: Mapping[str, str], name: str) -> bool:
    """Whether a change is such a reason.

    Args:
        changed: the keys below that of the cluster, with their values; None is a key that is gone.
        before: the values before.
        name: of this node.
    """
    leader = changed["leader"] if "leader" in changed else before.get("leader")
    for key, value in changed.items():
        old = before.get(key)
        if value == old:
            continue
        if key in _ALWAYS or (key in _UNLESS_LEADER and leader != name):
            return True
        if key.startswith(_MEMBERS) and key != _MEMBERS + name and _state(value) != _state(old):
            return True
    return False


def _state(member: str | None) -> object:
    """The part of a member that counts."""
    try:
        found = json.loads(member or "null")
    except (ValueError, RecursionError):
        return member
    return (found.get("state"), found.get("role")) if isinstance(found, dict) else found
