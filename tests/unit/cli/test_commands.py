"""cli/session.py, cli/arguments.py, cli/grammar.py, cli/kv.py, cli/endpoint.py, cli/auth.py, cli/permissions.py,
cli/child.py: commands on a fake: grammar, variables, bytes, dead endpoints, colours.
"""

import asyncio
import gc
import json
import sys

import pytest

from etcd_aio import Client, EtcdError
from etcd_aio.cli.follow import has_colours
from etcd_aio.fake import FakeEtcd
from tests.support.command_here import CommandLine

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

# The grammar.


async def test_verbs_may_be_shortened_and_global_flags_stand_anywhere(command: CommandLine) -> None:
    assert await command("-w", "json", "endp", "stat") == 0
    before = command.out
    assert await command("endpoint", "status", "-w=json") == 0
    assert json.loads(before) == json.loads(command.out)
    assert await command("e") == 1
    assert command.out == b""


@pytest.mark.parametrize(
    "words",
    [
        "--consistency s get a",
        "--consistency=s -w json get a",
        "-w simple --rev=3 --prefix=false get a",
        "--keys-only=false --sort-by KEY --limit 1 get a",
        "--prefix get a",
        "--command-timeout=5s --prefix --rev 3 get a",
    ],
)
async def test_flags_of_a_verb_may_stand_before_it(words: str, command: CommandLine) -> None:
    assert await command("put", "a", "0") == 0
    assert await command("put", "a", "1") == 0
    assert await command(*words.split()) == 0, command.err
    assert b"1" in command.out


async def test_flags_before_a_group_are_those_of_its_verb(command: CommandLine) -> None:
    assert await command("--consistency", "s", "member", "list", "-w", "json") == 0, command.err
    assert await command("member", "--consistency", "s", "list", "-w", "json") == 0, command.err
    assert len(json.loads(command.out)["members"]) == 3


@pytest.mark.parametrize("words", ["--unknown get a", "--unknown=1 get a", "--consistency s", "--consistency"])
async def test_a_flag_that_no_verb_has_is_an_error_before_the_verb_too(words: str, command: CommandLine) -> None:
    assert await command(*words.split()) == 1
    assert command.err.startswith("Error: No such option")


async def test_a_flag_wins_over_its_variable_and_unknown_variables_are_named(
    fake: FakeEtcd, command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("WRITE_OUT", "json"), ("ENDPOINT_S", "x")):
        monkeypatch.setenv(f"ETCDCTL_{name}", value)
    assert await command("put", "a", "1") == 0
    assert json.loads(command.out)["header"]["revision"] == 2
    assert "ETCDCTL_ENDPOINT_S" in command.err
    assert await command("put", "a", "1", "-w", "simple") == 0
    assert command.out == b"OK\n"
    fake.members[0].stop()
    assert await command("get", "a", f"--endpoints={fake.endpoints[0]}") == 1


# Bytes.


@pytest.mark.parametrize("value", [b"\x00\xff\n", b" ", b"-x", b"\xc3"])
async def test_values_of_any_bytes_come_back_as_they_were(value: bytes, command: CommandLine) -> None:
    key = b"a key \xff"
    assert await command("put", key, stdin=value) == 0
    assert await command("get", key, "--raw") == 0
    assert command.out == value
    assert await command("get", key) == 0
    assert command.out == key + b"\n" + value + b"\n"


async def test_a_stream_that_is_to_be_sorted_is_sorted_or_refused(command: CommandLine) -> None:
    for key, value in (("a", "2"), ("b", "1")):
        await command("put", key, value)
    assert await command("get", "", "--prefix", "--stream", "--sort-by=VALUE", "--print-value-only") == 0, command.err
    assert command.out == b"1\n2\n"
    assert await command("get", "", "--prefix", "--stream", "--sort-by=VALUE", "--order=ASCEND") == 1
    assert await command("get", "", "--prefix", "--stream", "--order=ASCEND") == 0


# Endpoints.


async def test_a_dead_endpoint_does_not_hide_the_others(fake: FakeEtcd, command: CommandLine) -> None:
    fake.members[0].stop()
    assert await command("endpoint", "status", "-w", "json") == 1
    assert [row["Endpoint"] for row in json.loads(command.out)] == list(fake.endpoints[1:])
    assert fake.endpoints[0] in command.err
    assert await command("endpoint", "health", "-w", "json") == 1
    assert [row["health"] for row in json.loads(command.out)] == [False, True, True]


