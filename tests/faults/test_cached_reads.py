"""Cached and direct reads together, in short: linearizable, and the defect of trusting early marks is seen."""

import random

import pytest

from etcd_aio.cache.state import Replica
from tests.faults import cached_reads
from tests.faults.cached_reads import Run

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


async def test_reads_under_faults_are_linearizable(run_seed: int) -> None:
    run = await cached_reads.under_faults(Run(8_000, random.Random(run_seed)), clients=2, readers=20)
    assert run.violations == []
    assert run.totals["cached read"] > 1_000
    assert run.totals["direct read"] > 100
    assert len(run.looks) > 10
    assert run.faults


@pytest.mark.parametrize("is_sabotaged", [False, True])
async def test_early_marks_of_an_old_release(
    is_sabotaged: bool, run_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Replica, "mark", Replica.mark)  # restores it
    if is_sabotaged:
        cached_reads.trust_early_marks()
    run = await cached_reads.on_an_old_release(Run(1_500, random.Random(run_seed)))
    assert run.totals["early marks"] > 0
    assert bool(run.violations) is is_sabotaged, run.violations[:3]
    assert bool(run.totals["validations"]) is not is_sabotaged
