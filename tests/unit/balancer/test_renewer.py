"""balancer/renewer.py: connections move when certificates change or expire, one by one, and only if that helps."""

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Final

import pytest

from etcd_aio.balancer.renewal_schedule import SPREAD
from etcd_aio.balancer.renewer import READ_SECONDS
from etcd_aio.errors import AttemptFailure, Delivery, StatusCode
from etcd_aio.transport import OF_CLIENT, OF_MEMBER
from tests.support.balancers import BalancerWorld
from tests.support.fake_engine import Accept, FakeConnection, Hang, Refuse
from tests.support.virtual_time import tasks, timers, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

FAR: Final = 1e9
SOON: Final = READ_SECONDS * 1.2 + SPREAD + 0.2  # in which a change is followed


class FakeFiles:
    """Certificates of a client in the loop's time; `change` replaces the files, `own` and `of_member` are ends."""

    server_name = ""

    def __init__(self) -> None:
        self.on_disk = self.version = 1
        self.own = self.of_member = FAR
        self.reads = 0
        self.problem: Exception | None = None
        self.hangs = False

    async def context(self) -> ssl.SSLContext:
        raise AssertionError("each connection has a source of its own")

    def on_handshake(self, tls: ssl.SSLObject) -> None:
        raise AssertionError("each connection has a source of its own")

    async def read(self) -> None:
        self.reads += 1
        if self.problem is not None:
            raise self.problem
        if self.hangs:
            await asyncio.Event().wait()
        self.version = self.on_disk

    def change(self) -> None:
        self.on_disk += 1

    def for_connection(self) -> "FakeCertificates":
        self.version = self.on_disk
        return FakeCertificates(self)


class FakeCertificates:
    """Those of one connection."""

    server_name = ""

    def __init__(self, files: FakeFiles) -> None:
        self._files = files
        self._version = files.version
        self.expiry = min((files.own, OF_CLIENT), (files.of_member, OF_MEMBER))

    async def context(self) -> ssl.SSLContext:
        raise AssertionError("the engine of the test makes no handshake")

    def on_handshake(self, tls: ssl.SSLObject) -> None:
        raise AssertionError("the engine of the test makes no handshake")

    @property
    def is_current(self) -> bool:
        return self._version == self._files.version


class World(BalancerWorld):
    """A balancer whose connections are renewed; the wall clock is that of the loop."""

    def __init__(self, endpoints: str, files: FakeFiles, seed: int) -> None:
        super().__init__(endpoints, chance=Random(seed).random, certificates=files)
        self.files = files
        assert self.balancer._renewer is not None
        self.balancer._renewer._wall = self.loop.time

    def open(self, name: str = "m1") -> list[int]:
        return [number for number, one in enumerate(self[name].connections) if not one.is_lost]

    async def dialled_again(self) -> None:
        while len(self["m1"].dials) < 2:  # noqa: ASYNC110 - in virtual time
            await asyncio.sleep(0.05)

    def dials(self) -> int:
        return sum(len(member.dials) for member in self.engine.members.values())


@asynccontextmanager
async def world(
    endpoints: str = "m1", *, own: float = FAR, of_member: float = FAR, seed: int = 1
) -> AsyncIterator[World]:
    files = FakeFiles()
    files.own, files.of_member = (asyncio.get_running_loop().time() + end for end in (own, of_member))
    made = await World(endpoints, files, seed).started()
    try:
        yield made
    finally:
        await made.balancer.aclose()
        assert not tasks()
        assert all(one.is_lost for member in made.engine.members.values() for one in member.connections)


def told(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno == level and "renewed" in one.getMessage()]


# --- what moves ---


async def test_a_change_of_the_files_moves_the_connection_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "etcd_aio.balancer")
    async with world() as it:
        assert it.balancer._renewer is not None
        moves: list[str] = []
        it.balancer._renewer._on_moved = lambda: moves.append("the leader is searched for")
        await asyncio.sleep(60)
        assert it.open() == [0], "nothing has changed"
        assert it.files.reads == pytest.approx(60 / READ_SECONDS, abs=3)
        it.files.change()
        await asyncio.sleep(SOON)
        assert it.open() == [1]
        await asyncio.sleep(600)
        assert it.dials() == 2
        assert len(moves) == 1
        [found] = it.balancer.statistics()
        assert (found.connects, found.failures, found.last_error) == (2, 0, None)
    assert told(caplog, logging.INFO) == ["endpoint m1:2379: the connection is renewed: certificate files have changed"]


