"""balancer/connection_set.py: what each policy keeps connected, when it switches, and what calls demand."""

from collections.abc import Callable
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.balancer.connection_set import (
    DEMAND_SECONDS,
    ConnectionSet,
    EndpointState,
    Keep,
    keep_all,
    keep_first,
    keep_random,
)
from etcd_aio.base.backoff import Backoff

UNUSED, CONNECTING, HEALTHY, DOUBTED, UNHEALTHY, FAILED = EndpointState
BACKOFF = Backoff(initial=1.0, multiplier=2.0, maximum=4.0, jitter=0.0)


def zero() -> float:
    return 0.0


def three(one: EndpointState, two: EndpointState, three: EndpointState) -> dict[str, EndpointState]:
    return {"m1": one, "m2": two, "m3": three}


@pytest.mark.parametrize("state", list(EndpointState))
def test_most_policies_keep_every_endpoint(state: EndpointState) -> None:
    assert keep_all(three(state, HEALTHY, state), zero) == ("m1", "m2", "m3")


@pytest.mark.parametrize(
    ("states", "kept"),
    [
        (three(UNUSED, UNUSED, UNUSED), ("m1", "m2", "m3")),
        (three(CONNECTING, CONNECTING, FAILED), ("m1", "m2", "m3")),
        (three(CONNECTING, HEALTHY, CONNECTING), ("m2",)),
        (three(CONNECTING, HEALTHY, HEALTHY), ("m2",)),
        (three(UNUSED, FAILED, UNUSED), ("m1", "m2", "m3")),
        (three(UNUSED, UNHEALTHY, UNUSED), ("m1", "m2", "m3")),
        (three(FAILED, UNHEALTHY, CONNECTING), ("m1", "m2", "m3")),
        (three(HEALTHY, UNHEALTHY, CONNECTING), ("m1",)),
        (three(CONNECTING, UNUSED, HEALTHY), ("m3",)),
        (three(UNHEALTHY, UNHEALTHY, UNHEALTHY), ("m1", "m2", "m3")),
        # A doubted one stays until it is known whether it is worse than another one.
        (three(UNUSED, DOUBTED, UNUSED), ("m1", "m2")),
        (three(FAILED, DOUBTED, UNUSED), ("m3", "m2")),
        (three(UNUSED, DOUBTED, CONNECTING), ("m3", "m2")),
        (three(UNUSED, DOUBTED, HEALTHY), ("m3", "m2")),
        (three(DOUBTED, DOUBTED, UNUSED), ("m3", "m1", "m2")),
        (three(DOUBTED, DOUBTED, DOUBTED), ("m1", "m2", "m3")),
        (three(UNHEALTHY, DOUBTED, UNUSED), ("m3", "m2", "m1")),
        ({"m1": DOUBTED}, ("m1",)),
    ],
)
def test_pinned_keeps_the_first_that_is_connected(states: dict[str, EndpointState], kept: tuple[str, ...]) -> None:
    assert keep_first(states, zero) == kept


@pytest.mark.parametrize(
    ("states", "chance", "kept"),
    [
        (three(UNUSED, UNUSED, UNUSED), 0.0, ["m1"]),
        (three(UNUSED, UNUSED, UNUSED), 0.99, ["m3"]),
        (three(UNUSED, CONNECTING, UNUSED), 0.0, ["m2"]),
        (three(UNUSED, HEALTHY, UNUSED), 0.0, ["m2"]),
        (three(FAILED, UNUSED, UNUSED), 0.0, ["m2"]),
        # An unhealthy one stays until another one is healthy.
        (three(UNUSED, UNHEALTHY, UNUSED), 0.99, ["m3", "m2"]),
        (three(UNUSED, UNHEALTHY, CONNECTING), 0.0, ["m3", "m2"]),
        (three(UNUSED, UNHEALTHY, FAILED), 0.0, ["m1", "m2"]),
        (three(FAILED, UNHEALTHY, FAILED), 0.99, ["m3", "m2"]),
        (three(HEALTHY, UNHEALTHY, UNUSED), 0.99, ["m1"]),
        (three(UNHEALTHY, UNHEALTHY, UNHEALTHY), 0.99, ["m1", "m2", "m3"]),
        (three(UNUSED, DOUBTED, UNUSED), 0.99, ["m3", "m2"]),
        (three(UNUSED, DOUBTED, HEALTHY), 0.0, ["m3", "m2"]),
        (three(DOUBTED, DOUBTED, DOUBTED), 0.0, ["m1", "m2", "m3"]),
        ({"m1": FAILED}, 0.5, ["m1"]),
        ({"m1": UNHEALTHY}, 0.5, ["m1"]),
    ],
)
def test_random_pinned_keeps_one_and_draws_another_when_it_fails(
    states: dict[str, EndpointState], chance: float, kept: list[str]
) -> None:
    assert keep_random(states, lambda: chance) == tuple(kept)


