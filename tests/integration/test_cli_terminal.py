"""A command under a lock or a leadership, in a terminal and without one: keys, signals, stops and losses.

What is expected is what a shell does with a command of its own; etcdctl is beside it where it does so too.
"""

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from etcd_aio import Client
from etcd_aio.fake import FakeEtcd
from tests.support.command_line import PROGRAM, ROOT
from tests.support.pty_jobs import CTRL_C, CTRL_Z, Witness, in_terminal, session, state
from tests.support.recipes import built
from tests.support.until import PATIENCE, until

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")]

VERBS = ("lock n --ttl=60", "elect n me --ttl=60")
TERMINALS = ("tty", os.devnull)  # stdin, in a terminal
SHORT = "lock n --ttl=6 --grace=0.1s"


@pytest.fixture
async def served() -> AsyncIterator[tuple[FakeEtcd, str]]:
    async with FakeEtcd() as fake, fake.serve() as endpoint:
        yield fake, endpoint


@pytest.fixture
def witness(tmp_path: Path) -> Witness:
    return Witness(tmp_path / "told")


def words_of(endpoint: str, verb: str, command: tuple[str, ...] = ()) -> tuple[str, ...]:
    return (*PROGRAM, f"--endpoints={endpoint}", *verb.split(), *(("--", *command) if command else ()))


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


# Keys: each signals the command once, whoever has the foreground.


@pytest.mark.parametrize("stdin", TERMINALS)
@pytest.mark.parametrize("verb", VERBS)
async def test_one_ctrl_c_is_one_sigint(verb: str, stdin: str, served: tuple[FakeEtcd, str], witness: Witness) -> None:
    _, endpoint = served
    async with in_terminal(*words_of(endpoint, verb, witness.command()), stdin=stdin) as job:
        pid = await witness.pid()
        for number in (1, 2):
            job.press(CTRL_C)
            await until(lambda number=number: len(witness.told()) >= number)  # type: ignore[misc]
            await witness.goes_on()
            assert witness.told() == ["SIGINT"] * number
        os.kill(parent_of(pid), signal.SIGTERM)
        await witness.told_of("SIGTERM")
        await witness.goes_on()
        assert witness.told() == ["SIGINT", "SIGINT", "SIGTERM"]
        os.kill(pid, signal.SIGKILL)
        assert await job.report() == f"ended {128 + 9}"


async def test_etcdctl_has_one_sigint_too(served: tuple[FakeEtcd, str], witness: Witness) -> None:
    _, endpoint = served
    program = await asyncio.to_thread(built, "tests/support/etcdctl")
    command = (*program, f"--endpoints={endpoint}", "lock", "n", "--", *witness.command())
    async with in_terminal(*command) as job:
        pid = await witness.pid()
        job.press(CTRL_C)
        await witness.told_of("SIGINT")
        await witness.goes_on()
        assert witness.told() == ["SIGINT"]
        os.kill(pid, signal.SIGKILL)
        assert (await job.report()).startswith("ended")


@pytest.mark.parametrize("stdin", TERMINALS)
async def test_an_interrupted_command_ends_the_script_around_it(
    stdin: str, served: tuple[FakeEtcd, str], witness: Witness
) -> None:
    """As without etcd-aio: the shell sees that the command was ended by SIGINT, and was signalled itself."""
    fake, endpoint = served
    line = shlex.join(words_of(endpoint, VERBS[0], witness.command("dies")))
    async with in_terminal("bash", "-c", f"{line}; echo went on; true", stdin=stdin) as job:
        await witness.pid()
        job.press(CTRL_C)
        assert await job.report() == f"ended {-signal.SIGINT}"
        assert b"went on" not in job.shown
    assert fake.keys() == {}


@pytest.mark.parametrize("stdin", TERMINALS)
@pytest.mark.parametrize("verb", VERBS)
async def test_a_command_reads_the_terminal(
    verb: str, stdin: str, served: tuple[FakeEtcd, str], witness: Witness
) -> None:
    fake, endpoint = served
    async with in_terminal(*words_of(endpoint, verb, witness.command("tty", "end")), stdin=stdin) as job:
        pid = await witness.pid()
        await until(lambda: job.foreground() == pid)
        job.press(b"hello\n")
        await witness.told_of("read hello")
        job.press(CTRL_C)
        assert await job.report() == "ended 7"
        assert [word for word in witness.told() if word != "SIGCONT"] == ["read hello", "SIGINT"]
    assert fake.keys() == {}


