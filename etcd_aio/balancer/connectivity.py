"""The connectivity states of a sub-connection, and the transitions between them.

Every allowed transition is in the table. Any other transition is a defect and raises an error.

    IDLE ──► CONNECTING ──► READY ──► IDLE          lost or draining: dialled again, at once or after its backoff
                 │  ▲
                 ▼  │
          TRANSIENT_FAILURE                          the dial failed; its backoff runs
    any ──► SHUTDOWN                                 removed, or the client closed; final
"""

from collections.abc import Mapping
from typing import Final

from etcd_aio.types import ConnectivityState

_S = ConnectivityState

TRANSITIONS: Final[Mapping[ConnectivityState, frozenset[ConnectivityState]]] = {
    _S.IDLE: frozenset({_S.CONNECTING, _S.SHUTDOWN}),
    _S.CONNECTING: frozenset({_S.READY, _S.TRANSIENT_FAILURE, _S.SHUTDOWN}),
    _S.READY: frozenset({_S.IDLE, _S.SHUTDOWN}),
    _S.TRANSIENT_FAILURE: frozenset({_S.CONNECTING, _S.SHUTDOWN}),
    _S.SHUTDOWN: frozenset(),
}


def check_transition(old: ConnectivityState, new: ConnectivityState) -> None:
    """Raise RuntimeError if the table does not allow this transition."""
    if new not in TRANSITIONS[old]:
        raise RuntimeError(f"a sub-connection cannot go from {old.name} to {new.name}")
