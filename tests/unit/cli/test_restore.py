"""cli/restore.py, cli/restore_plan.py: one revision, converging, with conditions; on a fake."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import pytest

from etcd_aio import Client
from etcd_aio.cli.session import Session
from etcd_aio.fake import FakeEtcd
from tests.support.command_here import CommandLine
from tests.support.until import until

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

BYTES = {bytes((number,)) + b"/\xff": bytes(reversed(range(number))) for number in range(256)}


@pytest.fixture
async def other() -> AsyncIterator[FakeEtcd]:
    async with FakeEtcd("3.6.0") as made:
        yield made


@pytest.fixture
async def client(fake: FakeEtcd) -> AsyncIterator[Client]:
    async with fake.client() as made:
        yield made


def at_writes(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something whenever a command has printed."""
    write = Session.write_bytes

    def acting(session: Session, raw: bytes) -> None:
        write(session, raw)
        act()

    monkeypatch.setattr(Session, "write_bytes", acting)


async def test_any_bytes_go_to_another_cluster_and_another_prefix(
    fake: FakeEtcd, other: FakeEtcd, command: CommandLine
) -> None:
    fake.load(BYTES)
    assert await command("dump") == 0
    whole = command.out
    assert await command("restore", "--to", "new/", stdin=whole, fake=other) == 0
    assert other.keys() == {b"new/" + key: value for key, value in BYTES.items()}
    assert command.out == b"256 keys restored, 0 deleted, 0 equal already\n"
    assert "3 transactions" in command.err
    assert await command("restore", "--to", "new/", stdin=whole, fake=other) == 0
    assert command.out == b"0 keys restored, 0 deleted, 256 equal already\n"
    assert await command("restore", "--to", "", stdin=b"\n".join(whole.split(b"\n")[:-2]), fake=other) == 3
    assert len(other.keys()) == 256


