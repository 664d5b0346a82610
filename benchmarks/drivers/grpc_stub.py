"""Drives the stub that protoc generates, on grpc.aio, without any client library."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

# Installed and generated only in the environment of this driver.
import grpc  # type: ignore[import-not-found,import-untyped,unused-ignore]
import rpc_pb2  # type: ignore[import-not-found]
import rpc_pb2_grpc  # type: ignore[import-not-found]

from benchmarks.drivers.loop import Call, Settings, main


class StubDriver:
    def __init__(self, channel: object) -> None:
        self._kv = rpc_pb2_grpc.KVStub(channel)
        self._watch = rpc_pb2_grpc.WatchStub(channel)

    def get(self, key: str) -> Call:
        request_range = self._kv.Range
        raw = key.encode()

        async def call() -> int:
            reply = await request_range(rpc_pb2.RangeRequest(key=raw, serializable=True))
            return sum([len(kv.value) for kv in reply.kvs])

        return call

    def put(self, key: str, value: bytes) -> Call:
        request_put = self._kv.Put
        raw = key.encode()

        async def call() -> int:
            await request_put(rpc_pb2.PutRequest(key=raw, value=value))
            return 0

        return call

    def range(self, prefix: str) -> Call:
        request_range = self._kv.Range
        start = prefix.encode()
        end = start[:-1] + bytes([start[-1] + 1])

        async def call() -> int:
            reply = await request_range(rpc_pb2.RangeRequest(key=start, range_end=end, serializable=True))
            return sum([len(kv.value) for kv in reply.kvs])

        return call

    def watch(self, prefix: str, revision: int, events: int) -> Call:
        start = prefix.encode()
        end = start[:-1] + bytes([start[-1] + 1])
        create = rpc_pb2.WatchCreateRequest(key=start, range_end=end, start_revision=revision)

        async def call() -> int:
            read, left = 0, events
            stream = self._watch.Watch()
            await stream.write(rpc_pb2.WatchRequest(create_request=create))
            while left > 0:
                reply = await stream.read()
                for event in reply.events:
                    read += len(event.kv.value)
                left -= len(reply.events)
            stream.cancel()
            return read

        return call


@asynccontextmanager
async def connect(settings: Settings) -> AsyncIterator[StubDriver]:
    host, port = settings.target
    # A thousand revisions may come in one message, which is larger than grpcio's default limit.
    options = [("grpc.max_receive_message_length", -1)]
    async with grpc.aio.insecure_channel(f"{host}:{port}", options=options) as channel:
        yield StubDriver(channel)


if __name__ == "__main__":
    main(connect, "grpcio", "protobuf")
