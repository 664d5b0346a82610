"""cli/top.py, cli/top_metrics.py, cli/top_model.py, cli/top_screen.py: the model, the screen, and lines of JSON of a
cluster with a silent member.
"""

import asyncio
import json
from dataclasses import replace

import pytest
from rich.console import Console

from etcd_aio import Header
from etcd_aio.admin import AlarmResult, DowngradeInfo, HealthCheck, Member, MemberHealth, MemberListResult, StatusResult
from etcd_aio.cli.top_metrics import Metrics, p99, read_metrics
from etcd_aio.cli.top_model import Counters, MemberAnswer, Top, TopSnapshot
from etcd_aio.cli.top_screen import screen
from etcd_aio.fake import FakeEtcd
from etcd_aio.fake.engine import FakeEngine
from etcd_aio.transport import Target
from tests.support.command_here import CommandLine
from tests.support.until import until

MEMBERS = MemberListResult(Header(), (Member(1, "m1"), Member(2, "m2"), Member(3, "m3")))


def status(member: int, *, applied: int = 90, term: int = 7, leader: int = 1) -> MemberAnswer:
    found = StatusResult(
        Header(0xC, member, 81, term),
        version="3.6.16",
        db_size=1000,
        leader=leader,
        raft_index=90,
        raft_term=term,
        raft_applied_index=applied,
        db_size_in_use=880,
        is_learner=member == 3,
        db_size_quota=10_000,
    )
    return MemberAnswer(found, 0.0123)


def looked(now: float, answers: dict[str, MemberAnswer], top: Top | None = None, **watched: Counters) -> TopSnapshot:
    return (top or Top("abc", 0.0)).look(now, answers, MEMBERS, AlarmResult(Header()), watched)


def test_roles_lags_and_percents() -> None:
    found = looked(1.0, {"a": status(1), "b": status(2, applied=80), "c": status(3, applied=89)})
    assert [(row.name, row.role, row.lag, row.behind) for row in found.members] == [
        ("m1", "leader", 0, 0),
        ("m2", "follower", 10, 10),
        ("m3", "learner", 1, 1),
    ]
    assert {(row.in_use, row.quota, row.answer_ms) for row in found.members} == {(88, 10, 12.3)}
    assert (found.cluster_id, found.leader, found.term, found.revision) == ("c", "m1", 7, 81)


def test_a_silent_member_keeps_its_row_and_a_former_leader_does_not_count() -> None:
    top = Top("abc", 0.0)
    looked(1.0, {"a": status(1), "b": status(2), "c": status(3)}, top)
    found = looked(
        5.0, {"a": MemberAnswer(None, error="no answer"), "b": status(2, term=8, leader=2), "c": status(3)}, top
    )
    silent = found.members[0]
    assert (silent.name, silent.role, silent.silent, silent.error) == ("m1", "", 4.0, "no answer")
    assert (found.leader, found.answering, found.term) == ("m2", 2, 8)
    again = top.look(6.0, dict.fromkeys("abc", MemberAnswer(None)), None, None, {})
    assert [row.silent for row in again.members] == [5.0, 1.0, 1.0]
    assert (again.has_quorum, again.leader, again.cluster_id) == (False, "", "c")


def test_rates_are_those_since_the_look_before() -> None:
    counters, top = Counters(), Top("abc", 0.0)
    counters.add([10, 30], 79)
    (row,) = looked(2.0, {"a": status(1)}, top, **{"app/": counters}).prefixes
    assert (row.events, row.bytes, row.lag) == (1.0, 20.0, 2)
    (row,) = looked(4.0, {"a": status(1)}, top, **{"app/": counters}).prefixes
    assert (row.events, row.bytes) == (0.0, 0.0)


METRICS = """# HELP etcd_server_proposals_pending The current number of pending proposals to commit.
# TYPE etcd_server_proposals_pending gauge
etcd_server_proposals_pending 3
etcd_server_proposals_pending_else 99
etcd_debugging_mvcc_watcher_total 1.2e+06
etcd_debugging_mvcc_events_total 100
etcd_server_slow_apply_total 5
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.001"} 90
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.002"} 98
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.004"} 100
etcd_disk_wal_fsync_duration_seconds_bucket{le="+Inf"} 100
etcd_disk_wal_fsync_duration_seconds_sum 0.1
go_goroutines 100
"""