@pytest.mark.parametrize("stdin", TERMINALS)
@pytest.mark.parametrize("verb", VERBS)
async def test_ctrl_z_stops_both_and_fg_continues_both(
    verb: str, stdin: str, served: tuple[FakeEtcd, str], witness: Witness
) -> None:
    _, endpoint = served
    async with in_terminal(*words_of(endpoint, verb, witness.command("child")), stdin=stdin) as job:
        processes = [await witness.pid(), await witness.pid("child")]
        holder = parent_of(processes[0])
        for order in ("fg", "bg", "fg"):
            job.press(CTRL_Z) if order != "fg" or "SIGCONT" not in witness.told() else os.killpg(holder, signal.SIGTSTP)
            assert await job.report() == f"stopped {signal.SIGTSTP:d}"
            await until(lambda: [state(one) for one in (*processes, holder)] == ["T"] * 3)
            told = len(witness.lines())
            job.order(order)
            await until(lambda told=told: "SIGCONT" in witness.lines()[told:])  # type: ignore[misc]
            await witness.goes_on()
        os.kill(holder, signal.SIGKILL)
        assert await job.report() == "ended -9"


@pytest.mark.slow
@pytest.mark.parametrize("order", ["fg", "bg"])
@pytest.mark.parametrize("stdin", TERMINALS)
async def test_a_stopped_command_whose_lock_is_lost_does_not_run_again(
    stdin: str, order: str, served: tuple[FakeEtcd, str], witness: Witness
) -> None:
    _, endpoint = served
    async with in_terminal(*words_of(endpoint, SHORT, witness.command("child")), stdin=stdin) as job:
        processes = [await witness.pid(), await witness.pid("child")]
        job.press(CTRL_Z)
        assert await job.report() == f"stopped {signal.SIGTSTP:d}"
        await until(lambda: [state(one) for one in processes] == ["T", "T"])
        before = witness.lines()
        async with Client(endpoint) as client, client.lock("n"):
            job.order(order)
            assert await job.report() == "ended 5"
            await until(lambda: session(job.shell.pid) == [])
            assert witness.lines() == before
        assert b"the command was ended" in job.shown


async def test_a_command_that_ignores_ctrl_z_goes_on_with_its_lock(
    served: tuple[FakeEtcd, str], witness: Witness
) -> None:
    fake, endpoint = served
    async with in_terminal(*words_of(endpoint, VERBS[0], witness.command("ignore", "end")), stdin=os.devnull) as job:
        holder = parent_of(await witness.pid())
        job.press(CTRL_Z)
        await witness.goes_on()
        job.press(CTRL_C)
        assert await job.report() == "ended 7"
        assert state(holder) == ""
    assert fake.keys() == {}


async def test_a_job_in_the_background_that_reads_the_terminal_stops_until_it_is_in_the_foreground(
    served: tuple[FakeEtcd, str], witness: Witness
) -> None:
    _, endpoint = served
    async with in_terminal(*words_of(endpoint, VERBS[0], witness.command("tty", "end")), stdin=os.devnull) as job:
        pid = await witness.pid()
        await until(lambda: job.foreground() == pid)
        job.press(CTRL_Z)
        assert await job.report() == f"stopped {signal.SIGTSTP:d}"
        job.order("bg")
        assert await job.report() == f"stopped {signal.SIGTTIN:d}"
        job.order("fg")
        await until(lambda: witness.told().count("SIGCONT") >= 2)
        job.press(b"hello\n")
        await witness.told_of("read hello")
        job.press(CTRL_C)
        assert await job.report() == "ended 7"


# The end of the terminal.