async def test_a_call_under_way_ends_on_the_old_connection_and_a_stream_moves() -> None:
    async with world() as it:
        left: list[str] = []
        sub = it.sub("m1")
        await sub.open_stream("/s", (), it.loop.time() + 5, left.append)
        it["m1"].dial = Accept(seconds=0.2)
        it.files.change()
        await it.dialled_again()
        it["m1"].latency = 0.5
        calls = [
            asyncio.ensure_future(sub.unary("/x", b"", (), it.loop.time() + 100, may_move=may_move))
            for may_move in (False, True)
        ]
        await asyncio.sleep(0.3)
        assert left == ["the connection is renewed: certificate files have changed"]
        assert it.open() == [0, 1]
        assert sub.in_flight == 0, "those of the new one"
        assert await asyncio.gather(*calls) == [b"", b""], "the old connection serves"
        assert it.open() == [0, 1], "the stream is there until its owner leaves it"
        it["m1"].stream.cancel()
        await turns()
        assert it.open() == [1]


@pytest.mark.parametrize("whose", ["own", "of_member"])
async def test_an_end_that_nears_moves_the_connection_before(whose: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "etcd_aio.balancer")
    own, of_member = (8 * 3600, FAR) if whose == "own" else (FAR, 8 * 3600)
    async with world(own=own, of_member=of_member) as it:
        await asyncio.sleep(6.4 * 3600)
        assert it.open() == [0]
        it.files.own = it.files.of_member = it.loop.time() + FAR  # the member reads its files itself
        await asyncio.sleep(0.6 * 3600)
        assert it.open() == [1]
    owner = "client" if whose == "own" else "member"
    assert told(caplog, logging.INFO) == [
        f"endpoint m1:2379: the connection is renewed: the {owner}'s certificate would expire"
    ]
    assert not told(caplog, logging.WARNING)


@pytest.mark.parametrize("seed", range(5))
async def test_a_connection_that_ends_before_the_next_reading_is_renewed_too(seed: int) -> None:
    """The first one, and one that was made meanwhile."""
    async with world(own=2.0, seed=seed) as it:
        it.files.own = it.loop.time() + FAR
        await asyncio.sleep(2.0)
        assert it.open() == [1]
        await asyncio.sleep(seed)
        it.files.own = it.loop.time() + 2.0
        it["m1"].connection.lose(ConnectionResetError(104, "reset"))
        await asyncio.sleep(0.1)
        it.files.own = it.loop.time() + FAR
        await asyncio.sleep(1.9)
        assert it.open() == [3]


@pytest.mark.parametrize("lifetime", [5.0, 20.0])
async def test_short_lived_certificates_never_expire_within_a_connection(lifetime: float) -> None:
    """They are replaced when a half of their time is over, as is usual."""
    async with world("m1,m2", own=lifetime) as it:
        expired = 0
        end = it.loop.time() + 30 * lifetime
        next_files = it.loop.time() + lifetime / 2
        while it.loop.time() < end:
            await asyncio.sleep(0.05)
            if it.loop.time() >= next_files:
                next_files += lifetime / 2
                it.files.change()
                it.files.own = it.loop.time() + lifetime
            for name in ("m1", "m2"):
                certificates = it.sub(name).certificates
                assert certificates is not None
                expired += certificates.expiry[0] < it.loop.time()
        assert expired == 0
        assert all(30 <= len(it[name].connections) <= 100 for name in ("m1", "m2"))


async def test_the_endpoints_move_one_after_the_other() -> None:
    async with world("m1,m2,m3") as it:
        it.files.change()
        most = 0
        for name in ("m1", "m2", "m3"):
            it[name].dial = Accept(seconds=3.0)
        for _ in range(400):
            await asyncio.sleep(0.1)
            under_way = sum(len(it[name].dials) - len(it[name].connections) for name in ("m1", "m2", "m3"))
            most = max(most, under_way)
            assert it.balancer.ready_count == 3
        assert most == 1
        assert [len(it[name].connections) for name in ("m1", "m2", "m3")] == [2, 2, 2]


async def test_clients_with_the_same_files_do_not_dial_in_step() -> None:
    moved: Counter[int] = Counter()
    for seed in range(40):
        async with world(seed=seed) as it:
            await asyncio.sleep(20)
            it.files.change()
            start = it.loop.time()
            await asyncio.sleep(SOON)
            moved[int(it["m1"].dials[1] - start)] += 1
    assert len(moved) >= 8, moved
    assert max(moved.values()) <= 10, moved


# --- what does not ---


