"""contrib/otel/semconv.py: names of the conventions are in their registry, and nothing else is emitted."""

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from opentelemetry.semconv.schemas import Schemas

from etcd_aio.contrib.otel import semconv
from etcd_aio.errors import ConnectionLostError
from etcd_aio.fake import FakeEtcd
from tests.contrib.spans import Traced
from tests.support.until import until


def strings_in(name: str) -> Iterator[str]:
    """The names that a folder of the registry defines."""
    for found in pkgutil.iter_modules(importlib.import_module(name).__path__, f"{name}."):
        values = vars(importlib.import_module(found.name)).items()
        yield from (value for name, value in values if name.isupper() and isinstance(value, str))


REGISTRY = frozenset(
    value
    for folder in ("attributes", "_incubating.attributes", "_incubating.metrics")
    for value in strings_in(f"opentelemetry.semconv.{folder}")
)
TABLE = {
    name: value
    for name, value in vars(semconv).items()
    if name.isupper() and isinstance(value, str) and name not in {"VERSION", "SCHEMA_URL"}
}


def test_the_table_has_the_version_of_the_registry_that_is_pinned() -> None:
    assert semconv.SCHEMA_URL == list(Schemas)[-1].value == f"https://opentelemetry.io/schemas/{semconv.VERSION}"


@pytest.mark.parametrize("name", TABLE)
def test_a_name_is_one_of_the_registry_or_our_own(name: str) -> None:
    assert (TABLE[name] in REGISTRY) != TABLE[name].startswith("etcd_aio.")


@pytest.mark.anyio
async def test_what_is_emitted_is_in_the_table() -> None:
    traced = Traced(db_attributes=True)
    async with FakeEtcd(members=3) as fake, fake.client(observers=[traced.observer], name="tests") as client:
        with fake.fault("KV/Range", status="UNAVAILABLE", times=1):
            await client.get("a")
        with fake.fault("KV/Put", reset=True, times=1), pytest.raises(ConnectionLostError):
            await client.put("a", "1")
        async with client.watch("a") as watcher:
            await client.put("a", "1")
            await anext(watcher)
            (stream,) = client.streams()
            next(one for one in fake.members if one.endpoint == stream.endpoint).stop()
            await until(lambda: "etcd_aio.client.stream.moves" in traced.metrics())
            metrics = traced.metrics()
    names = {name for span in traced.spans for name in span.attributes or {}}
    for span in traced.spans:
        names |= {event.name for event in span.events} | {
            name for event in span.events for name in event.attributes or {}
        }
    names |= set(metrics) | {name for points in metrics.values() for attributes, _ in points for name in attributes}
    assert names <= set(TABLE.values())
    assert set(TABLE.values()) - names == {"etcd_aio.client.lease.lost"}