@pytest.mark.parametrize("stdin", TERMINALS)
@pytest.mark.parametrize("verb", VERBS)
async def test_a_terminal_that_is_closed_leaves_nothing(
    verb: str, stdin: str, served: tuple[FakeEtcd, str], witness: Witness
) -> None:
    fake, endpoint = served
    async with Client(endpoint) as client, client.lock("taken"):
        async with (
            in_terminal(*words_of(endpoint, verb, witness.command("end")), stdin=stdin) as command,
            in_terminal(*words_of(endpoint, verb.replace(" n ", " m "))) as holding,
            in_terminal(*words_of(endpoint, verb.replace(" n ", " taken "))) as waiting,
        ):
            await witness.pid()
            await until(lambda: b"m/" in holding.shown)
            await until(lambda: len(fake.keys("taken/")) == 2)
            jobs = [command, holding, waiting]
            for job in jobs:
                job.hang_up()
            for job in jobs:
                await until(lambda job=job: session(job.shell.pid) == [])  # type: ignore[misc]
            assert [word for word in witness.told() if word != "SIGCONT"] == ["SIGHUP"]
        assert len(fake.keys()) == 1
        assert len(fake.leases) == 1


async def test_nohup_keeps_a_lock_and_its_command(served: tuple[FakeEtcd, str], witness: Witness) -> None:
    fake, endpoint = served
    nohup = ("sh", "-c", "trap '' HUP; exec \"$@\"", "nohup")
    async with in_terminal(*nohup, *words_of(endpoint, VERBS[0], witness.command()), stdin=os.devnull) as job:
        pid = await witness.pid()
        job.hang_up()
        await witness.told_of("SIGCONT")  # which the shell sends after SIGHUP
        await witness.goes_on()
        assert witness.told() == ["SIGCONT"]
        assert len(fake.keys("n/")) == 1
        os.kill(pid, signal.SIGKILL)
        await until(lambda: fake.keys() == {})


# Without a terminal.


@dataclass
class Alone:
    """A command without a terminal."""

    process: asyncio.subprocess.Process

    async def code(self) -> int:
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()


@asynccontextmanager
async def without_terminal(*command: str) -> AsyncIterator[Alone]:
    null = asyncio.subprocess.DEVNULL
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ETCD", "PYTHONDEVMODE"))}
    child = await asyncio.create_subprocess_exec(
        *command, stdin=null, stdout=null, stderr=null, cwd=ROOT, env=clean, start_new_session=True
    )
    try:
        yield Alone(child)
    finally:
        for pid in session(child.pid):
            os.kill(pid, signal.SIGKILL)
        await child.wait()


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGALRM,
    ],
)
@pytest.mark.parametrize("verb", VERBS)
async def test_without_a_terminal_each_signal_is_passed_on_once(
    verb: str, number: signal.Signals, served: tuple[FakeEtcd, str], witness: Witness
) -> None:
    fake, endpoint = served
    async with without_terminal(*words_of(endpoint, verb, witness.command("end"))) as job:
        await witness.pid()
        job.process.send_signal(number)
        assert await job.code() == 7
        assert witness.told() == [number.name]
    assert fake.keys() == {}
    assert not fake.leases


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM])
@pytest.mark.parametrize("verb", VERBS)
async def test_signals_that_are_for_the_command_do_not_end_what_waits_or_holds_without_one(
    verb: str, number: signal.Signals, served: tuple[FakeEtcd, str]
) -> None:
    fake, endpoint = served
    async with without_terminal(*words_of(endpoint, verb)) as holder:
        await until(lambda: len(fake.keys()) == 1)
        async with without_terminal(*words_of(endpoint, verb, ("true",))) as waiter:
            await until(lambda: len(fake.keys()) == 2)
            for job in (holder, waiter):
                job.process.send_signal(number)
            await asyncio.sleep(0.2)
            assert len(fake.keys()) == 2
            holder.process.send_signal(signal.SIGTERM)
            assert await waiter.code() == 0
        await holder.code()
    assert fake.keys() == {}


async def test_without_a_terminal_a_stopped_command_keeps_its_lock(
    served: tuple[FakeEtcd, str], witness: Witness
) -> None:
    _, endpoint = served
    async with without_terminal(*words_of(endpoint, VERBS[0], witness.command("end"))) as job:
        pid = await witness.pid()
        job.process.send_signal(signal.SIGTSTP)
        await until(lambda: state(pid) == "T")
        assert state(job.process.pid) not in ("", "T")
        job.process.send_signal(signal.SIGCONT)
        await witness.told_of("SIGCONT")
        job.process.send_signal(signal.SIGTSTP)
        await until(lambda: state(pid) == "T")
        job.process.send_signal(signal.SIGTERM)  # which a stopped process would not get
        assert await job.code() == 7


