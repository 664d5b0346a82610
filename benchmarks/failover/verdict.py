"""Compares a run with the requirements. Pure."""

from benchmarks.failover.account import PROBE_EVERY, Outage, Summary
from benchmarks.failover.faults import Demand


def unmet(demand: Demand, found: Summary, servers: Outage, idle_cpu: float | None = None) -> list[str]:
    """The violated requirements, in words; empty if there are none."""
    checks = [
        _recovery(demand, found, servers),
        _errors(demand, found),
        _beyond("slowest call", found.slowest, demand.slowest),
        _beyond("all members back after", found.back, demand.back),
        _beyond("first success after", found.first_success, demand.first_success),
        None if idle_cpu is None else _beyond("CPU while waiting", idle_cpu, demand.idle_cpu, digits=4),
        None
        if demand.median is None
        else _beyond("median", found.median_during, demand.median * found.median_before, digits=4),
    ]
    return [check for check in checks if check is not None]


def _recovery(demand: Demand, found: Summary, servers: Outage) -> str | None:
    if demand.recovery is None:
        return None
    unavoidable = {
        "nothing": 0.0,
        "outage": servers.all_members,
        "detection": max(servers.all_members, servers.target),
    }[demand.beyond]
    # The servers are probed less often than calls are made.
    allowed = demand.recovery + unavoidable + (PROBE_EVERY if unavoidable else 0.0)
    return _beyond("recovery", found.recovery, allowed)


def _errors(demand: Demand, found: Summary) -> str | None:
    if demand.errors is None or not found.failed:
        return None
    if demand.errors == "none":
        return f"{found.failed} errors"
    definite = found.failed - (found.maybe_applied or 0)
    return f"{definite} errors that are not maybe_applied" if definite else None


def _beyond(what: str, seconds: float | None, limit: float | None, *, digits: int = 2) -> str | None:
    if limit is None:
        return None
    if seconds is None:
        return f"{what}: never"
    return f"{what} {seconds:.{digits}f} > {limit:.{digits}f}" if seconds > limit else None
