"""contrib/config/live.py, contrib/config/saved.py, contrib/config/snapshot.py: LiveConfig on a fake: whole revisions,
invalid settings, outages, files, and no values in logs.
"""

import asyncio
import json
import logging
import os
import stat
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from pydantic import BaseModel

from etcd_aio import Client, EtcdTimeoutError, op
from etcd_aio.contrib.config import InvalidSettingsError, LiveConfig, load_snapshot, saved
from etcd_aio.contrib.config.saved import SavedSettings
from etcd_aio.contrib.config.snapshot import Snapshot
from etcd_aio.errors import (
    CacheTimeoutError,
    ClientUsageError,
    ConfigError,
    InvalidRequestError,
    NoAvailableEndpointsError,
    PermissionDeniedError,
)
from etcd_aio.fake import FakeEtcd
from tests.support.until import PATIENCE, until

pytestmark = pytest.mark.anyio

SECRET = "s3cr3t-value"
PREFIX = "app/config/"


@dataclass(frozen=True)
class Limits:
    min: int = 0
    max: int = 10


class Settings(BaseModel, frozen=True):
    debug: bool = False
    title: str = "none"
    limits: Limits = Limits()


@pytest.fixture
async def fake() -> AsyncIterator[FakeEtcd]:
    async with FakeEtcd() as fake:
        yield fake


@pytest.fixture
async def client(fake: FakeEtcd) -> AsyncIterator[Client]:
    async with fake.client() as client:
        yield client


async def put(client: Client, **entries: str | None) -> int:
    """Change several keys in one revision."""
    changes = []
    for name, value in entries.items():
        key = PREFIX + name.replace("__", "/")
        changes.append(op.delete(key) if value is None else op.put(key, value))
    return (await client.txn().then(*changes).commit()).revision


async def test_settings_are_read_and_follow(client: Client) -> None:
    await put(client, debug="true", title="a", limits__max="3")
    async with LiveConfig(client, Settings, prefix=PREFIX) as config:
        assert config.current == Settings(debug=True, title="a", limits=Limits(max=3))
        before = config.current
        changes = config.changes()
        revision = await put(client, title=None, limits__max="4", limits__min="1")
        change = await anext(changes)
        assert change.old is before
        assert change.new is config.current
        assert change.new == Settings(debug=True, limits=Limits(min=1, max=4))  # deleted: the default
        assert (change.revision, config.revision) == (revision, revision)
        assert change.keys == {"title", "limits/max", "limits/min"}
        assert config.keys == {"debug", "limits/max", "limits/min"}
        assert not config.is_stale
        await client.put("app/else", "1")
        await put(client, title="b")
        assert (await anext(changes)).keys == {"title"}
    assert [change async for change in changes] == []  # it was left
    assert config.current.title == "b"
    assert config.is_stale


async def test_one_key_may_have_all_settings(client: Client) -> None:
    async with LiveConfig(client, Settings, document="app/config.json") as config:
        assert config.current == Settings()
        put = await client.put("app/config.json", '{"limits": {"max": 1}}')
        await client.put("app/config.json.old", "{")
        await config.wait_revision(put.revision)
        assert config.current.limits.max == 1
        put = await client.put("app/config.json", SECRET)
        await config.wait_revision(put.revision)
        assert isinstance(config.error, InvalidSettingsError)
        assert config.error.problems == {"app/config.json": "it is not JSON"}


async def test_a_namespace_serves_as_a_client(client: Client) -> None:
    await put(client, title="within")
    async with LiveConfig(client.namespace("app/"), Settings, prefix="config/") as config:
        assert config.current.title == "within"


