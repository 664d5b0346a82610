"""A report has the form that etcd's validators read: client ids, times, outcomes, and what the client said."""

import json
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from etcd_aio import EtcdError, Header, PutResult, op
from etcd_aio.errors import CompactedError, ConnectionLostError, LeaseNotFoundError
from tests.evidence import model
from tests.evidence.operations import answer_of, mark_of, request_of
from tests.evidence.recorder import Mark, Recorder

pytestmark = pytest.mark.anyio
PUT = op.put("key1", "v1")


async def answered(revision: int) -> PutResult:
    return PutResult(Header(revision=revision, member_id=0xAB))


async def failing(error: EtcdError, *, maybe_applied: bool = False) -> PutResult:
    error.maybe_applied = maybe_applied
    raise error


def recorder(folder: Path) -> Recorder:
    times = iter(range(0, 1_000_000, 10))
    return Recorder(folder, clock=lambda: next(times))


async def put(recorder: Recorder, outcome: Awaitable[PutResult], value: str = "v1", **mark: bool) -> None:
    operation = op.put("key1", value)
    name = mark_of(operation)
    assert name is not None
    await recorder.call(request_of(operation), outcome, lambda found: answer_of(operation, found), Mark(name, **mark))


def written(recorder: Recorder) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    recorder.write({})
    lines = (recorder.folder / "client-1" / "operations.json").read_text().splitlines()
    return [json.loads(line) for line in lines], json.loads((recorder.folder / "claims.json").read_text())


async def test_an_answer_has_its_revision_and_its_member(tmp_path: Path) -> None:
    record = recorder(tmp_path)
    await put(record, answered(7))
    operations, claims = written(record)
    assert operations == [
        {
            "ClientID": 1,
            "Call": 10,
            "Input": model.txn([model.put("key1", "v1")]),
            "Output": {**model.txn_answer([model.result()], 7), "member-id": "ab"},
            "Return": 20,
        }
    ]
    assert claims["Writes"] == [{"Mark": "put:v1", "Told": "applied", "Once": False, "Free": False, "Revision": 7}]


async def test_a_write_without_an_answer_ends_its_client_id(tmp_path: Path) -> None:
    record = recorder(tmp_path)
    await put(record, answered(2))
    await put(record, failing(ConnectionLostError(), maybe_applied=True), "v2")
    await put(record, answered(3), "v3")
    operations, claims = written(record)
    assert [line["ClientID"] for line in operations] == [1, 1, 2]
    assert operations[1]["Output"] == {"Error": "ConnectionLostError"}
    assert [claim["Told"] for claim in claims["Writes"]] == ["applied", "unknown", "applied"]


@pytest.mark.parametrize(
    ("error", "told"),
    [(ConnectionLostError(), "not applied"), (LeaseNotFoundError(), "refused"), (CompactedError(), "refused")],
)
async def test_what_an_error_says(tmp_path: Path, error: EtcdError, told: str) -> None:
    record = recorder(tmp_path)
    await put(record, failing(error), once=True)
    _, claims = written(record)
    assert [(claim["Told"], claim["Once"]) for claim in claims["Writes"]] == [(told, True)]


async def test_a_read_without_an_answer_keeps_its_client_id(tmp_path: Path) -> None:
    record = recorder(tmp_path)
    read = op.range("key1")
    for _ in range(2):
        await record.call(request_of(read), failing(ConnectionLostError()), lambda _: {})
    operations, claims = written(record)
    assert [line["ClientID"] for line in operations] == [1, 1]
    assert operations[1]["Call"] > operations[0]["Return"]
    assert claims["Writes"] == []


async def test_calls_at_the_same_time_have_client_ids_of_their_own(tmp_path: Path) -> None:
    record = recorder(tmp_path)
    first, second = record.begin(request_of(PUT)), record.begin(request_of(PUT))
    record.end(first, model.applied_at(2))
    third = record.begin(request_of(PUT))
    assert [call.lane.id for call in (first, second, third)] == [1, 2, 1]


async def test_a_compaction_that_is_refused_is_an_answer(tmp_path: Path) -> None:
    record = recorder(tmp_path)
    for maybe_applied in (False, True):
        compacting = failing(CompactedError(), maybe_applied=maybe_applied)
        await record.call(model.compact(5), compacting, lambda _: {}, Mark("compact:5"))
    operations, claims = written(record)
    assert [line["Output"] for line in operations] == [{"ClientError": model.COMPACTED}, {"Error": "CompactedError"}]
    assert [claim["Told"] for claim in claims["Writes"]] == ["refused", "unknown"]


async def test_a_watch_without_a_message_is_left_out(tmp_path: Path) -> None:
    record = recorder(tmp_path)
    record.watch(model.watch_request("key", 2), [])
    record.watch(model.watch_request("key", 2), [model.watch_response([], 5, 1)])
    record.write({})
    (line,) = (tmp_path / "client-1" / "watch.json").read_text().splitlines()
    assert json.loads(line)["Responses"] == [{"Events": [], "IsProgressNotify": True, "Revision": 5, "Time": 1}]
