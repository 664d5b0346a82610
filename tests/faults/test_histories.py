"""A short run under faults keeps every rule, and each defect of `sabotage.py` breaks one; see `nox -s faults`."""

from pathlib import Path

import pytest

from tests.faults import sabotage
from tests.faults.run import Options, Run

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.slow]

LOCKS = ("lock",)
ELECTIONS = ("election",)

# What catches each of them soon: the parts, the faults, the part of late mutations, and the rules that it can break.
CATCHES: dict[str, tuple[tuple[str, ...], tuple[str, ...], float, set[str]]] = {
    "release-without-guard": (LOCKS, (), 0.3, {"bodies overlap", "entered before its turn"}),
    "no-own-key-check": (LOCKS, ("delete-key",), 0.0, {"owned nothing"}),
    "get-then-watch": (LOCKS, (), 0.0, {"waits for ever"}),
    "get-then-watch-an-old-revision": (LOCKS, ("compact",), 0.0, {"unexpected error"}),
    "lease-returned-dirty": (LOCKS, (), 0.3, {"left over", "waits for ever"}),
    "queue-jumped": (LOCKS, (), 0.0, {"entered before its turn"}),
    "fence-without-guard": (LOCKS, ("delete-key",), 0.3, {"fenced write without the key"}),
    "no-cancellation": (LOCKS, ("revoke-lease", "delete-key"), 0.0, {"bodies overlap"}),
    "local-deadline-too-late": (LOCKS, ("cut-off-client",), 0.0, {"bodies overlap"}),
    "stale-proclamation": (ELECTIONS, (), 0.5, {"an older proclamation came back"}),
    "youngest-observed": (ELECTIONS, (), 0.0, {"observed wrongly"}),
    "changes-swallowed": (ELECTIONS, ("freeze-member",), 0.0, {"observed wrongly"}),
}


async def test_a_short_run_keeps_every_rule(tmp_path: Path) -> None:
    verdict = await Run(Options(15.0, "1", workers=2, ttl=3, parts=("lock", "election")), tmp_path).go()
    assert list(verdict.violations) == []
    assert all(verdict.owned.values()), verdict.owned
    assert verdict.faults


def test_every_sabotage_is_tested() -> None:
    assert CATCHES.keys() == sabotage.ALL.keys()


@pytest.mark.nightly
@pytest.mark.parametrize("name", CATCHES)
async def test_a_defect_is_caught(name: str, tmp_path: Path) -> None:
    parts, faults, late, rules = CATCHES[name]
    options = Options(10.0, "1", 2, 3, parts, faults, late=late, patience=15.0, sabotage=name)
    verdict = await Run(options, tmp_path).go()
    assert rules & {violation.rule for violation in verdict.violations}
