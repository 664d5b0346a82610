"""The tables of the page about evidence, made from the file of results. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from tests.evidence.plan import ENGINES, FAULTS, LOOPS
from tests.evidence.results import total, totals

Results: TypeAlias = Mapping[str, Sequence[Mapping[str, Any]]]
Table: TypeAlias = tuple[tuple[str, ...], list[tuple[str, ...]], int]
"""The head, the rows, and how many of the last columns have numbers."""

_OWN: Final = ("not the state of its revision", "a revision that never was", "older than what was seen before")
_SNAPSHOTS: Final = {
    "serializable read": "serializable reads",
    "ordered read": "ordered reads, which also never go back",
    "cached read": "reads of a cache as it is",
    "scan of an old revision": "scans of an old revision",
    "resync of a watch": "the state that a watch has reported, after compacted history was replaced",
}
_FAULTS: Final = {
    "kill": "a member is killed, and started again",
    "freeze": "the process of a member is stopped for up to 3 s",
    "isolate": "a member is cut off from the others, but not from clients",
    "lag": "a member gets everything late",
    "move-leader": "another member is made the leader",
    "replace": "a member is removed, and an empty one added",
    "cut": "connections break in the middle of requests and answers",
    "slow": "connections are slow or narrow",
    "silence": "connections stay open, and nothing passes",
}


def number(value: int) -> str:
    """A number with a space between its thousands."""
    return f"{value:,}".replace(",", " ")


def claims(results: Results) -> Table:
    """Each claim, its judge, what it was put to the test by, and in how many reports it was broken."""
    runs = results["runs"]
    told, counts = totals(runs, "told"), totals(runs, "counts")
    once = total(runs, "once")
    etcd, logs = "etcd's validators", "the members' logs"
    rows = [
        (
            "reads, writes, transactions, leases and compactions are linearizable",
            etcd,
            f"{number(total(runs, 'operations'))} operations",
            ("assumptions", "linearizability", "not judged"),
        ),
        (
            "current reads of a cache are, too",
            etcd,
            f"{number(counts['current read of a cache'])} reads",
            ("linearizability",),
        ),
        (
            "watches keep etcd's nine guarantees",
            etcd,
            f"{number(total(runs, 'events'))} events of {number(total(runs, 'watches'))} watches",
            ("watches",),
        ),
        ("reads of an old revision return its state", etcd, "among the operations", ("old revisions",)),
        (
            "what was told as not applied is in no log",
            logs,
            f"{number(told['not applied'])} writes",
            ("told as not applied, in a log", "told as not applied, but applied", "told as refused, but applied"),
        ),
        (
            "what was told as applied is in the log, at the told revision",
            logs,
            f"{number(told['applied'])} writes",
            ("told as applied, in no log", "told of another revision"),
        ),
        (
            "no write is in the log twice",
            logs,
            f"{number(sum(told.values()) - once)} writes",
            ("twice in the log", "applied twice"),
        ),
        (
            "exactly-once writes are applied once, or never",
            logs,
            f"{number(once)} writes",
            ("told as applied once, but not applied once", "applied twice"),
        ),
        *(
            (f"true of the revision that they name: {text}", logs, f"{number(counts[kind])} states", _OWN)
            for kind, text in _SNAPSHOTS.items()
        ),
    ]
    return (
        ("claim", "judge", "tested by", "broken in"),
        [(text, judge, by, f"{_broken(runs, rules)} reports") for text, judge, by, rules in rows],
        1,
    )


def _broken(runs: Sequence[Mapping[str, Any]], rules: tuple[str, ...]) -> int:
    return sum(any(broken.startswith(rules) for broken in run["broken"]) for run in runs)


def releases(results: Results) -> Table:
    """The reports by release."""
    runs = results["runs"]
    rows = [
        (release, *_sums([run for run in runs if run["release"] == release]))
        for release in sorted({run["release"] for run in runs})
    ]
    rows.append(("all", *_sums(runs)))
    return ("etcd", "reports", "operations", "watch events", "faults", "judged wrong"), rows, 5


def _sums(runs: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    faults = sum(totals(runs, "faults").values())
    wrong = sum(bool(run["broken"]) for run in runs)
    return tuple(map(number, (len(runs), total(runs, "operations"), total(runs, "events"), faults, wrong)))


def clients(results: Results) -> Table:
    """The clients of the reports."""
    runs = results["runs"]

    def of(name: str, value: object) -> tuple[str, str]:
        own = [run for run in runs if run[name] == value]
        return number(len(own)), number(total(own, "operations"))

    rows: list[tuple[str, ...]] = [(f"engine `{engine}`", *of("engine", engine)) for engine in ENGINES]
    rows += [(f"event loop of {loop}", *of("loop", loop)) for loop in LOOPS]
    rows += [("authentication, with tokens that end after 2 s", *of("auth", True)), ("TLS", *of("tls", True))]
    return ("client", "reports", "operations"), rows, 2


def faults(results: Results) -> Table:
    """How often each fault was made, and what came of them."""
    runs = results["runs"]
    found = totals(runs, "faults")
    rows: list[tuple[str, ...]] = [(_FAULTS[fault], number(found[fault])) for fault in FAULTS]
    rows += [
        ("writes whose outcome was not known to the client", number(totals(runs, "told")["unknown"])),
        ("watches that went on on another stream", number(total(runs, "reconnects"))),
        ("watches that were cancelled for a while, since their consumer was slow", number(total(runs, "pauses"))),
        ("watches that met a compaction", number(total(runs, "compactions") + total(runs, "resyncs"))),
    ]
    return ("what happened", "times"), rows, 1


def sabotages(results: Results) -> Table:
    """What found each broken client, and after how many operations."""
    rows: list[tuple[str, ...]] = []
    for one in sorted(results["sabotages"], key=lambda one: one["operations"]):
        by = "; ".join(dict.fromkeys(_rule(rule, one["why"]) for rule in one["by"]))
        rows.append((one["what"], by, number(one["operations"])))
    return ("what the broken client does", "found by", "after operations"), rows, 1


def _rule(rule: str, why: str) -> str:
    """The name of a rule without its example; of watches with the guarantees that were broken."""
    name = rule.split(":")[0]
    if name == "watches":
        broken = (
            text.removeprefix("Broke watch guarantee ").removeprefix("Incorrect event ") for text in why.split("; ")
        )
        return f"etcd: watches ({', '.join(broken)})"
    return f"etcd: {name}" if name in ("assumptions", "linearizability", "old revisions") else f"log: {name}"
