"""pb/: the generated package: its exports, the imports that it must not cause, and the reprs of messages."""

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import betterproto2
import pytest

from etcd_aio import pb
from etcd_aio.pb import authpb, etcdserverpb, mvccpb
from etcd_aio.pb import message as message_module

# The `__init__` of etcd_aio imports everything, so an empty package takes its place.
LOADED_BY_PB_ALONE = """
import sys, types
package = sys.modules["etcd_aio"] = types.ModuleType("etcd_aio")
package.__path__ = [sys.argv[1]]
import etcd_aio.pb
assert "betterproto2" not in sys.modules, "loaded with the first message"
etcd_aio.pb.Message
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_the_package_exports_every_message_and_enum() -> None:
    for package in (authpb, etcdserverpb, mvccpb):
        assert {name: getattr(pb, name) for name in package.__all__} == {
            name: getattr(package, name) for name in package.__all__
        }
    names = {*authpb.__all__, *etcdserverpb.__all__, *mvccpb.__all__, "Message", "health"}
    assert sorted(pb.__all__) == sorted(names)


def test_importing_it_loads_no_grpc_and_no_event_loop() -> None:
    command = [sys.executable, "-c", LOADED_BY_PB_ALONE, str(Path(pb.__file__).parents[1])]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "betterproto2" in loaded
    assert not {"asyncio", "grpclib", "h2", "anyio", "google"} & set(loaded)


def test_a_repr_hides_bytes_text_and_lists() -> None:
    message = pb.AuthenticateRequest(name="root", password="c4n4ry")
    assert repr(message) == "AuthenticateRequest(name=<4 characters>, password=<6 characters>)"
    assert repr(pb.RangeResponse(kvs=[pb.KeyValue(key=b"secret")], count=1)) == "RangeResponse(kvs=<1 items>, count=1)"
    event = pb.Event(type=pb.EventEventType.DELETE, kv=pb.KeyValue(key=b"secret", mod_revision=7))
    assert repr(event) == "Event(type=<EventEventType.DELETE: 1>, kv=KeyValue(key=<6 bytes>, mod_revision=7))"


def test_a_message_copies_and_pickles() -> None:
    message = pb.RequestOp(request_put=pb.PutRequest(key=b"k", lease=4))
    assert copy.deepcopy(message) == message
    assert pickle.loads(pickle.dumps(message)) == message


def fresh() -> type[pb.Message]:
    """A message class that was not used yet."""

    class Fresh(pb.Message):
        number: int = betterproto2.field(1, betterproto2.TYPE_INT64)
        texts: list[str] = betterproto2.field(2, betterproto2.TYPE_STRING, repeated=True)

    return message_module.dataclass(eq=False, repr=False)(Fresh)


USES: dict[str, Callable[[Any], object]] = {
    "make": lambda kind: kind(number=7),
    "fields": dataclasses.fields,
    "is_dataclass": dataclasses.is_dataclass,
    "metadata": lambda kind: kind._betterproto,
    "parse": lambda kind: kind.parse(b"\x08\x07"),
    "derive": lambda kind: type("Derived", (kind,), {})(number=7),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_any_use_of_a_message_class_completes_it(use: Callable[[Any], object]) -> None:
    kind: Any = fresh()
    assert "__dataclass_fields__" not in vars(kind)
    use(kind)
    assert list(vars(kind)["__dataclass_fields__"]) == ["number", "texts"]
    assert kind not in message_module._incomplete
    assert bytes(kind(number=7, texts=["a"])) == b"\x08\x07\x12\x01a"
    assert kind().texts == []
    assert dataclasses.replace(kind(7), texts=["b"]) == kind(7, ["b"])


def test_a_message_that_no_call_of_its_class_made_is_complete_when_it_is_read() -> None:
    kind: Any = fresh()
    message = kind.__new__(kind)
    message.number = 7
    message.texts = []
    assert repr(message) == "Fresh(number=7)"


def test_threads_that_use_a_message_class_first_get_the_same_one() -> None:
    for _ in range(20):
        kind: Any = fresh()
        barrier = Barrier(4)

        def make(number: int, kind: Any = kind, barrier: Barrier = barrier) -> object:
            barrier.wait()
            return kind(number=number).texts

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(make, range(4))) == [[], [], [], []]


def test_the_base_of_the_messages_is_no_message() -> None:
    assert not dataclasses.is_dataclass(pb.Message)
    with pytest.raises(TypeError, match="Message is not a dataclass"):
        pb.Message()
