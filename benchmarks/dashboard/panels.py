"""The panels of the Grafana dashboard in `docs/dashboard.json`: their queries, and the metrics that they name."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from benchmarks.environments import ROOT

DASHBOARD: Final = ROOT / "docs" / "dashboard.json"

_METRIC: Final = re.compile(r"\b(?:etcd_aio|grpc_client)_\w+")
_ALL: Final = {"$job": ".*", "$client": ".*"}  # what Grafana puts in place of "All"

Variables: TypeAlias = dict[str, str]


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel.

    Attributes:
        expression: PromQL, with Grafana's variables.
        legend: how a series is named: text with labels as `{{label}}`.
    """

    expression: str
    legend: str

    @property
    def metrics(self) -> frozenset[str]:
        """The metrics that it reads."""
        return frozenset(_METRIC.findall(self.expression))

    def filled(self, rate_interval: str) -> str:
        """The expression as Grafana sends it for all jobs and clients."""
        text = self.expression.replace("$__rate_interval", rate_interval)
        for name, value in _ALL.items():
            text = text.replace(name, value)
        return text

    def name_of(self, labels: dict[str, str]) -> str:
        """The name of a series in the legend."""
        return re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), self.legend).strip()


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    Attributes:
        title: its title.
        unit: as Grafana names it.
        queries: at least one.
    """

    title: str
    unit: str
    queries: tuple[Query, ...]


def read_panels(path: Path = DASHBOARD) -> tuple[Panel, ...]:
    """The panels with queries, in their order."""
    return tuple(
        Panel(
            panel["title"],
            panel["fieldConfig"]["defaults"]["unit"],
            tuple(Query(target["expr"], target["legendFormat"]) for target in panel["targets"]),
        )
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]
        if panel["type"] != "row"
    )