def test_metrics_are_found_among_others_and_what_is_malformed_is_missing() -> None:
    found = read_metrics(METRICS)
    assert (found.watchers, found.events, found.slow_applies, found.pending) == (1_200_000, 100, 5, 3)
    assert found.fsyncs == {0.001: 90, 0.002: 98, 0.004: 100, float("inf"): 100}
    for text in ("", "<html>", "etcd_server_proposals_pending x", "etcd_server_slow_apply_total +Inf", "etcd_ \0"):
        assert read_metrics(text) == Metrics()
    assert read_metrics('etcd_disk_wal_fsync_duration_seconds_bucket{le="x"} 1').fsyncs == {}


def test_the_percentile_is_that_of_the_time_between_two_looks() -> None:
    now = read_metrics(METRICS).fsyncs
    assert p99(now, None) == 3.0, "half way from 98 to 100, between 2 and 4 ms"
    assert p99(now, dict.fromkeys(now, 90)) == pytest.approx(3.9)
    assert p99(now, now) is None, "there was none"
    assert p99(now, {**now, 0.004: 200, float("inf"): 200}) == 3.0, "the member began anew"
    assert p99({0.001: 0, float("inf"): 7}, None) == 1.0, "longer than the last limit"
    assert p99({}, None) is None


def test_rows_have_the_metrics_of_members_that_send_them() -> None:
    top = Top("ab", 0.0)
    first = replace(status(1), metrics=read_metrics(METRICS))
    (row, other) = looked(1.0, {"a": first, "b": status(2)}, top).members
    assert (row.watchers, row.events, row.slow_applies, row.fsync_p99_ms, row.pending) == (1_200_000, None, 5, 3.0, 3)
    assert (other.watchers, other.events, other.slow_applies, other.fsync_p99_ms, other.pending) == (None,) * 5
    looked(2.0, {"a": status(1), "b": status(2)}, top)
    second = replace(first, metrics=read_metrics(METRICS.replace("events_total 100", "events_total 180")))
    (row, _) = looked(5.0, {"a": second, "b": status(2)}, top).members
    assert (row.events, row.fsync_p99_ms) == (20.0, None), "80 in the four seconds since they were known"
    again = replace(first, metrics=read_metrics(METRICS.replace("events_total 100", "events_total 7")))
    assert looked(6.0, {"a": again, "b": status(2)}, top).members[0].events == 7.0, "the member began anew"


def test_the_screen_has_the_metrics_only_if_a_member_sends_them() -> None:
    sends = replace(status(1), metrics=read_metrics(METRICS))
    assert "fsync" not in printed(looked(1.0, {"a": status(1), "b": status(2)}), 80)
    shown = printed(looked(1.0, {"a": sends, "b": status(2), "c": MemberAnswer(None)}), 80)
    lines = [line.split() for line in shown.splitlines()]
    assert ["m1", "1200000", "-", "5", "3.0", "3", "-"] in lines
    assert ["m2", "-", "-", "-", "-", "-", "-"] in lines
    assert sum("fsync" in line for line in lines) == 1


NEWER = """
etcd_network_known_peers{Local="a",Remote="a"} 1
etcd_network_known_peers{Local="a",Remote="b"} 1
etcd_server_feature_enabled{name="AllAlpha",stage="ALPHA"} 0
etcd_server_feature_enabled{name="AllBeta",stage="BETA"} 0
etcd_server_feature_enabled{name="FastLeaseKeepAlive",stage="BETA"} 0
etcd_server_feature_enabled{name="LeaseCheckpoint",stage="ALPHA"} 0
etcd_server_feature_enabled{name="StopGRPCServiceOnDefrag",stage="ALPHA"} 1
etcd_server_feature_enabled{name="TxnModeWriteWithSharedBuffer",stage="BETA"} 1
etcd_server_feature_enabled{name="Malformed",stage="ALPHA"} x
"""


def test_feature_gates_and_peers_are_those_of_newer_releases() -> None:
    found = read_metrics(METRICS + NEWER)
    assert found.features == ("+StopGRPCServiceOnDefrag", "-FastLeaseKeepAlive")
    assert found.known_peers == 2
    assert (read_metrics(METRICS).features, read_metrics(METRICS).known_peers) == ((), None)
    looks = looked(1.0, {"a": replace(status(1), metrics=found), "b": status(2)})
    assert [row.features for row in looks.members] == [found.features, (), ()]
    shown = printed(looks, 118)
    assert "+StopGRPCServiceOnDefrag -FastLeaseKeepAlive" in shown
    assert "features" not in printed(looked(1.0, {"a": replace(status(1), metrics=read_metrics(METRICS))}), 118)


