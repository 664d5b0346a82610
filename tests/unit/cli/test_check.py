"""cli/check.py: the verdicts on a load, what is refused, and that nothing of it stays."""

import asyncio
from collections.abc import Sequence

import pytest

from etcd_aio.cli import check
from etcd_aio.cli.check import steady, verdicts
from etcd_aio.fake import FakeEtcd
from etcd_aio.fake.engine import FakeEngine
from etcd_aio.transport import Target
from tests.support.command_here import CommandLine
from tests.support.until import until


@pytest.mark.parametrize(
    ("took", "failed"),
    [
        ([0.01] * 600, []),
        ([0.01] * 540, [0]),
        ([0.01] * 541 + [0.51], [1]),
        ([0.0, 0.4] * 300, [2]),
        ([], [0]),
    ],
)
def test_each_limit_is_that_of_etcdctl(took: Sequence[float], failed: list[int]) -> None:
    found = verdicts([*took], 10, 60.0)
    assert [number for number, (_, is_passed) in enumerate(found) if not is_passed] == failed
    assert [line.startswith("PASS: ") for line, _ in found] == [is_passed for _, is_passed in found]


def test_what_could_not_be_made_in_time_is_not_made_up_for() -> None:
    now = [0.0]
    due = steady(10, 0.0, 1.0, lambda: now[0])
    assert [due(), due()] == [0.0, 0.1]
    now[0] = 0.75
    assert [due(), due(), due(), due()] == [0.75, pytest.approx(0.85), pytest.approx(0.95), None]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads that a test has time for."""
    monkeypatch.setattr(check, "_SECONDS", 6.0)
    monkeypatch.setitem(check._PAIRS, "s", 500)


@pytest.mark.anyio
@pytest.mark.virtual_time
@pytest.mark.usefixtures("short")
async def test_a_load_that_is_borne_passes_and_leaves_no_key(fake: FakeEtcd, command: CommandLine) -> None:
    fake.load({"mine": "1"})
    revision = fake.revision
    began = asyncio.get_running_loop().time()
    assert await command("check", "perf", "--load=small") == 0
    assert asyncio.get_running_loop().time() - began == pytest.approx(6.0, abs=0.1)
    lines = command.out.decode().splitlines()
    assert lines[0] in ("PASS: Throughput is 150 writes/s", "PASS: Throughput is 151 writes/s")
    assert [line.split()[1] for line in lines[1:3]] == ["Slowest", "Stddev"]
    assert lines[3:] == ["PASS"]
    assert set(fake.keys()) == {b"mine"}
    assert 895 <= fake.revision - revision <= 903, "the puts, and one revision for their deletion"


@pytest.mark.anyio
@pytest.mark.virtual_time
@pytest.mark.usefixtures("short")
async def test_a_slow_put_and_an_error_fail_it(fake: FakeEtcd, command: CommandLine) -> None:
    with fake.fault("KV/Put", delay=0.7, times=1), fake.fault("KV/Put", status="RESOURCE_EXHAUSTED", times=2):
        assert await command("check", "perf") == 1
    lines = command.out.decode().splitlines()
    assert lines[0] == "FAIL: too many errors"
    assert lines[1].startswith("FAIL: ERROR(")
    assert lines[1].endswith(") -> 2")
    assert [line for line in lines if "too long" in line] == ["Slowest request took too long: 0.700000s"]
    assert lines[-1] == "FAIL"
    assert fake.keys() == {}


@pytest.mark.anyio
@pytest.mark.virtual_time
@pytest.mark.usefixtures("short")
async def test_afterwards_the_store_is_compacted_and_every_endpoint_defragmented(
    fake: FakeEtcd, command: CommandLine
) -> None:
    assert await command("check", "perf", "--auto-compact", "--auto-defrag", "--prefix=own/") == 0
    lines = command.out.decode().splitlines()
    assert lines[:2] == [f"Compacting with revision {fake.revision}", f"Compacted with revision {fake.revision}"]
    expected = [f'{word} "{one}"' for one in fake.endpoints for word in ("Defragmenting", "Defragmented")]
    assert [line.replace("http://", "") for line in lines[2:8]] == [line.replace("http://", "") for line in expected]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ("check perf --load=huge", 4, "unknown load option huge"),
        ("check datascale --load=xlarge", 4, "unknown load option xlarge"),
        ("check perf --prefix=", 128, "must not be empty"),
        ("check perf --prefix=mi", 3, 'prefix "mi" has keys'),
        ("check datascale --prefix=mi", 3, 'prefix "mi" has keys'),
        ("check nothing", 1, "nothing"),
    ],
)
async def test_what_cannot_be_checked_is_refused_before_anything_is_written(
    words: str, code: int, text: str, fake: FakeEtcd, command: CommandLine
) -> None:
    fake.load({"mine": "1"})
    before = fake.revision
    assert await command(*words.split()) == code
    assert text in command.err
    assert fake.revision == before


@pytest.mark.anyio
@pytest.mark.virtual_time
async def test_an_interrupt_ends_it_at_once_and_says_what_stays(fake: FakeEtcd, command: CommandLine) -> None:
    checking = asyncio.create_task(command("check", "perf"))
    await until(lambda: len(fake.keys()) > 100)
    began = asyncio.get_running_loop().time()
    checking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await checking
    assert asyncio.get_running_loop().time() - began < 0.5
    out, err = command.capture.readouterr()
    assert out == b""
    assert err.decode() == 'interrupted: delete the keys with etcd-aio del --prefix "/etcdctl-check-perf/"\n'
    assert fake.keys()


@pytest.mark.anyio
@pytest.mark.virtual_time
@pytest.mark.usefixtures("short")
async def test_the_memory_is_that_of_the_first_endpoint(
    fake: FakeEtcd, command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def metrics(engine: FakeEngine, target: Target, path: str) -> bytes:
        asked.append(target.authority)
        return f"process_resident_memory_bytes {2.5e07 + 2**20 * 3 * (len(asked) - 1)}\n".encode()

    assert await command("check", "datascale") == 1
    assert command.out == b"FAIL: Could not read process_resident_memory_bytes before the put operations.\n"
    monkeypatch.setattr(FakeEngine, "http_get", metrics)
    assert await command("check", "datascale") == 0
    assert command.out.decode().splitlines() == [
        "Start data scale check for work load [500 key-value pairs, 1024 bytes per key-value, 50 concurrent clients].",
        "PASS: Approximate system memory used : 3.00 MB.",
    ]
    assert len(set(asked)) == 1
    assert fake.keys() == {}
