"""The command line `etcd-aio` as a process: bytes in and out, signals, locks, secrets. See also `tests/unit/cli`."""

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from etcd_aio import Client
from etcd_aio.fake import FakeEtcd
from etcd_aio.testing import EtcdServer, FaultProxy
from tests.support.command_line import PROGRAM, ROOT, run, started
from tests.support.until import until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def served() -> AsyncIterator[tuple[FakeEtcd, str]]:
    async with FakeEtcd() as fake, fake.serve() as endpoint:
        yield fake, endpoint


# Bytes.


async def test_a_large_value_comes_back_as_it_was(served: tuple[FakeEtcd, str]) -> None:
    _, endpoint = served
    value = bytes(range(256)) * 4096
    assert (await run(f"--endpoints={endpoint}", "put", b"a key \xff", stdin=value)).code == 0
    assert (await run(f"--endpoints={endpoint}", "get", b"a key \xff", "--raw")).stdout == value


async def test_a_reader_that_goes_away_is_no_error(served: tuple[FakeEtcd, str]) -> None:
    _, endpoint = served
    async with Client(endpoint) as client:
        await client.put("a", b"x" * 2**20)
    read, write = os.pipe()
    os.close(read)
    child = await asyncio.create_subprocess_exec(
        *PROGRAM, f"--endpoints={endpoint}", "get", "a", stdout=write, stderr=asyncio.subprocess.PIPE, cwd=ROOT
    )
    os.close(write)
    _, stderr = await child.communicate()
    assert (child.returncode, stderr) == (0, b"")


async def in_shell(endpoint: str, words: str) -> tuple[int, bytes, bytes]:
    """How a command ends whose redirections are those of a shell: its exit code, and what it prints."""
    pipe = asyncio.subprocess.PIPE
    command = f"{shlex.join(PROGRAM)} --endpoints={endpoint} {words}"
    child = await asyncio.create_subprocess_shell(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT)
    async with asyncio.timeout(120):
        stdout, stderr = await child.communicate()
    assert child.returncode is not None
    return child.returncode, stdout, stderr


@pytest.mark.parametrize(
    ("words", "code", "out"),
    [
        ("put a 1 >&-", 0, b""),
        ("get a 2>&-", 0, b"a\n1\n"),
        ("txn <&-", 3, b""),
        ("lock l -- cat <&-", 0, b""),
        ("lock l -- echo done >&- 2>&-", 0, b""),
    ],
)
async def test_what_is_closed_is_nothing_to_read_or_to_write_to(
    words: str, code: int, out: bytes, served: tuple[FakeEtcd, str]
) -> None:
    fake, endpoint = served
    fake.load({"a": "1"})
    ended = await in_shell(endpoint, words)
    assert ended[:2] == (code, out), ended
    assert b"Traceback" not in ended[2]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk")
@pytest.mark.parametrize("words", ["get a", "member list -w table", "--help", "options"])
async def test_a_full_disk_is_an_error(words: str, served: tuple[FakeEtcd, str]) -> None:
    fake, endpoint = served
    fake.load({"a": "1"})
    assert await in_shell(endpoint, f"{words} > /dev/full") == (6, b"", b"Error: No space left on device\n")


# Signals.


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_a_command_and_leaves_nothing_behind(
    served: tuple[FakeEtcd, str], number: signal.Signals
) -> None:
    fake, endpoint = served
    async with Client(endpoint) as client, AsyncExitStack() as stack, asyncio.timeout(120):
        lease = f"{(await client.leases.grant(60)).id:x}"
        commands = ("watch a", f"lease keep-alive {lease}", "lock l", "elect e v", "top", "watch --follow a")
        children = [
            await stack.enter_async_context(started(f"--endpoints={endpoint}", *words.split())) for words in commands
        ]
        await until(lambda: [watcher.key for watcher in fake.watchers].count(b"a") == 2)  # others have watchers, too
        await client.put("a", "1")
        for child in children:
            assert child.stdout is not None
            assert await child.stdout.readline()
            child.send_signal(number)
        ended = [(await child.communicate())[1] for child in children]
        ended_well = ("lock l", "elect e v", "top")  # the lock was held, and is free again
        assert [child.returncode for child in children] == [0 if words in ended_well else 5 for words in commands]
        assert ended == [b""] * len(commands)
    assert set(fake.keys()) == {b"a"}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("lock l", "interrupted while waiting for the lock"),
        ("elect l v", "interrupted while waiting to be elected"),
    ],
)
async def test_a_wait_that_is_interrupted_is_told(words: str, text: str, served: tuple[FakeEtcd, str]) -> None:
    fake, endpoint = served
    async with Client(endpoint) as client, client.lock("l"), asyncio.timeout(120):
        async with started(f"--endpoints={endpoint}", *words.split()) as child:
            await until(lambda: len(fake.keys()) == 2)
            child.send_signal(signal.SIGINT)
            assert await child.communicate() == (b"", f"Error: {text}\n".encode())
        assert child.returncode == 5
        assert len(fake.keys()) == 1


