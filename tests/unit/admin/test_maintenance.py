"""admin/maintenance.py, admin/metrics.py: requests, receivers, results, and arguments that are refused."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from etcd_aio import codec, pb
from etcd_aio.admin.maintenance import Maintenance
from etcd_aio.errors import (
    ConnectError,
    ConnectionLostError,
    EtcdTimeoutError,
    InvalidRequestError,
    MalformedReplyError,
    NoAvailableEndpointsError,
    NotSupportedByServerError,
    UnknownEndpointError,
)
from etcd_aio.methods import ALARM, DEFRAGMENT, DOWNGRADE, HASH, HASH_KV, STATUS
from etcd_aio.types import ActiveAlarm, Alarm, DowngradeInfo, HashKVResult, Member
from tests.support.answers import always, asked, header, requests
from tests.support.calls import Calls, unknown
from tests.support.fake_engine import Accept, FakeAttempt, Refuse
from tests.support.snapshots import messages, sends
from tests.support.virtual_time import tasks, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

GET, DEACTIVATE = pb.AlarmRequestAlarmAction.GET, pb.AlarmRequestAlarmAction.DEACTIVATE


async def new(answer: pb.Message) -> tuple[Calls, Maintenance]:
    calls = await Calls().ready()
    for member in calls.engine.members.values():
        member.otherwise = always(answer)
    return calls, Maintenance(calls.invoker, no_document)


async def no_document(endpoint: str, path: str) -> bytes:
    raise ConnectError(f"{endpoint} serves no {path}")


# About one member.


async def test_status_returns_the_fields_of_the_reply() -> None:
    calls, maintenance = await new(
        pb.StatusResponse(
            header=header(),
            version="3.7.3",
            leader=1,
            raft_term=2,
            errors=["memberID:1 alarm:NOSPACE "],
            db_size_in_use=5,
            downgrade_info=pb.DowngradeInfo(enabled=True, target_version="3.6.0"),
        )
    )
    status = await maintenance.status("m2")
    assert (status.version, status.is_leader, status.errors) == ("3.7.3", True, ("memberID:1 alarm:NOSPACE ",))
    assert status.downgrade_info == DowngradeInfo(True, "3.6.0")
    await calls.aclose()


async def test_hashes_are_returned_with_their_revisions() -> None:
    calls, maintenance = await new(pb.HashKvResponse(hash=2**32 - 1, compact_revision=-1, hash_revision=9))
    found = await maintenance.hash_kv("m2", 5)
    assert found == HashKVResult(found.header, 2**32 - 1, -1, 9)
    assert requests(calls, HASH_KV, pb.HashKvRequest) == [pb.HashKvRequest(revision=5)]
    for member in calls.engine.members.values():
        member.otherwise = always(pb.HashResponse(hash=7))
    assert (await maintenance.hash("m3")).hash == 7
    assert asked(calls, HASH) == ["m3"]
    await calls.aclose()


LOCAL: dict[str, Callable[[Maintenance, str], Awaitable[object]]] = {
    STATUS.name: lambda maintenance, endpoint: maintenance.status(endpoint, timeout=3),
    DEFRAGMENT.name: lambda maintenance, endpoint: maintenance.defragment(endpoint, timeout=3),
    HASH.name: lambda maintenance, endpoint: maintenance.hash(endpoint, timeout=3),
    HASH_KV.name: lambda maintenance, endpoint: maintenance.hash_kv(endpoint, timeout=3),
}


@pytest.mark.parametrize("name", LOCAL)
async def test_calls_about_a_member_go_to_its_endpoint_and_need_no_leader(name: str) -> None:
    calls, maintenance = await new(pb.StatusResponse())
    for endpoint in ("m2", "m2:2379", "m3", "m1"):
        await LOCAL[name](maintenance, endpoint)
    assert [attempt.member.authority[:2] for attempt in calls.engine.attempts] == ["m2", "m2", "m3", "m1"]
    assert not any(("hasleader", "true") in attempt.metadata for attempt in calls.engine.attempts)
    await calls.aclose()


@pytest.mark.parametrize("name", LOCAL)
async def test_calls_about_a_member_never_fail_over(name: str) -> None:
    calls, maintenance = await new(pb.StatusResponse())
    calls["m2"].otherwise = unknown()
    with pytest.raises(ConnectionLostError) as caught:
        await LOCAL[name](maintenance, "m2")
    is_mutation = name == DEFRAGMENT.name
    assert caught.value.maybe_applied is is_mutation
    assert (len(caught.value.attempts) == 1) is is_mutation, "what only reads is asked there again"
    assert {attempt.member.authority[:2] for attempt in calls.engine.attempts} == {"m2"}
    await calls.aclose()


@pytest.mark.parametrize("name", LOCAL)
async def test_calls_about_a_member_wait_for_its_connection_until_their_deadline(name: str) -> None:
    calls, maintenance = await new(pb.StatusResponse())
    calls["m2"].dial = Refuse()
    calls["m2"].connection.lose(ConnectionResetError())
    with pytest.raises(NoAvailableEndpointsError) as caught:
        await LOCAL[name](maintenance, "m2")
    assert list(caught.value.errors) == ["m2:2379"]
    assert isinstance(caught.value.errors["m2:2379"], ConnectionRefusedError)
    calls["m2"].dial = Accept()
    await LOCAL[name](maintenance, "m2")
    assert [attempt.member.authority[:2] for attempt in calls.engine.attempts] == ["m2"]
    await calls.aclose()


async def test_a_call_about_a_silent_member_goes_to_no_other() -> None:
    calls, maintenance = await new(pb.StatusResponse())
    calls["m2"].latency = 10
    with pytest.raises(EtcdTimeoutError):
        await maintenance.status("m2", timeout=3)
    assert asked(calls, STATUS) == ["m2"]
    await calls.aclose()


# Metrics.


async def test_metrics_are_read_from_the_endpoint_that_was_named() -> None:
    found: list[tuple[str, str]] = []

    async def get(endpoint: str, path: str) -> bytes:
        found.append((endpoint, path))
        return b"etcd_server_has_leader 1\n\xff"

    calls = await Calls().ready()
    assert await Maintenance(calls.invoker, get).metrics("m2:2379") == "etcd_server_has_leader 1\n\ufffd"
    assert found == [("m2:2379", "/metrics")]
    assert not calls.engine.attempts
    with pytest.raises(TypeError, match="endpoint must be str"):
        await Maintenance(calls.invoker, get).metrics(None)  # type: ignore[arg-type]
    await calls.aclose()


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (ConnectionRefusedError(111, "Connection refused"), ConnectError),
        (UnicodeError("label too long"), ConnectError),
        (ConnectError("the peer does not serve /metrics: HTTP status 404"), ConnectError),
        (UnknownEndpointError("m9 is none of the endpoints"), UnknownEndpointError),
    ],
)
async def test_metrics_that_cannot_be_had_are_a_typed_error(raised: Exception, expected: type[Exception]) -> None:
    async def get(endpoint: str, path: str) -> bytes:
        raise raised

    calls = await Calls().ready()
    with pytest.raises(expected) as caught:
        await Maintenance(calls.invoker, get).metrics("m2:2379")
    assert str(raised) in str(caught.value) or str(caught.value) in str(raised)
    await calls.aclose()


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_metrics_that_do_not_come_leave_no_task(is_cancelled: bool) -> None:
    ended = []

    async def get(endpoint: str, path: str) -> bytes:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(path)
        return b""

    calls = await Calls().ready()
    reading = asyncio.ensure_future(Maintenance(calls.invoker, get).metrics("m2:2379", timeout=3.0))
    if is_cancelled:
        await turns()
        reading.cancel()
    began = calls.loop.time()
    with pytest.raises(asyncio.CancelledError if is_cancelled else EtcdTimeoutError):
        await reading
    assert calls.loop.time() - began == pytest.approx(0.0 if is_cancelled else 3.0)
    assert ended == ["/metrics"]
    await calls.aclose()
    assert not tasks()


# Alarms.


class Alarms:
    """A cluster with alarms."""

    def __init__(self, *raised: tuple[int, int]) -> None:
        self.raised = list(raised)

    def __call__(self, attempt: FakeAttempt) -> bytes:
        request = codec.decode(pb.AlarmRequest, attempt.payload)
        found = self.raised
        if request.action == DEACTIVATE:
            found = [one for one in self.raised if one == (request.member_id, request.alarm)]
            self.raised = [one for one in self.raised if one not in found]
        alarms = [pb.AlarmMember(member_id=member, alarm=pb.AlarmType(kind)) for member, kind in found]
        return codec.encode(pb.AlarmResponse(header=header(), alarms=alarms))


async def with_alarms(*raised: tuple[int, int]) -> tuple[Calls, Maintenance, Alarms]:
    calls, maintenance = await new(pb.AlarmResponse())
    alarms = Alarms(*raised)
    for member in calls.engine.members.values():
        member.otherwise = alarms
    return calls, maintenance, alarms


async def test_listing_alarms_is_retried_as_a_read() -> None:
    calls, maintenance, _ = await with_alarms((1, 1), (2**64 - 1, 2))
    found = await maintenance.alarms()
    assert found.alarms == (ActiveAlarm(1, Alarm.NOSPACE), ActiveAlarm(2**64 - 1, Alarm.CORRUPT))
    assert [request.action for request in requests(calls, ALARM, pb.AlarmRequest)] == [GET]
    for member in calls.engine.members.values():
        member.otherwise = unknown()
    with pytest.raises(ConnectionLostError) as caught:
        await maintenance.alarms()
    assert not caught.value.maybe_applied
    await calls.aclose()


async def test_an_unknown_alarm_is_an_error() -> None:
    calls, maintenance, _ = await with_alarms((1, 1), (0xAB, 7))
    with pytest.raises(MalformedReplyError, match="member ab has raised alarm 7"):
        await maintenance.alarms()
    await calls.aclose()


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        ({}, []),
        ({"alarm": "nospace"}, [(2, 2)]),
        ({"alarm": Alarm.CORRUPT}, [(1, 1), (2, 1)]),
        ({"member": 1}, [(2, 1), (2, 2)]),
        ({"alarm": Alarm.NOSPACE, "member": 2}, [(1, 1), (2, 2)]),
        ({"member": 3}, [(1, 1), (2, 1), (2, 2)]),
    ],
)
async def test_disarm_removes_the_chosen_alarms_only(arguments: dict[str, Any], left: list[tuple[int, int]]) -> None:
    raised = [(1, 1), (2, 1), (2, 2)]
    calls, maintenance, alarms = await with_alarms(*raised)
    disarmed = await maintenance.disarm(**arguments)
    assert alarms.raised == left
    kinds = {Alarm.NOSPACE: 1, Alarm.CORRUPT: 2}
    assert [(one.member_id, kinds[one.alarm]) for one in disarmed.alarms] == [one for one in raised if one not in left]
    assert bool(disarmed) is (left != raised)
    await calls.aclose()


async def test_disarm_returns_the_alarms_even_if_an_answer_was_lost() -> None:
    calls, maintenance, alarms = await with_alarms((1, 1))

    def lose_the_answer(attempt: FakeAttempt) -> bytes:
        alarms(attempt)
        raise unknown()

    calls["m1"].answers.append(alarms)  # the listing
    calls["m2"].answers.append(lose_the_answer)
    assert (await maintenance.disarm()).alarms == (ActiveAlarm(1, Alarm.NOSPACE),)
    assert asked(calls, ALARM) == ["m1", "m2", "m3"]
    await calls.aclose()


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [(("nospace",), (0, 1)), ((Alarm.CORRUPT, 2**64 - 1), (2**64 - 1, 2)), (("nospace", Member(7)), (7, 1))],
)
async def test_an_alarm_is_raised_of_a_member_or_of_none(arguments: tuple[Any, ...], sent: tuple[int, int]) -> None:
    calls, maintenance, _ = await with_alarms(sent)
    raised = await maintenance.raise_alarm(*arguments)
    (request,) = requests(calls, ALARM, pb.AlarmRequest)
    assert (request.action, request.member_id, request.alarm) == (pb.AlarmRequestAlarmAction.ACTIVATE, *sent)
    assert [one.member_id for one in raised.alarms] == [sent[0]]
    await calls.aclose()


# Downgrade.


@pytest.mark.parametrize(
    ("arguments", "actions"), [(("validate", "3.6"), [0]), (("enable", "3.6.0"), [0, 1]), (("cancel",), [2])], ids=str
)
async def test_downgrade_sends_its_actions_in_order(arguments: tuple[Any, ...], actions: list[int]) -> None:
    calls, maintenance = await new(pb.DowngradeResponse(header=header(), version="3.7.0"))
    assert (await maintenance.downgrade(*arguments)).version == "3.7.0"
    sent = requests(calls, DOWNGRADE, pb.DowngradeRequest)
    assert [(one.action, one.version) for one in sent] == [(action, "".join(arguments[1:])) for action in actions]
    await calls.aclose()


@pytest.mark.parametrize(
    ("version", "is_refused"), [("3.5", True), ("3.5.0", True), ("3.6", False), ("4.0", False), ("", False)]
)
async def test_a_downgrade_from_3_5_is_never_enabled(version: str, is_refused: bool) -> None:
    calls, maintenance = await new(pb.DowngradeResponse(header=header(), version=version))
    if is_refused:
        with pytest.raises(NotSupportedByServerError, match=r"needs etcd 3\.6 or newer") as caught:
            await maintenance.downgrade("enable", "3.4.0")
        assert (caught.value.needs, caught.value.maybe_applied) == ("3.6", False)
    else:
        await maintenance.downgrade("enable", "3.4.0")
    assert len(requests(calls, DOWNGRADE, pb.DowngradeRequest)) == (1 if is_refused else 2)
    await calls.aclose()


# Snapshots: see also test_snapshot and test_snapshot_file.


async def test_a_snapshot_comes_from_the_given_endpoint() -> None:
    calls, maintenance = await new(pb.StatusResponse())
    calls["m3"].on_stream = sends(*messages(b"x" * 5000))
    snapshot = maintenance.snapshot("m3")
    assert sum([len(chunk) async for chunk in snapshot]) == snapshot.size == 5032
    with pytest.raises(UnknownEndpointError):
        await anext(maintenance.snapshot("m4"))
    with pytest.raises(TypeError):
        maintenance.snapshot(3)  # type: ignore[arg-type] # wrong on purpose
    await calls.aclose()


WRONG: dict[str, tuple[Callable[[Any], Awaitable[object]], type[Exception]]] = {
    "an unknown endpoint": (lambda one: one.status("m4"), UnknownEndpointError),
    "no endpoint": (lambda one: one.defragment(""), UnknownEndpointError),
    "another scheme": (lambda one: one.hash_kv("https://m1"), UnknownEndpointError),
    "a number for an endpoint": (lambda one: one.hash(7), TypeError),
    "None for an endpoint": (lambda one: one.status(None), TypeError),
    "a negative revision": (lambda one: one.hash_kv("m1", -1), InvalidRequestError),
    "an unknown alarm": (lambda one: one.disarm("none"), InvalidRequestError),
    "an alarm's number": (lambda one: one.disarm(1), InvalidRequestError),
    "a member's name": (lambda one: one.disarm(member="m1"), TypeError),
    "raising an unknown alarm": (lambda one: one.raise_alarm("none"), InvalidRequestError),
    "raising an alarm of member 0": (lambda one: one.raise_alarm("nospace", 0), InvalidRequestError),
    "leadership for member 0": (lambda one: one.move_leader(0), InvalidRequestError),
    "leadership by name": (lambda one: one.move_leader("m1"), TypeError),
    "an unknown action": (lambda one: one.downgrade("start", "3.6"), InvalidRequestError),
    "no version": (lambda one: one.downgrade("enable"), InvalidRequestError),
    "too much of a version": (lambda one: one.downgrade("cancel", "3.6"), InvalidRequestError),
    "a number for a version": (lambda one: one.downgrade("enable", 3.6), TypeError),
    "a path that is none": (lambda one: one.save_snapshot(7), TypeError),
    "a snapshot of an unknown endpoint": (lambda one: one.save_snapshot("db", endpoint=7), TypeError),
}


@pytest.mark.parametrize("what", WRONG)
async def test_invalid_arguments_are_not_sent(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    calls, maintenance = await new(pb.StatusResponse())
    call, error = WRONG[what]
    with pytest.raises(error):
        await call(maintenance)
    assert not calls.engine.attempts
    assert not calls.engine.streams
    await calls.aclose()