async def test_readers_never_see_a_part_of_a_revision(client: Client, run_seed: int) -> None:
    """Random txns, against what the store had at each revision; meanwhile a reader looks whenever it can."""
    random = Random(run_seed)
    model: dict[str, str] = {}
    states = {}
    names = [f"k{number}" for number in range(6)]

    def of(entries: dict[str, str]) -> dict[str, object]:
        return {key: json.loads(value) for key, value in entries.items()}

    async with LiveConfig(client, dict, prefix=PREFIX) as config:
        states[config.revision] = of(model)
        seen: list[tuple[int, dict[str, object]]] = []
        told: list[int] = []

        async def read() -> None:
            while True:
                seen.append((config.revision, dict(config.current)))
                await asyncio.sleep(0)

        async def follow() -> None:
            last = config.current
            async for change in config.changes():
                assert change.old is last
                assert change.keys == {
                    key for key in names if change.old.get(key) != change.new.get(key)
                }  # the same value is never written twice
                last = change.new
                told.append(change.revision)

        tasks = [asyncio.create_task(read()), asyncio.create_task(follow())]
        revision = 0
        for number in range(100):
            chosen = random.sample(names, random.randint(1, 4))
            entries: dict[str, str | None] = {
                key: None if key in model and random.random() < 0.3 else str(number) for key in chosen
            }
            revision = await put(client, **entries)
            model = {key: value for key, value in {**model, **entries}.items() if value is not None}
            states[revision] = of(model)
            if random.random() < 0.1:
                await asyncio.sleep(0)
        await config.wait_revision(revision)
        await until(lambda: told[-1] == revision, tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert config.current == of(model)
    for at, content in seen:
        assert states[at] == content
    assert [at for at, _ in seen] == sorted(at for at, _ in seen)
    assert len({at for at, _ in seen}) > 20  # the reader was there while it changed


async def test_one_swap_after_a_compaction_while_away(fake: FakeEtcd) -> None:
    network = fake.network()
    async with fake.client() as writer, fake.client(engine=network.engine) as client:
        await put(writer, title="old", debug="true")
        async with LiveConfig(client, Settings, prefix=PREFIX) as config:
            changes = config.changes()
            network.refuse()
            for number in range(5):
                await put(writer, title=str(number))
            last = await put(writer, title="new", debug=None, limits__max="1")
            fake.compact(last)
            network.heal()
            change = await anext(changes)
            assert change.new == Settings(title="new", limits=Limits(max=1))
            assert change.old.title == "old"
            assert change.keys == {"title", "debug", "limits/max"}


async def test_a_flood_is_coalesced(client: Client) -> None:
    count = 2000
    built = 0

    def build(data: dict[str, object]) -> int:
        nonlocal built
        built += 1
        return int(str(data.get("n", 0)))

    async with LiveConfig(client, build, prefix=PREFIX) as config:
        changes = config.changes()
        puts = [asyncio.ensure_future(put(client, n=str(number))) for number in range(count)]
        revision = max(await asyncio.gather(*puts))
        await config.wait_revision(revision)
        change = await anext(changes)  # a consumer that was away gets one
        assert (change.old, change.new, change.revision) == (0, config.current, revision)
        waiting = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)
        assert not waiting.done()
        waiting.cancel()
    assert built < count / 4


# --- invalid settings ---