# Losses: the whole group ends.


@pytest.mark.parametrize("stdin", [*TERMINALS, ""])
@pytest.mark.parametrize("verb", ["lock n --ttl=60 --grace=0.5s", "elect n me --ttl=3"])
async def test_the_whole_command_ends_when_what_it_needs_is_lost(
    verb: str, stdin: str, served: tuple[FakeEtcd, str], witness: Witness
) -> None:
    fake, endpoint = served
    command = words_of(endpoint, verb, witness.command("end", "child"))
    async with Client(endpoint) as client:
        if stdin:
            async with in_terminal(*command, stdin=stdin) as job:
                processes = [await witness.pid(), await witness.pid("child")]
                await client.delete(prefix="n/")
                assert await job.report() == "ended 5"
                await until(lambda: [state(one) for one in processes] == ["", ""])
        else:
            async with without_terminal(*command) as alone:
                processes = [await witness.pid(), await witness.pid("child")]
                await client.delete(prefix="n/")
                assert await alone.code() == 5
                await until(lambda: [state(one) for one in processes] == ["", ""])
    assert "SIGTERM" in witness.told()
    assert fake.keys() == {}


async def test_a_command_may_go_on_without_its_lock(served: tuple[FakeEtcd, str], witness: Witness) -> None:
    fake, endpoint = served
    verb = "lock n --ttl=60 --on-lost=ignore"
    async with in_terminal(*words_of(endpoint, verb, witness.command("end"))) as job, Client(endpoint) as client:
        pid = await witness.pid()
        await until(lambda: len(fake.watchers) == 1)  # it has the key of the lock
        await client.delete(prefix="n/")
        await until(lambda: not fake.watchers)
        await witness.goes_on()
        assert witness.told() == []
        os.kill(pid, signal.SIGTERM)
        assert await job.report() == "ended 5"
        assert b"its key is gone" in job.shown
        assert b"the command went on without it" in job.shown


# Variables: those of the lock that runs the command.


@pytest.mark.parametrize("verbs", [("lock outer", "lock inner"), ("elect outer x", "elect inner x")])
async def test_the_command_of_nested_verbs_gets_the_variables_of_the_inner_one(
    verbs: tuple[str, str], served: tuple[FakeEtcd, str], tmp_path: Path
) -> None:
    fake, endpoint = served
    for stale in ("KEY", "REV", "LEASE", "FENCING_TOKEN"):
        os.environ[f"ETCD_LOCK_{stale}"] = os.environ[f"ETCD_ELECT_{stale}"] = "stale"
    told = tmp_path / "told"
    try:
        inner = words_of(endpoint, verbs[1], ("sh", "-c", f"env > {told}"))
        child = await asyncio.create_subprocess_exec(*words_of(endpoint, verbs[0], inner), cwd=ROOT)
        assert await child.wait() == 0
    finally:
        for name in [name for name in os.environ if name.startswith(("ETCD_LOCK_", "ETCD_ELECT_"))]:
            del os.environ[name]
    family = f"ETCD_{verbs[0].split()[0].upper()}_"
    variables = dict(line.split("=", 1) for line in told.read_text().splitlines() if line.startswith(family))
    key = variables[f"{family}KEY"]
    assert key.startswith("inner/")
    created = next(change for change in fake.changes() if change.key == key.encode())
    assert int(variables[f"{family}FENCING_TOKEN"]) == created.create_revision
    if family == "ETCD_LOCK_":
        assert key == f"inner/{variables['ETCD_LOCK_LEASE']}"
        assert "stale" not in variables.values()


# Commands that handle the terminal themselves.


