"""Results: one line for each report that was judged, in a file that the page is made from. Pure, but for the file."""

import fcntl
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

FILE: Final = Path(__file__).parents[2] / "docs" / "evidence.json"
"""Of the published run."""

Result: TypeAlias = dict[str, Any]


def result(facts: Mapping[str, Any], verdict: Mapping[str, Any]) -> Result:
    """What is kept of a report."""
    plan = facts["plan"]
    return {
        "release": facts["versions"]["etcd"],
        "seed": plan["seed"],
        "client": facts["versions"]["etcd_aio"],
        "engine": plan["engine"],
        "loop": plan["loop"],
        "auth": plan["has_auth"],
        "tls": plan["has_tls"],
        "policies": sorted(set(plan["policies"])),
        "faults": facts["faults"],
        **{name: facts[name] for name in ("watches", "reconnects", "pauses", "resyncs", "compactions")},
        "counts": facts["counts"],
        "operations": verdict["operations"],
        "events": verdict["events"],
        "persisted": verdict["persisted"],
        "snapshots": verdict["snapshots"],
        "told": verdict["told"],
        "once": verdict["once"],
        "repeated": verdict["repeated"],
        "etcd": verdict["etcd"],
        "broken": verdict["broken"],
    }


def read(path: Path = FILE) -> dict[str, Any]:
    """The results of a file: `runs` and `sabotages`; empty if there is none."""
    if not path.exists():
        return {"runs": [], "sabotages": []}
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def write(results: Mapping[str, Any], path: Path = FILE) -> None:
    """Write a file, a line for each run."""
    parts = []
    for name in ("runs", "sabotages"):
        lines = ",\n".join(json.dumps(line, sort_keys=True) for line in results[name])
        parts.append(f'"{name}": [\n{lines}\n]')
    spare = path.with_suffix(".new")
    spare.write_text("{" + ",\n".join(parts) + "}\n")
    spare.replace(path)


def add(path: Path, kind: str, line: Result, keys: Iterable[str]) -> None:
    """Add a line to a file, in place of the one that has the same keys. Other processes may do so at the same time."""
    keys = tuple(keys)
    same = [line[key] for key in keys]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = read(path)
        results[kind] = [old for old in results[kind] if [old[key] for key in keys] != same] + [line]
        results[kind].sort(key=lambda each: [str(each[key]).rjust(9) for key in keys])
        write(results, path)


def known(results: Mapping[str, Any]) -> set[tuple[str, int]]:
    """The release and the seed of each report that was judged right."""
    return {(run["release"], run["seed"]) for run in results["runs"] if not run["broken"]}


def total(runs: Iterable[Mapping[str, Any]], name: str) -> int:
    """The sum of a number over runs."""
    return sum(run[name] for run in runs)


def totals(runs: Iterable[Mapping[str, Any]], name: str) -> Counter[str]:
    """The sums of the counters of a name over runs."""
    found: Counter[str] = Counter()
    for run in runs:
        found.update(run[name])
    return found