@pytest.mark.parametrize("keep", [keep_first, keep_random])
def test_a_doubt_that_proves_wrong_moves_nothing(keep: Keep) -> None:
    connections = ConnectionSet(keep, BACKOFF, zero)
    assert connections.choose(three(CONNECTING, HEALTHY, UNUSED), (), 100.0) == {"m2"}
    assert connections.choose(three(UNUSED, DOUBTED, UNUSED), (), 110.0) == {"m1", "m2"}
    assert connections.choose(three(HEALTHY, DOUBTED, UNUSED), (), 110.1) == {"m1", "m2"}
    assert connections.choose(three(HEALTHY, HEALTHY, UNUSED), (), 111.0) == {"m2"}, "which comes second"


@pytest.mark.parametrize("keep", [keep_first, keep_random])
def test_a_doubt_that_proves_right_moves_to_the_other(keep: Keep) -> None:
    connections = ConnectionSet(keep, BACKOFF, zero)
    assert connections.choose(three(UNUSED, HEALTHY, UNUSED), (), 100.0) == {"m2"}
    assert connections.choose(three(HEALTHY, DOUBTED, UNUSED), (), 110.1) == {"m1", "m2"}
    assert connections.choose(three(HEALTHY, UNHEALTHY, UNUSED), (), 110.2) == {"m1"}
    assert connections.choose(three(HEALTHY, HEALTHY, UNUSED), (), 110.3) == {"m1"}


def test_switching_has_a_backoff_once_every_endpoint_was_tried() -> None:
    connections = ConnectionSet(keep_random, BACKOFF, zero)
    now, kept = 100.0, ""
    switched: list[float] = []
    while len(switched) < 8:
        states = {name: FAILED if name == kept else UNUSED for name in ("m1", "m2", "m3")}
        [chosen] = connections.choose(states, (), now)
        if chosen != kept:
            kept = chosen
            switched.append(now)
        else:
            assert now < connections.choose_again_at < inf
            now = connections.choose_again_at
    gaps = [later - earlier for earlier, later in pairwise(switched)]
    assert gaps == [0.0, 0.0, 1.0, 2.0, 4.0, 4.0, 4.0]


@pytest.mark.parametrize(("healthy_for", "gaps"), [(0.25, [0.25, 0.25, 1.0, 2.0, 4.0, 4.0]), (1.0, [1.0] * 6)])
def test_only_a_success_that_lasts_ends_the_backoff(healthy_for: float, gaps: list[float]) -> None:
    connections = ConnectionSet(keep_random, BACKOFF, zero)
    now, kept = 100.0, ""
    switched: list[float] = []
    while len(switched) < len(gaps) + 1:
        [chosen] = connections.choose(
            {name: FAILED if name == kept else UNUSED for name in ("m1", "m2", "m3")}, (), now
        )
        if chosen != kept:
            kept = chosen
            switched.append(now)
            connections.choose({name: HEALTHY if name == kept else UNUSED for name in ("m1", "m2", "m3")}, (), now)
            now += healthy_for
        else:
            assert now < connections.choose_again_at < inf
            now = connections.choose_again_at
    assert [later - earlier for earlier, later in pairwise(switched)] == gaps


def test_success_and_new_endpoints_end_the_backoff() -> None:
    connections = ConnectionSet(keep_random, BACKOFF, zero)
    one = {"m1": FAILED}
    for _ in range(5):
        connections.choose(one, (), 100.0)
    assert connections.choose({"m1": FAILED, "m2": UNUSED}, (), 100.0) == {"m2"}
    assert connections.choose({"m1": UNUSED, "m2": HEALTHY}, (), 100.0) == {"m2"}
    assert connections.choose_again_at == inf


@given(
    st.sampled_from([keep_all, keep_first, keep_random]),
    st.lists(st.lists(st.sampled_from(EndpointState), min_size=1, max_size=5), max_size=30),
    st.floats(0, 0.999),
)
def test_some_endpoint_is_always_kept_and_no_unknown_one(
    keep: Callable[..., tuple[str, ...]], history: list[list[EndpointState]], chance: float
) -> None:
    connections = ConnectionSet(keep, BACKOFF, lambda: chance)
    for now, row in enumerate(history):
        states = {f"m{number}": state for number, state in enumerate(row)}
        wanted = connections.choose(states, (), float(now))
        assert wanted
        assert set(wanted) <= set(states)
        assert connections.choose_again_at > now


def test_a_demanded_endpoint_is_connected_until_some_time_after_its_last_attempt() -> None:
    connections = ConnectionSet(keep_first, BACKOFF, zero)
    states = {"m1": HEALTHY, "m2": UNUSED}
    assert connections.choose(states, (), 100.0) == {"m1"}
    connections.demand("m2", 100.0)
    assert connections.is_demanded("m2")
    assert connections.choose(states, (), 101.0) == {"m1", "m2"}
    assert connections.choose_again_at == 100.0 + DEMAND_SECONDS
    assert connections.choose(states, ["m2"], 129.0) == {"m1", "m2"}
    assert connections.choose_again_at == 134.0, "whether it is still busy"
    assert connections.choose(states, (), 158.0) == {"m1", "m2"}
    assert connections.choose(states, (), 129.0 + DEMAND_SECONDS) == {"m1"}
    assert not connections.is_demanded("m2")
    assert connections.choose_again_at == inf
