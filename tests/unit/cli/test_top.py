"""top: the model, the screen, and lines of JSON of a cluster with a silent member."""

import asyncio
import json

import pytest
from rich.console import Console

from etcd_aio import AlarmResult, Header, Member, MemberListResult, StatusResult
from etcd_aio.cli.top_model import Answer, Counters, Snapshot, Top
from etcd_aio.cli.top_screen import screen
from etcd_aio.fake import FakeEtcd
from tests.support.command_here import CommandLine
from tests.support.until import until

MEMBERS = MemberListResult(Header(), (Member(1, "m1"), Member(2, "m2"), Member(3, "m3")))


def status(member: int, *, applied: int = 90, term: int = 7, leader: int = 1) -> Answer:
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
    return Answer(found, 0.0123)


def looked(now: float, answers: dict[str, Answer], top: Top | None = None, **watched: Counters) -> Snapshot:
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
    found = looked(5.0, {"a": Answer(None, error="no answer"), "b": status(2, term=8, leader=2), "c": status(3)}, top)
    silent = found.members[0]
    assert (silent.name, silent.role, silent.silent, silent.error) == ("m1", "", 4.0, "no answer")
    assert (found.leader, found.answering, found.term) == ("m2", 2, 8)
    again = top.look(6.0, dict.fromkeys("abc", Answer(None)), None, None, {})
    assert [row.silent for row in again.members] == [5.0, 1.0, 1.0]
    assert (again.has_quorum, again.leader, again.cluster_id) == (False, "", "c")


def test_rates_are_those_since_the_look_before() -> None:
    counters, top = Counters(), Top("abc", 0.0)
    counters.add([10, 30], 79)
    (row,) = looked(2.0, {"a": status(1)}, top, **{"app/": counters}).prefixes
    assert (row.events, row.bytes, row.lag) == (1.0, 20.0, 2)
    (row,) = looked(4.0, {"a": status(1)}, top, **{"app/": counters}).prefixes
    assert (row.events, row.bytes) == (0.0, 0.0)


def printed(found: Snapshot, width: int) -> str:
    console = Console(width=width, color_system=None, force_terminal=True)
    with console.capture() as capture:
        console.print(screen(found))
    return capture.get()


def test_the_screen_has_every_row_in_a_narrow_terminal_too() -> None:
    top = Top("abc", 0.0)
    counters = Counters()
    counters.error = "[not] allowed"
    answers = {"a": status(1), "b": status(2), "c": Answer(None, error="[red] error")}
    found = looked(3.0, answers, top, **{"[app]/": counters})
    long = printed(looked(3.0, {**answers, "c": Answer(None, error="no answer " * 30)}), 118)
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
