"""The fake beside real servers of every supported minor version: the same requests get the same answers."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack

import pytest
from hypothesis import given

from etcd_aio.testing import find_etcd
from tests.support.differential import Pair, Step, pair_of
from tests.support.differential_auth import CallOf, calls, play_auth, setups
from tests.support.differential_watch import play_watches
from tests.support.drawn_requests import histories, watch_histories
from tests.support.tiers import nightly_examples
from tests.support.versions import need_beside

VERSIONS = ("3.4.25", "3.5.35", "3.6.16", "3.7.3")
OLD = VERSIONS[:2]
NEW = VERSIONS[2:]

Pairs = Callable[[str], "Players"]


class Players:
    """Plays steps on a pair of servers."""

    def __init__(self, runner: asyncio.Runner, pair: Pair) -> None:
        self._runner = runner
        self._pair = pair

    def keys(self, drawn: Sequence[Step]) -> None:
        self._runner.run(self._pair.play(drawn))

    def users(self, setup: Sequence[Step], made: Sequence[CallOf]) -> None:
        self._runner.run(play_auth(self._pair, setup, made))

    def watches(self, drawn: Sequence[Step]) -> None:
        self._runner.run(play_watches(self._pair, drawn))


@pytest.fixture(scope="module")
def pairs() -> Iterator[Pairs]:
    """The pair of servers of a version, which is started when it is first asked for."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        started: dict[str, Pair] = {}

        def of(version: str) -> Players:
            need_beside(version)
            if version not in started:
                started[version] = runner.run(stack.enter_async_context(pair_of(version)))
            return Players(runner, started[version])

        yield of
        runner.run(stack.aclose())


@pytest.mark.parametrize("version", OLD)
@nightly_examples(5000, default=60)
@given(drawn=histories(has_odd_numbers=False))
def test_keys_and_leases_of_old_releases(version: str, drawn: list[Step], pairs: Pairs) -> None:
    pairs(version).keys(drawn)


@pytest.mark.parametrize("version", NEW)
@nightly_examples(5000, default=60)
@given(drawn=histories(has_odd_numbers=True))
def test_keys_and_leases_of_new_releases(version: str, drawn: list[Step], pairs: Pairs) -> None:
    pairs(version).keys(drawn)


@pytest.mark.parametrize("version", VERSIONS[:1])
@nightly_examples(1000, default=25)
@given(drawn=watch_histories(has_negative_revisions=False))
def test_watches_of_the_oldest_release(version: str, drawn: list[Step], pairs: Pairs) -> None:
    pairs(version).watches(drawn)


@pytest.mark.parametrize("version", VERSIONS[1:])
@nightly_examples(1000, default=25)
@given(drawn=watch_histories(has_negative_revisions=True))
def test_watches(version: str, drawn: list[Step], pairs: Pairs) -> None:
    pairs(version).watches(drawn)


@pytest.mark.parametrize("version", VERSIONS)
@nightly_examples(1000, default=15)
@given(setup=setups, made=calls)
def test_users(version: str, setup: list[Step], made: list[CallOf], pairs: Pairs) -> None:
    pairs(version).users(setup, made)


def test_the_fake_is_compared_with_what_users_run() -> None:
    assert find_etcd().version.startswith(tuple(version.rpartition(".")[0] for version in VERSIONS))
