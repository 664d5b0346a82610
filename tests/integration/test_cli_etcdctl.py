"""`etcd-aio` prints what etcdctl prints, and ends with the same exit code: the same commands, on equal servers."""

import asyncio
from pathlib import Path

import pytest

from etcd_aio import Client
from etcd_aio.fake import FakeEtcd
from tests.support.command_here import CommandLine, EtcdctlHere
from tests.support.command_line import PROGRAM, ROOT
from tests.support.etcdctl_table import TABLES, Etcdctl
from tests.support.recipes import built

pytestmark = pytest.mark.anyio

NEWEST = "3.7.3"
VERSIONS = (NEWEST, *(pytest.param(version, marks=pytest.mark.nightly) for version in ("3.4.25", "3.5.35", "3.6.16")))
# Differences that are wanted.
BETTER = {"get dir/ --prefix --stream": "older servers are read page by page, where etcdctl fails"}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("version", VERSIONS)
async def test_etcd_aio_says_what_etcdctl_says(
    version: str,
    table: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    program = await asyncio.to_thread(built, "tests/support/etcdctl")
    async with FakeEtcd(version) as one, FakeEtcd(version) as other, one.serve() as first, other.serve() as second:
        here = CommandLine(other, monkeypatch, capfdbinary)  # a process for each command would take most of the time
        players = Etcdctl(program, first), EtcdctlHere(PROGRAM, second, command=here)
        for number, player in enumerate(players):
            async with Client(player.endpoint) as client:
                (member,) = (await client.cluster.members()).members
            player.names |= {"MEMBER": f"{member.id:x}", "NAME": member.name, "FILE": str(tmp_path / f"{number}.db")}
        for row in TABLES[table]:
            expected, found = await asyncio.gather(*(player.play(row) for player in players))
            if version != NEWEST and row.command in BETTER:
                continue
            # What goes to stderr has the words of the program.
            assert found[:2] == expected[:2], row.command


@pytest.mark.parametrize(
    "words",
    ["get a -w protobuf", "get a -w protobuf --hex", "member list -w protobuf", "member list -w table", "get a"],
)
async def test_reads_of_one_server_are_the_same_bytes(words: str) -> None:
    program = await asyncio.to_thread(built, "tests/support/etcdctl")
    async with FakeEtcd(NEWEST) as fake, fake.serve() as endpoint, Client(endpoint) as client:
        await client.put("a", b"\x00\xff\n\xc3")
        pipe = asyncio.subprocess.PIPE
        outputs = []
        for command in (program, PROGRAM):
            child = await asyncio.create_subprocess_exec(
                *command, f"--endpoints={endpoint}", *words.split(), stdout=pipe, cwd=ROOT
            )
            outputs.append((await child.communicate())[0])
    assert outputs[0] == outputs[1]
    assert outputs[0]


@pytest.mark.parametrize(("form", "lines"), [("simple", 2), ("json", 1), ("fields", 12)])
async def test_the_leaders_of_an_election_are_the_same_bytes(form: str, lines: int) -> None:
    program = await asyncio.to_thread(built, "tests/support/etcdctl")
    async with (
        asyncio.timeout(120),
        FakeEtcd(NEWEST) as fake,
        fake.serve() as endpoint,
        Client(endpoint) as client,
        client.election("e").lead("first") as leadership,
    ):
        await leadership.proclaim("second")
        pipe = asyncio.subprocess.PIPE
        outputs = []
        for command in (program, PROGRAM):
            child = await asyncio.create_subprocess_exec(
                *command, f"--endpoints={endpoint}", "elect", "-l", "e", "-w", form, stdout=pipe, cwd=ROOT
            )
            assert child.stdout is not None
            outputs.append([await child.stdout.readline() for _ in range(lines)])
            child.kill()
            await child.wait()
    assert outputs[0] == outputs[1]