async def test_a_signal_ends_a_command_that_waits_for_its_input(served: tuple[FakeEtcd, str]) -> None:
    _, endpoint = served
    async with started(f"--endpoints={endpoint}", "txn", "-i") as child, asyncio.timeout(60):
        assert child.stdout is not None
        assert await child.stdout.readline() == b"compares:\n"
        child.send_signal(signal.SIGINT)
        assert await child.wait() == 5


async def test_top_leaves_the_terminal_as_it_was(served: tuple[FakeEtcd, str]) -> None:
    _, endpoint = served
    ours, its = os.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24", "XDG_CONFIG_HOME": os.devnull}
    child = await asyncio.create_subprocess_exec(
        *PROGRAM, f"--endpoints={endpoint}", "top", stdin=its, stdout=its, stderr=its, cwd=ROOT, env=environ
    )
    os.close(its)
    shown = bytearray()
    loop = asyncio.get_running_loop()

    def read() -> None:
        try:
            shown.extend(os.read(ours, 65536))
        except OSError:  # the command has ended
            loop.remove_reader(ours)

    loop.add_reader(ours, read)
    try:
        await until(lambda: b"quorum ok" in shown)
        child.send_signal(signal.SIGINT)
        assert await child.wait() == 0
        await until(lambda: b"\x1b[?1049l" in shown and b"\x1b[?25h" in shown)
    finally:
        loop.remove_reader(ours)
        os.close(ours)
        if child.returncode is None:
            child.kill()
            await child.wait()


# Locks.


async def test_the_locked_command_gets_the_key_the_token_and_stdin(served: tuple[FakeEtcd, str]) -> None:
    _, endpoint = served
    script = 'cat; echo "$ETCD_LOCK_KEY $ETCD_LOCK_REV $ETCD_LOCK_FENCING_TOKEN $ETCD_LOCK_LEASE"; exit 3'
    ended = await run(f"--endpoints={endpoint}", "lock", "l", "--", "sh", "-c", script, stdin=b"in\n")
    first, second = ended.stdout.decode().splitlines()
    key, revision, token, lease = second.split()
    assert (ended.code, first, key) == (3, "in", f"l/{lease}")
    assert int(revision) >= int(token)
    assert (await run(f"--endpoints={endpoint}", "lock", "l", "sh", "--", "-c", "kill -9 $$")).code == 128 + 9


async def test_a_taken_lock_is_left_alone_and_a_waiting_command_leaves_no_key(served: tuple[FakeEtcd, str]) -> None:
    fake, endpoint = served
    async with Client(endpoint) as client, client.lock("l") as lock:
        tried = await run(f"--endpoints={endpoint}", "lock", "l", "--try", "--", "false")
        assert tried.code == 75
        waited = await run(f"--endpoints={endpoint}", "lock", "l", "--wait=0.1s", "--conflict-exit=9", "--", "false")
        assert waited.code == 9
        async with started(f"--endpoints={endpoint}", "lock", "l") as child, asyncio.timeout(60):
            await until(lambda: len(fake.keys("l/")) == 2)
            child.terminate()
            assert await child.wait() == 5
        assert [one.key for one in await lock.contenders()] == [lock.key]
    assert fake.keys() == {}