def test_a_member_that_is_not_ready_says_why() -> None:
    failed = MemberHealth("a", "/readyz", False, (HealthCheck("data_corruption", False, "x"), HealthCheck("b", True)))
    answers = {
        "a": replace(status(1), readiness=failed),
        "b": replace(status(2), readiness=replace(failed, is_ok=True)),
    }
    found = looked(1.0, {**answers, "c": status(3)})
    assert [row.ready for row in found.members] == [False, True, None]
    assert found.members[0].failed_checks == ("data_corruption",)
    shown = printed(found, 118)
    assert shown.count("not ready") == 1
    assert "not ready: data_corruption" in shown


def test_a_downgrade_and_the_version_of_the_storage_are_in_the_row() -> None:
    answer = status(1)
    assert answer.status is not None
    newer = replace(answer.status, storage_version="3.6.0", downgrade_info=DowngradeInfo(True, "3.5.0"))
    (row, other, _) = looked(1.0, {"a": MemberAnswer(newer), "b": status(2)}).members
    assert (row.storage_version, row.downgrade_target) == ("3.6.0", "3.5.0")
    assert (other.storage_version, other.downgrade_target) == ("", "")


def printed(found: TopSnapshot, width: int) -> str:
    console = Console(width=width, color_system=None, force_terminal=True)
    with console.capture() as capture:
        console.print(screen(found))
    return capture.get()


def test_the_screen_has_every_row_in_a_narrow_terminal_too() -> None:
    top = Top("abc", 0.0)
    counters = Counters()
    counters.error = "[not] allowed"
    answers = {"a": status(1), "b": status(2), "c": MemberAnswer(None, error="[red] error")}
    found = looked(3.0, answers, top, **{"[app]/": counters})
    long = printed(looked(3.0, {**answers, "c": MemberAnswer(None, error="no answer " * 30)}), 118)
    assert all(text in long for text in ("follower", "3.6.16", "1.0 kB", "silent 3 s", "no answer"))
    assert len(long.splitlines()) == len(found.members) + 2
    narrow, wide = printed(found, 40), printed(found, 120)
    assert all(len(line) <= 40 for line in narrow.splitlines())
    assert all(text in narrow for text in ("m1", "m2", "c"))
    assert all(text in wide for text in ("[red] error", "[app]/", "quorum ok 2/3", "silent 3 s"))
    assert "\x1b" not in narrow + wide


@pytest.mark.anyio
@pytest.mark.virtual_time
async def test_a_pipe_gets_a_line_of_json_for_each_look(fake: FakeEtcd, command: CommandLine) -> None:
    fake.members[2].pause()
    assert await command("top", "--once") == 0
    found = json.loads(command.out)
    assert [row["role"] for row in found["members"]][:2] == ["leader", "follower"]
    assert found["members"][2]["silent"] > 0
    assert found["has_quorum"] is True
    assert [row["ready"] for row in found["members"]] == [True, True, None]
    assert [row["watchers"] for row in found["members"]] == [0, 0, None], "the fake serves some metrics"
    looking = asyncio.create_task(command("top", "--interval=1s", "--watch", "app/"))
    await until(lambda: bool(fake.watchers))
    for number in range(10):
        fake.load({f"app/{number}": "12345"})
        await asyncio.sleep(0.5)
    looking.cancel()
    assert await looking == 0
    rows = [json.loads(line)["prefixes"][0] for line in command.out.splitlines()]
    assert sum(row["events"] for row in rows) > 0
    assert max(row["bytes"] for row in rows) >= max(row["events"] for row in rows) * 10


@pytest.mark.anyio
@pytest.mark.virtual_time
async def test_members_without_metrics_are_shown_all_the_same(
    fake: FakeEtcd, command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hangs(engine: FakeEngine, target: Target, path: str) -> bytes:
        await asyncio.sleep(3600)
        return b""

    monkeypatch.setattr(FakeEngine, "http_get", hangs)
    began = asyncio.get_running_loop().time()
    assert await command("top", "--once", "--interval=3s") == 0
    assert asyncio.get_running_loop().time() - began < 3.5
    found = json.loads(command.out)
    assert [row["role"] for row in found["members"]] == ["leader", "follower", "follower"]
    assert {row["watchers"] for row in found["members"]} == {None}
    assert max(row["answer_ms"] for row in found["members"]) < 1000.0
