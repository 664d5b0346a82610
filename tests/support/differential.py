"""A fake and a real etcd side by side: both get the same requests, and their answers are compared.

Both begin empty and are never told apart afterwards, so even revisions are equal. Requests are encoded messages, which
may be what no client would send. In drawn requests revisions are relative: see `resolve`.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from math import inf
from typing import Any, Final, cast

from etcd_aio import methods, pb
from etcd_aio.codec import decode, encode, message_class_of
from etcd_aio.errors import AttemptFailure
from etcd_aio.fake import FakeEtcd
from etcd_aio.methods import AnyMethod, Cardinality
from etcd_aio.testing import EtcdServer
from etcd_aio.transport import Connection, Stream, Target, TransportOptions, create_engine
from tests.support.known_differences import avoid, forget, is_served
from tests.support.transport import Owner, soon

# A revision of a drawn request is one of these, plus a small number.
NOW: Final = 1_000_000
COMPACTED: Final = 2_000_000
_RANGE: Final = 1_000
_RELATIVE: Final = frozenset(
    {"revision", "min_mod_revision", "max_mod_revision", "min_create_revision", "max_create_revision"}
    | {"mod_revision", "create_revision", "start_revision"}
)
_ONE_REPLY: Final = frozenset({methods.WATCH.path, methods.LEASE_KEEP_ALIVE.path})  # is what `answer` waits for

Answer = list[pb.Message] | tuple[str, str]
"""What came, without known differences; or status and text of a refusal."""


class Difference(AssertionError):  # noqa: N818 - not an error of the program
    """The two answered differently."""


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


def shown(answer: Answer) -> object:
    """The answer with all values, which messages do not show."""
    return [one.to_dict() for one in answer] if isinstance(answer, list) else answer


def _bare(answer: Answer) -> object:
    """The answer as something that is compared fast."""
    return [encode(one) for one in answer] if isinstance(answer, list) else answer


class Pair:
    """The two servers.

    Attributes:
        version: of both.
        sides: the fake and the real one.
        now: the current revision.
        compacted: the revision of the last compaction.
        tally: how often which RPC was compared, by the status of its answer.
        refusals: the statuses and texts that the real one has refused with.
        tokens: the tokens of users on both sides.
    """

    def __init__(self, version: str, cluster: FakeEtcd, fake: Connection, real: Connection) -> None:
        self.version = version
        self._cluster = cluster
        self.sides = (fake, real)
        self.tokens: dict[str, list[str]] = {}
        self.compacted = 0
        self.now = 1
        self.tally: Counter[tuple[str, str]] = Counter()
        self.refusals: set[tuple[str, str]] = set()

    async def fake_is_idle(self) -> None:
        """Let the fake send all that it has."""
        await _some_turns()
        while any(node.hub.due() != inf for node in self._cluster._cluster.nodes):
            await self._cluster.advance(0.1)
        await _some_turns()

    def resolved(self, request: pb.Message, user: str = "") -> pb.Message:
        """The request with absolute revisions, and without known differences."""
        resolved = resolve(request, self.now, self.compacted)
        avoid(resolved, self.version, user)
        return resolved

    async def play(self, steps: Sequence[Step]) -> None:
        """Send the requests one after the other, and compare the answers; then start over."""
        for number, step in enumerate(steps):
            await self.compare(step, steps[: number + 1])
        await self.begin_anew()

    async def log_in(self, name: str, password: str) -> None:
        """Log in on both sides; a user who cannot gets a token that no server gave out."""
        request = pb.AuthenticateRequest(name=name, password=password)
        answers = [await self.answer(side, methods.AUTHENTICATE, request) for side in self.sides]
        tokens = [
            cast("pb.AuthenticateResponse", answer[0]).token if isinstance(answer, list) else answer
            for answer in answers
        ]
        if not all(isinstance(token, str) for token in tokens) and tokens[0] != tokens[1]:
            raise Difference(f"{name} logs in: {tokens}")
        self.refusals |= {token for token in tokens if isinstance(token, tuple)}
        self.tokens[name] = [token if isinstance(token, str) else "aaaaaaaaaaaaaaaa.1" for token in tokens]

    async def compare(self, step: Step, history: Sequence[object], user: str = "") -> Answer:
        """Send a request to both, and compare the answers. What the real one does not have is not sent."""
        if not is_served(step.method, self.version):
            return []
        request = self.resolved(step.request, user)
        tokens = self.tokens.get(user, ["", ""])
        mine, real = [
            await self.answer(side, step.method, request, token) for side, token in zip(self.sides, tokens, strict=True)
        ]
        self.tally[step.method.name, "OK" if isinstance(real, list) else real[0]] += 1
        if isinstance(real, tuple):
            self.refusals.add(real)
        if _bare(mine) != _bare(real):
            lines = "\n  ".join(map(repr, history))
            raise Difference(
                f"etcd {self.version}:\n  {lines}\n"
                f"the last one of {user or 'no user'} at revision {self.now}, compacted {self.compacted},"
                f" sent as\n  {request.to_dict()}\nfake: {shown(mine)}\nreal: {shown(real)}"
            )
        header = getattr(real[-1], "header", None)
        if header is not None:
            self.now = max(self.now, header.revision)
            if isinstance(request, pb.CompactionRequest):
                self.compacted = request.revision
        return real

    async def begin_anew(self) -> None:
        """Remove alarms, keys, leases and old revisions. Leases are known by their small ids."""
        for alarm in (pb.AlarmType.NOSPACE, pb.AlarmType.CORRUPT):
            ending = pb.AlarmRequest(action=pb.AlarmRequestAlarmAction.DEACTIVATE, alarm=alarm)
            await self.compare(Step(methods.ALARM, ending), ())
        everything = pb.DeleteRangeRequest(key=b"\x00", range_end=b"\x00")
        await self.compare(Step(methods.PUT, pb.PutRequest(key=b"last")), ())
        await self.compare(Step(methods.DELETE_RANGE, everything), ())
        for lease in LEASES:
            await self.compare(Step(methods.LEASE_REVOKE, pb.LeaseRevokeRequest(id=lease)), ())
        await self.compare(Step(methods.COMPACT, pb.CompactionRequest(revision=NOW, physical=True)), ())

    async def answer(self, side: Connection, method: AnyMethod, request: pb.Message, token: str = "") -> Answer:
        """The answer of one side: of a stream without an end, the first reply."""
        metadata = (("client-api-version", "3.7"), *([("token", token)] if token else []))
        try:
            if method.cardinality is Cardinality.UNARY:
                replies = [await side.unary(method.path, encode(request), metadata, soon())]
            else:
                replies = await _replies(await side.open_stream(method.path, metadata, soon()), method, request)
        except AttemptFailure as failure:
            return failure.code.name, failure.message
        messages = [decode(message_class_of(method.reply), reply) for reply in replies]
        for message in messages:
            forget(message, self.version)
        return messages


async def _replies(stream: Stream, method: AnyMethod, request: pb.Message) -> list[bytes]:
    try:
        await stream.send(encode(request))
        if method.cardinality is Cardinality.SERVER_STREAMING:
            await stream.half_close()
        replies = []
        while isinstance(reply := await stream.receive(), bytes):
            replies.append(reply)
            if method.path in _ONE_REPLY:
                break
        return replies
    finally:
        stream.cancel()


async def _some_turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


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
        host, port = authority.split(":")
        mine = await fake.engine(options).connect(Target(host, int(port), "", authority), Owner())
        try:
            yield Pair(version, fake, mine, real)
        finally:
            await asyncio.gather(mine.aclose(), real.aclose())