async def test_a_silent_endpoint_costs_the_timeout_once(fake: FakeEtcd, command: CommandLine) -> None:
    fake.members[0].pause()
    clock = asyncio.get_running_loop().time
    began = clock()
    assert await command("endpoint", "status", "-w", "json", "--command-timeout=3s") == 1
    assert clock() - began < 4
    assert len(json.loads(command.out)) == 2


async def test_the_leader_moves_with_a_follower_down(fake: FakeEtcd, command: CommandLine) -> None:
    fake.members[1].stop()
    before = fake.members[0].id
    assert await command("move-leader", f"{fake.members[2].id:x}") == 0
    assert fake.members[2].is_leader
    assert command.out.decode() == f"Leadership transferred from {before:x} to {fake.members[2].id:x}\n"


async def test_the_leader_must_be_an_endpoint_to_move(fake: FakeEtcd, command: CommandLine) -> None:
    assert await command("move-leader", f"{fake.members[2].id:x}", f"--endpoints={fake.endpoints[1]}") == 128
    assert command.err == f"Error: no leader endpoint given at {fake.endpoints[1]}\n"
    assert fake.members[0].is_leader


@pytest.mark.parametrize("words", ["put a 1 --dial-timeout=0s", "put a 1 --dial-timeout=0", "get a --dial-timeout=0s"])
async def test_a_dial_timeout_of_zero_is_that_of_the_command(words: str, command: CommandLine) -> None:
    assert await command(*words.split()) == 0, command.err


# Users.


async def test_a_user_without_a_password_is_authenticated_by_a_certificate(
    fake: FakeEtcd, command: CommandLine
) -> None:
    assert await command("user", "add", "u", "--interactive=false", stdin=b"\n") == 0, command.err
    assert command.out == b"User u created\n"
    async with Client(fake.endpoints, engine=fake.engine) as client:
        for words in ("user add root:pw", "user grant-role root root", "auth enable"):
            assert await command(*words.split()) == 0
        with pytest.raises(EtcdError, match="no password user"):
            await client.auth.authenticate("u", "pw")
    assert await command("user", "passwd", "u", "--interactive=false", "--user=root:pw", stdin=b"\n") == 1


# Colours.


@pytest.mark.parametrize(
    ("environ", "is_tty", "expected"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "xterm"}, False, False),
    ],
)
def test_colours_are_for_terminals_that_want_them(
    environ: dict[str, str], is_tty: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_tty, raising=False)
    assert has_colours() is expected


async def test_values_are_parsed_by_flag_or_variable(command: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    await command("put", "a", '{"b": 1}')
    assert await command("get", "a", "-w", "pretty-json", "--values=json") == 0
    assert json.loads(command.out)["kvs"][0]["value"] == {"b": 1}
    monkeypatch.setenv("ETCDCTL_VALUES", "json")
    assert await command("get", "a", "-w", "pretty-json") == 0
    assert json.loads(command.out)["kvs"][0]["value"] == {"b": 1}
    assert await command("get", "a") == 0, "other formats are as they were"
    assert await command("get", "a", "--values=json") == 128
    assert "--write-out=pretty-json" in command.err
    assert await command("get", "a", "-w", "pretty-json", "--values=yaml") == 128


async def test_bytes_that_are_no_text_are_shown_on_stderr_as_such(command: CommandLine) -> None:
    assert await command("txn", stdin=b"\xff\xfe\n\n\n") == 3
    assert command.err == "Error: malformed comparison: \\xff\\xfe\n"


@pytest.mark.parametrize("verb", ["lock", "elect"])
async def test_a_command_that_cannot_be_started_leaves_nothing(
    verb: str, fake: FakeEtcd, command: CommandLine, recwarn: pytest.WarningsRecorder
) -> None:
    assert await command(verb, "n", "--", "/nonexistent") == 1
    assert command.err == "Error: /nonexistent: No such file or directory\n"
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []
    assert fake.keys() == {}


# Names.


async def test_names_do_not_control_the_terminal(command: CommandLine) -> None:
    name = "a\x1b[31m\nforged\x9b\u2028b"
    for words in (
        ("role", "add", name),
        ("role", "grant-permission", name, "read", "a"),
        ("user", "add", name, "--no-password"),
        ("user", "grant-role", name, name),
        ("user", "get", name, "--detail"),
        ("user", "get", name, "-w", "json"),
        ("user", "get", f"x{name}"),
        ("user", "revoke-role", name, name),
        ("user", "delete", name),
        ("role", "delete", name),
    ):
        await command(*words)
        text = command.out.decode() + command.err
        assert text.strip(), words
        assert all(line.replace("\t", "").isprintable() for line in text.split("\n")), words
        assert "\nforged" not in text, words
