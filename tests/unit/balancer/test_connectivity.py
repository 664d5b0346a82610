"""balancer/connectivity.py: the table has every state, and transitions that it does not have raise."""

from itertools import product

import pytest

from etcd_aio.balancer.connectivity import TRANSITIONS, check_transition
from etcd_aio.types import ConnectivityState

ALLOWED = {
    ("IDLE", "CONNECTING"),
    ("IDLE", "SHUTDOWN"),
    ("CONNECTING", "READY"),
    ("CONNECTING", "TRANSIENT_FAILURE"),
    ("CONNECTING", "SHUTDOWN"),
    ("READY", "IDLE"),
    ("READY", "SHUTDOWN"),
    ("TRANSIENT_FAILURE", "CONNECTING"),
    ("TRANSIENT_FAILURE", "SHUTDOWN"),
}


def test_the_table_has_a_row_for_every_state() -> None:
    assert set(TRANSITIONS) == set(ConnectivityState)


@pytest.mark.parametrize(("old", "new"), list(product(ConnectivityState, ConnectivityState)))
def test_every_transition_is_allowed_or_raises(old: ConnectivityState, new: ConnectivityState) -> None:
    if (old.name, new.name) in ALLOWED:
        check_transition(old, new)
    else:
        with pytest.raises(RuntimeError, match=f"from {old.name} to {new.name}"):
            check_transition(old, new)


def test_every_state_can_be_shut_down_and_nothing_follows_that() -> None:
    for state in ConnectivityState:
        assert (ConnectivityState.SHUTDOWN in TRANSITIONS[state]) == (state is not ConnectivityState.SHUTDOWN)
