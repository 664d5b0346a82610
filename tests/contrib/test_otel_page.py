"""The page about telemetry: its programs run, and print what it says; its tables name what there is."""

import asyncio
import re
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from etcd_aio.contrib.otel import semconv
from etcd_aio.contrib.prometheus import instrument
from etcd_aio.fake import FakeEtcd
from tests.examples.blocks import python_blocks, read
from tests.examples.paths import PAGES, ROOT

PAGE = read(PAGES / "how-to" / "telemetry.md")
PROGRAMS = {block.file: block.code for block in python_blocks(PAGE)}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("metrics.py", ['grpc_code="OK"', 'grpc_method="Put"', "etcd_aio_endpoint_up{"]),
        ("traces.py", ['"name": "etcdserverpb.KV/Put"', '"name": "etcd_aio.attempt"']),
    ],
)
async def test_a_program_prints_what_the_page_says(name: str, printed: list[str], tmp_path: Path) -> None:
    async with FakeEtcd() as fake, fake.serve() as endpoint:
        program = PROGRAMS[name].replace("http://127.0.0.1:2379", endpoint)
        (tmp_path / name).write_text(program)
        run = await asyncio.create_subprocess_exec(
            sys.executable,
            str(tmp_path / name),
            env={"PYTHONPATH": str(ROOT)},
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await run.communicate()
    assert run.returncode == 0
    assert not [text for text in printed if text not in output.decode()]


def test_each_program_is_run() -> None:
    assert PROGRAMS.keys() == {"metrics.py", "traces.py"}


def test_the_table_names_each_metric_of_prometheus() -> None:
    registry = CollectorRegistry(auto_describe=True)
    instrument(registry, handling_seconds=True)
    parts = ("_created", "_bucket", "_count", "_sum")
    made = {name for name in registry._names_to_collectors if not name.endswith(parts)}
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`((?:grpc_client|etcd_aio)_\w+)`", row.split("|")[1])}
    assert {name for name in made if f"{name}_total" not in made} == named


def test_the_page_names_each_metric_of_opentelemetry() -> None:
    (line,) = re.findall(r"^- The metrics are .*?\n(?=\n)", PAGE, re.DOTALL | re.MULTILINE)
    shown = re.findall(r"`([a-z_.]+)`", line)
    named = {f"etcd_aio.client{name}" if name.startswith(".") else name for name in shown}
    table = [value for value in vars(semconv).values() if isinstance(value, str)]
    metrics = [value for value in table if value.startswith("etcd_aio.client.")]
    assert named == {semconv.CALL_DURATION, *metrics}
    assert f"of version {semconv.VERSION.removesuffix('.0')}." in PAGE