async def test_a_dump_is_of_one_revision_whatever_is_written_meanwhile(
    other: FakeEtcd, command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    other.load({f"k{number:04}": "old" for number in range(1100)})
    at_writes(monkeypatch, lambda: other.load({f"k{number:04}": "new" for number in range(0, 2200, 2)}))
    assert await command("dump", "k", fake=other) == 0
    head, *keys, end = map(json.loads, command.out.splitlines())
    assert head["revision"] == 2
    assert {one["value"] for one in keys} == {"old"}
    assert len(keys) == end["count"] == 1100


async def test_a_compaction_ends_a_dump_and_restore_refuses_the_part(
    other: FakeEtcd, command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    other.load({f"k{number:04}": "" for number in range(1100)})
    with monkeypatch.context() as patch:
        at_writes(patch, lambda: other.compact(other.load({"k": "1"})))
        assert await command("dump", fake=other) == 1
    part = command.out
    assert len(part.splitlines()) == 1001
    assert await command("restore", "--to", "new/", stdin=part) == 3
    assert "incomplete" in command.err
    assert command.fake.keys() == {}


async def test_a_restore_that_was_interrupted_goes_on(fake: FakeEtcd, other: FakeEtcd, command: CommandLine) -> None:
    other.load({f"k{number}": f"{number}" for number in range(8)})
    assert await command("dump", fake=other) == 0
    whole = command.out
    with fake.fault("KV/Txn", hang=True, times=1):
        cut = asyncio.create_task(command("restore", "--batch=2", stdin=whole))
        await until(lambda: any(call.method == "KV/Txn" for call in fake.calls))
        cut.cancel()
        await asyncio.gather(cut, return_exceptions=True)
    fake.load({"k7": "mine", "other": "mine"})
    assert await command("restore", "--batch=2", stdin=whole) == 0
    assert fake.keys("k") == other.keys()
    assert fake.keys("o") == {b"other": b"mine"}


async def test_a_dry_run_prints_the_differences_and_pruning_deletes(fake: FakeEtcd, command: CommandLine) -> None:
    fake.load({"a/1": "one", "a/2": "two", "b": "far"})
    assert await command("dump", "a/") == 0
    whole = command.out
    fake.load({"a/2": "changed", "a/3": "new"})
    async with fake.client() as client:
        await client.delete("a/1")
    before = fake.revision
    assert await command("restore", "--prune", "--dry-run", stdin=whole) == 0
    shown = b'+ "a/1" "one"\n~ "a/2" "changed" -> "two"\n- "a/3" "new"\n'
    assert command.out == shown + b"2 keys would be restored, 1 would be deleted, 0 equal already\n"
    assert fake.revision == before
    assert await command("restore", "--prune", "--atomic", stdin=whole) == 0
    assert fake.revision == before + 1
    assert fake.keys() == {b"a/1": b"one", b"a/2": b"two", b"b": b"far"}


async def test_an_edited_dump_changes_only_keys_that_were_not_changed_since(
    fake: FakeEtcd, command: CommandLine
) -> None:
    fake.load({"a": "one"})
    fake.load({"b": "two"})
    assert await command("dump") == 0
    head, a, b, _ = command.out.splitlines(keepends=True)
    edited = b"".join((head, a.replace(b"one", b"ONE"), b.replace(b"two", b"TWO"), b'{"end":true,"count":2}\n'))
    elsewhere = edited.replace(head, head.replace(b'"cluster":"', b'"cluster":"1'))
    assert await command("restore", "--if-unchanged", stdin=elsewhere) == 128
    fake.load({"b": "mine"})
    assert await command("restore", "--if-unchanged", stdin=edited) == 1
    assert "nothing was written" in command.err
    assert fake.keys() == {b"a": b"one", b"b": b"mine"}
    edited = edited.replace(b'"TWO","mod_revision":3', b'"TWO","mod_revision":4')
    assert await command("restore", "--if-unchanged", stdin=edited) == 0
    assert fake.keys() == {b"a": b"ONE", b"b": b"TWO"}
    await command("dump")
    without = b"".join((*command.out.splitlines(keepends=True)[:2], b'{"end":true,"count":1}\n'))
    assert await command("restore", "--if-unchanged", "--prune", stdin=without) == 0
    assert fake.keys() == {b"a": b"ONE"}


async def test_what_does_not_fit_into_one_transaction_is_refused_whole(
    fake: FakeEtcd, other: FakeEtcd, command: CommandLine
) -> None:
    fake.load({f"{number}": "x" * 400_000 for number in range(3)})
    await command("dump")
    assert await command("restore", "--atomic", stdin=command.out, fake=other) == 1
    assert other.keys() == {}
    assert await command("restore", "--atomic", "--batch=2", stdin=b"", fake=other) == 3


async def test_leases_are_dropped_or_granted_anew(
    fake: FakeEtcd, other: FakeEtcd, client: Client, command: CommandLine
) -> None:
    lease = (await client.leases.grant(600)).id
    for key in ("a", "b"):
        await client.put(key, "", lease=lease)
    await client.put("c", "")
    assert await command("dump") == 0
    whole = command.out
    assert json.loads(whole.splitlines()[1]) == {
        "key": "a",
        "value": "",
        "mod_revision": 2,
        "lease": f"{lease:x}",
        "lease_ttl": 600,
    }
    assert await command("restore", stdin=whole, fake=other) == 0
    assert not other.leases
    assert await command("restore", "--leases=grant", stdin=whole, fake=other) == 0
    (granted,) = other.leases
    assert (granted.ttl, granted.keys) == (600, (b"a", b"b"))


async def test_leases_that_are_granted_live_until_all_is_written_and_expire_then(
    fake: FakeEtcd, other: FakeEtcd, client: Client, command: CommandLine
) -> None:
    """Writing takes longer than the lease lasts whose keys come first and last."""
    lease = (await client.leases.grant(5)).id
    for key in ("a", "z"):
        await client.put(key, "", lease=lease)
    fake.load({f"k{number:03}": "" for number in range(100)})
    assert await command("dump") == 0
    with other.fault("KV/Txn", delay=1.0):
        assert await command("restore", "--leases=grant", "--batch=1", stdin=command.out, fake=other) == 0
    assert {b"a", b"z"} < other.keys().keys()
    assert len(other.leases) == 1
    await asyncio.sleep(60.0)
    assert not other.leases


@pytest.mark.parametrize("flags", [(), ("--if-unchanged",)])
async def test_batches_fit_into_a_request_whatever_they_are_made_of(
    flags: tuple[str, ...], fake: FakeEtcd, command: CommandLine
) -> None:
    """A condition has the key once more."""
    fake.load({f"{number:03}" + "k" * 10_000: "v" for number in range(99)})
    assert await command("dump") == 0
    head, *keys, _ = command.out.splitlines(keepends=True)
    edited = b"".join((head, *(line.replace(b'"v"', b'"w"') for line in keys), b'{"end":true,"count":99}\n'))
    assert await command("restore", *flags, stdin=edited) == 0, command.err
    assert set(fake.keys().values()) == {b"w"}


async def test_more_operations_than_the_server_accepts_are_named(
    fake: FakeEtcd, other: FakeEtcd, command: CommandLine
) -> None:
    fake.load({f"{number:03}": "" for number in range(200)})
    assert await command("dump") == 0
    assert await command("restore", "--batch=150", stdin=command.out, fake=other) == 1
    assert "150 operations" in command.err
    assert "smaller --batch; it accepts 128" in command.err
    assert other.keys() == {}


async def test_a_dump_asks_for_many_leases_at_once(fake: FakeEtcd, client: Client, command: CommandLine) -> None:
    for number in range(200):
        lease = (await client.leases.grant(100 + number)).id
        await client.put(f"{number:03}", "", lease=lease)
    clock = asyncio.get_running_loop().time
    with fake.fault("Lease/LeaseTimeToLive", delay=1.0):
        began = clock()
        assert await command("dump") == 0
    assert clock() - began < 20.0
    ttls = [json.loads(line)["lease_ttl"] for line in command.out.splitlines()[1:-1]]
    assert ttls == list(range(100, 300))
