"""The generated package: its exports, the imports that it must not cause, and the reprs of messages."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path

from etcd_aio import pb
from etcd_aio.pb import authpb, etcdserverpb, mvccpb

# The `__init__` of etcd_aio imports everything, so an empty package takes its place.
LOADED_BY_PB_ALONE = """
import sys, types
package = sys.modules["etcd_aio"] = types.ModuleType("etcd_aio")
package.__path__ = [sys.argv[1]]
import etcd_aio.pb
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
