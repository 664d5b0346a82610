"""A fake and a real etcd side by side: both get the same requests, and their answers are compared.

Both begin empty and are never told apart afterwards, so even revisions are equal. Requests are encoded messages, which
may be what no client would send. In drawn requests revisions are relative: see `resolve`.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from math import inf
from typing import Any, Final, cast

from etcd_aio import methods, pb
from etcd_aio.codec import decode, encode, message_class_of
from etcd_aio.errors import AttemptFailure
from etcd_aio.fake import FakeEtcd
from etcd_aio.methods import AnyMethod
from etcd_aio.testing import EtcdServer
from etcd_aio.transport import Connection, Target, TransportOptions, create_engine
from tests.support.transport import Owner, soon
from tests.support.until import until

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
    for field in fields(cast("Any", message)):
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
    for field in fields(cast("Any", message)):
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
    """The two servers.

    Attributes:
        sides: the fake and the real one.
        now: the current revision.
        compacted: the revision of the last compaction.
        steps: how many requests were compared.
        tokens: the tokens of users on both sides.
    """

    def __init__(self, cluster: FakeEtcd, fake: Connection, real: Connection) -> None:
        self._cluster = cluster
        self.sides = (fake, real)
        self.tokens: dict[str, list[str]] = {}
        self.compacted = 0
        self.now = 1
        self.steps = 0

    async def fake_is_idle(self) -> None:
        """Wait until the fake has nothing more to send."""
        for _ in range(5):
            await asyncio.sleep(0)
        await until(lambda: all(node.hub.due() == inf for node in self._cluster._cluster.nodes))
        for _ in range(5):
            await asyncio.sleep(0)

    async def play(self, steps: Sequence[Step]) -> None:
        """Send the requests one after the other, and compare the answers; then start over."""
        try:
            for number, step in enumerate(steps):
                await self.compare(step, steps[: number + 1])
        finally:
            await self.begin_anew()

    async def log_in(self, name: str, password: str) -> None:
        """Log in on both sides; a user who cannot gets a token that nobody gave out."""
        request = pb.AuthenticateRequest(name=name, password=password)
        answers = [await self.answer(side, methods.AUTHENTICATE, request) for side in self.sides]
        tokens = [answer.token if isinstance(answer, pb.AuthenticateResponse) else answer for answer in answers]
        assert all(isinstance(token, str) for token in tokens) or tokens[0] == tokens[1], tokens
        self.tokens[name] = [token if isinstance(token, str) else "aaaaaaaaaaaaaaaa.1" for token in tokens]

    async def compare(self, step: Step, history: Sequence[Step], user: str = "") -> Answer:
        """Send a request to both, and compare the answers."""
        request = resolve(step.request, self.now, self.compacted)
        self.steps += 1
        tokens = self.tokens.get(user, ["", ""])
        mine, real = [
            await self.answer(side, step.method, request, token) for side, token in zip(self.sides, tokens, strict=True)
        ]
        if shown(mine) != shown(real):
            lines = "\n  ".join(map(repr, history))
            raise AssertionError(
                f"\n  {lines}\nthe last one of {user or 'no user'} at revision {self.now}, compacted {self.compacted},"
                f" sent as\n  {request.to_dict()}\nfake: {shown(mine)}\nreal: {shown(real)}"
            )
        header = getattr(real, "header", None)
        if header is not None:
            self.now = max(self.now, header.revision)
            if isinstance(request, pb.CompactionRequest):
                self.compacted = request.revision
        return real

    async def begin_anew(self) -> None:
        """Remove keys, leases and old revisions. Leases are known by their small ids."""
        everything = pb.DeleteRangeRequest(key=b"\x00", range_end=b"\x00")
        await self.compare(Step(methods.PUT, pb.PutRequest(key=b"last")), ())
        await self.compare(Step(methods.DELETE_RANGE, everything), ())
        for lease in LEASES:
            await self.compare(Step(methods.LEASE_REVOKE, pb.LeaseRevokeRequest(id=lease)), ())
        await self.compare(Step(methods.COMPACT, pb.CompactionRequest(revision=NOW, physical=True)), ())

    @staticmethod
    async def answer(side: Connection, method: AnyMethod, request: pb.Message, token: str = "") -> Answer:
        """The answer of one side."""
        try:
            metadata = (("client-api-version", "3.7"), *([("token", token)] if token else []))
            reply = await side.unary(method.path, encode(request), metadata, soon())
        except AttemptFailure as failure:
            return failure.code.name, failure.message
        return normalised(decode(message_class_of(method.reply), reply))


LEASES: Final = (1, 2, 3)


@asynccontextmanager
async def pair_of(version: str) -> AsyncIterator[Pair]:
    """A fake and a real server of one version."""
    options = TransportOptions()
    minor = ".".join(version.split(".")[:2])
    async with EtcdServer(version=version, flags=("--bcrypt-cost=4",)) as server, FakeEtcd(minor) as fake:
        host, port = server.endpoint.removeprefix("http://").split(":")
        real = await create_engine("native", options).connect(Target(host, int(port), "", f"{host}:{port}"), Owner())
        authority = fake.endpoints[0].removeprefix("http://")
        mine = await fake.engine(options).connect(Target("", 0, "", authority), Owner())
        try:
            yield Pair(fake, mine, real)
        finally:
            await asyncio.gather(mine.aclose(), real.aclose())
