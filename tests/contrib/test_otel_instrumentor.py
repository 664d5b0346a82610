"""contrib/otel/instrumentor.py, observing/defaults.py: a whole process, by hand or by `opentelemetry-instrument`."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from etcd_aio.contrib.otel import EtcdAioInstrumentor
from etcd_aio.fake import FakeEtcd
from tests.contrib.spans import Traced

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def instrumentor() -> Iterator[EtcdAioInstrumentor]:
    made = EtcdAioInstrumentor()
    yield made
    if made.is_instrumented_by_opentelemetry:
        made.uninstrument()


async def test_clients_made_from_now_on_are_instrumented(instrumentor: EtcdAioInstrumentor) -> None:
    traced = Traced()
    async with FakeEtcd() as fake, fake.client() as before:
        instrumentor.instrument(tracer_provider=traced.provider, meter_provider=traced.meters)
        async with fake.client() as client:
            await before.get("a")
            assert traced.begun == 0
            await client.get("a")
            assert traced.begun == 1
            instrumentor.uninstrument()
            await client.get("a")
            async with fake.client() as later:
                await later.get("a")
    assert traced.begun == len(traced.spans) == 1


async def test_to_instrument_twice_is_to_instrument_once(
    instrumentor: EtcdAioInstrumentor, caplog: pytest.LogCaptureFixture
) -> None:
    traced = Traced()
    for _ in range(2):
        EtcdAioInstrumentor().instrument(tracer_provider=traced.provider, meter_provider=traced.meters)
    assert [record.getMessage() for record in caplog.records] == ["Attempting to instrument while already instrumented"]
    async with FakeEtcd() as fake, fake.client() as client:
        await client.get("a")
    assert traced.begun == 1


async def test_gauges_end_and_come_again_with_the_instrumentation(instrumentor: EtcdAioInstrumentor) -> None:
    traced = Traced()
    up = "etcd_aio.client.endpoint.up"
    async with FakeEtcd() as fake:
        for number in range(2):
            instrumentor.instrument(tracer_provider=traced.provider, meter_provider=traced.meters)
            async with fake.client(name=f"client-{number}") as client:
                await client.get("a")
                names = [attributes["etcd_aio.client_name"] for attributes, _ in traced.metrics()[up]]
                assert names == [client.name]
                instrumentor.uninstrument()
                assert up not in traced.metrics()


async def test_options_are_those_of_the_observer(instrumentor: EtcdAioInstrumentor) -> None:
    traced = Traced()
    with pytest.raises(TypeError, match="no_such_option"):
        instrumentor.instrument(no_such_option=True)
    instrumentor.instrument(tracer_provider=traced.provider, meter_provider=traced.meters, db_attributes=True)
    async with FakeEtcd() as fake, fake.client() as client:
        await client.get("a")
    assert dict(traced.span.attributes or {})["db.system.name"] == "etcd"


PROGRAM = """
import asyncio
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry import trace
from etcd_aio.fake import FakeEtcd
from opentelemetry.instrumentation.auto_instrumentation._load import _load_instrumentors
from opentelemetry.instrumentation.distro import DefaultDistro

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
_load_instrumentors(DefaultDistro())

async def main():
    async with FakeEtcd() as fake, fake.client() as client:
        await client.get("a")

asyncio.run(main())
print([span.name for span in exporter.get_finished_spans()])
"""


@pytest.mark.parametrize(
    ("environment", "spans"),
    [
        ({}, "['etcdserverpb.KV/Range']"),
        ({"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "etcd_aio"}, "[]"),
        ({"OTEL_SDK_DISABLED": "true"}, "[]"),
    ],
    ids=["by default", "disabled", "no SDK"],
)
def test_opentelemetry_instrument_finds_it(tmp_path: Path, environment: dict[str, str], spans: str) -> None:
    group = "opentelemetry_instrumentor"
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][group]
    assert ours == {"etcd_aio": "etcd_aio.contrib.otel:EtcdAioInstrumentor"}
    if not metadata.entry_points(group=group, name="etcd_aio"):  # the package is not installed: it is in the path only
        installed = tmp_path / "etcd_aio_in_path-1.dist-info"
        installed.mkdir()
        (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: etcd_aio_in_path\nVersion: 1\n")
        lines = [f"{name} = {value}" for name, value in ours.items()]
        (installed / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
    )
    assert run.stdout.strip() == spans
