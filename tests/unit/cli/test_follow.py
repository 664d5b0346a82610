"""cli/follow.py, cli/follow_text.py, cli/watch_command.py: watch --follow and the command of watch: lines, differences,
variables, the order of commands.
"""

import asyncio
from pathlib import Path

import pytest

from etcd_aio import Event, EventType, KeyValue
from etcd_aio.cli.follow_text import line_of
from etcd_aio.cli.watch_command import Commands, variables
from etcd_aio.fake import FakeEtcd
from tests.support.command_here import CommandLine
from tests.support.until import until


def put(value: bytes, before: bytes | None = None, *, key: bytes = b"a", lease: int = 0) -> Event:
    prev_kv = None if before is None else KeyValue(key, before, 1, 1, 1)
    return Event(EventType.PUT, KeyValue(key, value, 1, 812, 2, lease), prev_kv)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (put(b"x"), 'T r812 PUT a "x"'),
        (put(b"x", b""), 'T r812 PUT a "" -> "x"'),
        (put(b"x", b"x", lease=31), 'T r812 PUT a (lease 1f) "x" (as before)'),
        (
            put(b'{"m":20,"b":{"c":1,"d":[1]}}', b'{"m":10,"b":{"c":1,"d":[2]}}'),
            '{"m": 10 -> 20, "b": {"d": [2] -> [1]}}',
        ),
        (put(b'{"new":true}', b'{"old":1}'), '{"old": -1, "new": +true}'),
        (put(b'{"a":1}', b"{"), '"{" -> {"a": 1}'),
        (put(b"\x00\xff\x1b[31m", key=b"\x1b k"), 'PUT "\\x1b k" "\\x00\\xff\\x1b[31m"'),
        (Event(EventType.DELETE, KeyValue(b"a", b"", 0, 815)), "T r815 DEL a"),
    ],
)
def test_the_line_of_an_event(event: Event, text: str) -> None:
    assert line_of(event, "T").endswith(text)
    assert "\x1b" not in line_of(event, "T")
    assert line_of(event, "T", is_coloured=True).startswith("\x1b")


def test_raw_variables_have_the_bytes_and_base64() -> None:
    assert variables(put(b"a\xff", key=b"k\0"), 5, "raw") == {
        "ETCD_WATCH_REVISION": b"5",
        "ETCD_WATCH_EVENT_TYPE": b"PUT",
        "ETCD_WATCH_KEY_B64": b"awA=",
        "ETCD_WATCH_VALUE_B64": b"Yf8=",
        "ETCD_WATCH_VALUE": b"a\xff",
    }


@pytest.mark.anyio
async def test_one_job_keeps_the_order_and_several_run_at_once(tmp_path: Path) -> None:
    one = Commands(("sh", "-c", f"sleep 0.0$ETCD_WATCH_VALUE; printf $ETCD_WATCH_VALUE >> {tmp_path}/one"), "raw")
    for number in (b"9", b"1"):
        await one.run(put(number), 1)
    assert (tmp_path / "one").read_text() == "91"
    # Each waits for the other.
    script = f"touch {tmp_path}/$ETCD_WATCH_VALUE; until test -e {tmp_path}/a -a -e {tmp_path}/b; do sleep 0.01; done"
    both = Commands(("sh", "-c", script), "raw", jobs=2)
    try:
        for value in (b"a", b"b"):
            await both.run(put(value), 1)
    finally:
        await both.aclose()


@pytest.mark.anyio
@pytest.mark.virtual_time
async def test_following_shows_the_youngest_keys_then_changes_and_losses(fake: FakeEtcd, command: CommandLine) -> None:
    for number in range(5):
        fake.load({f"app/{number}": "old"})
    following = asyncio.create_task(command("watch", "--follow", "--last=2", "--prefix", "app/"))
    await until(lambda: bool(fake.watchers))
    member = fake.members[fake.watchers[0].member]
    # Not the leader: while none leads, the other members refuse the watch, which is one more loss.
    fake.elect(next(other for other in fake.members if other is not member))
    member.stop()
    await until(lambda: bool(fake.watchers) and fake.members[fake.watchers[0].member] is not member)
    fake.load({"app/0": "new"})
    await asyncio.sleep(1)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    out, err = command.capture.readouterr()
    lines = [line.split(" ", 1)[1] for line in out.decode().splitlines()]
    assert lines == ['r5 PUT app/3 "old"', 'r6 PUT app/4 "old"', 'r7 PUT app/0 "old" -> "new"']
    lost, resumed = err.decode().splitlines()
    assert "lost" in lost
    assert "after r6" in resumed


@pytest.mark.anyio
@pytest.mark.parametrize(
    "words", ["--env=x", "--jobs=0", "--last=1", "--follow --prev-kv", "--follow --last=1 --rev=3"]
)
async def test_flags_that_exclude_each_other(words: str, command: CommandLine) -> None:
    assert await command("watch", "a", *words.split()) == 128
