"""Keeping: what each policy keeps connected, when it switches, and how often."""

from collections.abc import Callable
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.backoff import Backoff
from etcd_aio.balancer.connection_set import Keeper, Standing, keep_all, keep_first, keep_random

UNUSED, TRYING, GOOD, FAILED, BAD = Standing
BACKOFF = Backoff(initial=1.0, multiplier=2.0, maximum=4.0, jitter=0.0)


def zero() -> float:
    return 0.0


def three(one: Standing, two: Standing, three: Standing) -> dict[str, Standing]:
    return {"m1": one, "m2": two, "m3": three}


@pytest.mark.parametrize("standing", list(Standing))
def test_most_policies_keep_every_endpoint(standing: Standing) -> None:
    assert keep_all(three(standing, GOOD, standing), zero) == ("m1", "m2", "m3")


@pytest.mark.parametrize(
    ("standings", "kept"),
    [
        (three(UNUSED, UNUSED, UNUSED), ("m1", "m2", "m3")),
        (three(TRYING, TRYING, FAILED), ("m1", "m2", "m3")),
        (three(TRYING, GOOD, TRYING), ("m2",)),
        (three(TRYING, GOOD, GOOD), ("m2",)),
        (three(UNUSED, FAILED, UNUSED), ("m1", "m2", "m3")),
        (three(UNUSED, BAD, UNUSED), ("m1", "m3")),
        (three(TRYING, UNUSED, GOOD), ("m3",)),
        (three(BAD, BAD, BAD), ("m1", "m2", "m3")),
    ],
)
def test_pinned_keeps_the_first_that_is_connected(standings: dict[str, Standing], kept: tuple[str, ...]) -> None:
    assert keep_first(standings, zero) == kept


@pytest.mark.parametrize(
    ("standings", "chance", "kept"),
    [
        (three(UNUSED, UNUSED, UNUSED), 0.0, "m1"),
        (three(UNUSED, UNUSED, UNUSED), 0.99, "m3"),
        (three(UNUSED, TRYING, UNUSED), 0.0, "m2"),
        (three(UNUSED, GOOD, UNUSED), 0.0, "m2"),
        (three(FAILED, UNUSED, UNUSED), 0.0, "m2"),
        (three(UNUSED, BAD, UNUSED), 0.99, "m3"),
        ({"m1": FAILED}, 0.5, "m1"),
    ],
)
def test_random_pinned_keeps_one_and_draws_another_when_it_fails(
    standings: dict[str, Standing], chance: float, kept: str
) -> None:
    assert keep_random(standings, lambda: chance) == (kept,)


def test_switching_has_a_backoff_once_every_endpoint_had_its_turn() -> None:
    keeper = Keeper(keep_random, BACKOFF, zero)
    now, kept = 100.0, ""
    switched: list[float] = []
    while len(switched) < 8:
        [chosen] = keeper.wanted({name: FAILED if name == kept else UNUSED for name in ("m1", "m2", "m3")}, now)
        if chosen != kept:
            kept = chosen
            switched.append(now)
        else:
            assert now < keeper.ask_again < inf
            now = keeper.ask_again
    gaps = [later - earlier for earlier, later in pairwise(switched)]
    assert gaps == [0.0, 0.0, 1.0, 2.0, 4.0, 4.0, 4.0]


def test_success_and_new_endpoints_end_the_backoff() -> None:
    keeper = Keeper(keep_random, BACKOFF, zero)
    one = {"m1": FAILED}
    for _ in range(5):
        keeper.wanted(one, 100.0)
    assert keeper.wanted({"m1": FAILED, "m2": UNUSED}, 100.0) == ("m2",)
    assert keeper.wanted({"m1": UNUSED, "m2": GOOD}, 100.0) == ("m2",)
    assert keeper.ask_again == inf


@given(
    st.sampled_from([keep_all, keep_first, keep_random]),
    st.lists(st.lists(st.sampled_from(Standing), min_size=1, max_size=5), max_size=30),
    st.floats(0, 0.999),
)
def test_something_is_always_kept_and_never_a_stranger(
    keep: Callable[..., tuple[str, ...]], history: list[list[Standing]], chance: float
) -> None:
    keeper = Keeper(keep, BACKOFF, lambda: chance)
    for now, row in enumerate(history):
        standings = {f"m{number}": standing for number, standing in enumerate(row)}
        wanted = keeper.wanted(standings, float(now))
        assert wanted
        assert set(wanted) <= set(standings)
        assert keeper.ask_again > now