@pytest.mark.parametrize("stdin", TERMINALS)
async def test_locks_in_locks_stop_and_go_on_together(
    stdin: str, served: tuple[FakeEtcd, str], witness: Witness
) -> None:
    fake, endpoint = served
    inner = words_of(endpoint, VERBS[0], witness.command("tty", "end"))
    async with in_terminal(*words_of(endpoint, "lock outer", inner), stdin=stdin) as job:
        pid = await witness.pid()
        await until(lambda: job.foreground() == pid)
        job.press(CTRL_Z)
        assert await job.report() == f"stopped {signal.SIGTSTP:d}"
        await until(lambda: {state(one) for one in session(job.shell.pid) if one != job.shell.pid} == {"T"})
        job.order("fg")
        await until(lambda: job.foreground() == pid)
        job.press(b"hello\n")
        await witness.told_of("read hello")
        job.press(CTRL_C)
        assert await job.report() == "ended 7"
        assert [word for word in witness.told() if word != "SIGCONT"] == ["read hello", "SIGINT"]
    assert fake.keys() == {}


async def test_a_shell_under_a_lock_has_job_control(served: tuple[FakeEtcd, str], witness: Witness) -> None:
    fake, endpoint = served
    command = words_of(endpoint, VERBS[0], ("bash", "--norc", "-i"))
    async with in_terminal(*command, environ={"PS1": "$ ", "HISTFILE": "", "TERM": "dumb"}) as job:
        await until(lambda: b"$ " in job.shown)
        job.press(shlex.join(witness.command()).encode() + b"\n")
        pid = await witness.pid()
        holder = parent_of(parent_of(pid))
        job.press(CTRL_Z)
        await until(lambda: state(pid) == "T" and b"Stopped" in job.shown)
        assert state(holder) != "T"
        job.press(b"fg\n")
        await witness.told_of("SIGCONT")
        os.kill(pid, signal.SIGKILL)
        await until(lambda: b"Killed" in job.shown)
        job.press(b"exit 3\n")
        assert await job.report() == "ended 3"
        assert await job.report() == f"foreground {holder}"
    assert fake.keys() == {}


async def test_what_a_shell_under_a_lost_lock_runs_is_ended_too(served: tuple[FakeEtcd, str], witness: Witness) -> None:
    _, endpoint = served
    command = words_of(endpoint, "lock n --grace=0.5s", ("bash", "--norc", "-i"))
    async with (
        in_terminal(*command, environ={"PS1": "$ ", "HISTFILE": "", "TERM": "dumb"}) as job,
        Client(endpoint) as client,
    ):
        await until(lambda: b"$ " in job.shown)
        job.press(shlex.join(witness.command()).encode() + b"\n")
        pid = await witness.pid()
        await client.delete(prefix="n/")
        assert await job.report() == "ended 5"
        await until(lambda: state(pid) == "")


async def test_a_pipeline_keeps_the_terminal_for_its_last_command(
    served: tuple[FakeEtcd, str], witness: Witness, tmp_path: Path
) -> None:
    """As a pager has it, which reads keys while the command under the lock writes."""
    _, endpoint = served
    line = shlex.join(words_of(endpoint, VERBS[0], witness.command("end")))
    async with in_terminal("bash", "-c", f"{line} | (read key </dev/tty; echo got $key)") as job:
        await witness.pid()
        job.press(b"hello\n")
        await until(lambda: b"got hello" in job.shown)
        job.press(CTRL_C)
        assert (await job.report()).startswith("ended")
        assert witness.told() == ["SIGINT"]


@pytest.mark.parametrize("nested", [False, True])
async def test_a_command_of_a_substitution_reads_the_terminal(nested: bool, served: tuple[FakeEtcd, str]) -> None:
    """Shells let the commands of `$(...)` ignore SIGTTIN: the command reads the terminal all the same."""
    fake, endpoint = served
    command = ("sh", "-c", "echo ready >/dev/tty; read line </dev/tty; echo got $line")
    outer = words_of(endpoint, "lock m --ttl=60", words_of(endpoint, VERBS[0], command) if nested else command)
    script = f'trap "" TTIN TTOU TSTP; found=$({shlex.join(outer)}); echo "<$found>"'
    async with in_terminal("bash", "-c", script) as job:
        await until(lambda: b"ready" in job.shown)
        job.press(b"hello\n")
        await until(lambda: b"<got hello>" in job.shown)
        assert await job.report() == "ended 0"
    assert fake.keys() == {}


def test_the_witness_and_the_shell_are_programs() -> None:
    for name in ("witness.py", "job_shell.py"):
        subprocess.run([sys.executable, "-m", "py_compile", str(ROOT / "tests" / "support" / name)], check=True)
