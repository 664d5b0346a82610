"""Whether a run kept what is demanded."""

from dataclasses import replace

import pytest

from benchmarks.failover.account import Outage, Summary
from benchmarks.failover.faults import FAULTS, Demand, Fault
from benchmarks.failover.verdict import unmet

GOOD = Summary(
    calls=1000,
    errors={},
    maybe_applied=0,
    recovery=0.0,
    after_heal=0.0,
    last_error=None,
    last_error_end=None,
    over_slow=0,
    over_very_slow=0,
    slowest=0.01,
    median_before=0.002,
    p99_before=0.005,
    median_during=0.002,
    p99_during=0.005,
    missed=0,
    whole=0.01,
    first_success=0.1,
    cpu_during=0.05,
)
NO_OUTAGE = Outage(0.0, 0.0, None, None)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_run_in_which_nothing_happened_keeps_everything(fault: Fault) -> None:
    assert unmet(fault.gets, GOOD, NO_OUTAGE, 0.001) == []
    assert unmet(fault.puts, GOOD, NO_OUTAGE, 0.001) == []


def test_recovery_may_take_what_the_servers_take() -> None:
    slow = replace(GOOD, recovery=1.5)
    servers = Outage(all_members=1.35, target=1.6, up=None, served=None)
    assert unmet(Demand(recovery=0.5), slow, servers) == ["recovery 1.50 > 0.50"]
    assert unmet(Demand(recovery=0.2, beyond="outage"), slow, servers) == []
    assert unmet(Demand(recovery=0.1, beyond="outage"), slow, servers) == ["recovery 1.50 > 1.46"]
    assert unmet(Demand(recovery=0.1, beyond="detection"), slow, servers) == []


def test_errors_must_report_an_unknown_outcome() -> None:
    failing = replace(GOOD, errors={"EtcdTimeoutError": 3}, maybe_applied=2)
    assert unmet(Demand(), failing, NO_OUTAGE) == ["3 errors"]
    assert unmet(Demand(errors="maybe"), failing, NO_OUTAGE) == ["1 errors that are not maybe_applied"]
    assert unmet(Demand(errors=None), failing, NO_OUTAGE) == []
    assert unmet(Demand(errors="maybe"), replace(failing, maybe_applied=3), NO_OUTAGE) == []


def test_each_limit_is_checked() -> None:
    bad = replace(GOOD, slowest=1.5, back=None, first_success=3.0, median_during=0.003)
    demand = Demand(slowest=1.0, back=1.0, first_success=2.0, idle_cpu=0.01, median=1.2)
    assert unmet(demand, bad, NO_OUTAGE, idle_cpu=0.02) == [
        "slowest call 1.50 > 1.00",
        "all members back after: never",
        "first success after 3.00 > 2.00",
        "CPU while waiting 0.0200 > 0.0100",
        "median 0.0030 > 0.0024",
    ]
