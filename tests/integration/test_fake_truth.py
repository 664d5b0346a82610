"""The fake beside real servers of every supported minor version: the same requests get the same answers."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack

import pytest
from hypothesis import given

from etcd_aio.testing import find_etcd
from tests.support.differential import Pair, Step, pair_of
from tests.support.drawn_requests import histories
from tests.support.tiers import nightly_examples
from tests.support.versions import need_beside

VERSIONS = ("3.4.25", "3.5.35", "3.6.16", "3.7.3")
OLD = VERSIONS[:2]
NEW = VERSIONS[2:]

Play = Callable[[Sequence[Step]], None]


@pytest.fixture(scope="module")
def pairs() -> Iterator[Callable[[str], Play]]:
    """Plays steps on a pair of servers of a version, which is started when it is first asked for."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        started: dict[str, Pair] = {}

        def of(version: str) -> Play:
            need_beside(version)
            if version not in started:
                started[version] = runner.run(stack.enter_async_context(pair_of(version)))
            return lambda drawn: runner.run(started[version].play(drawn))

        yield of
        runner.run(stack.aclose())


@pytest.mark.parametrize("version", OLD)
@nightly_examples(5000, default=60)
@given(drawn=histories(has_odd_numbers=False))
def test_keys_and_leases_of_old_releases(version: str, drawn: list[Step], pairs: Callable[[str], Play]) -> None:
    pairs(version)(drawn)


@pytest.mark.parametrize("version", NEW)
@nightly_examples(5000, default=60)
@given(drawn=histories(has_odd_numbers=True))
def test_keys_and_leases_of_new_releases(version: str, drawn: list[Step], pairs: Callable[[str], Play]) -> None:
    pairs(version)(drawn)


def test_the_fake_is_compared_with_what_users_run() -> None:
    assert find_etcd().version.startswith(tuple(version.rpartition(".")[0] for version in VERSIONS))
