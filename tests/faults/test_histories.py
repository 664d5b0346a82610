"""A short run under faults keeps every rule, and each defect of `sabotage.py` breaks one; see `nox -s faults`."""

import asyncio
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults import sabotage
from tests.faults.ownership import RULES
from tests.faults.run import Options, Run

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.slow]

LOCKS = ("lock",)
ELECTIONS = ("election",)


class Catch(NamedTuple):
    """What catches a defect soon: the parts, the faults, and the rules that it can break; see `Options`."""

    parts: tuple[str, ...]
    faults: tuple[str, ...]
    rules: set[str]
    late: float = 0.0
    long: float = 0.0
    seconds: float = 20.0


CATCHES: dict[str, Catch] = {
    "release-without-guard": Catch(LOCKS, (), {"bodies overlap", "entered before its turn"}, late=0.3),
    "no-own-key-check": Catch(LOCKS, ("delete-key",), {"owned nothing"}),
    "get-then-watch": Catch(LOCKS, (), {"waits for ever"}),
    "get-then-watch-an-old-revision": Catch(LOCKS, ("compact",), {"unexpected error"}, long=0.2),
    "lease-returned-dirty": Catch(LOCKS, (), {"left over", "waits for ever"}, late=0.3),
    "queue-jumped": Catch(LOCKS, (), {"entered before its turn"}),
    "fence-without-guard": Catch(LOCKS, ("delete-key",), {"fenced write without the key"}, late=0.3),
    "no-cancellation": Catch(LOCKS, ("revoke-lease", "delete-key"), {"bodies overlap"}, long=0.2),
    "local-deadline-too-late": Catch(LOCKS, ("outlast-leases",), {"bodies overlap"}, long=0.5, seconds=60.0),
    "stale-proclamation": Catch(ELECTIONS, (), {"an older proclamation came back"}, late=0.3, long=0.3),
    "youngest-observed": Catch(ELECTIONS, (), {"observed wrongly"}),
    "changes-swallowed": Catch(ELECTIONS, ("cut-off-client",), {"observed wrongly"}),
}


async def test_a_short_run_keeps_every_rule(tmp_path: Path) -> None:
    verdict = await Run(Options(15.0, "1", workers=2, ttl=3, parts=tuple(RULES)), tmp_path).go()
    assert list(verdict.violations) == []
    assert all(verdict.owned.values()), verdict.owned
    assert verdict.faults


def test_every_sabotage_is_tested() -> None:
    assert CATCHES.keys() == sabotage.ALL.keys()


async def test_every_sabotage_still_fits() -> None:
    """What it replaces exists, and is called as the defect is; or a run would only show that the defect is broken."""
    program = "from tests.faults import sabotage; [break_it() for break_it in sabotage.ALL.values()]"
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    assert await child.wait() == 0


@pytest.mark.nightly
@pytest.mark.parametrize("name", CATCHES)
async def test_a_defect_is_caught(name: str, tmp_path: Path) -> None:
    catch = CATCHES[name]
    options = Options(
        catch.seconds, "1", 2, 3, catch.parts, catch.faults, None, catch.late, catch.long, 20.0, sabotage=name
    )
    verdict = await Run(options, tmp_path).go()
    assert catch.rules & {violation.rule for violation in verdict.violations}
