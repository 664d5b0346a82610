"""cli/kubernetes.py: `--decode kubernetes` of get and watch, in every format that has it, and what excludes it."""

import asyncio
import json
from contextlib import suppress

import pytest

from etcd_aio import Event, EventType, Header, KeyValue
from etcd_aio.cli.formats import format_of
from etcd_aio.cli.results import Watched
from etcd_aio.cli.style import Style
from etcd_aio.fake import FakeEtcd
from tests.support.command_here import CommandLine
from tests.unit.kubernetes.test_values import envelope, sized

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

METADATA = sized(1, sized(1, b"web") + sized(3, b"default"))
MAP = envelope("v1", "ConfigMap", METADATA + sized(2, sized(1, b"a") + sized(2, "\x9b\u2028é".encode())))
SECRET = b"k8s:enc:aescbc:v1:key1:\x00"
KEYS = {"/registry/configmaps/default/web": MAP, "/registry/secrets/default/s": SECRET}
JSON = """\
{
  "apiVersion": "v1",
  "kind": "ConfigMap",
  "metadata": {
    "name": "web",
    "namespace": "default"
  },
  "data": {
    "a": "\\u009b\\u2028é"
  }
}
"""
PROBLEM = "the value is encrypted by the provider aescbc (v1), key 'key1': 1 bytes are not decoded"


async def test_for_people_there_are_title_json_and_problems(fake: FakeEtcd, command: CommandLine) -> None:
    fake.load(KEYS)
    assert await command("get", "--prefix", "/registry", "--decode=kubernetes") == 0
    assert command.out.decode() == (
        f"/registry/configmaps/default/web\nv1 ConfigMap default/web\n{JSON}/registry/secrets/default/s\n{PROBLEM}\n"
    )
    assert command.err == ""


async def test_only_the_values_are_json_for_programs(fake: FakeEtcd, command: CommandLine) -> None:
    fake.load(KEYS)
    assert await command("get", "--prefix", "/", "--decode=kubernetes", "--print-value-only") == 0
    assert command.out.decode() == f"{JSON}null\n"
    assert command.err == f"/registry/secrets/default/s: {PROBLEM}\n"


async def test_json_has_it_beside_the_value(fake: FakeEtcd, command: CommandLine) -> None:
    fake.load(KEYS)
    assert await command("get", "--prefix", "/", "-w", "json") == 0
    plain = json.loads(command.out)
    del plain["header"]["member_id"]  # the member that has answered
    assert await command("get", "--prefix", "/", "-w", "json", "--decode=kubernetes") == 0
    found = json.loads(command.out)
    del found["header"]["member_id"]
    first, second = (kv.pop("decoded") for kv in found["kvs"])
    assert (found["kvs"], found["count"]) == (plain["kvs"], plain["count"])  # another member may have answered
    assert first == {
        "encoding": "protobuf",
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": "default",
        "name": "web",
        "object": json.loads(JSON),
        "problems": [],
    }
    assert (second["object"], second["problems"]) == (None, [PROBLEM])
    assert await command("get", "--prefix", "/", "-w", "pretty-json", "--decode=kubernetes") == 0
    assert json.loads(command.out)["kvs"][0]["value"] == {"kubernetes": first}


@pytest.mark.parametrize("word", ["simple", "json", "pretty-json"])
def test_events_with_the_value_before(word: str) -> None:
    before = KeyValue(b"a", MAP, 2, 2, 1, 0)
    event = Event(EventType.PUT, KeyValue(b"a", b'{"kind":"Widget"}', 2, 3, 2, 0), before)
    gone = Event(EventType.DELETE, KeyValue(b"a", b"", 0, 4, 0, 0), None)
    text = format_of(word)(Watched(Header(), (event, gone)), Style(decodes=True))
    assert text is not None
    if word == "simple":
        widget = 'Widget\n{\n  "kind": "Widget"\n}\n'
        assert text == f"PUT\na\nv1 ConfigMap default/web\n{JSON}a\n{widget}DELETE\na\n\n"
    elif word == "json":
        first, second = json.loads(text)["Events"]
        assert first["prev_kv"]["decoded"]["name"] == "web"
        assert first["kv"]["decoded"]["object"] == {"kind": "Widget"}
        assert "decoded" not in second["kv"]
    else:
        first, second = json.loads(text)["events"]
        assert first["prev_kv"]["value"]["kubernetes"]["name"] == "web"
        assert second["kv"]["value"] == ""


async def test_a_watch_decodes(fake: FakeEtcd, command: CommandLine) -> None:
    fake.load({"a": MAP})
    watching = asyncio.create_task(command("watch", "a", "--rev=1", "--decode=kubernetes"))
    await asyncio.sleep(1)
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    assert command.capture.readouterr().out.decode() == f"PUT\na\nv1 ConfigMap default/web\n{JSON}"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("get a --decode=yaml", 128),
        ("get a --decode=kubernetes --raw", 128),
        ("get a --decode=kubernetes --keys-only", 128),
        ("get a --decode=kubernetes -w fields", 128),
        ("get a --decode=kubernetes -w protobuf", 128),
        ("watch a --decode=yaml", 128),
        ("watch a --decode=kubernetes --follow", 128),
    ],
)
async def test_what_cannot_be_decoded_is_refused(words: str, code: int, command: CommandLine) -> None:
    assert await command(*words.split()) == code
    assert command.err.startswith("Error: ")


async def test_a_deleted_key_has_no_value_to_decode(fake: FakeEtcd, command: CommandLine) -> None:
    fake.load({"a": b""})
    assert await command("get", "a", "--decode=kubernetes") == 0
    assert command.out == b"a\n\n"