async def test_a_dial_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "etcd_aio.balancer")
    async with world() as it:
        it["m1"].dial = Refuse(ssl.SSLError("certificate required"))
        it.files.change()
        await asyncio.sleep(300)
        assert it.open() == [0]
        assert 5 <= len(it["m1"].dials) - 1 <= 20, "less and less often"
        [found] = it.balancer.statistics()
        assert (found.state.name, found.connects, found.last_error) == ("READY", 1, None)
        assert await it.sub("m1").unary("/x", b"", (), it.loop.time() + 5) == b""
        assert len(told(caplog, logging.WARNING)) == 1, "one warning, not one for every dial"
        assert "stays in use: SSLError: ('certificate required',)" in told(caplog, logging.WARNING)[0]
        it["m1"].dial = Accept()  # the member trusts it now
        await asyncio.sleep(80)
        assert it.open() == [1]


async def test_files_that_are_not_replaced_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "etcd_aio.balancer")
    async with world("m1,m2", own=600) as it:
        await asyncio.sleep(3 * 3600)
        assert it.open() == it.open("m2") == [0], "what brings nothing newer is closed at once"
        assert it.dials() < 2 * (30 + 3 * 3600 / 300), "no busy loop after the end"
        [warning] = told(caplog, logging.WARNING)
        assert "stays in use: the client's certificate expires in 1" in warning
        it.files.change()
        it.files.own = it.loop.time() + FAR
        await asyncio.sleep(SOON)
        assert it.open("m2")[0] > 0
        assert len(it.open()) == len(it.open("m2")) == 1


async def test_a_certificate_that_has_expired_already_makes_no_busy_loop() -> None:
    """The clocks of both sides may differ."""
    async with world(own=-60) as it:
        await asyncio.sleep(600)
        assert it.open() == [0]
        assert it.dials() < 15


@pytest.mark.parametrize(("seconds", "kept"), [(0.0, 1), (2.0, 2)])
async def test_a_connection_that_was_lost_meanwhile_is_not_replaced(seconds: float, kept: int) -> None:
    async with world() as it:
        it["m1"].dial = Accept(seconds=2.0)
        it.files.change()
        await it.dialled_again()
        await asyncio.sleep(1)
        it["m1"].dial = Accept(seconds=seconds)
        it["m1"].connection.lose(ConnectionResetError(104, "reset"))
        await asyncio.sleep(10)
        assert len(it["m1"].connections) == 3
        assert it.open() == [kept], "the dialler's own; the other was closed"


async def test_a_member_that_does_not_serve_gives_up_what_can_move() -> None:
    """Its health over the old connection is not judged any more."""
    async with world() as it:
        no_leader = AttemptFailure(StatusCode.UNAVAILABLE, "etcdserver: no leader", Delivery.ANSWERED)
        it["m1"].answers.append(no_leader)
        it["m1"].otherwise = Hang()
        sub = it.sub("m1")
        with pytest.raises(AttemptFailure):
            await sub.unary("/x", b"", (), it.loop.time() + 5)
        waiting = asyncio.ensure_future(sub.unary("/x", b"", (), it.loop.time() + 100, may_move=True))
        await turns()
        renewed = await sub.dial_beside()
        assert sub.renew(renewed, "for this test")
        with pytest.raises(AttemptFailure, match="for this test"):
            await waiting


async def test_files_that_cannot_be_read_do_not_keep_an_end_from_being_seen() -> None:
    for hangs in (False, True):
        async with world(own=100) as it:
            it.files.hangs = hangs
            it.files.problem = None if hangs else RuntimeError("a defect")
            it.files.own = it.loop.time() + FAR
            await asyncio.sleep(99)
            assert it.open() == [1]


async def test_the_end_of_the_client_ends_a_dial() -> None:
    async with world() as it:
        it["m1"].dial = Hang()
        it.files.change()
        await asyncio.sleep(SOON)
        assert len(it["m1"].dials) == 2


async def test_without_the_option_there_is_no_task_and_no_timer() -> None:
    it = await BalancerWorld("m1").started()
    names = {task.get_name() for task in tasks()}
    assert names == {"etcd_aio dial m1:2379"}
    assert timers() == 0
    assert it.sub("m1").certificates is None
    await asyncio.sleep(3600)
    assert len(it["m1"].connections) == 1
    await it.balancer.aclose()
    async with world() as other:
        assert {task.get_name() for task in tasks()} == names | {"etcd_aio renew connections"}
        assert isinstance(other["m1"].connection, FakeConnection)
