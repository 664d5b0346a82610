"""The result file: one line for each run of each fault."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.failover.account import Marks, Outage, Summary
from benchmarks.failover.faults import Operation

FORMAT: Final = 1
"""Rises whenever a reader of the result file has to know."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The machine and the servers of the runs."""

    date: str
    cpu: str
    cores: int
    system: str
    server: str
    rate: float
    timeout: float
    versions: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Run:
    """One client under one fault, once; or the reason why it could not run.

    Attributes:
        fault: the fault's name.
        seconds: the length of the load.
        idle_cpu: CPU seconds per second of another client of this kind that makes no calls, while no member is up.
        buckets: the numbers for the picture, see `account.buckets`.
        states: (time, endpoint, state) of each change of an endpoint's state in the client.
    """

    fault: str
    operation: Operation
    client: str
    seconds: float = 0.0
    marks: Marks | None = None
    found: Summary | None = None
    servers: Outage | None = None
    idle_cpu: float | None = None
    buckets: Mapping[str, Sequence[int]] = field(default_factory=dict)
    states: Sequence[Sequence[object]] = ()
    left_out: str | None = None


def write(path: Path, setting: Setting, runs: Sequence[Run]) -> None:
    """Write all runs to one file."""
    head = json.dumps({"format": FORMAT, "setting": asdict(setting)}, indent=2, ensure_ascii=False)
    lines = [json.dumps(asdict(run), separators=(",", ":")) for run in map(_rounded, runs)]
    path.parent.mkdir(parents=True, exist_ok=True)
    # One line for each run, because the numbers of the picture would take tens of thousands of lines.
    path.write_text(head[:-2] + ',\n  "runs": [\n' + ",\n".join(lines) + "\n  ]\n}\n", encoding="utf-8")


def read(path: Path) -> tuple[Setting, list[Run]]:
    """Read a result file.

    Raises:
        ValueError: it is not a result file.
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or content.get("format") != FORMAT or "runs" not in content:
        raise ValueError(f"{path} holds no result of python -m benchmarks.failover")
    return Setting(**content["setting"]), [_run(entry) for entry in content["runs"]]


def _run(entry: dict[str, object]) -> Run:
    kinds = {"marks": Marks, "found": Summary, "servers": Outage}
    parts = {name: kind(**value) for name, kind in kinds.items() if isinstance(value := entry[name], dict)}
    return Run(**{**entry, **parts})


def _rounded(run: Run) -> Run:
    """Round to 0.1 ms, which keeps the file small."""
    kinds = {"marks": Marks, "found": Summary, "servers": Outage}
    parts = {
        name: kind(**{key: _round(value) for key, value in asdict(part).items()})
        for name, kind in kinds.items()
        if (part := getattr(run, name)) is not None
    }
    plain = {name: getattr(run, name) for name in Run.__dataclass_fields__}
    return Run(**{**plain, **parts, "idle_cpu": _round(run.idle_cpu)})


def _round(value: object) -> object:
    return round(value, 4) if isinstance(value, float) else value