async def hold_and_lose(server: EtcdServer, name: str, stamps: Path, on_term: str) -> None:
    """Hold a lock with a command, lose the member, and let another holder have the lock; all of them write stamps."""
    script = f"trap '{on_term}' TERM; echo ready; while :; do echo running >> $0; sleep 0.05; done"
    async with FaultProxy(server.endpoint) as proxy, Client(server.endpoint) as client:
        words = (f"--endpoints={proxy.endpoint}", "lock", name, "--ttl=3", "--", "sh", "-c", script, str(stamps))
        async with started(*words) as child, asyncio.timeout(120):
            assert child.stdout is not None
            assert await child.stdout.readline() == b"ready\n"
            proxy.black_hole()
            async with client.lock(name, ttl=5):
                with stamps.open("a") as file:
                    file.write("next\n")
            assert await child.wait() == 5


def assert_apart(stamps: Path, end: str) -> None:
    *before, last = stamps.read_text().split()
    assert (before[-1], last) == (end, "next")


ENDS_ITSELF = "echo ended >> $0; exit 0"


@pytest.mark.cluster
async def test_the_command_has_ended_before_the_next_holder_gets_the_lock(tmp_path: Path) -> None:
    async with EtcdServer() as server:
        await asyncio.gather(
            hold_and_lose(server, "one", tmp_path / "one", ENDS_ITSELF),
            hold_and_lose(server, "other", tmp_path / "other", ""),
        )
    assert_apart(tmp_path / "one", "ended")
    assert_apart(tmp_path / "other", "running")


@pytest.mark.cluster
@pytest.mark.nightly
async def test_of_a_hundred_commands_none_runs_beside_the_next_holder(tmp_path: Path) -> None:
    async with EtcdServer() as server:
        for batch in range(20):
            names = [f"{batch}-{number}" for number in range(5)]
            await asyncio.gather(*(hold_and_lose(server, name, tmp_path / name, ENDS_ITSELF) for name in names))
            for name in names:
                assert_apart(tmp_path / name, "ended")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children")
async def test_the_command_is_told_when_etcd_aio_is_killed(served: tuple[FakeEtcd, str], tmp_path: Path) -> None:
    fake, endpoint = served
    told = tmp_path / "told"
    script = "trap 'touch $0; exit' TERM; echo ready; while :; do sleep 0.05; done"
    words = (f"--endpoints={endpoint}", "lock", "l", "--ttl=5", "--", "sh", "-c", script, str(told))
    async with started(*words) as child:
        assert child.stdout is not None
        assert await child.stdout.readline() == b"ready\n"
        child.kill()
        await until(told.exists)
        await fake.advance(10)
        await until(lambda: not fake.keys())


# Secrets.


async def test_no_password_is_shown(served: tuple[FakeEtcd, str]) -> None:
    _, endpoint = served
    async with Client(endpoint) as client:
        await client.auth.user_add("root", "s3cret")
        await client.auth.user_grant_role("root", "root")
    lines = ("get a", "get a --command-timeout=s3cret", "put a", "watch")
    ends = await asyncio.gather(
        *(run(f"--endpoints={endpoint}", "--user=root:s3cret", "--debug", *words.split()) for words in lines)
    )
    assert all("s3cret" not in ended.stdout.decode() + ended.stderr for ended in ends)


# The lines of a session.


async def test_the_progress_of_a_session_is_that_of_the_watches_which_are_there(served: tuple[FakeEtcd, str]) -> None:
    """The first one has ended, and the second one was asked for in the same bytes."""
    fake, endpoint = served
    fake.compact(fake.load({"a": "2"}))
    async with started(f"--endpoints={endpoint}", "watch", "-i") as child, asyncio.timeout(60):
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdin.write(b"watch a --rev=1\n")
        assert b"required revision has been compacted" in await child.stderr.readline()
        assert await child.stderr.readline() == b"watch is canceled by the server\n"
        child.stdin.write(b"watch b\nprogress\n")
        assert await child.stdout.readline() == b"progress notify: %d\n" % fake.revision
        child.stdin.close()
        assert await child.stderr.read() == b"Error: error reading watch request line: EOF\n"