async def test_invalid_settings_replace_nothing(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    await put(client, title="good")
    async with LiveConfig(client, Settings, prefix=PREFIX) as config:
        good, changes, bad = config.current, config.changes(), 0
        for number in range(3):
            bad = await put(client, limits__max=f"{SECRET}{number}")
        await config.wait_revision(bad)
        assert config.current is good
        assert isinstance(config.error, InvalidSettingsError)
        assert config.error.revision == bad
        assert config.is_stale
        assert "limits" in str(config.error)
        await config.wait_revision(await put(client, limits__max="5"))
        assert config.error is None
        change = await anext(changes)
        assert (change.old, change.new.limits.max, change.keys) == (good, 5, {"limits/max"})
    records = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(records) == 1  # and not one for each revision
    assert SECRET not in caplog.text


async def test_invalid_settings_may_end_the_changes(client: Client) -> None:
    async with LiveConfig(client, Settings, prefix=PREFIX, on_invalid="raise") as config:
        changes = config.changes()
        await put(client, debug=SECRET)
        with pytest.raises(InvalidSettingsError) as raised:
            await anext(changes)
        assert SECRET not in str(raised.value)
        assert [change async for change in changes] == []
        await config.wait_revision(await put(client, debug="true"))
        assert config.current.debug


async def test_a_start_needs_valid_settings(client: Client) -> None:
    await put(client, debug=SECRET)
    tasks = asyncio.all_tasks()
    with pytest.raises(InvalidSettingsError) as raised:
        async with LiveConfig(client, Settings, prefix=PREFIX):
            pass
    assert SECRET not in str(raised.value)
    await until(lambda: not asyncio.all_tasks() - tasks)


# --- outages and files ---


async def test_settings_stay_in_an_outage(fake: FakeEtcd, client: Client) -> None:
    await put(client, title="a")
    async with LiveConfig(client, Settings, prefix=PREFIX) as config:
        for member in fake.members:
            member.stop()
        assert config.current.title == "a"
        assert config.error is None
        for member in fake.members:
            member.start()
        await config.wait_revision(await put(client, title="b"), timeout=PATIENCE)
        assert config.current.title == "b"


async def test_without_a_file_a_start_needs_etcd(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeEtcd() as fake:
        fake.members[0].stop()
        async with fake.client(timeout=0.05) as client:
            with pytest.raises(NoAvailableEndpointsError):
                async with LiveConfig(client, Settings, prefix=PREFIX):
                    pass
            assert "cannot be read" not in caplog.text, "the caller is told"
            with pytest.raises(EtcdTimeoutError, match="not read within"):
                async with LiveConfig(client, Settings, prefix=PREFIX, timeout=0.001):
                    pass


def read_after_etcd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the file read only when etcd has answered, and a wrong program has had the time to write it."""
    answered = threading.Event()
    read, save = SavedSettings._read, SavedSettings.save

    def read_late(saved: SavedSettings) -> Snapshot | None:
        assert answered.wait(PATIENCE)
        time.sleep(0.1)
        return read(saved)

    def save_and_tell(saved: SavedSettings, snapshot: Snapshot) -> None:
        save(saved, snapshot)
        answered.set()

    monkeypatch.setattr(SavedSettings, "_read", read_late)
    monkeypatch.setattr(SavedSettings, "save", save_and_tell)


async def test_a_file_of_something_else_is_not_replaced_though_etcd_answers_before_it_is_read(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.json"
    file.touch(0o600)
    file.write_text("{}")
    read_after_etcd(monkeypatch)
    with pytest.raises(ConfigError, match="no settings of 'app/config/'"):
        async with LiveConfig(client, Settings, prefix=PREFIX, cache=file):
            pass
    assert file.read_text() == "{}"
    file.unlink()
    async with LiveConfig(client, Settings, prefix=PREFIX, cache=file) as config:
        pass
    assert json.loads(file.read_text())["revision"] == config.revision


async def test_a_file_serves_a_start_without_etcd(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "settings.json"
    async with FakeEtcd() as fake, fake.client() as client:
        await put(client, title=SECRET)
        async with LiveConfig(client, Settings, prefix=PREFIX, cache=file) as config:
            good = config.revision
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert os.listdir(tmp_path) == ["settings.json"]  # noqa: PTH208
        await put(client, title="newer")
        fake.members[0].stop()
        async with LiveConfig(client, Settings, prefix=PREFIX, cache=file, timeout=0.05) as config:
            assert config.current.title == SECRET
            assert config.is_stale
            assert config.revision == good
            changes = config.changes()
            fake.members[0].start()
            change = await anext(changes)
            assert (change.old.title, change.new.title, set(change.keys)) == (SECRET, "newer", {"title"})
            assert not config.is_stale
            assert config.error is None
        assert json.loads(file.read_text())["revision"] == config.revision  # it is written before the block is left
    assert "as saved at revision" in caplog.text
    assert SECRET not in caplog.text


async def test_a_file_that_is_read_after_etcd_came_back_does_not_replace_what_etcd_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.json"
    async with FakeEtcd() as fake, fake.client(timeout=0.05) as client:
        await put(client, title="older")
        async with LiveConfig(client, Settings, prefix=PREFIX, cache=file):
            pass
        await put(client, title="newer")
        read_after_etcd(monkeypatch)
        fake.members[0].stop()
        config = LiveConfig(client, Settings, prefix=PREFIX, cache=file)
        entering = asyncio.create_task(config.__aenter__())
        await until(lambda: config._error is not None)
        fake.members[0].start()
        await entering
        assert config.current.title == "newer"
        assert (config.error, config.is_stale) == (None, False)
        await config.aclose()
    assert json.loads(file.read_text())["revision"] == config.revision


async def test_a_file_serves_a_start_with_invalid_settings(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    await put(client, title="good")
    async with LiveConfig(client, Settings, prefix=PREFIX, cache=file):
        pass
    await put(client, debug=SECRET)
    async with LiveConfig(client, Settings, prefix=PREFIX, cache=file) as config:
        assert config.current.title == "good"
        assert isinstance(config.error, InvalidSettingsError)
        await config.wait_revision(await put(client, debug="true"))
        assert config.current.debug
        assert not config.is_stale


async def test_a_file_that_others_may_read_is_refused(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    async with LiveConfig(client, Settings, prefix=PREFIX, cache=file):
        pass
    os.chmod(file, 0o640)  # noqa: PTH101
    with pytest.raises(ConfigError, match="0600"):
        async with LiveConfig(client, Settings, prefix=PREFIX, cache=file):
            pass


FOREIGN = (
    "",
    "[]",
    "{}",
    '{"entries": {"a": "?"}, "revision": 1}',
    '{"entries": {}, "revision": 1e999}',
    "[" * 100_000,
)


@pytest.mark.parametrize("content", FOREIGN, ids=range(len(FOREIGN)))
async def test_a_file_of_something_else_is_refused(client: Client, tmp_path: Path, content: str) -> None:
    file = tmp_path / "settings.json"
    file.touch(0o600)
    file.write_text(content)
    with pytest.raises(ConfigError, match="no settings of 'app/config/'"):
        async with LiveConfig(client, Settings, prefix=PREFIX, cache=file):
            pass
    file.unlink()
    async with LiveConfig(client, Settings, prefix=PREFIX, cache=file):
        pass
    with pytest.raises(ConfigError, match="no settings of 'app/other/'"):
        async with LiveConfig(client, Settings, prefix="app/other/", cache=file):
            pass


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
async def test_what_is_no_file_is_refused_at_once(client: Client, tmp_path: Path, make: Callable[..., None]) -> None:
    path = tmp_path / "settings.json"
    make(path, 0o700)
    with pytest.raises(ConfigError, match=r"settings\.json (cannot be read: Is a directory|is no regular file)"):
        async with asyncio.timeout(PATIENCE), LiveConfig(client, Settings, prefix=PREFIX, cache=path):
            pass
    assert not path.is_file()


def test_two_writers_of_one_process_write_whole_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.json"
    one, other = SavedSettings(file, "settings"), SavedSettings(file, "settings")

    def write_meanwhile(fd: int) -> None:
        monkeypatch.undo()
        other._write(Snapshot({"a": b"other"}, 1))

    monkeypatch.setattr(os, "fsync", write_meanwhile)
    one._write(Snapshot({"a": b"one"}, 2))
    assert one._read() == Snapshot({"a": b"one"}, 2)
    assert list(tmp_path.iterdir()) == [file]


async def test_a_file_that_cannot_be_written_is_logged(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with LiveConfig(client, Settings, prefix=PREFIX, cache=tmp_path / "missing" / "settings.json"):
        pass
    assert "could not be saved" in caplog.text


async def test_a_lost_permission_keeps_the_settings(fake: FakeEtcd, caplog: pytest.LogCaptureFixture) -> None:
    async with fake.client() as root:
        await put(root, title="a")
        await root.auth.user_add("root", "pw")
        await root.auth.user_grant_role("root", "root")
        await root.auth.role_add("reader")
        await root.auth.role_grant_permission("reader", prefix=PREFIX, permission="read")
        await root.auth.user_add("app", "pw")
        await root.auth.user_grant_role("app", "reader")
        await root.auth.enable()
    async with (
        fake.client(auth=("root", "pw"), allow_insecure_auth=True) as root,
        fake.client(auth=("app", "pw"), allow_insecure_auth=True) as client,
    ):
        async with LiveConfig(client, Settings, prefix=PREFIX) as config:
            await root.auth.role_revoke_permission("reader", prefix=PREFIX)
            fake.members[0].stop()  # so that the watch is made again, and refused
            fake.members[0].start()
            await until(lambda: config.error is not None)
            error = config.error
            assert isinstance(error, PermissionDeniedError) or isinstance(
                getattr(error, "__cause__", None), PermissionDeniedError
            )
            assert config.current.title == "a"
            await root.auth.role_grant_permission("reader", prefix=PREFIX, permission="read")
            await put(root, title="b")
            await until(lambda: config.current.title == "b")
            assert config.error is None
        with pytest.raises(PermissionDeniedError):
            async with LiveConfig(client, Settings, prefix="other/"):
                pass


async def test_closing_the_client_ends_the_following(fake: FakeEtcd) -> None:
    async with fake.client() as client:
        await put(client, title="a")
        config = await LiveConfig(client, Settings, prefix=PREFIX).__aenter__()
    await until(lambda: config.error is not None)
    assert isinstance(config.error, ClientUsageError)
    assert config.current.title == "a"
    await config.aclose()


# --- use ---


async def test_misuse_is_told(client: Client) -> None:
    config = LiveConfig(client, Settings, prefix=PREFIX)
    for use in (lambda: config.current, lambda: config.revision, lambda: config.keys, config.changes):
        with pytest.raises(ClientUsageError, match="not entered"):
            use()
    async with config:
        with pytest.raises(ClientUsageError, match="entered once"):
            await config.__aenter__()
        with pytest.raises(CacheTimeoutError):
            await config.wait_revision(10**9, timeout=0.01)
    with pytest.raises(InvalidRequestError, match="either"):
        LiveConfig(client, Settings)
    with pytest.raises(InvalidRequestError, match="on_invalid"):
        LiveConfig(client, Settings, prefix="a", on_invalid="ignore")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="model"):
        LiveConfig(client, 1, prefix="a")  # type: ignore[call-overload]


async def test_cancelling_leaves_nothing_behind(fake: FakeEtcd, client: Client) -> None:
    await client.ping()
    tasks = asyncio.all_tasks()
    with fake.fault("KV/Range", hang=True):
        entering = asyncio.create_task(LiveConfig(client, Settings, prefix=PREFIX).__aenter__())
        await until(lambda: len(asyncio.all_tasks()) > len(tasks) + 1)
        entering.cancel()
        await asyncio.wait([entering])
        assert entering.cancelled()
    await until(lambda: not [task for task in asyncio.all_tasks() - tasks if "settings" in task.get_name()])


async def test_reprs_have_keys_and_no_values(client: Client) -> None:
    await put(client, title=SECRET)
    snapshot = await load_snapshot(client, PREFIX)
    assert repr(snapshot) == f"<Snapshot of title at revision {snapshot.revision}>"
    async with LiveConfig(client, Settings, prefix=PREFIX) as config:
        changes = config.changes()
        await put(client, title="other")
        shown = f"{config!r} {await anext(changes)!r} {changes!r}"
    assert "LiveConfig Settings" in shown
    assert "title" in shown
    assert SECRET not in shown


async def test_a_prefix_ends_with_a_slash(client: Client) -> None:
    """Without it every key would begin with a slash, fit no setting, and all settings would have their defaults."""
    await client.put("app/config/title", "new")
    with pytest.raises(InvalidRequestError, match="end with a slash"):
        LiveConfig(client, Settings, prefix="app/config")
    with pytest.raises(InvalidRequestError, match="end with a slash"):
        await load_snapshot(client, b"app/config")
    async with LiveConfig(client.namespace("app/config/"), Settings, prefix="") as config:
        assert config.current.title == "new"


async def test_a_closed_client_ends_the_changes(fake: FakeEtcd) -> None:
    client = await fake.client().connect()
    async with LiveConfig(client, Settings, prefix=PREFIX) as config:
        changes = config.changes()
        waiting = asyncio.create_task(anext(changes, None))
        await asyncio.sleep(0)
        await client.aclose()
        async with asyncio.timeout(PATIENCE):
            assert await waiting is None
            assert await anext(config.changes(), None) is None
        assert config.current == Settings()
        assert config.is_stale


async def test_the_object_is_the_same_until_a_setting_changes(client: Client) -> None:
    await client.put(PREFIX + "title", "new")
    async with LiveConfig(client, Settings, prefix=PREFIX) as config:
        before = config.current
        same = await client.put(PREFIX + "title", "new")
        await config.wait_revision(same.revision)
        assert config.current is before
        assert config.revision == same.revision
        bad = await client.put(PREFIX + "debug", "perhaps")
        await config.wait_revision(bad.revision)
        assert config.error is not None
        good = await client.delete(PREFIX + "debug")
        await config.wait_revision(good.revision)
        assert config.error is None
        assert config.current is before


async def test_a_disk_that_hangs_holds_no_end_up(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    goes_on = threading.Event()
    monkeypatch.setattr(SavedSettings, "_write", lambda self, snapshot: goes_on.wait())
    monkeypatch.setattr(saved, "_PATIENCE", 0.05, raising=False)
    try:
        async with asyncio.timeout(PATIENCE):
            async with LiveConfig(client, Settings, prefix=PREFIX, cache=tmp_path / "settings.json"):
                pass
        assert "could not be saved" in caplog.text
    finally:
        goes_on.set()
    await until(lambda: not [task for task in asyncio.all_tasks() if "save settings" in task.get_name()])
