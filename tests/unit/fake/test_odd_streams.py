"""fake/stream.py, fake/server_streams.py, fake/watch_stream.py, fake/lease_service.py: streams that this library never
opens: the fake answers them as etcd does, and other streams go on.
"""

import pytest

from etcd_aio import methods, pb
from etcd_aio.codec import decode, encode
from etcd_aio.errors import AttemptFailure, StatusCode
from etcd_aio.fake import FakeEtcd
from etcd_aio.methods import AnyMethod
from etcd_aio.transport import Connection, Target, TransportOptions
from tests.support.transport import Owner, soon

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


async def _connected(fake: FakeEtcd) -> Connection:
    authority = fake.endpoints[0].removeprefix("http://")
    host, _, port = authority.rpartition(":")
    return await fake.engine(TransportOptions()).connect(Target(host, int(port), "", authority), Owner())


@pytest.mark.parametrize(
    "method",
    [methods.WATCH, methods.LEASE_KEEP_ALIVE, methods.RANGE_STREAM, methods.SNAPSHOT],
    ids=lambda one: one.name,
)
async def test_a_message_that_is_none_ends_its_stream_only(method: AnyMethod) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        connection = await _connected(fake)
        stream = await connection.open_stream(method.path, (), soon())
        await client.put("a", "1")
        await stream.send(b"\xff\xff\xff")
        await client.put("a", "2", timeout=1.0)  # served in the same turn
        with pytest.raises(AttemptFailure, match="failed to unmarshal") as caught:
            await stream.receive()
        assert caught.value.code is StatusCode.INTERNAL
        await connection.aclose()


async def test_a_watch_goes_on_behind_the_last_request() -> None:
    async with FakeEtcd() as fake:
        connection = await _connected(fake)
        stream = await connection.open_stream(methods.WATCH.path, (), soon())
        await stream.send(encode(pb.WatchRequest(create_request=pb.WatchCreateRequest(key=b"a"))))
        await stream.half_close()
        created = await stream.receive()
        assert isinstance(created, bytes)
        assert decode(pb.WatchResponse, created).created
        fake.load({"a": "1"})
        event = await stream.receive()
        assert isinstance(event, bytes)
        assert decode(pb.WatchResponse, event).header is not None
        stream.cancel()
        assert not fake.watchers
        await connection.aclose()


async def test_a_stream_without_its_request_is_refused() -> None:
    async with FakeEtcd() as fake:
        connection = await _connected(fake)
        stream = await connection.open_stream(methods.RANGE_STREAM.path, (), soon())
        await stream.half_close()
        with pytest.raises(AttemptFailure, match="cardinality violation"):
            await stream.receive()
        await connection.aclose()
