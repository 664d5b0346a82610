"""A fake and a real etcd side by side: both get the same requests, and their answers are compared.

Both begin empty and are never told apart afterwards, so even revisions are equal. Requests are encoded messages, which
may be what no client would send. In drawn requests revisions are relative: see `resolve`.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from typing import Any, Final

from etcd_aio import methods, pb
from etcd_aio.codec import decode, encode, message_class_of
from etcd_aio.errors import AttemptFailure
from etcd_aio.fake import FakeEtcd
from etcd_aio.methods import AnyMethod
from etcd_aio.testing import EtcdServer
from etcd_aio.transport import Connection, Target, TransportOptions, create_engine
from tests.support.transport import Owner, soon

# A revision of a drawn request is one of these, plus a small number.
NOW: Final = 1_000_000
COMPACTED: Final = 2_000_000
_RANGE: Final = 1_000
_RELATIVE: Final = frozenset(
    {"revision", "min_mod_revision", "max_mod_revision", "min_create_revision", "max_create_revision"}
    | {"mod_revision", "create_revision", "start_revision"}
)

Answer = pb.Message | tuple[str, str]
"""A normalised reply, or status and text of a refusal."""


@dataclass(frozen=True)
class Step:
    """One request."""

    method: AnyMethod
    request: pb.Message

    def __repr__(self) -> str:
        return f"{self.method.name} {self.request.to_dict()}"


def resolve(message: pb.Message, now: int, compacted: int) -> pb.Message:
    """A copy with absolute revisions."""
    made = type(message)()
    for field in fields(message):
        value: Any = getattr(message, field.name)
        if isinstance(value, pb.Message):
            value = resolve(value, now, compacted)
        elif isinstance(value, list):
            value = [resolve(one, now, compacted) if isinstance(one, pb.Message) else one for one in value]
        elif field.name in _RELATIVE and isinstance(value, int):
            for base, absolute in ((NOW, now), (COMPACTED, compacted)):
                if abs(value - base) < _RANGE:
                    value = value - base + absolute
        setattr(made, field.name, value)
    return made


def normalised(message: pb.Message) -> pb.Message:
    """The message without what the two must differ in: ids of cluster and member, and the term."""
    for field in fields(message):
        value: Any = getattr(message, field.name)
        if isinstance(value, pb.ResponseHeader):
            value.cluster_id, value.member_id = bool(value.cluster_id), bool(value.member_id)
            value.raft_term = bool(value.raft_term)
        elif isinstance(value, pb.Message):
            normalised(value)
        elif isinstance(value, list):
            for one in value:
                if isinstance(one, pb.Message):
                    normalised(one)
    if isinstance(message, pb.LeaseTimeToLiveResponse):
        if message.granted_ttl - 2 <= message.ttl <= message.granted_ttl:
            message.ttl = message.granted_ttl
        message.keys.sort()
    return message


def shown(answer: Answer) -> object:
    """The answer with all values, which messages do not show."""
    return answer.to_dict() if isinstance(answer, pb.Message) else answer


class Pair:
    """The two servers."""

    def __init__(self, fake: Connection, real: Connection) -> None:
        self._sides = (fake, real)
        self._compacted = 0
        self._now = 1
        self.steps = 0

    async def play(self, steps: Sequence[Step]) -> None:
        """Send the requests one after the other, and compare the answers; then begin anew."""
        try:
            for number, step in enumerate(steps):
                await self._compare(step, steps[: number + 1])
        finally:
            await self._begin_anew()

    async def _compare(self, step: Step, history: Sequence[Step]) -> Answer:
        request = resolve(step.request, self._now, self._compacted)
        self.steps += 1
        mine, real = [await self.answer(side, step.method, request) for side in self._sides]
        if shown(mine) != shown(real):
            lines = "\n  ".join(map(repr, history))
            raise AssertionError(
                f"\n  {lines}\nthe last one at revision {self._now}, compacted {self._compacted}, sent as\n"
                f"  {request.to_dict()}\nfake: {shown(mine)}\nreal: {shown(real)}"
            )
        header = getattr(real, "header", None)
        if header is not None:
            self._now = max(self._now, header.revision)
            if isinstance(request, pb.CompactionRequest):
                self._compacted = request.revision
        return real

    async def _begin_anew(self) -> None:
        """Remove keys, leases and old revisions. Leases are known by their small ids."""
        everything = pb.DeleteRangeRequest(key=b"\x00", range_end=b"\x00")
        await self._compare(Step(methods.PUT, pb.PutRequest(key=b"last")), ())
        await self._compare(Step(methods.DELETE_RANGE, everything), ())
        for lease in LEASES:
            await self._compare(Step(methods.LEASE_REVOKE, pb.LeaseRevokeRequest(id=lease)), ())
        await self._compare(Step(methods.COMPACT, pb.CompactionRequest(revision=NOW, physical=True)), ())

    @staticmethod
    async def answer(side: Connection, method: AnyMethod, request: pb.Message) -> Answer:
        """The answer of one side."""
        try:
            reply = await side.unary(method.path, encode(request), (("client-api-version", "3.7"),), soon())
        except AttemptFailure as failure:
            return failure.code.name, failure.message
        return normalised(decode(message_class_of(method.reply), reply))


LEASES: Final = (1, 2, 3)


@asynccontextmanager
async def pair_of(version: str) -> AsyncIterator[Pair]:
    """A fake and a real server of one version."""
    options = TransportOptions()
    minor = ".".join(version.split(".")[:2])
    async with EtcdServer(version=version) as server, FakeEtcd(minor) as fake:
        host, port = server.endpoint.removeprefix("http://").split(":")
        real = await create_engine("native", options).connect(Target(host, int(port), "", f"{host}:{port}"), Owner())
        authority = fake.endpoints[0].removeprefix("http://")
        mine = await fake.engine(options).connect(Target("", 0, "", authority), Owner())
        try:
            yield Pair(mine, real)
        finally:
            await asyncio.gather(mine.aclose(), real.aclose())
