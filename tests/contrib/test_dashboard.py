"""The dashboard for Grafana: each metric and label that it names is one of those that `instrument()` exports."""

import json
import re
from collections.abc import Mapping

import pytest
from prometheus_client import CollectorRegistry

from benchmarks.dashboard.panels import DASHBOARD, Panel, read_panels
from etcd_aio.contrib.prometheus import instrument
from etcd_aio.fake import FakeEtcd

PANELS = read_panels()
OF_PROMETHEUS = {"job", "instance", "le"}


async def exported() -> Mapping[str, set[str]]:
    """The labels of each metric, of clients that have done a little of everything."""
    registry = CollectorRegistry()
    observers = [instrument(registry, handling_seconds=True)]
    labels: dict[str, set[str]] = {}
    async with FakeEtcd() as fake:
        async with fake.client() as root:
            await root.auth.user_add("root", "pw")
            await root.auth.user_grant_role("root", "root")
            await root.auth.enable()
        async with (
            fake.client(auth=("root", "pw"), allow_insecure_auth=True, observers=observers, name="orders") as client,
            client.watch("a") as watcher,
            client.lease(60),
        ):
            await client.put("a", "1")
            await anext(watcher)
            with fake.fault("KV/Range", status="UNAVAILABLE", times=1):
                await client.get("a")
            registry.get_sample_value("nothing")  # collects: connections are counted then
            for metric in registry.collect():
                for sample in metric.samples:
                    labels.setdefault(sample.name, set()).update(sample.labels)
    return labels


def test_it_has_panels_with_queries() -> None:
    assert len(PANELS) >= 12
    assert all(panel.queries and all(query.metrics for query in panel.queries) for panel in PANELS)


@pytest.mark.anyio
async def test_each_metric_and_label_is_exported() -> None:
    labels = await exported()
    for panel in PANELS:
        for query in panel.queries:
            assert query.metrics <= labels.keys(), panel.title
            known = OF_PROMETHEUS.union(*(labels[name] for name in query.metrics))
            named = {
                name
                for found in re.findall(r"(?:by|without) \(([\w, ]+)\)", query.expression)
                for name in found.split(", ")
            }
            named |= set(re.findall(r"[{,](\w+)=", query.expression))
            named |= set(re.findall(r"{{(\w+)}}", query.legend))
            assert named <= known, panel.title


@pytest.mark.anyio
async def test_each_metric_that_is_exported_is_on_it() -> None:
    shown = {name for panel in PANELS for query in panel.queries for name in query.metrics}
    missing = {name for name in await exported() if name.removesuffix("_sum").removesuffix("_count") == name} - shown
    assert missing == set()


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title)
def test_a_query_shows_the_jobs_and_clients_that_are_chosen(panel: Panel) -> None:
    for query in panel.queries:
        selectors = re.findall(r"{([^{}]*)}", query.expression)
        assert len(selectors) == len(re.findall(r"\b(?:etcd_aio|grpc_client)_\w+", query.expression))
        assert all('job=~"$job",client=~"$client"' in one for one in selectors)
        assert "$" not in query.filled("5s")


def test_panels_do_not_overlap_and_refer_to_the_chosen_data_source() -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    assert [one["name"] for one in dashboard["templating"]["list"]] == ["datasource", "job", "client"]
